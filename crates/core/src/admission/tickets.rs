//! Tickets and keytabs for Linux pods: the sidecar that `/mutate` injects into a pod that asks for them, and why a pod cannot have it.
//!
//! Invariants: an annotation gives no right. A projected token with the audience of a credential spec does: `/validate` authorizes it when
//! the pod is created, and no update can change a pod's volumes. Injection adds what is missing and replaces nothing, so a patched pod sent
//! again yields no patch. A token is mounted in the sidecar alone, the tickets are read-only elsewhere. Pod Security `restricted` admits
//! the sidecar and quotas count it; its requests are its limits, so a Guaranteed pod stays one.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Denial, Failure,
    claims::Claim,
    patch::PatchWriter,
    pod::{
        Pod, SlotKind,
        tickets::{FOLDER, SIDECAR, SidecarFields, TOKEN_PATH},
    },
    preconditions::spec_name,
};
use crate::credspec::{SpecName, Verb};

/// Whether Linux pods get tickets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TicketSettings {
    /// The operator has not enabled them, or enables them at the moment, in other replicas first.
    #[default]
    Off,
    On(Arc<Sidecar>),
    /// The cluster has this version, which has no native sidecars: the pod would wait for the end of an init container.
    TooOld(String),
    /// The version of the cluster or the CA of the broker is not known.
    Unknown(Failure),
}

/// The operator's settings of the sidecar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sidecar {
    pub image: String,
    /// The DNS name that the broker's certificate is for.
    pub broker: String,
    /// The broker's IP address and port: pods in the network of their node cannot resolve the name of a Service.
    pub broker_address: String,
    /// The CAs of the broker's certificate, in PEM. A running pod keeps them, so the next CA must be among them long before it signs.
    pub broker_ca: String,
    pub options: SidecarOptions,
}

/// How the sidecar runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct SidecarOptions {
    /// Its `resources`, where it has any.
    pub resources: Resources,
    pub startup_probe: StartupProbe,
    /// The longest time between two of its requests: a duration of Go.
    pub check_interval: String,
}

/// Quantities by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resources {
    pub requests: BTreeMap<String, Value>,
    pub limits: BTreeMap<String, Value>,
}

/// The fields of the sidecar's startup probe that an operator may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct StartupProbe {
    /// How long the kubelet waits for it. The probe itself waits for tickets for two thirds of that.
    pub timeout_seconds: u32,
    /// After this many failures, the kubelet starts the sidecar again.
    pub failure_threshold: u32,
}

impl Default for SidecarOptions {
    fn default() -> Self {
        let quantities =
            |cpu: &str| [("cpu", cpu), ("memory", "32Mi")].map(|(name, value)| (name.to_owned(), value.into())).into();
        Self {
            // A sidecar that waits, and one that has tickets, takes a hundredth of a processor; its start takes more.
            resources: Resources { requests: quantities("10m"), limits: quantities("100m") },
            startup_probe: StartupProbe::default(),
            check_interval: "5m".to_owned(),
        }
    }
}

impl Default for StartupProbe {
    fn default() -> Self {
        Self { timeout_seconds: 15, failure_threshold: 360 }
    }
}

/// The products that a pod's annotations ask for, or the denials. Empty where they ask for nothing, or where tickets are not enabled and the pod has a
/// sidecar of its own. Any other pod would never get one: nothing is injected after its creation.
pub(super) fn claims(pod: &Pod, settings: &TicketSettings) -> Vec<Claim> {
    let Some((verb, _)) = pod.asks().next() else { return Vec::new() };
    let impossible = |why| Denial::TicketsImpossible(verb, why);
    let mut denials = match settings {
        TicketSettings::Off if pod.slots().any(|slot| slot.is_sidecar()) => return Vec::new(),
        TicketSettings::Off => vec![Denial::TicketsNotEnabled(verb)],
        TicketSettings::On(_) => Vec::new(),
        TicketSettings::TooOld(version) => vec![impossible(format!(
            "they need native sidecars, which Kubernetes has from 1.29 on, and this cluster is {version}"
        ))],
        TicketSettings::Unknown(failure) => vec![Denial::TicketsUnavailable(verb, failure.clone())],
    };
    denials.extend(obstacles(pod, verb).map(impossible));
    let names = pod.asks().map(|(verb, name)| {
        let spec = spec_name(name, || verb.product().annotation_place())?;
        Ok(Claim::Token(verb, spec))
    });
    let (claims, wrong): (Vec<_>, Vec<_>) = names.partition(Result::is_ok);
    denials.splice(0..0, wrong.into_iter().filter_map(Result::err));
    if denials.is_empty() {
        return claims.into_iter().flatten().collect();
    }
    denials.into_iter().map(Claim::from).collect()
}

/// Reasons not to inject: a Windows pod, or volumes, containers or mounts that use our names or path for something else.
fn obstacles(pod: &Pod, first: Verb) -> impl Iterator<Item = String> {
    let windows = pod.is_for_windows().then(|| "they are for Linux pods, and this pod is for Windows".to_owned());
    let tickets = pod.volumes().in_memory.filter(|is_in_memory| !is_in_memory);
    let tickets = tickets.map(|_| format!("volume {SIDECAR:?} is not an emptyDir in memory"));
    let tokens = pod.asks().filter_map(|(verb, spec)| {
        pod.volumes().token(verb).filter(|token| *token != spec)?;
        let right = format!("a token with the audience {}NAME and the path {TOKEN_PATH:?}", verb.product().audience);
        Some(format!("volume {:?} needs one source, {right}, and no other", verb.product().token_volume))
    });
    let slots = pod.slots().filter_map(move |slot| {
        let lacked = pod.asks().find(|(verb, _)| !slot.is_sidecar() || !slot.tickets.has(verb.product().token_mount));
        let (lacked, _) = lacked?;
        let other = Verb::ALL.into_iter().find(|verb| slot.tickets.has(verb.product().token_mount));
        let fault = if slot.has_windows_options() {
            format!("has windowsOptions, and {} are for Linux pods", first.product().name)
        } else if slot.owner == SIDECAR && slot.kind != SlotKind::Pod {
            let what = "an init container with restartPolicy: Always that mounts volume";
            format!("has the name of the sidecar, {what} {:?}", lacked.product().token_volume)
        } else if let Some(other) = other {
            format!("mounts volume {:?}, which is for the sidecar alone", other.product().token_volume)
        } else if slot.tickets.has(SidecarFields::OTHER) {
            format!("may mount volume {SIDECAR:?} at {FOLDER} alone, whole and read-only, and nothing else there")
        } else {
            return None;
        };
        Some(format!("{slot} {fault}"))
    });
    windows.into_iter().chain(tickets).chain(tokens).chain(slots)
}

/// The injected JSON, with placeholders for the values; of the sidecar's lists, `{"use": ITEM}` is an item for one verb. The other containers
/// start once there is what was asked for, so they wait while the broker does not answer.
const INJECTED: &str = include_str!("tickets/injected.json");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Injected {
    /// For each container but the sidecar: two for tickets, one for a keytab.
    env: [Value; 3],
    /// The same.
    volume_mounts: [Value; 1],
    /// The added fields, and the tokens.
    volumes: [Value; 3],
    sidecar: Value,
}

impl Injected {
    fn new(pod: &Pod, asked: &[(Verb, &SpecName)], sidecar: &Sidecar) -> Result<Self, Denial> {
        let first = asked.first().map_or(Verb::Use, |(verb, _)| *verb);
        let Sidecar { image, broker, broker_address, broker_ca, options } = sidecar;
        let StartupProbe { timeout_seconds, failure_threshold } = options.startup_probe;
        // With an `fsGroup`, that group alone reads the tickets.
        let mode = if pod.has_fs_group() { "0440" } else { "0444" };
        let wait = timeout_seconds * 2 / 3;
        let text = |value: &str| {
            let quoted = Value::from(value).to_string();
            quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default().to_owned()
        };
        let spec = |verb| text(asked.iter().find(|asked| asked.0 == verb).map_or("", |(_, spec)| spec.as_str()));
        let values = [
            ("$TICKETS", spec(Verb::Use)),
            ("$KEYTAB", spec(Verb::Export)),
            ("$TOKEN", text(first.product().token_volume)),
            ("$IMAGE", text(image)),
            ("$BROKER", text(broker)),
            ("$ADDRESS", text(broker_address)),
            ("$MODE", text(mode)),
            ("$CHECK", text(&options.check_interval)),
            ("$WAIT", wait.to_string()),
            ("\"$TIMEOUT\"", timeout_seconds.to_string()),
            ("\"$FAILURES\"", failure_threshold.to_string()),
            ("\"$RESOURCES\"", serde_json::to_string(&options.resources).unwrap_or_default()),
            ("$CA", text(broker_ca)),
        ];
        let injected = values.iter().fold(INJECTED.to_owned(), |text, (word, value)| text.replace(word, value));
        let mut injected: Self = serde_json::from_str(&injected)
            .map_err(|error| Denial::TicketsUnavailable(first, Failure::new(error.to_string())))?;
        for list in ["args", "volumeMounts"] {
            if let Some(items) = injected.sidecar.get_mut(list).and_then(Value::as_array_mut) {
                items.retain_mut(|item| is_asked(asked, item));
            }
        }
        Ok(injected)
    }
}

/// Whether an item of the sidecar is for what is asked for. One for a verb becomes what it holds.
fn is_asked(asked: &[(Verb, &SpecName)], item: &mut Value) -> bool {
    let verb = Verb::ALL.into_iter().find_map(|verb| Some((verb, item.get_mut(verb.as_str())?.take())));
    let Some((verb, held)) = verb else { return true };
    *item = held;
    asked.iter().any(|asked| asked.0 == verb)
}

/// Adds the missing parts to the pod.
pub(super) fn inject(
    pod: &Pod,
    asked: &[(Verb, &SpecName)],
    sidecar: &Sidecar,
    patch: &mut PatchWriter,
) -> Result<(), Denial> {
    let Injected { env, volume_mounts, volumes, sidecar } = Injected::new(pod, asked, sidecar)?;
    let [no_tickets, no_keytab] = Verb::ALL.map(|verb| asked.iter().all(|asked| asked.0 != verb));
    let (mut has_sidecar, mut has_others) = (false, false);
    for slot in pod.slots() {
        has_sidecar |= slot.is_sidecar();
        has_others |= slot.kind == SlotKind::InitContainer;
        let Some(list) = slot.kind.field().filter(|_| !slot.is_sidecar()) else { continue };
        let (container, has) = (format!("/spec/{list}/{}", slot.index), |field| slot.tickets.has(field));
        let position = |field| has(field).then_some("-");
        let is_there = [
            no_tickets || has(Verb::Use.product().set),
            no_tickets || has(SidecarFields::CONFIGURATION),
            no_keytab || has(Verb::Export.product().set),
        ];
        add(patch, &format!("{container}/env"), position(SidecarFields::ENV), &env, is_there)?;
        let mounts = (format!("{container}/volumeMounts"), position(SidecarFields::MOUNTS));
        add(patch, &mounts.0, mounts.1, &volume_mounts, [has(SidecarFields::TICKETS)])?;
    }
    let known = pod.volumes();
    let is_there = [
        known.in_memory.is_some(),
        no_tickets || known.token(Verb::Use).is_some(),
        no_keytab || known.token(Verb::Export).is_some(),
    ];
    add(patch, "/spec/volumes", known.are_some.then_some("-"), &volumes, is_there)?;
    // The last operation: it shifts the positions of the other init containers.
    let list = format!("/spec/{}", SlotKind::InitContainer.field().unwrap_or_default());
    add(patch, &list, has_others.then_some("0"), &[sidecar], [has_sidecar])
}

/// Adds the items that are not there to a list, at this position; where it has no items, as a new list.
fn add<const N: usize>(
    patch: &mut PatchWriter,
    list: &str,
    position: Option<&str>,
    items: &[Value; N],
    is_there: [bool; N],
) -> Result<(), Denial> {
    let missing: Vec<&Value> =
        items.iter().zip(is_there).filter(|(_, is_there)| !is_there).map(|(item, _)| item).collect();
    match position {
        Some(position) => missing.iter().try_for_each(|item| patch.add(&format!("{list}/{position}"), item)),
        None if missing.is_empty() => Ok(()),
        None => patch.add(list, &missing),
    }
}
