//! Whether the API server calls both webhooks, tested with two probe pods: `/mutate` must refuse the first, and pass the second, which
//! `/validate` must refuse. A denial proves that the API server reached the webhook and trusts its certificate, and that the webhook
//! could ask the API server.

use super::install::is_ours;
use crate::shared::{
    configured::{Configured, is_of_gmsa},
    rules::{self, Names},
    unread::{Read, Remedy, Unread, because},
    world::World,
};
use futures::future::join_all;
use gmsa_cluster::probe::{self, DryRun, is_denial};
use gmsa_core::{admission::Webhook, diagnostic::Check};

const MUTATE: &str = "call of /mutate";
const VALIDATE: &str = "call of /validate";
const GUARD: &str = "guard";
pub(super) const CALLS: &str = "calls";

/// The remedies if the API server itself refused the pod.
const NO_RIGHT: &str = "Run the command as a user who may create Pods in the namespace, or choose another one: `--as`, `--context`, `--namespace`.";
const REFUSED: &str = "Something other than a webhook for GMSA refuses the Pod of the dry run. Choose a namespace in which Pods that use GMSA run: `--namespace`.";

/// The suffix in the names of policies from files of the control plane.
/// <https://kubernetes.io/docs/reference/access-authn-authz/manifest-admission-control/>
const STATIC: &str = ".static.k8s.io";

/// Makes the API server call the configured webhooks, or both if the configurations cannot be read: the right to create pods is enough.
pub(super) async fn checks(world: &World) -> Read<Vec<Check>> {
    let webhooks = world.webhooks().await.ok();
    let known = || webhooks.into_iter().flatten();
    let is_configured =
        |mutating| webhooks.is_none() || known().any(|found| found.is_of_pods() && found.mutating == mutating);
    let slot = if known().all(is_ours) { "/spec" } else { probe::INIT_CONTAINER };
    let pods = [
        (Webhook::Mutate, is_configured(true), probe::naming(slot)),
        (Webhook::Validate, is_configured(false), probe::carrying(slot)),
    ];
    let made = pods.into_iter().filter(|(_, is_configured, _)| *is_configured);
    let checks = made.map(async |(webhook, _, pod)| {
        let answer = world.dry_run(webhook, &pod).await;
        judged(webhook, &answer, &world.namespace, webhooks)
    });
    Ok(join_all(checks).await)
}

fn judged(webhook: Webhook, answer: &Read<DryRun>, namespace: &str, webhooks: Option<&[Configured]>) -> Check {
    let (about, what) = if webhook == Webhook::Mutate {
        (MUTATE, "a pod that names a credential spec that does not exist")
    } else {
        (VALIDATE, "a pod with contents of its own")
    };
    match answer {
        Err(unread) => failed(about, webhook, unread, namespace, webhooks),
        Ok(DryRun::Refused) => {
            let text = format!("the API server reaches it and trusts its certificate (dry run in {namespace})");
            Check::pass(about, text)
        }
        Ok(DryRun::Warned) => {
            let text = format!("the API server reaches it, but denials are not enforced (dry run in {namespace})");
            Check::breach(about, &rules::NOT_ENFORCED, text)
        }
        Ok(DryRun::Guarded(policy)) if webhook == Webhook::Validate => {
            let from = if policy.ends_with(STATIC) { "a file of the control plane" } else { "the cluster" };
            let text =
                format!("{policy}, from {from}, refuses {what} before /validate is asked (dry run in {namespace})");
            Check::pass(GUARD, text)
        }
        Ok(DryRun::Guarded(policy)) => {
            let text = format!("{what} would get no contents in {namespace}: the policy {policy} refuses it");
            Check::breach(about, &rules::WEBHOOK_NOT_CALLED, text)
        }
        Ok(DryRun::Admitted) => {
            Check::breach(about, &rules::WEBHOOK_NOT_CALLED, format!("{what} would be created in {namespace}"))
        }
    }
}

/// The line for a failed call: the side that failed, and the remedy.
fn failed(
    about: &'static str,
    webhook: Webhook,
    error: &Unread,
    namespace: &str,
    webhooks: Option<&[Configured]>,
) -> Check {
    let (text, message) = (error.cause.as_str(), error.said.as_str());
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
    let of_names = |rule| Check::found(about, rules::found(rule, text, &names(webhooks, message)));
    let failing = quoted_after(message, "failed calling webhook ");
    let denying = quoted_after(message, "admission webhook ");
    match (failing, denying) {
        (Some(name), _) if is_ours(name) => match webhook {
            // Mutating webhooks are called first. The URL in the message shows which webhook failed.
            Webhook::Mutate if calls(message, Webhook::Validate) => not_called(about, namespace),
            Webhook::Validate if calls(message, Webhook::Mutate) => {
                let remedy = Remedy::new("Correct the call of /mutate first.");
                because(about, "/mutate is called first, and fails", remedy)
            }
            _ => of_names(&rules::WEBHOOK_UNREACHABLE),
        },
        (Some(name), _) => other(name, "cannot be called"),
        (None, Some(name)) if is_ours(name) => {
            let is_of_validate = webhook == Webhook::Mutate && is_denial(Webhook::Validate, message);
            if is_of_validate { not_called(about, namespace) } else { of_names(&rules::WEBHOOK_FAILING) }
        }
        (None, Some(name)) => other(name, "refuses the pod of the dry run"),
        (None, None) => match error.code {
            Some(403) if rules::lacks_right(message) => because(about, text, Remedy::new(NO_RIGHT)),
            Some(400 | 403 | 422) => because(about, text, Remedy::new(REFUSED)),
            _ => error.check(about),
        },
    }
}

/// The webhook that the message is about.
fn names<'w>(webhooks: Option<&'w [Configured]>, said: &'w str) -> Names<'w> {
    let failing = webhooks.into_iter().flatten().find(|found| found.is_of_pods());
    // The chart gives the Deployment the name of the Service.
    let service = failing.and_then(|failing| failing.webhook.client_config.service.as_ref());
    Names {
        installer: failing.map(|failing| &failing.installer),
        webhook: service.map(|service| (service.namespace.as_str(), service.name.as_str())),
        said,
        ..Names::default()
    }
}

fn not_called(about: &'static str, namespace: &str) -> Check {
    let text = format!("/validate gets a pod in {namespace} that /mutate did not get");
    Check::breach(about, &rules::WEBHOOK_NOT_CALLED, text)
}

/// Whether the API server's message has the URL of `webhook`.
fn calls(message: &str, webhook: Webhook) -> bool {
    message.contains(&format!("{}?timeout=", webhook.path()))
}

/// The name in quotes after `words`.
fn quoted_after<'m>(message: &'m str, words: &str) -> Option<&'m str> {
    let (_, rest) = message.split_once(words)?;
    rest.strip_prefix('"')?.split_once('"').map(|(name, _)| name)
}
