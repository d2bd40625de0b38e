//! The values that labels take: enums, so that a scrape can never grow with what clients send.

use gmsa_core::admission::{AllowReason, Denial, Source, Webhook, operation::Operation};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};

macro_rules! label {
    ($(#[$about:meta])* $name:ident { $($(#[$variant_about:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_about])* $variant,)+
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The value in a scrape.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl EncodeLabelValue for $name {
            fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
                self.as_str().encode(encoder)
            }
        }
    };
}

/// Which of the webhook's paths was called.
#[must_use]
pub fn path(webhook: Webhook) -> &'static str {
    match webhook {
        Webhook::Mutate { .. } => "mutate",
        Webhook::Validate => "validate",
        Webhook::ValidateWorkload => "validate-workload",
        Webhook::ValidateCredspec { .. } => "validate-credspec",
    }
}

/// What was being done to the object. In a review, the word has capital letters.
pub(super) fn operation(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "create",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Connect => "connect",
    }
}

label! {
    /// How a review ended.
    ReviewOutcome {
        /// Allowed.
        Allowed = "allowed",
        /// Denied for what the request is.
        Denied = "denied",
        /// Admitted although a denial applies: denials are not enforced.
        WouldDeny = "would-deny",
        /// Denied because something could not be found out.
        Error = "error",
    }
}

label! {
    /// What a look-up of a credential spec found.
    LookupOutcome {
        /// Contents.
        Found = "found",
        /// No such credential spec.
        Missing = "missing",
        /// A credential spec without usable contents.
        Unusable = "unusable",
        /// Nothing: it failed.
        Failed = "failed",
    }
}

label! {
    /// What a check of the verb `use` said.
    AccessOutcome {
        /// Yes.
        Allowed = "allowed",
        /// No.
        Denied = "denied",
        /// Nothing: it failed.
        Failed = "failed",
    }
}

label! {
    /// What the watch of credential specs is doing.
    WatchState {
        /// Reading the first list.
        Starting = "starting",
        /// Up to date.
        Synced = "synced",
        /// Not to be trusted at the moment: look-ups go to the API server.
        Stale = "stale",
        /// Not permitted: look-ups go to the API server.
        Live = "live",
    }
}

label! {
    /// How an attempt to take a changed certificate into service ended.
    ReloadOutcome {
        /// It is served.
        Served = "served",
        /// It was refused; the one before stays.
        Refused = "refused",
    }
}

label! {
    /// What a replica did to the certificates that the webhook manages itself.
    CertificateStep {
        /// Filled the empty Secret.
        Filled = "filled",
        /// Rebuilt a Secret that was damaged or edited, or whose authority had expired.
        Rebuilt = "rebuilt",
        /// Renewed the serving certificate.
        Renewed = "renewed",
        /// Had a new authority sign.
        Rotated = "rotated",
        /// Wrote a webhook configuration.
        BundleWritten = "bundle-written",
        /// Nothing: it failed.
        Failed = "failed",
    }
}

/// The labels of one family.
pub trait Labels: Sized {
    /// Label sets in which each label has each of its values at least once.
    fn every_value() -> Vec<Self>;
}

macro_rules! labels {
    ($($name:ident { $($label:ident: $type:ty = $values:expr),+ })+) => {$(
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub struct $name {
            $(pub $label: $type,)+
        }

        impl Labels for $name {
            fn every_value() -> Vec<Self> {
                $(let $label: Vec<$type> = $values.to_vec();)+
                let first = || Some(Self { $($label: *$label.first()?),+ });
                let Some(first) = first() else { return Vec::new() };
                let mut sets = Vec::new();
                $(sets.extend($label.into_iter().map(|value| {
                    let mut set = first;
                    set.$label = value;
                    set
                }));)+
                sets
            }
        }
    )+};
}

const WEBHOOKS: [Webhook; 4] = [
    Webhook::Mutate { random_hostname: false },
    Webhook::Validate,
    Webhook::ValidateWorkload,
    Webhook::ValidateCredspec { strict: false },
];
const OPERATIONS: [Operation; 4] = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];

labels! {
    ReviewLabels {
        path: &'static str = WEBHOOKS.map(path),
        operation: &'static str = OPERATIONS.map(operation),
        outcome: ReviewOutcome = ReviewOutcome::ALL,
        reason: &'static str = [AllowReason::REASONS, Denial::REASONS].concat()
    }
    PathLabel { path: &'static str = WEBHOOKS.map(path) }
    CodeLabel { code: u16 = [400] }
    LookupLabels { source: &'static str = Source::WORDS, outcome: LookupOutcome = LookupOutcome::ALL }
    AccessLabels { source: &'static str = Source::WORDS, outcome: AccessOutcome = AccessOutcome::ALL }
    StateLabel { state: WatchState = WatchState::ALL }
    ReloadLabel { outcome: ReloadOutcome = ReloadOutcome::ALL }
    StepLabel { step: CertificateStep = CertificateStep::ALL }
}
