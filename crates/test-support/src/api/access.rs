//! Access reviews: the [`Authorizer`] of the test answers them.

use std::collections::HashSet;

use futures::future::BoxFuture;
use gmsa_cluster::authorizer::{Authorization, Authorizer};
use gmsa_core::{
    admission::{Source, Subject, UseFact},
    credspec::SpecName,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::PATIENCE;

/// Who may use what: `(namespace, service account, credential spec)`.
#[derive(Clone, Debug, Default)]
pub struct Table(HashSet<(String, String, String)>);

impl Table {
    pub fn of(allowed: &[(&str, &str, &str)]) -> Self {
        let owned = |(namespace, account, spec): &(&str, &str, &str)| {
            ((*namespace).to_owned(), (*account).to_owned(), (*spec).to_owned())
        };
        Self(allowed.iter().map(owned).collect())
    }
}

impl Authorizer for Table {
    fn may_use<'a>(&'a self, subject: &'a Subject, spec: &'a SpecName, _: Instant) -> BoxFuture<'a, Authorization> {
        let Subject { namespace, service_account } = subject;
        let entry = (namespace.to_string(), service_account.to_string(), spec.to_string());
        let fact = if self.0.contains(&entry) { UseFact::Allowed } else { UseFact::Denied { reason: None } };
        Box::pin(async move { Authorization { fact, source: Source::Files } })
    }
}

/// The `status` of a review with this `spec`, made in `namespace`; `Err` says what is wrong with the review.
pub(super) async fn status(authorizer: &dyn Authorizer, namespace: &str, spec: &Value) -> Result<Value, String> {
    let attributes = &spec["resourceAttributes"];
    if attributes["namespace"] != namespace {
        return Err("spec.resourceAttributes.namespace: must match metadata.namespace".to_owned());
    }
    let user = spec["user"].as_str().unwrap_or_default();
    let account = user.strip_prefix(&format!("system:serviceaccount:{namespace}:"));
    let groups = json!(["system:serviceaccounts", format!("system:serviceaccounts:{namespace}")]);
    let resource = ["verb", "group", "resource"].map(|field| attributes[field].as_str().unwrap_or_default().to_owned());
    let name = attributes["name"].as_str().and_then(SpecName::parse);
    let (Some(account), Some(name)) = (account, name) else { return Ok(json!({"allowed": false})) };
    if spec["groups"] != groups || resource != ["use", "windows.k8s.io", "gmsacredentialspecs"] {
        return Ok(json!({"allowed": false}));
    }
    let subject = Subject { namespace: namespace.into(), service_account: account.into() };
    Ok(match authorizer.may_use(&subject, &name, Instant::now() + PATIENCE).await.fact {
        UseFact::Allowed => json!({"allowed": true, "reason": "RBAC: allowed by RoleBinding \"test\""}),
        UseFact::Denied { reason: None } => json!({"allowed": false}),
        UseFact::Denied { reason: Some(reason) } => json!({"allowed": false, "reason": reason}),
        UseFact::Failed(failure) => json!({"allowed": false, "evaluationError": failure.cause}),
    })
}
