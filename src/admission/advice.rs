//! What deserves a warning in a pod that uses GMSA: it will be admitted, but may not get its identity.
//!
//! Warnings, never denials: each of these can be meant.

use super::{
    Review,
    pod::{Pod, Slot},
    warning::Warnings,
};

/// What is to be said about the pod of a review.
pub(super) fn on_pod(review: &Review<'_>) -> Vec<String> {
    let mut warnings = Warnings::default();
    if let Some(pod) = &review.object {
        advise(pod, &mut warnings);
    }
    warnings.into_lines()
}

/// Adds what is to be said about a pod, or a pod template.
pub(super) fn advise(pod: &Pod<'_>, warnings: &mut Warnings) {
    if pod.is_linux() || pod.slots().all(|slot| slot.name.is_none() && slot.contents.is_none()) {
        return;
    }
    if !pod.keeps_to_windows() {
        warnings.add(
            "the pod uses GMSA but may land on a Linux node: set spec.os.name and nodeSelector kubernetes.io/os: windows",
            &[],
        );
    }
    let mut slots = pod.slots();
    let Some(pod_slot) = slots.next() else { return };
    for slot in slots.filter(|slot| uses_gmsa(slot) || uses_gmsa(&pod_slot)) {
        let host_process = slot.host_process.or(pod_slot.host_process) == Some(true);
        let user = slot.run_as_user.or(pod_slot.run_as_user);
        let kind = slot.kind.to_string();
        let container = |sentence: &str| format!("{kind} {sentence}");
        if host_process {
            warnings
                .add(&container("{} is a hostProcess: it acts as the host's account, not as the gMSA"), &[slot.owner]);
        } else if let Some(user) = user.filter(|user| !acts_as_the_account(user)) {
            warnings
                .add(&container("{} runs as {}: only SYSTEM and NETWORK SERVICE act as the gMSA"), &[slot.owner, user]);
        }
    }
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
