//! A credential spec's part about tickets and keytabs: whether its owner opted in, for which services, and which account it is about.
//!
//! Invariants: without the annotation there are no tickets, so that grants of `use` made for Windows pods open nothing. Equal reads at about the same
//! time are one call.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use gmsa_cluster::{
    apiserver::{ApiServer, CallKind},
    resolver::live,
};
use gmsa_core::{
    admission::{Denial, Failure, Known, ServiceAccount, Source},
    credspec::{
        MAX_CONTENTS_BYTES, SpecName, Verb,
        domain_join::DomainJoinConfig,
        services::{Services, annotation_for},
    },
    quote::Quoted,
};
use gmsa_directory::Sid;
use gmsa_edge::coalesce::Coalescer;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::time::Instant;

use crate::api::{Reason, Refusal};

#[derive(Deserialize)]
struct AnnotatedSpec<'b> {
    #[serde(default)]
    metadata: AnnotatedMetadata,
    #[serde(borrow, default)]
    credspec: Option<&'b RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AnnotatedMetadata {
    name: String,
    annotations: Option<BTreeMap<String, String>>,
}

/// A credential spec's part about tickets, or about a keytab.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TicketSpec {
    /// Services that the tickets are for, or names under which clients ask for the pod.
    pub services: Services,
    pub account: SpecAccount,
}

/// The account of a credential spec.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpecAccount {
    /// The DNS name of its domain, in lower case.
    pub domain: String,
    /// The SID of its domain.
    pub domain_sid: String,
    /// Its SAM name without `$`, in lower case.
    pub sam: String,
}

/// Reads credential specs.
pub struct Specs {
    api: Arc<ApiServer>,
    reads: Coalescer<SpecName, SpecBody>,
}

/// The answer of the API server: the JSON of the object, if there is one.
#[derive(Clone)]
struct SpecBody(Result<Option<Bytes>, Failure>);

impl From<Failure> for SpecBody {
    fn from(failure: Failure) -> Self {
        Self(Err(failure))
    }
}

impl Specs {
    pub fn new(api: Arc<ApiServer>) -> Self {
        Self { api, reads: Coalescer::default() }
    }

    /// Reads a credential spec for a service account.
    ///
    /// # Errors
    /// 404 where there is none, 403 where its owner did not opt in or it names no account, 503 where the API server cannot be asked.
    pub async fn read(
        &self,
        verb: Verb,
        name: &SpecName,
        service_account: &ServiceAccount,
        deadline: Instant,
    ) -> Result<TicketSpec, Refusal> {
        let unreadable = |failure| {
            let message = Denial::SpecUnreadable { spec: name.clone(), failure }.to_string();
            Refusal::unavailable(Reason::SpecUnreadable, message)
        };
        let call = |name: SpecName, deadline| {
            let (api, user) = (Arc::clone(&self.api), service_account.user());
            async move {
                let body = live::body(&api, &name, CallKind::UnknownSpec, Some(&user), deadline).await;
                Known { fact: SpecBody(body), source: Source::Api }
            }
        };
        let missing = || {
            let message = Denial::SpecMissing(name.clone()).to_string();
            Refusal::new(StatusCode::NOT_FOUND, Reason::SpecMissing, message)
        };
        let SpecBody(body) = self.reads.ask(name.clone(), deadline, |_| None, call).await.fact;
        let body = body.map_err(unreadable)?.ok_or_else(missing)?;
        let object: AnnotatedSpec<'_> = serde_json::from_slice(&body)
            .map_err(|_| unreadable(Failure::new("the API server's answer is not a GMSACredentialSpec")))?;
        if object.metadata.name != name.as_str() {
            return Err(unreadable(Failure::new("the API server's answer is about another object")));
        }
        ticket_spec(object, verb, name)
    }
}

fn ticket_spec(object: AnnotatedSpec<'_>, verb: Verb, name: &SpecName) -> Result<TicketSpec, Refusal> {
    let annotations = object.metadata.annotations.unwrap_or_default();
    let services = Services::of(verb, annotations.get(annotation_for(verb)).map(String::as_str)).map_err(|why| {
        let message = format!("cred spec {name} gives no {}: {why}", verb.product().name);
        let reason = match verb {
            Verb::Use => Reason::TicketServices,
            Verb::Export => Reason::KeytabNames,
        };
        Refusal::forbidden(reason, message)
    })?;
    let unusable = |what: &str| Refusal::forbidden(Reason::SpecUnusable, format!("cred spec {name} {what}"));
    let text = object.credspec.map(RawValue::get).filter(|text| text.starts_with('{'));
    let text = text.ok_or_else(|| unusable("does not have a credspec key"))?;
    // A hostile object takes a hundred times its bytes once it is parsed.
    let contents = Some(text).filter(|text| text.len() <= MAX_CONTENTS_BYTES);
    let contents: Value = contents
        .and_then(|text| serde_json::from_str(text).ok())
        .ok_or_else(|| unusable("has a credspec that cannot be read"))?;
    let join = DomainJoinConfig::of(&contents);
    let part = |value: Option<&str>, field: &str| {
        let value = value.filter(|value| !value.is_empty()).map(str::to_owned);
        value.ok_or_else(|| unusable(&format!("does not have DomainJoinConfig.{field}")))
    };
    let sid = part(join.sid, "Sid")?;
    let sid = Sid::parse(&sid)
        .ok_or_else(|| unusable(&format!("has a DomainJoinConfig.Sid that is not a SID: {}", Quoted::new(&sid))))?;
    let account = SpecAccount {
        domain: part(join.dns_name, "DnsName")?.trim_end_matches('.').to_ascii_lowercase(),
        domain_sid: sid.to_string(),
        sam: part(join.machine_account_name, "MachineAccountName")?.trim_end_matches('$').to_lowercase(),
    };
    Ok(TicketSpec { services, account })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on must fail")]

    use std::time::Duration;

    use futures::future::join_all;
    use gmsa_test_support::{SimulatedApi, Verb, credential_spec};
    use serde_json::json;

    use gmsa_core::credspec::services::ANNOTATION;

    use super::*;

    #[tokio::test]
    async fn equal_reads_at_the_same_time_are_one_call() {
        let server = SimulatedApi::start().await;
        let contents = json!({"DomainJoinConfig": {"Sid": "S-1-5-21-1-2-3", "DnsName": "contoso.com", "MachineAccountName": "WebApp1"}});
        let mut object = credential_spec("webapp1", contents);
        object["metadata"]["annotations"] = json!({ANNOTATION: "*"});
        server.apply(object);
        let specs = Specs::new(Arc::new(ApiServer::new(server.config()).unwrap()));
        let (name, deadline) = (SpecName::parse("webapp1").unwrap(), Instant::now() + Duration::from_secs(20));
        let accounts: Vec<_> = (0..20)
            .map(|number| ServiceAccount { namespace: "shop".into(), name: format!("web-{}", number % 5).into() })
            .collect();
        let reads =
            join_all(accounts.iter().map(|account| specs.read(super::Verb::Use, &name, account, deadline))).await;
        assert!(reads.iter().all(|read| read.as_ref().is_ok_and(|spec| spec.services == Services::Any)), "{reads:?}");
        assert_eq!(server.count(Verb::Get, "gmsacredentialspecs"), 1);
        // A spec that has changed since is read again.
        server.delete("gmsacredentialspecs", "", "webapp1");
        assert_eq!(specs.read(super::Verb::Use, &name, &accounts[0], deadline).await.unwrap_err().status, 404);
    }

    fn read(change: impl Fn(&mut Value)) -> Result<TicketSpec, (u16, &'static str, String)> {
        let mut object = json!({
            "metadata": {"name": "webapp1", "annotations": {ANNOTATION: "HTTP/app.contoso.com"}},
            "credspec": {"DomainJoinConfig": {"Sid": "S-1-5-21-1-2-3", "DnsName": "Contoso.com.", "MachineAccountName": "WebApp1"}},
        });
        change(&mut object);
        let text = object.to_string();
        let read =
            ticket_spec(serde_json::from_str(&text).unwrap(), super::Verb::Use, &SpecName::parse("webapp1").unwrap());
        read.map_err(|refusal| (refusal.status.as_u16(), refusal.reason.as_str(), refusal.message))
    }

    #[test]
    fn a_credential_spec_gives_tickets_only_where_its_owner_opted_in() {
        let services = Services::Listed(vec!["HTTP/app.contoso.com".to_owned()]);
        let [domain, domain_sid, sam] = ["contoso.com", "S-1-5-21-1-2-3", "webapp1"].map(str::to_owned);
        assert_eq!(read(|_| ()), Ok(TicketSpec { services, account: SpecAccount { domain, domain_sid, sam } }));
        let refused = |message: &str| Err((403, "ticket-services", message.to_owned()));
        let missing =
            "cred spec webapp1 gives no tickets: its owner lists no services in the annotation gmsa-webhook/services";
        assert_eq!(read(|object| object["metadata"]["annotations"] = Value::Null), refused(missing));
        assert_eq!(read(|object| object["metadata"]["annotations"] = json!({})), refused(missing));
        let wrong = "cred spec webapp1 gives no tickets: its annotation gmsa-webhook/services names * beside services";
        assert_eq!(read(|object| object["metadata"]["annotations"][ANNOTATION] = json!("*, x/y")), refused(wrong));
    }

    #[test]
    fn a_credential_spec_without_an_account_is_unusable() {
        let unusable = |what: &str| Err((403, "spec-unusable", format!("cred spec webapp1 {what}")));
        assert_eq!(read(|object| object["credspec"] = Value::Null), unusable("does not have a credspec key"));
        let long = json!({"x": "y".repeat(MAX_CONTENTS_BYTES)});
        assert_eq!(read(|object| object["credspec"] = long.clone()), unusable("has a credspec that cannot be read"));
        for field in ["Sid", "DnsName", "MachineAccountName"] {
            for value in [json!(""), json!(7), Value::Null] {
                let change = |object: &mut Value| object["credspec"]["DomainJoinConfig"][field] = value.clone();
                assert_eq!(read(change), unusable(&format!("does not have DomainJoinConfig.{field}")));
            }
        }
        let sid = |object: &mut Value| object["credspec"]["DomainJoinConfig"]["Sid"] = json!("S-1-x");
        assert_eq!(read(sid), unusable("has a DomainJoinConfig.Sid that is not a SID: \"S-1-x\""));
    }
}
