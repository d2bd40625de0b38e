//! What deserves a warning in a pod that uses GMSA: it will be admitted, but may not get its identity.
//!
//! Warnings, never denials: each of these can be meant.

use super::{
    Review,
    pod::{Pod, Slot},
    warning::{Warnings, line},
};
use crate::diagnostic::rules::{self, Rule};

/// One thing to be said about a pod.
#[derive(Clone, Debug)]
pub struct Advice<'p> {
    /// The rule that is broken.
    pub rule: &'static Rule,
    /// The slot that it is about; `None` where it is about the pod.
    pub slot: Option<Slot<'p>>,
    /// The line for the user, of at most [`super::warning::MAX_CHARS`] characters.
    pub text: String,
}

/// What is to be said about the pod of a review.
pub(super) fn on_pod(review: &Review) -> Vec<String> {
    let mut warnings = Warnings::default();
    review.object.iter().flat_map(advise).for_each(|advice| warnings.push(advice.text));
    warnings.into_lines()
}

/// What is to be said about a pod, or a pod template; nothing where it does not use GMSA.
#[must_use]
pub fn advise(pod: &Pod) -> Vec<Advice<'_>> {
    let mut advice = Vec::new();
    if pod.is_linux() || !pod.slots().any(|slot| uses_gmsa(&slot)) {
        return advice;
    }
    if !pod.keeps_to_windows() {
        let text = "the pod uses GMSA but may land on a Linux node: set spec.os.name and nodeSelector kubernetes.io/os: windows";
        advice.push(Advice { rule: &rules::LINUX_NODE, slot: None, text: line(text, &[]) });
    }
    let mut slots = pod.slots();
    let Some(pod_slot) = slots.next() else { return advice };
    for slot in slots.filter(|slot| uses_gmsa(slot) || uses_gmsa(&pod_slot)) {
        let kind = slot.kind;
        if slot.host_process.or(pod_slot.host_process) == Some(true) {
            let sentence = format!("{kind} {{}} is a hostProcess: it acts as the host's account, not as the gMSA");
            advice.push(Advice { rule: &rules::HOST_PROCESS, slot: Some(slot), text: line(&sentence, &[slot.owner]) });
        } else if let Some(user) = slot.run_as_user.or(pod_slot.run_as_user).filter(|user| !acts_as_the_account(user)) {
            let sentence = format!("{kind} {{}} runs as {{}}: only SYSTEM and NETWORK SERVICE act as the gMSA");
            advice.push(Advice {
                rule: &rules::RUN_AS_USER,
                slot: Some(slot),
                text: line(&sentence, &[slot.owner, user]),
            });
        }
    }
    advice
}

fn uses_gmsa(slot: &Slot<'_>) -> bool {
    slot.name.is_some() || slot.contents.is_some()
}

/// Whether a user of the container is one that logs on to the network as the computer, which is to say as the gMSA.
/// Windows ignores case and takes these accounts with and without their authority.
fn acts_as_the_account(user: &str) -> bool {
    let user: String = user.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_lowercase()).collect();
    let user = user.strip_prefix("ntauthority\\").unwrap_or(&user);
    matches!(user, "system" | "localsystem" | "networkservice")
}

#[cfg(test)]
mod tests;
