//! Every denial: the message for the user, the HTTP code of the status, and the reason for logs and metrics.
//!
//! The messages and codes are those of the Go webhook where it had one. None of them quotes a contents text, and
//! every text from a pod is quoted, escaped and cut.

use super::{
    Failure, MAX_PATCH_BYTES, MAX_SPECS_PER_POD,
    operation::Operation,
    pod::{MAX_SLOTS, SlotRef},
};
use crate::{
    credspec::{SpecName, compare::Difference},
    quote::Quoted,
};

/// What an update changed in a slot that must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modified {
    /// `gmsaCredentialSpecName`
    Name,
    /// `gmsaCredentialSpec`
    Contents,
    /// Both.
    NameAndContents,
}

impl Modified {
    fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Contents => "contents",
            Self::NameAndContents => "name and contents",
        }
    }
}

/// Why a request is refused. Its `Display` is the message that the user reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The webhook is registered for something that is not a Pod.
    #[error("expected a Pod object, got a {0}")]
    UnexpectedKind(Quoted),
    /// The webhook for credential specs is registered for something else.
    #[error("expected a GMSACredentialSpec object, got a {0}")]
    NotACredentialSpec(Quoted),
    /// A credential spec that cannot work, where strict validation is on.
    #[error("the GMSA cred spec cannot work: {0}")]
    CredentialSpecWrong(String),
    /// The webhook is registered for an operation that it does not decide about.
    #[error("expected a CREATE or UPDATE operation, got {}", .0.as_str())]
    UnexpectedOperation(Operation),
    /// A review that lacks the object it is about.
    #[error("the AdmissionReview of a Pod {} has no request.{field}", operation.as_str())]
    NoObject {
        /// The missing field of the request.
        field: &'static str,
        /// The operation that needs it.
        operation: Operation,
    },
    /// A review of a pod in no namespace.
    #[error("the AdmissionReview has no valid request.namespace: {0} is not a DNS label")]
    InvalidNamespace(Quoted),
    /// A name that cannot be one of a credential spec.
    #[error("GMSA cred spec name {name} of {slot} is not a lower-case DNS subdomain")]
    InvalidSpecName {
        /// The name.
        name: Quoted,
        /// Its place in the pod.
        slot: SlotRef,
    },
    /// A name that cannot be one of a service account.
    #[error("service account name {0} is not a lower-case DNS subdomain")]
    InvalidServiceAccount(Quoted),
    /// More slots than [`MAX_SLOTS`].
    #[error("a pod may have at most {} containers, init containers and ephemeral containers together", MAX_SLOTS - 1)]
    TooManySlots,
    /// More distinct names than [`MAX_SPECS_PER_POD`].
    #[error("a pod may name at most {} distinct GMSA cred specs", MAX_SPECS_PER_POD)]
    TooManySpecs,
    /// A patch larger than [`MAX_PATCH_BYTES`].
    #[error(
        "the GMSA cred spec contents of this pod would take more than {} bytes: use fewer containers or name the GMSA cred spec on the pod",
        MAX_PATCH_BYTES
    )]
    PatchTooLarge,
    /// There is no credential spec of that name.
    #[error("cred spec {0} does not exist")]
    SpecMissing(SpecName),
    /// The credential spec holds nothing to expand into.
    #[error("cred spec {0} does not have a credspec key")]
    SpecUnusable(SpecName),
    /// The credential spec could not be read.
    #[error("unable to retrieve the contents of cred spec {spec}: {}", failure.cause)]
    SpecUnreadable {
        /// The credential spec.
        spec: SpecName,
        /// What went wrong.
        failure: Failure,
    },
    /// Contents without a name to check them against.
    #[error("{0} has a GMSA cred spec set, but does not define the name of the corresponding resource")]
    ContentsWithoutName(SlotRef),
    /// The service account does not hold `use`.
    #[error("service account {service_account:?} is not authorized to `use` GMSA cred spec {:?}{}", spec.as_str(), because(reason.as_deref()))]
    NotAuthorized {
        /// The service account's name.
        service_account: String,
        /// The credential spec.
        spec: SpecName,
        /// The API server's reason, where it gave one.
        reason: Option<String>,
    },
    /// The access review failed.
    #[error("unable to check whether service account {service_account:?} is authorized to `use` GMSA cred spec {:?}: {}", spec.as_str(), failure.cause)]
    AuthorizationFailed {
        /// The service account's name.
        service_account: String,
        /// The credential spec.
        spec: SpecName,
        /// What went wrong.
        failure: Failure,
    },
    /// Contents that are not the credential spec's.
    #[error("the GMSA cred spec contents for {slot} does not match the contents of GMSA resource {:?}: {difference}", spec.as_str())]
    ContentsDiffer {
        /// Their place in the pod.
        slot: SlotRef,
        /// The credential spec that they should match.
        spec: SpecName,
        /// How they differ.
        difference: Difference,
    },
    /// A name without contents.
    #[error("{slot} names GMSA cred spec {:?} but does not carry its contents, so it would start without its identity: either the mutating webhook did not run, or a mutating webhook that is sorted after it added the name", spec.as_str())]
    NameWithoutContents {
        /// Its place in the pod.
        slot: SlotRef,
        /// The credential spec that it names.
        spec: SpecName,
    },
    /// An update of what must not change.
    #[error("cannot update an existing pod's GMSA settings (GMSA {} modified on {slot})", what.as_str())]
    Modified {
        /// What was changed.
        what: Modified,
        /// Where.
        slot: SlotRef,
    },
}

fn because(reason: Option<&str>) -> String {
    reason.filter(|reason| !reason.is_empty()).map(|reason| format!(", reason: {reason:?}")).unwrap_or_default()
}

impl Denial {
    /// The HTTP status code that the API server gives to its client.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::UnexpectedKind(_)
            | Self::NotACredentialSpec(_)
            | Self::UnexpectedOperation(_)
            | Self::NoObject { .. }
            | Self::InvalidNamespace(_) => 400,
            Self::NotAuthorized { .. } | Self::Modified { .. } => 403,
            Self::SpecMissing(_) => 404,
            Self::SpecUnusable(_) => 417,
            Self::CredentialSpecWrong(_)
            | Self::InvalidSpecName { .. }
            | Self::InvalidServiceAccount(_)
            | Self::TooManySlots
            | Self::TooManySpecs
            | Self::PatchTooLarge
            | Self::ContentsWithoutName(_)
            | Self::ContentsDiffer { .. }
            | Self::NameWithoutContents { .. } => 422,
            Self::SpecUnreadable { failure, .. } | Self::AuthorizationFailed { failure, .. } => {
                if failure.timed_out {
                    504
                } else {
                    500
                }
            }
        }
    }

    /// Whether the pod asks for something that it cannot have. The other denials are failures, or requests that are not
    /// reviews of pods.
    #[must_use]
    pub fn concerns_the_pod(&self) -> bool {
        matches!(self.code(), 403 | 404 | 417 | 422)
    }

    /// The `meta/v1.StatusReason` that goes with the code. A time-out has none: controllers read the reason `Timeout` as
    /// "the pod was created, but slowly" and would wait for it.
    #[must_use]
    pub fn status_reason(&self) -> Option<&'static str> {
        match self.code() {
            400 => Some("BadRequest"),
            403 => Some("Forbidden"),
            404 => Some("NotFound"),
            422 => Some("Invalid"),
            500 => Some("InternalError"),
            _ => None,
        }
    }

    words! {
        /// The reason in logs, metrics and audit annotations.
        reason, REASONS {
            Self::UnexpectedKind(_) | Self::NotACredentialSpec(_) => "unexpected-kind",
            Self::CredentialSpecWrong(_) => "credential-spec-wrong",
            Self::UnexpectedOperation(_) => "unexpected-operation",
            Self::NoObject { .. } => "no-object",
            Self::InvalidNamespace(_) => "invalid-namespace",
            Self::InvalidSpecName { .. } => "invalid-spec-name",
            Self::InvalidServiceAccount(_) => "invalid-service-account",
            Self::TooManySlots => "too-many-slots",
            Self::TooManySpecs => "too-many-specs",
            Self::PatchTooLarge => "patch-too-large",
            Self::SpecMissing(_) => "spec-missing",
            Self::SpecUnusable(_) => "spec-unusable",
            Self::SpecUnreadable { .. } => "spec-unreadable",
            Self::ContentsWithoutName(_) => "contents-without-name",
            Self::NotAuthorized { .. } => "not-authorized",
            Self::AuthorizationFailed { .. } => "authorization-failed",
            Self::ContentsDiffer { .. } => "contents-differ",
            Self::NameWithoutContents { .. } => "name-without-contents",
            Self::Modified { .. } => "modified",
        }
    }
}
