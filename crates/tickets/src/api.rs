//! The interface between agent and broker: one request, its answer, and every refusal.
//!
//! Invariants: a refusal has an HTTP status, the id of a rule as its reason, and a message for people; no message quotes a token, a
//! password, a key or a ticket.

use std::time::Duration;

use gmsa_core::diagnostic::rules::{self, Rule};
use http::StatusCode;
use serde::{Deserialize, Serialize};

/// The path of a request for tickets, which is a POST.
pub const PATH: &str = "/v1/tickets";

/// The path of a request for a keytab, which is a POST of the same form.
pub const KEYTAB_PATH: &str = "/v1/keytab";

/// The longest body of a request, in bytes.
pub const MAX_REQUEST: usize = 4 << 10;

/// The longest body of an answer, in bytes.
pub const MAX_RESPONSE: usize = 128 << 10;

/// How long before their end tickets are renewed at the latest: what is used for the renewal must not expire meanwhile.
pub const RESERVE: Duration = Duration::from_secs(120);

/// How long a keytab holds a key that has been replaced: the longest life of a ticket, by default, and the difference of clocks that Kerberos allows.
pub const KEPT_FOR: Duration = Duration::from_secs(10 * 3600 + 300);

/// Where the credential cache is in every container of a pod.
pub const CCACHE: &str = "/var/run/gmsa/krb5cc";

/// The body of a request.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TicketRequest {
    /// The name of a credential spec: a DNS subdomain.
    pub credential_spec: String,
}

/// The body of an answer with status 200: what a pod is given.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Given {
    pub credential_spec: String,
    /// The account: `WebApp1$@CONTOSO.COM`.
    pub principal: String,
    /// When to ask again (RFC 3339, UTC).
    pub renew_after: String,
    #[serde(flatten)]
    pub product: GivenProduct,
}

/// The tickets of an account, or its keytab.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum GivenProduct {
    Tickets {
        /// The services that they are for: `HTTP/app.contoso.com`. `*` alone is a ticket-granting ticket.
        services: Vec<String>,
        /// When the first of them expires (RFC 3339, UTC).
        expires: String,
        /// A credential cache of MIT's version 4, in Base64.
        ccache: String,
        /// The text of a `krb5.conf` that fits it.
        krb5_conf: String,
    },
    Keytab {
        /// The names of its services, whose entries have the same keys: `HTTP/app.contoso.com`.
        names: Vec<String>,
        /// The number of the key in force.
        kvno: u32,
        /// A keytab of MIT's version 0x0502, in Base64.
        keytab: String,
    },
}

impl GivenProduct {
    /// For the log: the services, when the tickets expire, the number of the key.
    pub fn described(&self) -> (String, Option<&str>, Option<u32>) {
        match self {
            Self::Tickets { services, expires, .. } => (services.join(", "), Some(expires), None),
            Self::Keytab { names, kvno, .. } => (names.join(", "), None, Some(*kvno)),
        }
    }
}

/// The body of an answer with another status.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct RefusalBody {
    /// The HTTP status.
    pub code: u16,
    /// The id of a rule.
    pub reason: String,
    /// The cause, for people.
    pub message: String,
}

/// Ids of rules that `kubectl gmsa` finds too, in words of other programs.
pub mod reasons {
    macro_rules! reasons {
        ($($name:ident: $id:literal;)+) => {
            $(pub const $name: &str = $id;)+
            pub(super) const ALL: &[&str] = &[$($id),+];
        };
    }

    reasons! {
        ACCOUNT_LOCKED: "account-locked";
        ACCOUNT_REVOKED: "account-revoked";
        DIRECTORY_DENIED: "directory-denied";
        KDC_UNREACHABLE: "kdc-unreachable";
        KERBEROS_CONFIGURATION: "kerberos-configuration";
        LDAP_CREDENTIALS: "ldap-credentials";
        LDAP_UNREACHABLE: "ldap-unreachable";
        LOGON_DENIED: "logon-denied";
        LOGON_RESTRICTED: "logon-restricted";
        PASSWORD_EXPIRED: "password-expired";
        PRINCIPAL_UNKNOWN: "principal-unknown";
        SERVER_CERTIFICATE: "server-certificate";
        TICKET_ENCRYPTION: "ticket-encryption";
    }
}

/// The rules of the core whose ids are reasons.
const RULES: [&Rule; 27] = [
    &rules::ACCOUNT_CLASS,
    &rules::ACCOUNT_DIFFERS,
    &rules::ACCOUNT_DISABLED,
    &rules::ACCOUNT_EXPIRED,
    &rules::ACCOUNT_PASSWORD,
    &rules::ACCOUNT_UNKNOWN,
    &rules::AUTHORIZATION_FAILED,
    &rules::DIRECTORY_CLOCK,
    &rules::KEYTAB_DOMAIN,
    &rules::KEYTAB_KEYS,
    &rules::KEYTAB_NAMES,
    &rules::NOT_AUTHORIZED,
    &rules::SPEC_MISSING,
    &rules::SPEC_UNREADABLE,
    &rules::SPEC_UNUSABLE,
    &rules::TICKET_ACCOUNT,
    &rules::TICKET_ANSWER,
    &rules::TICKET_BUSY,
    &rules::TICKET_CHECK,
    &rules::TICKET_DOMAIN,
    &rules::TICKET_POD,
    &rules::TICKET_RATE,
    &rules::TICKET_REFERRAL,
    &rules::TICKET_REQUEST,
    &rules::TICKET_SERVICES,
    &rules::TICKET_SIZE,
    &rules::TICKET_TOKEN,
];

/// Every reason.
pub fn every_reason() -> Vec<&'static str> {
    RULES.iter().map(|rule| rule.id).chain(reasons::ALL.iter().copied()).collect()
}

/// Why there are no tickets, or there is no keytab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    /// A reason of [`every_reason`].
    pub reason: &'static str,
    pub message: String,
    /// For 429 and 503, when another request is expected to be answered; `None` for the usual pause.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    pub fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status, reason, message: message.into(), retry_after: None }
    }

    /// The same, with the time after which another request is expected to be answered.
    #[must_use]
    pub fn after(self, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..self }
    }

    /// 400: the request cannot be read.
    pub fn unreadable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, rules::TICKET_REQUEST.id, message)
    }

    /// 401: the token shows no pod that may ask.
    pub fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, rules::TICKET_TOKEN.id, message)
    }

    /// 403
    pub fn forbidden(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, reason, message)
    }

    /// 409: the account cannot log on.
    pub fn no_logon(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, reason, message)
    }

    /// 502: a controller refuses the broker, or its answer cannot be used.
    pub fn bad_gateway(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, reason, message)
    }

    /// 503: something does not answer, or there is no room.
    pub fn unavailable(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, reason, message)
    }

    pub fn body(&self) -> RefusalBody {
        RefusalBody { code: self.status.as_u16(), reason: self.reason.to_owned(), message: self.message.clone() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_is_the_id_of_a_rule() {
        let page = std::fs::read_to_string(gmsa_test_support::repository().join("docs/rules.md")).unwrap();
        for reason in every_reason() {
            assert!(page.contains(&format!("\n### {reason}\n")), "{reason}");
        }
    }

    #[test]
    fn every_rule_of_the_core_that_the_broker_names_is_a_reason() {
        let source = gmsa_test_support::repository().join("crates/tickets/src");
        let folder = std::fs::read_dir(source.join("broker")).unwrap().map(|file| file.unwrap().path());
        let text: String =
            folder.chain([source.join("broker.rs")]).map(|file| std::fs::read_to_string(file).unwrap()).collect();
        let names = text
            .split("rules::")
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_ascii_uppercase() && c != '_').next());
        let missing: BTreeSet<_> = names
            .map(|name| name.to_lowercase().replace('_', "-"))
            .filter(|id| !every_reason().contains(&&**id))
            .collect();
        assert_eq!(missing, BTreeSet::new());
    }
}
