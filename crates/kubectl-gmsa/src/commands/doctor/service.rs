//! The Service of the webhook, or of the broker of tickets: its endpoints, and one pod behind it: the certificate that it serves, the permissions of its
//! service account, and the Secrets that it needs.
//!
//! Invariants: only the metadata of a Secret is read.

use std::collections::BTreeSet;

use futures::future::join_all;
use k8s_openapi::api::{admissionregistration::v1::ServiceReference, core::v1::Pod, discovery::v1::Endpoint};
use serde_json::{Value, json};

use super::{
    certificate,
    install::{broker_of, services},
};
use crate::shared::{
    installer::Installer,
    kinds::Kind,
    output::first_five,
    rules::{self, Names},
    unread::{Read, Unread},
    walk::workload::ClusterWorkload,
    webhook::{argument, arguments, endpoints, image, installer, is_ready, metrics, place, pod_behind, reviewing},
    world::World,
};
use gmsa_core::{
    admission::ServiceAccount,
    credspec::{GROUP, PLURAL},
    diagnostic::{Check, Diagnostic, Severity},
};

pub(super) const SERVICE: &str = "service";
const PERMISSIONS: &str = "permissions";
const SECRET: &str = "secret";

/// The checks of each Service of a webhook, and of the broker's.
pub(super) async fn checks(world: &World) -> Read<Vec<Check>> {
    let reviewing = reviewing(world.webhooks().await?).into_iter();
    let urls: BTreeSet<&str> = reviewing.filter_map(|found| found.webhook.client_config.url.as_deref()).collect();
    let outside =
        urls.iter().map(|url| Check::breach(SERVICE, &rules::WEBHOOK_URL, format!("the webhook is called at {url:?}")));
    let (installer, services) = (installer(world).await, services(world).await?);
    let of_webhook = join_all(services.into_iter().map(|service| of_service(world, service, installer.as_ref()))).await;
    let mut checks: Vec<Check> = outside.chain(of_webhook.into_iter().flatten()).collect();
    if let Some(broker) = broker_of(world).await {
        // The chart gives its Deployment the same name.
        let ServiceReference { namespace, name, .. } = &broker;
        let deployment = ClusterWorkload::find(world, Kind::Deployment, namespace, name).await.ok().flatten();
        let installer = deployment.map(|found| Installer::of(&found.metadata));
        checks.extend(of_service(world, &broker, installer.as_ref()).await);
    }
    Ok(checks)
}

async fn of_service(world: &World, service: &ServiceReference, installer: Option<&Installer>) -> Vec<Check> {
    let ServiceReference { namespace, name, .. } = service;
    let endpoints = match endpoints(world, service).await {
        Ok(endpoints) => endpoints,
        Err(unread) => return vec![unread.check(SERVICE)],
    };
    let ready: Vec<&Endpoint> = endpoints.iter().filter(|endpoint| is_ready(endpoint)).collect();
    let count = format!("{namespace}/{name} has {} of {} endpoints ready", ready.len(), endpoints.len());
    let mut checks = vec![match ready.len() {
        0 => {
            let fix = format!("`kubectl describe pods -n {namespace}`.");
            Check::found(SERVICE, Diagnostic::new(&rules::ENDPOINTS, count).with_fix(fix))
        }
        1 => Check::found(SERVICE, Diagnostic::new(&rules::ENDPOINTS, count).with_severity(Severity::Warning)),
        _ => Check::pass(SERVICE, count),
    }];
    match pod_behind(world, service).await {
        Ok(Some(pod)) => checks.extend(of_replica(world, &pod, installer).await),
        Ok(None) => {}
        Err(unread) => checks.push(unread.check(SERVICE)),
    }
    checks
}

async fn of_replica(world: &World, pod: &Pod, installer: Option<&Installer>) -> Vec<Check> {
    let mut checks = Vec::new();
    let Some((namespace, name)) = place(pod) else { return checks };
    let account = ServiceAccount { namespace: namespace.into(), name: account_name(pod).into() };
    let may = async |permission: Value| {
        let answer = may(world, &account, &permission).await;
        (permission, answer)
    };
    let exists = async |(namespace, name): (&str, &str)| {
        (format!("{namespace}/{name}"), world.has_secret(namespace, name).await)
    };
    // Whether its service account has the permissions that it needs, and whether its Secrets exist.
    let (metrics, answers, secrets) = tokio::join!(
        metrics(world, pod),
        join_all(needed(pod).into_iter().map(may)),
        join_all(secrets(namespace, pod).into_iter().map(exists)),
    );
    match metrics {
        Some(Ok(metrics)) => {
            // The dry run shows whether the certificate is trusted.
            checks.extend(certificate::served(name, &metrics, world.taken()));
            checks.extend(certificate::refused(namespace, name, &metrics));
            checks.extend(certificate::disputes(name, &metrics));
        }
        // Many API servers can reach only the webhook's port of a pod, which is not a missing right.
        Some(Err(unread)) if unread.is_forbidden() => checks.push(unread.check(certificate::CERTIFICATE)),
        Some(Err(_)) | None => {}
    }
    checks.push(Check::pass(SERVICE, format!("runs {}", image(pod).unwrap_or("no image"))));
    let unenforced: Vec<&str> = arguments(pod, "warn-namespaces").flat_map(|list| list.split(',')).collect();
    if !unenforced.is_empty() {
        let text = format!("denials are not enforced in {}", first_five(&unenforced));
        checks.push(Check::breach(SERVICE, &rules::NOT_ENFORCED, text));
    }
    let who = format!("{namespace}:{}", account_name(pod));
    let permissions = permissions(&who, &answers, installer);
    checks.push(permissions.unwrap_or_else(|unread| unread.check(PERMISSIONS)));
    checks.extend(secrets.iter().filter_map(|(secret, read)| {
        let is_own = own_secrets(pod).any(|(of, name)| *secret == format!("{of}/{name}"));
        let restore = installer.map(Installer::restore).filter(|_| is_own);
        match read {
            Ok(true) => None,
            Ok(false) => {
                let missing = Diagnostic::new(&rules::SECRET_MISSING, format!("{secret} does not exist"));
                let again = restore.map(|restore| format!("{restore} creates it again, and the webhook fills it in."));
                Some(Check::found(SECRET, Diagnostic { fix: again, ..missing }))
            }
            Err(unread) => Some(unread.check(SECRET)),
        }
    }));
    checks
}

/// Whether a service account may do this.
async fn may(world: &World, account: &ServiceAccount, right: &Value) -> Read<bool> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {"user": account.user(), "groups": account.groups(), "resourceAttributes": right},
    });
    let answer: Value = world.ask("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await?;
    Ok(answer.pointer("/status/allowed") == Some(&Value::Bool(true)))
}

/// A verb on a resource of a group, as an access review has it.
fn permission(verb: &str, group: &str, resource: &str) -> Value {
    json!({"verb": verb, "group": group, "resource": resource})
}

/// The service account of a pod.
fn account_name(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref()).unwrap_or("default")
}

/// The permissions that the chart grants for the arguments of a pod. Arguments of the Go webhook are ignored.
fn needed(pod: &Pod) -> Vec<Value> {
    let mut needed = vec![
        permission("get", GROUP, PLURAL),
        permission("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    ];
    let mut containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    if argument(pod, "config").is_some() {
        needed.extend([permission("get", "", "pods"), permission("create", "authentication.k8s.io", "tokenreviews")]);
    // The Go webhook has no such command, and no cache.
    } else if containers.any(|container| container.args.iter().flatten().any(|argument| argument == "serve")) {
        needed.extend(["list", "watch"].map(|verb| permission(verb, GROUP, PLURAL)));
    }
    let on = |(namespace, name): (&str, &str), verb: &str, group: &str, resource: &str| json!({"verb": verb, "group": group, "resource": resource, "namespace": namespace, "name": name});
    for secret in own_secrets(pod) {
        needed.extend(["get", "watch", "update"].map(|verb| on(secret, verb, "", "secrets")));
    }
    for (kind, name) in pairs(pod, "webhook-configuration") {
        let resource = match kind {
            "mutating" => "mutatingwebhookconfigurations",
            _ => "validatingwebhookconfigurations",
        };
        let group = "admissionregistration.k8s.io";
        needed.extend(["get", "patch"].map(|verb| on(("", name), verb, group, resource)));
    }
    needed
}

/// The values of an option, split at `/`.
fn pairs<'p>(pod: &'p Pod, option: &'p str) -> impl Iterator<Item = (&'p str, &'p str)> {
    arguments(pod, option).filter_map(|value| value.split_once('/'))
}

/// The Secrets that the webhook writes, as namespace and name.
fn own_secrets(pod: &Pod) -> impl Iterator<Item = (&str, &str)> {
    pairs(pod, "self-managed-secret")
}

/// The Secrets that the pod needs to start or to have a certificate.
fn secrets<'p>(namespace: &'p str, pod: &'p Pod) -> BTreeSet<(&'p str, &'p str)> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let mounted = volumes.filter_map(|volume| {
        let secret = volume.secret.as_ref().filter(|secret| secret.optional != Some(true))?;
        Some((namespace, secret.secret_name.as_deref()?))
    });
    mounted.chain(own_secrets(pod)).collect()
}

/// Whether the webhook's own service account has the permissions that it needs.
fn permissions<'a>(
    who: &str,
    answers: &'a [(Value, Read<bool>)],
    installer: Option<&Installer>,
) -> Result<Check, &'a Unread> {
    let mut missing = Vec::new();
    for (permission, answer) in answers {
        if !*answer.as_ref()? {
            missing.push(permission);
        }
    }
    if missing.is_empty() {
        return Ok(Check::pass(PERMISSIONS, format!("{who} has the permissions that it needs")));
    }
    let shown = |permission: &&Value| {
        let text = |key: &str| permission.get(key).and_then(Value::as_str);
        let name = text("name").map(|name| format!("/{name}")).unwrap_or_default();
        format!("{} {}{name}", text("verb").unwrap_or_default(), text("resource").unwrap_or_default())
    };
    let names: Vec<String> = missing.iter().map(shown).collect();
    let text = format!("{who} may not {}", names.join(", "));
    let is_of_cache = |permission: &&Value| permission["group"] == GROUP && permission["verb"] != "get";
    let found = |text| rules::found(&rules::WEBHOOK_PERMISSIONS, text, &Names { installer, ..Names::default() });
    let found = if missing.iter().all(is_of_cache) {
        found(format!("{text}: each pod costs a read")).with_severity(Severity::Warning)
    } else {
        found(text)
    };
    Ok(Check::found(PERMISSIONS, found))
}
