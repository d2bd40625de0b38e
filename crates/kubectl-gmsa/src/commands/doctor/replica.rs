//! One pod of the webhook: the certificate that it serves, the permissions of its service account, and the Secrets that it needs.
//!
//! Invariants: nothing of a Secret is read but its metadata.

use std::collections::BTreeSet;

use futures::future::join_all;
use http::{Request, header::ACCEPT};
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
    core::v1::Pod,
};

use super::{certificate, found, not_checked, service::SERVICE};
use crate::shared::{
    connection::{Cluster, is_missing},
    output::first_five,
    rules,
    webhook::{image, metrics},
};
use gmsa_core::{
    admission::Subject,
    credspec::{GROUP, PLURAL},
    diagnostic::{Check, Diagnostic, Severity},
};

const PERMISSIONS: &str = "permissions";
const SECRET: &str = "secret";

/// The answer without what the Secret holds. <https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches>
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// Adds the checks of one pod of the webhook.
pub(super) async fn add_checks(cluster: &Cluster, namespace: &str, name: &str, pod: &Pod, checks: &mut Vec<Check>) {
    let Some(spec) = &pod.spec else { return };
    let account = spec.service_account_name.as_deref().unwrap_or("default");
    let arguments = Arguments::of(pod);
    let (metrics, permissions, secrets) = tokio::join!(
        metrics(cluster, namespace, name, pod),
        permissions(cluster, namespace, account, arguments.permissions()),
        join_all(arguments.secrets(namespace, pod).into_iter().map(|secret| exists(cluster, secret))),
    );
    // Whether the certificate is trusted, the dry run shows.
    checks.extend(metrics.and_then(|metrics| certificate::served(name, &metrics)));
    checks.push(Check::pass(SERVICE, format!("runs {}", image(pod).unwrap_or("no image"))));
    let trial = arguments.trial();
    if !trial.is_empty() {
        let text = format!("denials are not enforced in {}", first_five(&trial));
        checks.push(found(SERVICE, &rules::NOT_ENFORCED, text));
    }
    checks.push(permissions);
    checks.extend(secrets.into_iter().flatten());
}

/// The arguments of a pod of the webhook. Those of the Go webhook have no meaning here.
struct Arguments<'p>(Vec<&'p str>);

/// A permission: the verb, the group, the resource, and the object that it is for.
type Permission<'p> = (&'static str, &'static str, &'static str, Option<(&'p str, &'p str)>);

impl<'p> Arguments<'p> {
    fn of(pod: &'p Pod) -> Self {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        Self(containers.flat_map(|container| container.args.iter().flatten()).map(String::as_str).collect())
    }

    /// The values of an option, as the chart writes it, with the `/` in them as the border.
    fn values(&self, option: &str) -> impl Iterator<Item = (&'p str, &'p str)> {
        let values = self.0.iter().filter_map(move |argument| argument.strip_prefix(option)?.strip_prefix('='));
        values.filter_map(|value| value.split_once('/'))
    }

    /// The namespaces in which denials are not enforced.
    fn trial(&self) -> Vec<&'p str> {
        let lists = self.0.iter().filter_map(|argument| argument.strip_prefix("--warn-namespaces="));
        lists.flat_map(|list| list.split(',')).collect()
    }

    /// Those that the webhook needs by its arguments, as the chart grants them.
    fn permissions(&self) -> Vec<Permission<'p>> {
        let mut needed: Vec<Permission<'p>> =
            vec![("get", GROUP, PLURAL, None), ("create", "authorization.k8s.io", "localsubjectaccessreviews", None)];
        // The Go webhook, which has no such command, keeps no cache.
        if self.0.contains(&"serve") {
            needed.extend(["list", "watch"].map(|verb| (verb, GROUP, PLURAL, None)));
        }
        for secret in self.values("--self-managed-secret") {
            needed.extend(["get", "watch", "update"].map(|verb| (verb, "", "secrets", Some(secret))));
        }
        for (kind, name) in self.values("--webhook-configuration") {
            let resource = match kind {
                "mutating" => "mutatingwebhookconfigurations",
                _ => "validatingwebhookconfigurations",
            };
            let group = "admissionregistration.k8s.io";
            needed.extend(["get", "patch"].map(|verb| (verb, group, resource, Some(("", name)))));
        }
        needed
    }

    /// The Secrets without which a pod like this one does not start or has no certificate: their namespaces and names.
    fn secrets(&self, namespace: &'p str, pod: &'p Pod) -> BTreeSet<(&'p str, &'p str)> {
        let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let mounted = volumes.filter_map(|volume| {
            let secret = volume.secret.as_ref().filter(|secret| secret.optional != Some(true))?;
            Some((namespace, secret.secret_name.as_deref()?))
        });
        mounted.chain(self.values("--self-managed-secret")).collect()
    }
}

/// Whether the webhook's own service account has the permissions that it needs.
async fn permissions(cluster: &Cluster, namespace: &str, account: &str, needed: Vec<Permission<'_>>) -> Check {
    let subject = Subject { namespace: namespace.into(), service_account: account.into() };
    let answers = join_all(needed.iter().map(|permission| may(cluster, &subject, permission))).await;
    let mut missing = Vec::new();
    for (permission, answer) in needed.iter().zip(answers) {
        match answer {
            Ok(true) => {}
            Ok(false) => missing.push(permission),
            Err(error) => return not_checked(PERMISSIONS, &error),
        }
    }
    if missing.is_empty() {
        return Check::pass(PERMISSIONS, format!("{namespace}:{account} has the permissions that it needs"));
    }
    let name = |(verb, _, resource, object): &&Permission<'_>| match object {
        Some((_, name)) => format!("{verb} {resource}/{name}"),
        None => format!("{verb} {resource}"),
    };
    let names: Vec<String> = missing.iter().map(name).collect();
    let text = format!("{namespace}:{account} may not {}", names.join(", "));
    let is_of_cache = |(verb, group, ..): &&Permission<'_>| *group == GROUP && *verb != "get";
    let diagnostic = if missing.iter().all(is_of_cache) {
        let text = format!("{text}: each pod costs a read");
        Diagnostic::new(&rules::WEBHOOK_PERMISSIONS, text).with_severity(Severity::Warning)
    } else {
        Diagnostic::new(&rules::WEBHOOK_PERMISSIONS, text)
    };
    Check::found(PERMISSIONS, diagnostic)
}

async fn may(cluster: &Cluster, subject: &Subject, permission: &Permission<'_>) -> anyhow::Result<bool> {
    let (verb, group, resource, object) = *permission;
    let attributes = ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        namespace: object.map(|(namespace, _)| namespace.to_owned()),
        name: object.map(|(_, name)| name.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: Some(subject.user()),
        groups: Some(subject.groups().into()),
        resource_attributes: Some(attributes),
        ..SubjectAccessReviewSpec::default()
    };
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let answer: SubjectAccessReview =
        cluster.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

/// `None` where the Secret is there.
async fn exists(cluster: &Cluster, (namespace, name): (&str, &str)) -> Option<Check> {
    let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
    let request = Request::get(path).header(ACCEPT, METADATA).body(Vec::new());
    let read = async { anyhow::Ok(cluster.api.call(request?, cluster.deadline()).await?) };
    match read.await {
        Ok(_) => None,
        Err(error) if is_missing(&error) => {
            Some(found(SECRET, &rules::SECRET_MISSING, format!("{namespace}/{name} does not exist")))
        }
        Err(error) => Some(not_checked(SECRET, &error)),
    }
}
