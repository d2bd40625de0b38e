//! Whether the API server calls both webhooks, found out by the probe: a pod that `/mutate` must refuse, and one that it passes and
//! `/validate` must refuse. A denial means that the API server reached the webhook and trusts its certificate, and that the webhook
//! could ask the API server.

use super::{
    found,
    not_checked::{Remedy, because},
};
use crate::shared::{
    connection::Cluster,
    installer::Installer,
    rules::{self, Names},
    webhook::{Configured, is_of_gmsa},
};
use gmsa_cluster::{
    apiserver::CallError,
    probe::{self, Answer, is_denial},
};
use gmsa_core::{admission::Webhook, diagnostic::Check};

const MUTATE: &str = "call of /mutate";
const VALIDATE: &str = "call of /validate";
const GUARD: &str = "guard";

/// What the names of policies from files of the control plane end with.
/// <https://kubernetes.io/docs/reference/access-authn-authz/manifest-admission-control/>
const STATIC: &str = ".static.k8s.io";

/// The checks of the webhooks that are configured; of both where `webhooks` could not be read.
pub(super) async fn checks(cluster: &Cluster, webhooks: Option<&[Configured]>) -> Vec<Check> {
    let is_configured =
        |mutating| webhooks.is_none_or(|all| all.iter().any(|found| found.mutating == mutating && found.is_of_pods()));
    let asked = async |webhook, is_configured, pod| {
        if is_configured { Some(ask(cluster, webhook, &pod, webhooks).await) } else { None }
    };
    let beside_aks = webhooks.into_iter().flatten().any(|found| found.installer == Installer::Aks);
    let slot = if beside_aks { probe::INIT_CONTAINER } else { "/spec" };
    let (mutate, validate) = tokio::join!(
        asked(Webhook::Mutate, is_configured(true), probe::naming(slot)),
        asked(Webhook::Validate, is_configured(false), probe::carrying(slot)),
    );
    mutate.into_iter().chain(validate).collect()
}

async fn ask(cluster: &Cluster, webhook: Webhook, pod: &serde_json::Value, webhooks: Option<&[Configured]>) -> Check {
    let (about, what) = if webhook == Webhook::Mutate {
        (MUTATE, "a pod that names a credential spec that does not exist")
    } else {
        (VALIDATE, "a pod with contents of its own")
    };
    let namespace = &cluster.namespace;
    match probe::ask(&cluster.api, namespace, pod, webhook).await {
        Some(Answer::Refused) => {
            let text = format!("the API server reaches it and trusts its certificate (dry run in {namespace})");
            Check::pass(about, text)
        }
        Some(Answer::Warned) => {
            let text = format!("the API server reaches it, but denials are not enforced (dry run in {namespace})");
            found(about, &rules::NOT_ENFORCED, text)
        }
        Some(Answer::Guarded(policy)) if webhook == Webhook::Validate => {
            let from = if policy.ends_with(STATIC) { "a file of the control plane" } else { "the cluster" };
            Check::pass(
                GUARD,
                format!("{policy}, from {from}, refuses {what} before /validate is asked (dry run in {namespace})"),
            )
        }
        Some(Answer::Guarded(policy)) => {
            let text = format!("{what} would get no contents in {namespace}: the policy {policy} refuses it");
            found(about, &rules::WEBHOOK_NOT_CALLED, text)
        }
        Some(Answer::Admitted) => {
            found(about, &rules::WEBHOOK_NOT_CALLED, format!("{what} would be created in {namespace}"))
        }
        Some(Answer::Failed(error)) => failed(about, webhook, &error, namespace, webhooks),
        None => because(about, &format!("{namespace:?} is not a namespace"), Remedy::new("Correct `--namespace`.")),
    }
}

/// Neither admitted nor denied: who failed, and what to do about it.
fn failed(
    about: &'static str,
    webhook: Webhook,
    error: &CallError,
    namespace: &str,
    webhooks: Option<&[Configured]>,
) -> Check {
    let text = error.to_string();
    let message = error.status().map_or("", |status| status.message.as_str());
    let is_ours = |name: &str| match webhooks {
        Some(all) => all.iter().any(|found| found.webhook.name == name),
        None => is_of_gmsa(name),
    };
    let other = |name: &str, does: &str| {
        let fix = format!(
            "The webhook {name:?} is not of this installation. Correct it, or choose a namespace whose pods it does not review: `--namespace`."
        );
        because(about, &format!("another webhook {does}: {text}"), Remedy::new(fix))
    };
    let failing = quoted_after(message, "failed calling webhook ");
    let denying = quoted_after(message, "admission webhook ");
    match (failing, denying) {
        (Some(name), _) if is_ours(name) => match webhook {
            // Mutating webhooks are called first. The URL in the message shows which of the two failed.
            Webhook::Mutate if calls(message, Webhook::Validate) => not_called(about, namespace),
            Webhook::Validate if calls(message, Webhook::Mutate) => {
                let remedy = Remedy::new("Correct the call of /mutate first.");
                because(about, "/mutate is called first, and fails", remedy)
            }
            _ => found(about, &rules::WEBHOOK_UNREACHABLE, text),
        },
        (Some(name), _) => other(name, "cannot be called"),
        (None, Some(name)) if is_ours(name) => {
            if webhook == Webhook::Mutate && is_denial(Webhook::Validate, message) {
                return not_called(about, namespace);
            }
            let failing = webhooks.into_iter().flatten().find(|found| found.is_of_pods());
            // The chart gives the Deployment the name of the Service.
            let service = failing.and_then(|failing| failing.webhook.client_config.service.as_ref());
            let names = Names {
                installer: failing.map(|failing| &failing.installer),
                webhook: service.map(|service| (service.namespace.as_str(), service.name.as_str())),
                said: message,
                ..Names::default()
            };
            Check::found(about, rules::found(&rules::WEBHOOK_FAILING, text, &names))
        }
        (None, Some(name)) => other(name, "refuses the pod of the dry run"),
        (None, None) => because(about, &text, remedy(error, message)),
    }
}

fn not_called(about: &'static str, namespace: &str) -> Check {
    let text = format!("/validate gets a pod in {namespace} that /mutate did not get");
    found(about, &rules::WEBHOOK_NOT_CALLED, text)
}

/// Whether the URL in the API server's message is that of `webhook`.
fn calls(message: &str, webhook: Webhook) -> bool {
    message.contains(&format!("{}?timeout=", webhook.path()))
}

/// The name in quotes after `words`.
fn quoted_after<'m>(message: &'m str, words: &str) -> Option<&'m str> {
    let (_, rest) = message.split_once(words)?;
    rest.strip_prefix('"')?.split_once('"').map(|(name, _)| name)
}

/// What to do where the API server itself did not take the pod.
fn remedy(error: &CallError, message: &str) -> Remedy {
    match error.code() {
        Some(403) if rules::lacks_right(message) => Remedy::new(
            "Run the command as a user who may create Pods in the namespace, or choose another one: `--as`, `--context`, `--namespace`.",
        ),
        Some(400 | 403 | 422) => Remedy::new(
            "Something other than a webhook for GMSA refuses the Pod of the dry run. Choose a namespace in which Pods that use GMSA run: `--namespace`.",
        ),
        _ => Remedy::of(error),
    }
}
