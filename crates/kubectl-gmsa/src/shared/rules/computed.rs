//! Remedies that the code makes of names; the others are in the data of `gmsa-rules`, whose `computed` says that one is here.

use gmsa_core::{
    admission::pod::{Pod, Slot},
    credspec::{SpecName, Verb, is_dns_label, is_dns_subdomain, lint::suggest_name, placeholder::is_placeholder},
    diagnostic::Rule,
};
use serde_json::{Value, json};

use super::{
    AUTHORIZATION_FAILED, CONTENTS_WITHOUT_NAME, Fix, FixTarget, INVALID_SPEC_NAME, LINUX_NODE, NAME_WITHOUT_CONTENTS,
    NOT_AUTHORIZED, Names, PODS_MISSING, SPEC_MISSING, SPEC_UNREADABLE, WEBHOOK_FAILING, WEBHOOK_PERMISSIONS,
    WEBHOOK_UNREACHABLE,
};
use crate::shared::{grant::GrantObjects, installer::Installer};

/// The remedy of a rule for these names; `None` if they say no more than the rule.
type Computed = fn(&Names<'_>) -> Option<Fix>;

/// Each rule whose remedy is computed.
pub(super) static COMPUTED: &[(&Rule, Computed)] = &[
    (&INVALID_SPEC_NAME, other_name),
    (&SPEC_MISSING, nearest_name),
    (&SPEC_UNREADABLE, what_is_asked),
    (&CONTENTS_WITHOUT_NAME, name_instead),
    (&NOT_AUTHORIZED, grant),
    (&AUTHORIZATION_FAILED, what_is_asked),
    (&NAME_WITHOUT_CONTENTS, with_contents),
    (&LINUX_NODE, on_windows),
    (&PODS_MISSING, describe),
    (&WEBHOOK_UNREACHABLE, unreachable),
    (&WEBHOOK_FAILING, what_is_asked),
    (&WEBHOOK_PERMISSIONS, with_its_roles),
];

/// The grant, as a command and as objects.
fn grant(names: &Names<'_>) -> Option<Fix> {
    let (spec, namespace, service_account) = (SpecName::parse(names.spec?)?, names.namespace?, names.service_account?);
    if !is_dns_label(namespace) || !is_dns_subdomain(service_account) {
        return None;
    }
    let verb = names.verb.unwrap_or(Verb::Use);
    let keytab = if verb == Verb::Export { " --keytab" } else { "" };
    let command =
        format!("kubectl gmsa grant --credspec {spec} --serviceaccount {namespace}:{service_account}{keytab} --apply");
    let yaml = GrantObjects { verb, spec: &spec, namespace, service_account }.yaml();
    Some(Fix::write(format!("# or: {command}\n{yaml}")).or_run(Some(format!("`{command}`."))))
}

/// Corrects an invalid name in its slot.
fn other_name(names: &Names<'_>) -> Option<Fix> {
    let is_wrong = |name: &str| suggest_name(name) != name;
    let mut slots = names.slot.copied().into_iter().chain(names.pod.into_iter().flat_map(Pod::slots));
    let slot = slots.find(|slot| slot.name.is_some_and(is_wrong))?;
    let name = slot.name?;
    let is_name = !is_placeholder(name) && name.contains(|c: char| c.is_ascii_alphanumeric());
    Some(if is_name { renamed(&slot, &suggest_name(name), names) } else { instead_of(name) })
}

/// The remedy that names the most similar credential spec.
fn nearest_name(names: &Names<'_>) -> Option<Fix> {
    let mut slots = names.slot.copied().into_iter().chain(names.pod.into_iter().flat_map(Pod::slots));
    let slot = slots.find(|slot| slot.name == names.spec)?;
    Some(renamed(&slot, names.nearest?, names))
}

/// The change that makes a slot name this credential spec.
fn renamed(slot: &Slot<'_>, name: &str, names: &Names<'_>) -> Fix {
    let context = json!({"windowsOptions": {"gmsaCredentialSpecName": name}});
    let spec = match slot.kind.field() {
        None => json!({"securityContext": context}),
        Some(list) => json!({(list): [{"name": slot.owner, "securityContext": context}]}),
    };
    let fix = Fix::write(format!("gmsaCredentialSpecName: {name}"));
    fix.or_run(names.target.map(|target| target.change(&spec)))
}

/// The replacement for an invalid name.
pub fn instead_of(name: &str) -> Fix {
    if name.contains("{{") {
        return Fix::run(
            "Render the template, and check what comes out: `helm template CHART | kubectl gmsa check -f -`.",
        );
    }
    if is_placeholder(name) {
        return Fix::run(
            "Replace the placeholder, or have the tool that fills it in do so, and check what comes out. \
             `kubectl get gmsacredentialspecs` lists the names.",
        );
    }
    let name = Some(suggest_name(name)).filter(|_| name.contains(|c: char| c.is_ascii_alphanumeric()));
    Fix::write(format!("gmsaCredentialSpecName: {}", name.as_deref().unwrap_or("NAME")))
}

fn name_instead(names: &Names<'_>) -> Option<Fix> {
    // Often the name is in the field for the contents.
    let name = names.slot?.contents.filter(|contents| is_dns_subdomain(contents)).unwrap_or("NAME");
    Some(Fix::write(format!("windowsOptions:\n  gmsaCredentialSpecName: {name}  # instead of gmsaCredentialSpec")))
}

fn with_contents(names: &Names<'_>) -> Option<Fix> {
    let fix = if names.pod.is_some_and(Pod::is_linux) {
        "Remove `spec.os.name: linux`, or the name: the webhook leaves Linux Pods alone."
    } else if names.said.contains("system-namespaces.") {
        "Use another namespace: before Kubernetes 1.28, Pods of `kube-system` and of the webhook's namespace get no contents."
    } else {
        return None;
    };
    Some(Fix::run(fix))
}

fn on_windows(names: &Names<'_>) -> Option<Fix> {
    let mut spec = json!({"os": {"name": "windows"}, "nodeSelector": {"kubernetes.io/os": "windows"}});
    if let (Some(_), Some(spec)) = (names.node, spec.as_object_mut()) {
        // A template with `nodeName` bypasses the scheduler.
        spec.insert("nodeName".to_owned(), Value::Null);
    }
    Some(Fix::run(names.target?.change(&spec)))
}

/// The remedy if the API server refuses a request of the webhook; `None` if only its log tells more. The cause is matched by words,
/// because the webhook is another process and may have another version.
pub(super) fn what_is_asked(names: &Names<'_>) -> Option<Fix> {
    let Names { said, installer, webhook, .. } = names;
    let restore = installer.map_or_else(
        || "`helm upgrade`, or `kubectl apply --server-side -f` with the manifest that installed it,".to_owned(),
        Installer::restore,
    );
    let fix = if said.contains("CustomResourceDefinition") {
        "Install the custom resource again; the check of it in `kubectl gmsa doctor` says how.".to_owned()
    } else if said.contains("answered 401") {
        // The API server does not validate the Service in a configuration.
        let webhook = webhook.filter(|(namespace, name)| is_dns_label(namespace) && is_dns_subdomain(name));
        let restart = webhook.map_or_else(
            || "a restart of its Deployment".to_owned(),
            |(namespace, name)| format!("`kubectl rollout restart deployment/{name} -n {namespace}`"),
        );
        format!(
            "The API server does not accept the token of the webhook's service account. {restore} creates the account again if it was deleted; then \
             {restart} replaces the Pods, whose tokens are dead."
        )
    } else if said.contains("answered 403") {
        format!(
            "The service account of the webhook has lost its permissions: {restore} creates its ClusterRole and the binding again."
        )
    } else {
        return None;
    };
    Some(Fix::run(fix))
}

/// The remedy for a webhook that cannot be reached: another webhook, or a Service that is deleted or without Pods.
fn unreachable(names: &Names<'_>) -> Option<Fix> {
    let Names { said, installer, .. } = *names;
    let is_gone = said.contains("service \"") && said.contains("not found");
    let called = said.split_once("calling webhook \"").and_then(|(_, rest)| rest.split('"').next());
    if called.is_some_and(|name| !name.contains("gmsa") && !name.contains("cert-manager")) {
        return Some(Fix::run(
            "The message names another webhook than that for GMSA: ask its owner. \
             `kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations` shows whose configuration calls it.",
        ));
    }
    let restore = installer.filter(|_| is_gone)?.restore();
    Some(Fix::run(format!("{restore} creates the Service again.")))
}

/// The remedy that restores the roles of a release.
fn with_its_roles(names: &Names<'_>) -> Option<Fix> {
    let restore = names.installer?.restore();
    Some(Fix::run(format!("{restore} creates its roles and bindings again.")))
}

/// The command that shows why pods of a workload are missing.
fn describe(names: &Names<'_>) -> Option<Fix> {
    let FixTarget::Workload { kind, name, .. } = names.target? else { return None };
    let verb = format!("describe {}", kind.as_str().to_ascii_lowercase());
    let describe = names.target?.command(&verb, name, "")?;
    Some(Fix::run(format!("{describe} shows its events and conditions.")))
}
