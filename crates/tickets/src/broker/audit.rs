//! One line in the log for each request for tickets or a keytab: who asked, for which account and services, until when.
//!
//! Invariants: a line holds names, never a token, a key or a ticket. Refusals that cost their sender nothing are limited in number: those
//! that no token authenticates, and those of a pod that asks too often.

use gmsa_core::credspec::{SpecName, Verb};
use gmsa_edge::telemetry::{LogLimit, cut_message};
use http::StatusCode;

use super::token::Caller;
use crate::api::{Given, Refusal};

/// The lines about requests that were not decided.
pub static REFUSED: LogLimit = LogLimit::new("tickets refused");

/// The facts about a request that its line shows.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    pub credential_spec: Option<SpecName>,
    pub caller: Option<Caller>,
    /// `WebApp1@contoso.com`
    pub account: Option<String>,
}

impl Audit {
    /// Writes the line.
    pub fn log(&self, verb: Verb, answered: Result<&Given, &Refusal>, duration_seconds: f64) {
        let (caller, refusal) = (self.caller.as_ref(), answered.err());
        let is_undecided = |refusal: &Refusal| caller.is_none() || refusal.status == StatusCode::TOO_MANY_REQUESTS;
        if refusal.is_some_and(is_undecided) && !REFUSED.admit() {
            return;
        }
        let given = answered.ok().map(|given| given.product.described());
        let (services, expires, kvno) =
            given.map_or((None, None, None), |(services, expires, kvno)| (Some(services), expires, kvno));
        tracing::info!(
            credential_spec = self.credential_spec.as_ref().map(SpecName::as_str),
            namespace = caller.map(|caller| &*caller.account.namespace),
            service_account = caller.map(|caller| &*caller.account.name),
            pod = caller.map(|caller| &*caller.pod),
            pod_uid = caller.map(|caller| cut_message(&caller.uid)),
            token_id = caller.map(|caller| cut_message(&caller.token_id)),
            account = self.account.as_deref().map(cut_message),
            services = services.as_deref().map(cut_message),
            expires,
            kvno,
            code = refusal.map(|refusal| refusal.status.as_u16()),
            reason = refusal.map(|refusal| refusal.reason),
            cause = refusal.map(|refusal| cut_message(&refusal.message)),
            duration_seconds,
            "{} {}",
            verb.product().name,
            if refusal.is_some() { "refused" } else { "given" }
        );
    }
}
