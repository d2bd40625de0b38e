//! Warnings about a pod that uses GMSA: it is admitted, but may not get its identity.
//!
//! Warnings, never denials: each of these can be intended. `/validate` calls `advise`, and `/validate-workload` and the plugin call `advise_template`
//! too. The field of each diagnostic is a JSON Pointer (RFC 6901) into the pod.
//!
//! A new warning is a line in `advise` or `advise_template`, its sentence, a rule in `crates/rules/data/10-core.yaml` with its line in `docs/rules.md`
//! (`UPDATE_SNAPSHOTS=1 cargo test -p gmsa-rules`), and a folder in `tests/golden`.

pub mod same_computer;

use super::{
    pod::{
        Pod, Slot,
        fields::{Occurrence, Unsupported},
        tickets::Product,
    },
    warning::text,
};
use crate::{
    credspec::Verb,
    diagnostic::{
        Diagnostic, Severity,
        rules::{self, Rule},
    },
};

/// The YAML that keeps a pod on Windows nodes.
const ON_WINDOWS: &str = "spec:\n  os: {name: windows}\n  nodeSelector: {kubernetes.io/os: windows}";
const ON_WINDOWS_ALONE: &str = "spec:\n  os: {name: windows}\n  nodeSelector: {kubernetes.io/os: windows}  # replace the selector that matches no node";
const AS_NETWORK_SERVICE: &str = r"runAsUserName: NT AUTHORITY\NETWORK SERVICE";

/// With `sentence`, in which the next of `names` replaces each `{}`, so that it fits into a warning.
fn warning(rule: &'static Rule, pointer: String, sentence: &str, names: &[&str]) -> Diagnostic {
    Diagnostic { field: pointer, ..Diagnostic::new(rule, text(rule, sentence, names)) }
}

/// The warnings about a pod, or a pod template; none where it does not use GMSA.
pub fn advise(pod: &Pod) -> Vec<Diagnostic> {
    let mut advice = Vec::new();
    if pod.is_linux() || !pod.uses_gmsa() {
        return advice;
    }
    if pod.fits_no_node() {
        let sentence = "no node has this operating system, so the pod stays Pending: write kubernetes.io/os: windows";
        advice.push(warning(&rules::OS_SELECTOR, "/spec".to_owned(), sentence, &[]).with_fix(ON_WINDOWS_ALONE));
    } else if !pod.keeps_to_windows() {
        let sentence = "the pod uses GMSA but may land on a Linux node: set spec.os.name and nodeSelector kubernetes.io/os: windows";
        advice.push(warning(&rules::LINUX_NODE, "/spec".to_owned(), sentence, &[]).with_fix(ON_WINDOWS));
    }
    let mut slots = pod.slots();
    let Some(pod_slot) = slots.next() else { return advice };
    for slot in slots.filter(|slot| slot.uses_gmsa() || pod_slot.uses_gmsa()) {
        let kind = slot.kind;
        if slot.host_process.or(pod_slot.host_process) == Some(true) {
            let sentence = format!("{kind} {{}} is a hostProcess: it acts as the host's account, not as the gMSA");
            advice.push(warning(&rules::HOST_PROCESS, slot.pointer(), &sentence, &[slot.owner]));
        } else if let Some(user) = slot.run_as_user.or(pod_slot.run_as_user).filter(|user| !acts_as_the_account(user)) {
            let sentence = format!("{kind} {{}} runs as {{}}: only SYSTEM and NETWORK SERVICE act as the gMSA");
            let found = warning(&rules::RUN_AS_USER, slot.pointer(), &sentence, &[slot.owner, user]);
            advice.push(found.with_fix(AS_NETWORK_SERVICE));
        }
    }
    advice
}

/// The warnings about containers that do not use the tickets or the keytab their pod asks for, or, where `are_injected`, lose a setting to them.
pub fn advise_tickets(pod: &Pod, are_injected: bool) -> Vec<Diagnostic> {
    let warn = |(verb, slot): (Verb, Slot<'_>)| {
        let Product { variable: name, set, of_this_pod: what, .. } = verb.product();
        let sets_it = slot.tickets.has(*set);
        let effect = if sets_it {
            format!("sets {name} itself, so it does not use {what} of its pod")
        } else {
            format!("gets the {name} of {what}, which replaces one from its envFrom")
        };
        let fix = if verb == Verb::Use { "remove KRB5CCNAME" } else { "remove KRB5_KTNAME" };
        let pointer = format!("/spec/{}/{}/env", slot.kind.field()?, slot.index);
        let sentence = format!("{} {{}} {effect}", slot.kind);
        let found = warning(&rules::TICKETS_OTHER_CACHE, pointer, &sentence, &[slot.owner]);
        (sets_it || are_injected).then(|| found.with_fix(fix))
    };
    let asked = pod.asks().flat_map(|(verb, _)| pod.slots().map(move |slot| (verb, slot)));
    let has_other = |(verb, slot): &(Verb, Slot<'_>)| slot.tickets.has(verb.product().other) && !slot.is_sidecar();
    asked.filter(has_other).filter_map(warn).collect()
}

/// More warnings, for a workload that is applied or a file that is checked, but not for each creation of a pod.
/// `replicas` is how many pods there will be, where that is known.
pub fn advise_template(pod: &Pod, unsupported: &Unsupported, replicas: Option<u64>) -> Vec<Diagnostic> {
    if pod.is_linux() || !pod.uses_gmsa() {
        return Vec::new();
    }
    let is_host_process = pod.slots().any(|slot| slot.host_process == Some(true));
    let matters = |found: &Occurrence<'_>| {
        let is_of_the_host = is_host_process && found.field.path == "hostNetwork";
        !is_of_the_host && (!found.is_false || (pod.is_windows() && found.field.is_refused))
    };
    let mut advice: Vec<Diagnostic> =
        unsupported.fields(pod).filter(matters).map(|found| linux_only(found, pod.is_windows())).collect();
    let pod_user = pod.slots().next().and_then(|slot| slot.run_as_user);
    for slot in unsupported.on_nano_server(pod).filter(|slot| slot.run_as_user.or(pod_user).is_none()) {
        let sentence =
            format!("{} {{}} runs on Nano Server as ContainerUser: set runAsUserName to NETWORK SERVICE", slot.kind);
        let found = warning(&rules::NANO_SERVER, slot.pointer(), &sentence, &[slot.owner]);
        advice.push(found.with_fix(AS_NETWORK_SERVICE));
    }
    if let (Some(hostname), Some(replicas @ 2..)) = (pod.hostname(), replicas) {
        let sentence = format!("{replicas} replicas have the same host name {{}}: services that register it conflict");
        advice.push(warning(&rules::SHARED_HOSTNAME, "/spec/hostname".to_owned(), &sentence, &[hostname]));
    }
    advice
}

fn linux_only(found: Occurrence<'_>, is_windows: bool) -> Diagnostic {
    let (place, names) = match found.container {
        None => ("the pod".to_owned(), Vec::new()),
        Some((kind, name)) => (format!("{kind} {{}}"), vec![name]),
    };
    let field = found.field;
    let refused = is_windows && field.is_refused;
    let what = if refused {
        format!("{place} sets {}: refused with spec.os.name: windows", field.path)
    } else {
        format!("{place} sets {}: {}", field.path, field.explanation)
    };
    let severity = if refused { Severity::Error } else { rules::LINUX_ONLY.severity };
    warning(&rules::LINUX_ONLY, found.pointer, &what, &names).with_severity(severity).with_fix("remove the field")
}

/// Whether a user of the container is one that logs on to the network as the computer, and so as the gMSA.
/// Windows ignores case and takes these accounts with and without their authority.
fn acts_as_the_account(user: &str) -> bool {
    let user: String = user.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_ascii_lowercase()).collect();
    let user = user.strip_prefix("ntauthority\\").unwrap_or(&user);
    matches!(user, "system" | "localsystem" | "networkservice")
}

#[cfg(test)]
mod tests;
