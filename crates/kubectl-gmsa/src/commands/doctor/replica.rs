//! One pod of the webhook, or of the broker of tickets: the certificate that it serves, the permissions of its service account, and the Secrets that it needs.
//!
//! Invariants: only the metadata of a Secret is read.

use std::collections::BTreeSet;

use futures::future::join_all;
use k8s_openapi::api::{authorization::v1::ResourceAttributes, core::v1::Pod};
use serde_json::{Value, json};

use super::certificate;
use crate::shared::{
    installer::Installer,
    output::first_five,
    rules::{self, Names},
    unread::{Read, Unread},
    webhook::{argument, arguments, image, metrics, place},
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

pub(super) async fn checks(world: &World, pod: &Pod, installer: Option<&Installer>) -> Vec<Check> {
    let mut checks = Vec::new();
    let Some((namespace, name)) = place(pod) else { return checks };
    let account = ServiceAccount { namespace: namespace.into(), name: account_name(pod).into() };
    let may = async |permission: ResourceAttributes| {
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
async fn may(world: &World, account: &ServiceAccount, right: &ResourceAttributes) -> Read<bool> {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {"user": account.user(), "groups": account.groups(), "resourceAttributes": right},
    });
    let answer: Value = world.ask("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await?;
    Ok(answer.pointer("/status/allowed") == Some(&Value::Bool(true)))
}

/// A verb on a resource of a group.
fn permission(verb: &str, group: &str, resource: &str) -> ResourceAttributes {
    ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(group.to_owned()),
        resource: Some(resource.to_owned()),
        ..ResourceAttributes::default()
    }
}

/// The service account of a pod.
fn account_name(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref()).unwrap_or("default")
}

/// The permissions that the chart grants for the arguments of a pod. Arguments of the Go webhook are ignored.
fn needed(pod: &Pod) -> Vec<ResourceAttributes> {
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
    let on = |(namespace, name): (&str, &str), needed: ResourceAttributes| ResourceAttributes {
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        ..needed
    };
    for secret in own_secrets(pod) {
        needed.extend(["get", "watch", "update"].map(|verb| on(secret, permission(verb, "", "secrets"))));
    }
    for (kind, name) in pairs(pod, "webhook-configuration") {
        let resource = match kind {
            "mutating" => "mutatingwebhookconfigurations",
            _ => "validatingwebhookconfigurations",
        };
        let group = "admissionregistration.k8s.io";
        needed.extend(["get", "patch"].map(|verb| on(("", name), permission(verb, group, resource))));
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
    answers: &'a [(ResourceAttributes, Read<bool>)],
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
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let shown = |ResourceAttributes { verb, resource, name, .. }: &&ResourceAttributes| {
        let name = name.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
        format!("{} {}{name}", text(verb), text(resource))
    };
    let names: Vec<String> = missing.iter().map(shown).collect();
    let text = format!("{who} may not {}", names.join(", "));
    let is_of_cache = |permission: &&ResourceAttributes| {
        permission.group.as_deref() == Some(GROUP) && permission.verb.as_deref() != Some("get")
    };
    let found = |text| rules::found(&rules::WEBHOOK_PERMISSIONS, text, &Names { installer, ..Names::default() });
    let found = if missing.iter().all(is_of_cache) {
        found(format!("{text}: each pod costs a read")).with_severity(Severity::Warning)
    } else {
        found(text)
    };
    Ok(Check::found(PERMISSIONS, found))
}
