//! Failed reads: the cause, and the remedy that follows from it.
//!
//! Invariants: a temporary cause has the severity of a failure, so `--wait` and `why --watch` wait for it; a missing right or wrong input has not.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::shared::rules;
use gmsa_cluster::apiserver::CallError;
use gmsa_core::{
    admission::Denial,
    causes,
    credspec::{PLURAL, is_dns_label},
    diagnostic::{Check, Diagnostic, Severity},
};

/// The remedy for an object that cannot be parsed.
pub const NEWER: &str = "Use a newer version of kubectl gmsa.";

/// The remedy for a request that the bundle does not have.
pub const OTHER_BUNDLE: &str = "Ask the cluster itself, or for a bundle by a user who may read it.";

/// The remedy for an unreadable answer.
const UNREADABLE: &str = "Correct the object that the message is about, or use a newer version of kubectl gmsa.";

const LOG_IN: &str = "Log in again: the API server does not accept your credentials (`kubectl auth whoami`).";

/// A part of a cluster, or why it could not be read.
pub type Read<T> = Result<T, Unread>;

/// A failed read: the request, the cause, and the remedy with the missing right.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unread {
    /// Such as `list /api/v1/pods`.
    pub tried: String,
    pub cause: String,
    /// The status code, where the API server answered.
    pub code: Option<u16>,
    /// The message in the answer.
    pub said: String,
    remedy: Remedy,
}

impl Unread {
    /// A failed request.
    pub fn of(verb: &str, path: &str, error: &anyhow::Error) -> Self {
        if let Some(known) = error.downcast_ref::<Self>() {
            return known.clone();
        }
        let call = error.downcast_ref::<CallError>();
        let remedy = match call {
            Some(call) if call.code() == Some(403) => Remedy::right(&Right::of_request(verb, path)),
            Some(call) if call.code() == Some(404) && path.contains(PLURAL) => Remedy::new(rules::CRD_MISSING.remedy),
            Some(call) => Remedy::of(call),
            None => Remedy::new(UNREADABLE),
        };
        let said = call.and_then(CallError::status).map(|status| status.message.clone()).unwrap_or_default();
        let code = call.and_then(CallError::code);
        Self { code, said, ..Self::new(verb, path, causes::chain(error.as_ref()), remedy) }
    }

    /// A missing object.
    pub fn missing(path: &str) -> Self {
        let cause = "it does not exist".to_owned();
        Self { code: Some(404), ..Self::new("get", path, cause, Remedy::later("Try again.")) }
    }

    /// A request that the bundle does not have.
    pub fn left_out(verb: &str, path: &str) -> Self {
        let what = path.split(['?', '{']).next().unwrap_or_default().trim_end();
        Self::new(verb, path, format!("this bundle does not have {what}"), Remedy::new(OTHER_BUNDLE))
    }

    fn new(verb: &str, path: &str, cause: String, remedy: Remedy) -> Self {
        Self { tried: format!("{verb} {path}"), cause, code: None, said: String::new(), remedy }
    }

    /// Whether the object, or its kind, does not exist.
    pub fn is_missing(&self) -> bool {
        self.code == Some(404)
    }

    pub fn is_forbidden(&self) -> bool {
        self.code == Some(403)
    }

    /// The remedy.
    pub fn remedy(&self) -> &str {
        &self.remedy.text
    }

    /// The `skip` line of a check that needs it.
    pub fn check(&self, about: &'static str) -> Check {
        because(about, &self.cause, self.remedy.clone())
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for Unread {}

/// A right that a request needs: `list pods`, `get secrets in namespace gmsa`.
pub struct Right<'t> {
    verb: &'t str,
    /// Its plural, or the path of a request that is not about a resource.
    resource: &'t str,
    subresource: Option<&'t str>,
    namespace: Option<&'t str>,
}

impl<'t> Right<'t> {
    pub fn of_request(verb: &'t str, path: &'t str) -> Self {
        let path = path.split('?').next().unwrap_or_default();
        let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
        // After the group and the version.
        let (namespace, steps) = match steps.as_slice() {
            ["api", _, steps @ ..] | ["apis", _, _, steps @ ..] => match steps {
                ["namespaces", namespace, below @ ..] if !below.is_empty() => (Some(*namespace), below),
                _ => (None, steps),
            },
            _ => (None, &[][..]),
        };
        Self { verb, resource: steps.first().unwrap_or(&path), subresource: steps.get(2).copied(), namespace }
    }

    /// Its resource, as in `pods/log`.
    pub fn resource(&self) -> String {
        self.subresource.map_or_else(|| self.resource.to_owned(), |below| format!("{}/{below}", self.resource))
    }

    /// The right that a refusal of the API server names: `… cannot get resource "pods" in API group "" in the namespace "shop"`.
    fn of_refusal(said: &'t str) -> Option<Self> {
        let (verb, rest) = said.split_once(" cannot ")?.1.split_once(" resource \"")?;
        let (resource, rest) = rest.split_once('"')?;
        let namespace = rest.split_once(" in the namespace \"").and_then(|(_, rest)| rest.split('"').next());
        // The API server writes `pods/log`.
        Some(Self { verb, resource, subresource: None, namespace })
    }
}

impl fmt::Display for Right<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, namespace, .. } = self;
        write!(f, "{verb} {}", self.resource())?;
        namespace.map_or(Ok(()), |namespace| write!(f, " in namespace {namespace}"))
    }
}

/// The remedy for an error that ends the command: rejected credentials, or a missing right.
pub fn remedy_of(error: &anyhow::Error) -> Option<String> {
    let unread = error.chain().find_map(|cause| cause.downcast_ref::<Unread>());
    let call = error.chain().find_map(|cause| cause.downcast_ref::<CallError>());
    match unread.map_or_else(|| call?.code(), |unread| unread.code)? {
        401 => Some(LOG_IN.to_owned()),
        403 => {
            let said = || Some(Remedy::right(&Right::of_refusal(&call?.status()?.message)?).text);
            unread.map(|unread| unread.remedy.text.clone()).or_else(said)
        }
        _ => None,
    }
}

/// The `skip` line of a check that this error ended: of which request is not known.
pub fn not_checked(about: &'static str, error: &anyhow::Error) -> Check {
    if let Some(known) = error.downcast_ref::<Unread>() {
        return known.check(about);
    }
    let remedy = error.downcast_ref().map_or_else(|| Remedy::new(UNREADABLE), Remedy::of);
    because(about, &causes::chain(error.as_ref()), remedy)
}

/// Whether a check names a cause. A check that could not run does not.
pub fn is_cause(check: &Check) -> bool {
    check.result.as_ref().is_err_and(|found| found.severity == Severity::Error && *found.rule != rules::NOT_CHECKED)
}

/// The line of a step after a failed one.
pub fn not_reached(about: &'static str) -> Check {
    Check::found(about, Diagnostic::new(&rules::NOT_CHECKED, "not reached").with_fix(""))
}

/// Like [`not_checked`], with a known remedy.
pub fn because(about: &'static str, cause: &str, remedy: Remedy) -> Check {
    let found = Diagnostic::new(&rules::NOT_CHECKED, format!("could not be checked: {cause}")).with_fix(remedy.text);
    Check::found(about, if remedy.may_pass { found.with_severity(Severity::Error) } else { found })
}

/// The remedy for a failed call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Remedy {
    pub text: String,
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

    /// The remedy for a missing right.
    fn right(right: &Right<'_>) -> Self {
        let viewers = if right.resource == PLURAL {
            " With `viewerRole=true` in the chart, all may who have the role `view` by a ClusterRoleBinding: a RoleBinding is not enough."
        } else {
            ""
        };
        Self::new(format!("Run the command as a user who may {right} (`--as`, `--context`).{viewers}"))
    }

    /// The cause and the remedy if the user may not read a fact that the decision needs. `None` for other denials.
    pub fn of_denial<'d>(denial: &'d Denial, namespace: &str) -> Option<(&'d str, Self)> {
        let (failure, verb, resource, namespace) = match denial {
            Denial::SpecUnreadable { failure, .. } if failure.refused == Some(404) => {
                return Some((&failure.cause, Self::new(rules::CRD_MISSING.remedy)));
            }
            Denial::SpecUnreadable { failure, .. } => (failure, "get", PLURAL, None),
            Denial::AuthorizationFailed { failure, .. } => {
                let namespace = if is_dns_label(namespace) { namespace } else { "NAMESPACE" };
                (failure, "create", "localsubjectaccessreviews", Some(namespace))
            }
            _ => return None,
        };
        let remedy = match failure.refused {
            Some(403) => Self::right(&Right { verb, resource, subresource: None, namespace }),
            Some(code) => Self::of_code(code, false),
            None => Self::later("Try again."),
        };
        Some((&failure.cause, remedy))
    }

    pub fn of(error: &CallError) -> Self {
        match error {
            CallError::Refused { code, .. } => {
                let status = error.status();
                if let Some(right) =
                    status.filter(|_| *code == 403).and_then(|status| Right::of_refusal(&status.message))
                {
                    return Self::right(&right);
                }
                let details = status.and_then(|status| status.details.as_ref());
                Self::of_code(code.as_u16(), details.is_some_and(|details| details.kind == "namespaces"))
            }
            // The plugin has no budget for answers: the last is for the server.
            CallError::NoPermit(..) | CallError::QueueFull(_) | CallError::TimedOut(_) | CallError::NoMemory => {
                Self::later(
                    "Try again. If that does not help, the API server is overloaded, or a network in between drops packets.",
                )
            }
            CallError::Unreachable(_) | CallError::Cut => Self::later(
                "Try again. If that does not help, check the network to the API server: `kubectl get --raw /readyz`.",
            ),
            CallError::Unreadable(_) | CallError::Request(_) => Self::new(UNREADABLE),
            CallError::TooLarge(_) => {
                Self::new("Look at the objects with kubectl: there are too many, or they are too large.")
            }
        }
    }

    fn of_code(code: u16, is_about_namespace: bool) -> Self {
        match code {
            401 => Self::new(LOG_IN),
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
            _ => Self::new(UNREADABLE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Right;

    #[test]
    fn the_right_is_read_out_of_a_refusal() {
        let said = "pods \"a\" is forbidden: User \"u\" cannot get resource \"pods\" in API group \"\"";
        let in_namespace = format!("{said} in the namespace \"shop\"");
        let named = |said: &str| Right::of_refusal(said).map(|right| right.to_string());
        assert_eq!(named(&in_namespace).as_deref(), Some("get pods in namespace shop"));
        assert_eq!(named(&format!("{said} at the cluster scope")).as_deref(), Some("get pods"));
        assert_eq!(named("not allowed here"), None);
    }

    #[test]
    fn a_request_names_the_right_that_it_needs() {
        for (verb, path, named) in [
            ("list", "/api/v1/pods", "list pods"),
            ("get", "/api/v1/nodes/win1", "get nodes"),
            ("list", "/apis/apps/v1/namespaces/shop/deployments?x=y", "list deployments in namespace shop"),
            ("get", "/api/v1/namespaces/gmsa/secrets/tls", "get secrets in namespace gmsa"),
            ("get", "/api/v1/namespaces/gmsa/pods/a/log?container=b", "get pods/log in namespace gmsa"),
            ("get", "/api/v1/namespaces/shop", "get namespaces"),
            ("get", "/version", "get /version"),
        ] {
            assert_eq!(Right::of_request(verb, path).to_string(), named);
        }
    }
}
