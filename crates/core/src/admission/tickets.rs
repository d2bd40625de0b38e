//! Tickets for Linux pods: whether a pod can have the tickets that its annotation asks for.
//!
//! Invariant: the annotation gives no right. A projected token with the audience of a credential spec does: `/validate` authorizes it when the
//! pod is created, and no update can change a pod's volumes.

use std::sync::Arc;

use super::{
    Denial, Failure, Review,
    operation::Operation,
    pod::{
        Pod, Slot, SlotKind, SlotRef,
        tickets::{ANNOTATION, CACHE_VARIABLE, FOLDER, SIDECAR, TOKEN_VOLUME, TicketFields},
    },
    preconditions::spec_name,
    warning::Warnings,
};
use crate::{credspec::SpecName, diagnostic::rules};

mod sidecar;

pub use sidecar::Sidecar;
pub(super) use sidecar::inject;

/// Whether Linux pods get tickets.
#[derive(Clone, Debug, Default)]
pub enum TicketSettings {
    /// The operator has not enabled them: the annotation is a warning.
    #[default]
    Off,
    On(Arc<Sidecar>),
    /// The cluster has this version, which knows no native sidecars: its nodes would wait for the end of an init container.
    TooOld(String),
    /// The version of the cluster or the CA of the broker is not known.
    Unknown(Failure),
}

/// The credential spec that the annotation of a pod names, or why the pod cannot have its tickets. `None` without the annotation, and where
/// tickets are not enabled.
pub(super) fn asked(pod: &Pod, settings: &TicketSettings) -> Option<Result<SpecName, Vec<Denial>>> {
    let name = pod.tickets()?;
    let spec = spec_name(name, format!("annotation {ANNOTATION}"));
    let mut denials = match settings {
        TicketSettings::Off => return None,
        TicketSettings::On(_) => Vec::new(),
        TicketSettings::TooOld(version) => vec![Denial::TicketsOldCluster(version.clone())],
        TicketSettings::Unknown(failure) => vec![Denial::TicketsUnavailable(failure.clone())],
    };
    denials.extend(windows(pod).map(Denial::TicketsOnWindows));
    denials.extend(taken(pod, name).map(Denial::TicketsNameTaken));
    Some(match spec {
        Ok(spec) if denials.is_empty() => Ok(spec),
        Ok(_) => Err(denials),
        Err(denial) => Err(std::iter::once(denial).chain(denials).collect()),
    })
}

/// What makes a pod one for Windows.
fn windows(pod: &Pod) -> Option<String> {
    if pod.is_for_windows() {
        return Some("this pod is for Windows".to_owned());
    }
    pod.slots().find(Slot::has_windows_options).map(|slot| format!("{} has windowsOptions", SlotRef::from(&slot)))
}

/// Volumes, containers and mounts with a name or the path of ours that are something else.
fn taken(pod: &Pod, spec: &str) -> impl Iterator<Item = String> {
    let volumes = pod.volumes();
    let tickets = volumes.is_in_memory.filter(|is_in_memory| !is_in_memory);
    let tickets = tickets.map(|_| format!("volume {SIDECAR:?} is not an emptyDir in memory"));
    let token = volumes.token.as_deref().filter(|token| *token != spec);
    let token =
        token.map(|_| format!("volume {TOKEN_VOLUME:?} is not one token with the audience of this GMSA cred spec"));
    let containers = pod.slots().filter(|slot| slot.kind != SlotKind::Pod && !is_sidecar(slot)).filter_map(|slot| {
        let fault = if slot.owner == SIDECAR {
            format!("is not an init container that mounts volume {TOKEN_VOLUME:?}")
        } else if slot.tickets.has(TicketFields::TOKEN) {
            format!("mounts volume {TOKEN_VOLUME:?}, which is for the sidecar alone")
        } else if slot.tickets.has(TicketFields::OTHER) {
            format!("has another mount at {FOLDER} or of volume {SIDECAR:?} than that volume, read-only, at that path")
        } else {
            return None;
        };
        Some(format!("{} {fault}", SlotRef::from(&slot)))
    });
    tickets.into_iter().chain(token).chain(containers)
}

/// Whether a container is the sidecar, injected or written by hand.
fn is_sidecar(slot: &Slot<'_>) -> bool {
    slot.kind == SlotKind::InitContainer && slot.owner == SIDECAR && slot.tickets.has(TicketFields::TOKEN)
}

/// Denies a new pod whose annotation asks for tickets, and that lacks the token for them: it would start without an identity.
pub(super) fn expect_injected(pod: &Pod, settings: &TicketSettings) -> Result<(), Denial> {
    match pod.tickets() {
        Some(name)
            if !matches!(settings, TicketSettings::Off) && pod.volumes().audiences().all(|spec| spec != name) =>
        {
            Err(Denial::TicketsNotInjected)
        }
        _ => Ok(()),
    }
}

/// The warnings about the annotation of a new pod.
pub(super) fn warnings(review: &Review, settings: &TicketSettings) -> Vec<String> {
    let mut warnings = Warnings::default();
    if let Some(pod) = review.object.as_ref().filter(|_| review.operation == Operation::Create) {
        warn(pod, settings, &mut warnings);
    }
    warnings.into_lines()
}

/// Adds the warnings about the annotation of a pod, if it has one.
pub(super) fn warn(pod: &Pod, settings: &TicketSettings, warnings: &mut Warnings) {
    if pod.tickets().is_none() {
        return;
    }
    if matches!(settings, TicketSettings::Off) {
        let text = format!("annotation {ANNOTATION} has no effect: this webhook does not have tickets enabled");
        return warnings.push(&rules::TICKETS_NOT_ENABLED, &text);
    }
    // Whoever has mounted the tickets has also set the variable.
    let has_own = |slot: &Slot<'_>| slot.tickets.has(TicketFields::CACHE) && !slot.tickets.has(TicketFields::TICKETS);
    for slot in pod.slots().filter(has_own) {
        let sentence = format!("{} {{}} sets {CACHE_VARIABLE}, so it does not use the tickets in {FOLDER}", slot.kind);
        warnings.add(&rules::TICKETS_OWN_CACHE, &sentence, &[slot.owner]);
    }
}
