//! The interface between agent and broker: one request, its answer, and every refusal.
//!
//! Invariants: a refusal has an HTTP status, the id of a rule as its reason, and a message for people; no message quotes a token, a
//! password, a key or a ticket.

use gmsa_core::diagnostic::rules::Rule;
use http::StatusCode;
use serde::{Deserialize, Serialize};

/// The path of the one request, which is a POST.
pub const PATH: &str = "/v1/tickets";

/// The audience of a token for a credential spec is this, followed by the credential spec's name.
pub const AUDIENCE: &str = "gmsa-tickets/";

/// The longest body of a request, in bytes.
pub const MAX_REQUEST: usize = 4 << 10;

/// The longest body of an answer, in bytes.
pub const MAX_RESPONSE: usize = 128 << 10;

/// The body of a request.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TicketRequest {
    /// The name of a credential spec: a DNS subdomain.
    pub credential_spec: String,
}

/// The body of an answer with status 200: the tickets of an account.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tickets {
    pub credential_spec: String,
    /// The account: `WebApp1$@CONTOSO.COM`.
    pub principal: String,
    /// The services that the tickets are for: `HTTP/app.contoso.com`. `*` alone is a ticket-granting ticket.
    pub services: Vec<String>,
    /// When the first of the tickets expires (RFC 3339, UTC).
    pub expires: String,
    /// When to ask again (RFC 3339, UTC).
    pub renew_after: String,
    /// A credential cache of MIT's version 4, in Base64.
    pub ccache: String,
    /// The text of a `krb5.conf` that fits it.
    pub krb5_conf: String,
}

/// The body of an answer with another status.
#[derive(Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct RefusalBody {
    /// The HTTP status.
    pub code: u16,
    /// The id of a rule.
    pub reason: String,
    /// What is wrong, for people.
    pub message: String,
}

/// Why there are no tickets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub rule: &'static Rule,
    pub message: String,
}

impl Refusal {
    pub fn new(status: StatusCode, rule: &'static Rule, message: impl Into<String>) -> Self {
        Self { status, rule, message: message.into() }
    }

    pub fn body(&self) -> RefusalBody {
        RefusalBody { code: self.status.as_u16(), reason: self.rule.id.to_owned(), message: self.message.clone() }
    }
}
