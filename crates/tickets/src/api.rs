//! The interface between agent and broker: one request, its answer, and every refusal.
//!
//! Invariants: a refusal has an HTTP status, the id of a rule as its reason, and a message for people; no message quotes a token, a
//! password, a key or a ticket.

use std::time::Duration;

use gmsa_core::{credspec::Verb, word_enum};
use http::StatusCode;
use serde::{Deserialize, Serialize};

/// The path of a request for tickets, or for a keytab. Both are a POST of the same form.
pub fn path(verb: Verb) -> &'static str {
    match verb {
        Verb::Use => "/v1/tickets",
        Verb::Export => "/v1/keytab",
    }
}

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

word_enum! {
    /// The reason of a refusal: the id of a rule.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Reason {
        AccountClass = "account-class",
        AccountDiffers = "account-differs",
        AccountDisabled = "account-disabled",
        AccountExpired = "account-expired",
        AccountLocked = "account-locked",
        AccountPassword = "account-password",
        AccountRevoked = "account-revoked",
        AccountUnknown = "account-unknown",
        AuthorizationFailed = "authorization-failed",
        DirectoryClock = "directory-clock",
        DirectoryDenied = "directory-denied",
        KdcUnreachable = "kdc-unreachable",
        KerberosConfiguration = "kerberos-configuration",
        KeytabDomain = "keytab-domain",
        KeytabKeys = "keytab-keys",
        KeytabNames = "keytab-names",
        LdapCredentials = "ldap-credentials",
        LdapUnreachable = "ldap-unreachable",
        LogonDenied = "logon-denied",
        LogonRestricted = "logon-restricted",
        NotAuthorized = "not-authorized",
        PasswordExpired = "password-expired",
        PrincipalUnknown = "principal-unknown",
        ServerCertificate = "server-certificate",
        SpecMissing = "spec-missing",
        SpecUnreadable = "spec-unreadable",
        SpecUnusable = "spec-unusable",
        TicketAccount = "ticket-account",
        TicketAnswer = "ticket-answer",
        TicketBusy = "ticket-busy",
        TicketCheck = "ticket-check",
        TicketDomain = "ticket-domain",
        TicketEncryption = "ticket-encryption",
        TicketPod = "ticket-pod",
        TicketRate = "ticket-rate",
        TicketReferral = "ticket-referral",
        TicketRequest = "ticket-request",
        TicketServices = "ticket-services",
        TicketSize = "ticket-size",
        TicketToken = "ticket-token",
    }
}

/// Why there are no tickets, or there is no keytab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub reason: Reason,
    pub message: String,
    /// For 429 and 503, when another request is expected to be answered; `None` for the usual pause.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    pub fn new(status: StatusCode, reason: Reason, message: impl Into<String>) -> Self {
        Self { status, reason, message: message.into(), retry_after: None }
    }

    /// The same, with the time after which another request is expected to be answered.
    #[must_use]
    pub fn after(self, retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..self }
    }

    /// 400: the request cannot be read.
    pub fn unreadable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Reason::TicketRequest, message)
    }

    /// 401: the token shows no pod that may ask.
    pub fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, Reason::TicketToken, message)
    }

    /// 403
    pub fn forbidden(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, reason, message)
    }

    /// 409: the account cannot log on.
    pub fn no_logon(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, reason, message)
    }

    /// 502: a controller refuses the broker, or its answer cannot be used.
    pub fn bad_gateway(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_GATEWAY, reason, message)
    }

    /// 503: something does not answer, or there is no room.
    pub fn unavailable(reason: Reason, message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, reason, message)
    }

    pub fn body(&self) -> RefusalBody {
        let reason = self.reason.as_str().to_owned();
        RefusalBody { code: self.status.as_u16(), reason, message: self.message.clone() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

    use super::*;

    #[test]
    fn every_reason_is_the_id_of_a_rule() {
        let page = std::fs::read_to_string(gmsa_test_support::repository().join("docs/rules.md")).unwrap();
        for reason in Reason::ALL.map(Reason::as_str) {
            assert!(page.contains(&format!("\n### {reason}\n")), "{reason}");
        }
    }
}
