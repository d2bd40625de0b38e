//! What could not be checked, and what to do about it: the remedy follows from why the call failed.
//!
//! Invariants: what may pass by itself is as severe as a failure, so `--wait` waits for it; missing rights and wrong input are not.

use crate::shared::rules;
use gmsa_cluster::apiserver::CallError;
use gmsa_core::{
    admission::Denial,
    causes,
    credspec::is_dns_label,
    diagnostic::{Check, Diagnostic, Severity},
};

pub fn not_checked(about: &'static str, error: &anyhow::Error) -> Check {
    let cause = causes::chain(error.as_ref());
    let call = error.downcast_ref::<CallError>();
    because(about, &cause, call.map_or(Remedy::of_answer(), Remedy::of))
}

/// As [`not_checked`], where the remedy is known.
pub fn because(about: &'static str, cause: &str, remedy: Remedy) -> Check {
    let found = Diagnostic::new(&rules::NOT_CHECKED, format!("could not be checked: {cause}")).with_fix(remedy.text);
    Check::found(about, if remedy.may_pass { found.with_severity(Severity::Error) } else { found })
}

/// What to do about a call that failed.
pub struct Remedy {
    text: String,
    /// Whether the same call may succeed later.
    may_pass: bool,
}

impl Remedy {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), may_pass: false }
    }

    pub fn later(text: &str) -> Self {
        Self { text: text.to_owned(), may_pass: true }
    }

    /// Of a fact that this user was not told, so that a decision lacks it: the cause, and what to do. `None` for other denials.
    pub fn of_denial<'d>(denial: &'d Denial, namespace: &str) -> Option<(&'d str, Self)> {
        let (failure, right) = match denial {
            Denial::SpecUnreadable { spec, failure } => {
                (failure, format!("get gmsacredentialspecs.windows.k8s.io/{spec}"))
            }
            Denial::AuthorizationFailed { failure, .. } => {
                let namespace = if is_dns_label(namespace) { namespace } else { "NAMESPACE" };
                (failure, format!("create localsubjectaccessreviews.authorization.k8s.io --namespace {namespace}"))
            }
            _ => return None,
        };
        let remedy = match failure.refused {
            Some(403) => Self::new(format!(
                "Run the command as a user of whom `kubectl auth can-i {right}` says yes (`--as`, `--context`)."
            )),
            Some(code) => Self::of_code(code, false),
            None => Self::later("Try again."),
        };
        Some((&failure.cause, remedy))
    }

    pub fn into_text(self) -> String {
        self.text
    }

    /// There was an answer, and it could not be read.
    fn of_answer() -> Self {
        Self::new("Correct the object that the message is about, or use a newer version of kubectl gmsa.")
    }

    pub fn of(error: &CallError) -> Self {
        match error {
            CallError::Refused { code, .. } => Self::of_code(code.as_u16(), is_about_namespace(error)),
            // The plugin has no budget for answers: the last is for the server.
            CallError::NoPermit(..) | CallError::QueueFull(_) | CallError::TimedOut(_) | CallError::NoMemory => {
                Self::later(
                    "Try again. If that does not help, the API server is overloaded, or a network in between drops packets.",
                )
            }
            CallError::Unreachable(_) | CallError::Cut => Self::later(
                "Try again. If that does not help, check the network to the API server: `kubectl get --raw /readyz`.",
            ),
            CallError::TooLarge(_) => {
                Self::new("Look at the objects with kubectl: there are too many, or they are too large.")
            }
        }
    }

    fn of_code(code: u16, is_about_namespace: bool) -> Self {
        match code {
            401 => Self::new("Log in again: the API server does not accept your credentials (`kubectl auth whoami`)."),
            403 => Self::new(rules::NOT_CHECKED.remedy),
            404 if is_about_namespace => Self::new("Choose a namespace that exists: `--namespace`."),
            404 => Self::new(
                "The API server does not serve this kind of object: check its version and its flag `--runtime-config`.",
            ),
            429 => Self::later("Try again later: the API server, or its flow control, has too many requests."),
            502..=504 => Self::later(
                "Try again. If that does not help, the API server is down, or a load balancer or proxy before it does not reach it.",
            ),
            500.. => Self::later("Try again. If that does not help, look at the log of the API server."),
            _ => Self::of_answer(),
        }
    }
}

fn is_about_namespace(error: &CallError) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| details.kind == "namespaces")
}
