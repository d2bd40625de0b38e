//! Every denial: the message for the user, the HTTP code of the status, and the reason for logs and metrics.
//!
//! The messages and codes are those of the Go webhook where it had one. None of them quotes a contents text, and
//! every string from a pod is quoted, escaped and cut.
//!
//! The order of the variants has no meaning. The answer is the first of these checks that denies; with `Warn`, the first that is enforced.
//! Slots are in the order of `Pod::slots`:
//! 1. `expect_pod` of `preconditions.rs`, about the request as a whole;
//! 2. `/mutate`, a created pod that asks for tickets: the name in its annotation, whether they are enabled, the cluster, what is in the way, the size of the patch;
//!    `/mutate`, any other pod: for added ephemeral containers the old object, then the number of names, then every name that is invalid,
//!    then the contents slot by slot, then the host name;
//!    `/validate`: on an update the old object, then what may not change, then the number of names, then slot by slot its name, the
//!    namespace of the request, the name of the service account, `use`, and its contents, missing or different; at the end the tokens;
//!    `/validate-credspec`: the kind, then the operation, then, with strictness, the errors of the linter together;
//!    `/validate-workload` denies nothing.
//!
//! A new denial is:
//! - a variant of [`Denial`] with its message;
//! - a rule in `crates/rules/data/10-core.yaml`, in its group "Denials", whose name is the reason in logs and metrics, with the words of the message;
//! - its line in `denials!`, with the rule and the code, which also decides by `concerns_the_pod` whether `Warn` admits the pod, and by
//!   `status_reason` what clients read;
//! - the code that returns it: `preconditions.rs`, `mutate.rs`, `tickets.rs`, `validate.rs` or `validate_credspec.rs`; for what they ask of others,
//!   `service_account.rs`, `facts.rs` or `patch.rs`. If the contents that a cache gave can lead to it, `Case::unconfirmed` in `decision.rs` has them
//!   read again; not for `PatchTooLarge`, which is about all contents together;
//! - for a look-up that failed, its rule in `counts_a_refusal` of `src/metrics/labels.rs`; otherwise in `CAUSE_GONE` of `shared/walk/decision.rs` of
//!   `kubectl gmsa`, or in the list of the test there;
//! - a folder in `tests/golden`, and its line in `docs/rules.md` and `docs/metrics.md` (`UPDATE_SNAPSHOTS=1 cargo test -p gmsa-rules`,
//!   `just generate`).

use super::{
    MAX_PATCH_BYTES, MAX_SPECS_PER_POD,
    operation::Operation,
    pod::{MAX_SLOTS, Slot, SlotKind},
};
use crate::{
    credspec::{SpecName, Verb, compare::Difference},
    diagnostic::rules::{self, Rule},
    quote::Quoted,
};

/// Why a request is refused. Its `Display` is the message that the user reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The webhook is registered for something else than it decides about.
    #[error("expected a {expected} object, got a {kind}")]
    UnexpectedKind { expected: &'static str, kind: Quoted },
    /// A credential spec that cannot work, where strict validation is on.
    #[error("the GMSA cred spec cannot work: {0}")]
    CredentialSpecWrong(String),
    /// The webhook is registered for an operation that it does not decide about.
    #[error("expected a CREATE or UPDATE operation, got {}", .0.as_str())]
    UnexpectedOperation(Operation),
    #[error("the AdmissionReview of a Pod {} has no request.{field}", operation.as_str())]
    NoObject { field: &'static str, operation: Operation },
    #[error("the AdmissionReview has no valid request.namespace: {0} is not a DNS label")]
    InvalidNamespace(Quoted),
    #[error("GMSA cred spec name {name} of {place} is not a lower-case DNS subdomain")]
    InvalidSpecName { name: Quoted, place: String },
    #[error("service account name {0} is not a lower-case DNS subdomain")]
    InvalidServiceAccount(Quoted),
    #[error("a pod may have at most {} containers, init containers and ephemeral containers together", MAX_SLOTS - 1)]
    TooManySlots,
    #[error("a pod may name at most {} distinct GMSA cred specs", MAX_SPECS_PER_POD)]
    TooManySpecs,
    #[error(
        "the GMSA cred spec contents of this pod would take more than {} bytes: use fewer containers or name the GMSA cred spec on the pod",
        MAX_PATCH_BYTES
    )]
    PatchTooLarge,
    #[error("cred spec {0} does not exist")]
    SpecMissing(SpecName),
    /// The credential spec holds nothing to expand into.
    #[error("cred spec {0} does not have a credspec key")]
    SpecUnusable(SpecName),
    #[error("unable to retrieve the contents of cred spec {spec}: {}", failure.cause)]
    SpecUnreadable { spec: SpecName, failure: Failure },
    /// Contents without a name to check them against.
    #[error("{0} has a GMSA cred spec set, but does not define the name of the corresponding resource")]
    ContentsWithoutName(String),
    #[error("service account {service_account:?} is not authorized to `{}` GMSA cred spec {:?}{}", verb.as_str(), spec.as_str(), because(reason.as_deref()))]
    NotAuthorized {
        service_account: String,
        verb: Verb,
        spec: SpecName,
        /// The API server's reason, where it gave one.
        reason: Option<String>,
    },
    #[error("unable to check whether service account {service_account:?} is authorized to `{}` GMSA cred spec {:?}: {}", verb.as_str(), spec.as_str(), failure.cause)]
    AuthorizationFailed { service_account: String, verb: Verb, spec: SpecName, failure: Failure },
    #[error("the GMSA cred spec contents for {slot} does not match the contents of GMSA resource {:?}: {difference}", spec.as_str())]
    ContentsDiffer { slot: String, spec: SpecName, difference: Difference },
    #[error("{slot} names GMSA cred spec {:?} but does not carry its contents, so it would start without its identity: either the mutating webhook did not run, or a mutating webhook that is sorted after it added the name", spec.as_str())]
    NameWithoutContents { slot: String, spec: SpecName },
    #[error("cannot update an existing pod's GMSA settings (GMSA {what} modified on {slot})")]
    Modified { what: &'static str, slot: String },
    #[error("this pod cannot have {}: {}", .0.product().name, .1)]
    TicketsImpossible(Verb, String),
    #[error("{} are not enabled here, or are being rolled out: try again", .0.product().name)]
    TicketsNotEnabled(Verb),
    #[error("unable to give this pod {}: {}", .0.product().name, .1.cause)]
    TicketsUnavailable(Verb, Failure),
}

/// A denial, and the slot that it is about: kind and position. `None` where it is about no slot: the request, a token, the annotation, the host
/// name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotDenial {
    pub slot: Option<(SlotKind, usize)>,
    pub denial: Denial,
}

impl SlotDenial {
    pub(super) fn of(slot: &Slot<'_>, denial: Denial) -> Self {
        Self { slot: Some(slot.position()), denial }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    Failed,
    TimedOut,
    /// It was not looked up: the limit on calls for warnings, or on their time, was reached.
    NotAsked,
}

/// Why something could not be found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// The HTTP status code with which the API server refused to say it.
    pub refused: Option<u16>,
    /// The cause, for the person who reads the denial.
    pub cause: String,
}

impl Failure {
    /// A failure other than a time-out.
    pub fn new(cause: impl Into<String>) -> Self {
        Self { kind: FailureKind::Failed, refused: None, cause: cause.into() }
    }

    /// The HTTP status code of a denial for it.
    fn code(&self) -> u16 {
        if self.kind == FailureKind::TimedOut { 504 } else { 500 }
    }
}

fn because(reason: Option<&str>) -> String {
    reason.filter(|reason| !reason.is_empty()).map(|reason| format!(", reason: {reason:?}")).unwrap_or_default()
}

impl Denial {
    /// The rule that the request breaks.
    pub fn rule(&self) -> &'static Rule {
        self.rule_and_code().0
    }

    /// The HTTP status code that the API server gives to its client.
    pub fn code(&self) -> u16 {
        self.rule_and_code().1
    }

    /// Whether the pod asks for something that it cannot have. The other denials are failures, or requests that are not
    /// reviews of pods.
    pub(super) fn concerns_the_pod(&self) -> bool {
        matches!(self.code(), 403 | 404 | 417 | 422)
    }

    /// Whether it rests on a look-up that was skipped because only warnings need it.
    pub(super) fn is_not_checked(&self) -> bool {
        let (Self::SpecUnreadable { failure, .. } | Self::AuthorizationFailed { failure, .. }) = self else {
            return false;
        };
        failure.kind == FailureKind::NotAsked
    }

    /// The `meta/v1.StatusReason` that goes with the code. A time-out has no reason: controllers read the reason `Timeout` as
    /// "the pod was created, but slowly" and would wait for it.
    pub(super) fn status_reason(&self) -> Option<&'static str> {
        match self.code() {
            400 => Some("BadRequest"),
            403 => Some("Forbidden"),
            404 => Some("NotFound"),
            422 => Some("Invalid"),
            500 => Some("InternalError"),
            503 => Some("ServiceUnavailable"),
            _ => None,
        }
    }

    /// The reason in logs, metrics and audit annotations: the name of its rule.
    pub fn reason(&self) -> &'static str {
        self.rule().id
    }
}

macro_rules! denials {
    ($($pattern:pat => $rule:ident, $code:expr;)+) => {
        impl Denial {
            /// The rules of all denials.
            pub const RULES: [&'static Rule; [$(stringify!($rule)),+].len()] = [$(&rules::$rule),+];

            fn rule_and_code(&self) -> (&'static Rule, u16) {
                match self { $($pattern => (&rules::$rule, $code)),+ }
            }
        }
    };
}

denials! {
    Self::UnexpectedKind { .. } => UNEXPECTED_KIND, 400;
    Self::CredentialSpecWrong(_) => CREDENTIAL_SPEC_WRONG, 422;
    Self::UnexpectedOperation(_) => UNEXPECTED_OPERATION, 400;
    Self::NoObject { .. } => NO_OBJECT, 400;
    Self::InvalidNamespace(_) => INVALID_NAMESPACE, 400;
    Self::InvalidSpecName { .. } => INVALID_SPEC_NAME, 422;
    Self::InvalidServiceAccount(_) => INVALID_SERVICE_ACCOUNT, 422;
    Self::TooManySlots => TOO_MANY_SLOTS, 422;
    Self::TooManySpecs => TOO_MANY_SPECS, 422;
    Self::PatchTooLarge => PATCH_TOO_LARGE, 422;
    Self::SpecMissing(_) => SPEC_MISSING, 404;
    Self::SpecUnusable(_) => SPEC_UNUSABLE, 417;
    Self::SpecUnreadable { failure, .. } => SPEC_UNREADABLE, failure.code();
    Self::ContentsWithoutName(_) => CONTENTS_WITHOUT_NAME, 422;
    Self::NotAuthorized { .. } => NOT_AUTHORIZED, 403;
    Self::AuthorizationFailed { failure, .. } => AUTHORIZATION_FAILED, failure.code();
    Self::ContentsDiffer { .. } => CONTENTS_DIFFER, 422;
    Self::NameWithoutContents { .. } => NAME_WITHOUT_CONTENTS, 422;
    Self::Modified { .. } => MODIFIED, 403;
    Self::TicketsImpossible(..) => TICKETS_IMPOSSIBLE, 422;
    Self::TicketsNotEnabled(_) => TICKETS_NOT_ENABLED, 503;
    Self::TicketsUnavailable(_, failure) => TICKETS_UNAVAILABLE, failure.code();
}
