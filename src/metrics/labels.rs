//! The values that labels take: enums and the words of the core, so that a scrape can never grow with what clients send.

use gmsa_core::admission::{AllowReason, Denial, Source, SpecFact, UseFact, Webhook, operation::Operation};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};

macro_rules! label {
    ($(#[$about:meta])* $name:ident { $($(#[$variant_about:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        gmsa_core::word_enum! {
            $(#[$about])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub enum $name {
                $($(#[$variant_about])* $variant = $word,)+
            }
        }

        impl EncodeLabelValue for $name {
            fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
                self.as_str().encode(encoder)
            }
        }
    };
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
    /// Why a connection was not served.
    Unserved {
        /// The client closed it before it sent anything, as a health check of a load balancer does.
        Gone = "closed-by-client",
        /// It sent nothing in time, or nothing yet when too many waited.
        Silent = "silent",
        /// It sent something, and no place was free for it in time, or too many waited.
        NoPlace = "no-place",
    }
}

label! {
    /// What the watch of credential specs is doing.
    WatchState {
        /// Reading the first list.
        Starting = "starting",
        Synced = "synced",
        /// Not to be trusted at the moment: look-ups go to the API server.
        Stale = "stale",
        /// Not permitted, or no CustomResourceDefinition: look-ups go to the API server.
        Live = "live",
    }
}

label! {
    /// How an attempt to take a changed certificate into service ended.
    ReloadOutcome {
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
        Failed = "failed",
    }
}

/// The labels of one family.
pub trait FamilyLabels: Sized {
    /// Label sets in which each label has each of its values at least once.
    fn every_value() -> Vec<Self>;
}

macro_rules! labels {
    ($($name:ident { $($label:ident: $type:ty = $values:expr),+ })+) => {$(
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
        pub struct $name {
            $(pub $label: $type,)+
        }

        impl FamilyLabels for $name {
            fn every_value() -> Vec<Self> {
                $(let $label: Vec<$type> = $values.to_vec();)+
                let most = [$($label.len()),+].into_iter().max().unwrap_or_default();
                (0..most).filter_map(|at| Some(Self { $($label: *$label.iter().cycle().nth(at)?),+ })).collect()
            }
        }
    )+};
}

labels! {
    ReviewLabels {
        path: &'static str = Webhook::ALL.map(Webhook::as_str),
        operation: &'static str = Operation::ALL.map(operation),
        outcome: ReviewOutcome = ReviewOutcome::ALL,
        reason: &'static str = [&AllowReason::ALL.map(AllowReason::as_str)[..], &Denial::RULES.map(|rule| rule.id)].concat()
    }
    PathLabel { path: &'static str = Webhook::ALL.map(Webhook::as_str) }
    CodeLabel { code: u16 = [400] }
    LookupLabels { source: &'static str = Source::ALL.map(Source::as_str), outcome: &'static str = SpecFact::OUTCOMES }
    AccessLabels { source: &'static str = Source::ALL.map(Source::as_str), outcome: &'static str = UseFact::OUTCOMES }
    UnservedLabel { reason: Unserved = Unserved::ALL }
    StateLabel { state: WatchState = WatchState::ALL }
    ReloadLabel { outcome: ReloadOutcome = ReloadOutcome::ALL }
    StepLabel { step: CertificateStep = CertificateStep::ALL }
}
