//! Where a pod may land, as far as its own spec says: the fields that keep it on Windows nodes.
//!
//! Only what the scheduler must honour counts: a preference does not. Invariants: lists become flags while they are
//! read, by the reading of [`node_affinity`](crate::node_affinity), so that none of them takes memory.

use serde::{Deserialize, Deserializer};

use crate::{
    json::{Object, Text, fold, fold_entries, null_is_default},
    node_affinity::{AffinityFields, LabelValue, Node, Requirement, Term, holds},
};

/// Labels in which kubelets report their operating system; the second is deprecated but still set.
const OS: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];
const BUILD: &str = "node.kubernetes.io/windows-build";

/// Labels that only nodes of Windows have, with any value: the kubelet's, and GKE's.
const ONLY_WINDOWS: [&str; 2] = [BUILD, "cloud.google.com/gke-windows-os-version"];

/// Labels whose value begins with `Windows` on nodes of Windows alone: those of GKE, OpenShift, Rancher, and the [`VERSION_LABELS`].
const NAMES_WINDOWS: [&str; 3] = ["cloud.google.com/gke-os-distribution", "node.openshift.io/os_id", "cattle.io/os"];

/// Labels whose value ends with the version of Windows: AKS' `Windows2022`, GKE's `2022`.
pub const VERSION_LABELS: [&str; 4] = [
    "kubernetes.azure.com/os-sku",
    "kubernetes.azure.com/os-sku-requested",
    "kubernetes.azure.com/os-sku-effective",
    "cloud.google.com/gke-windows-os-version",
];

/// Whether nodes of Windows alone have the label, with a value of Windows where `of_windows`.
fn is_of_windows(key: &str, of_windows: bool) -> bool {
    ONLY_WINDOWS.contains(&key) || (of_windows && (NAMES_WINDOWS.contains(&key) || VERSION_LABELS.contains(&key)))
}

fn names_windows(value: &str) -> bool {
    value.get(.."windows".len()).is_some_and(|start| start.eq_ignore_ascii_case("windows"))
}

/// Whether nodes with the label are of one build of Windows.
fn pins_build(key: &str, has_version: bool) -> bool {
    key == BUILD || (has_version && VERSION_LABELS.contains(&key))
}

fn has_version(value: &str) -> bool {
    value.ends_with(|c: char| c.is_ascii_digit())
}

fn is_os(key: &str) -> bool {
    OS.contains(&key)
}

/// Whether a key is about the operating system, in any case.
fn is_like_os(key: &str) -> bool {
    OS.iter().any(|os| key.eq_ignore_ascii_case(os))
}

/// The node selector: each label with its value is a condition.
#[derive(Debug, Default)]
pub(super) struct PinnedLabels(Expressions);

impl PinnedLabels {
    pub fn on_windows(&self) -> bool {
        self.0.not_on_linux && !self.0.not_on_windows
    }

    /// Whether the pod stays on nodes of one build of Windows.
    pub fn on_a_build(&self) -> bool {
        self.0.on_a_build
    }

    /// Whether it selects a label or a value of an operating system that no node has, such as one in another case.
    pub fn on_no_node(&self) -> bool {
        self.0.not_on_linux && self.0.not_on_windows
    }
}

impl<'de> Deserialize<'de> for PinnedLabels {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let add = |all: &mut Expressions, key: Text, value: Option<Text>| {
            all.add(&key, "In", &Values { first: vec![value.unwrap_or_default()], more: false });
        };
        fold_entries(input, Expressions::default(), add).map(Self)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Affinity {
    #[serde(default, deserialize_with = "null_is_default")]
    node_affinity: Object<AffinityFields<Terms>>,
}

impl Affinity {
    pub fn on_windows(&self) -> bool {
        self.node_affinity.terms().is_some_and(|terms| terms.any && !terms.on_linux)
    }

    /// Whether the pod stays on nodes of certain builds of Windows.
    pub fn on_a_build(&self) -> bool {
        self.node_affinity.terms().is_some_and(|terms| terms.any && !terms.one_on_any_build)
    }

    pub fn on_no_node(&self) -> bool {
        self.node_affinity.terms().is_some_and(|terms| terms.any && !terms.on_linux && !terms.on_windows)
    }
}

/// Alternatives: one of them must hold, so each of them must keep the pod on Windows. A term that no node matches does not count.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the list")]
struct Terms {
    any: bool,
    on_linux: bool,
    on_windows: bool,
    one_on_any_build: bool,
}

impl<'de> Deserialize<'de> for Terms {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self::default(), |terms: &mut Self, Object(term): Object<Term<Expressions, HasFields>>| {
            let (all, has_fields) = (term.match_expressions, term.match_fields.0);
            let is_of = |system: OperatingSystem| (all.any || has_fields) && !all.excludes(system);
            let (linux, windows) = (is_of(OperatingSystem::Linux), is_of(OperatingSystem::Windows));
            terms.any = true;
            terms.on_linux |= linux;
            terms.on_windows |= windows;
            terms.one_on_any_build |= (linux || windows) && !all.on_a_build;
        })
    }
}

/// Whether there are requirements on the name of a node. Nothing is known about the name here.
#[derive(Default)]
struct HasFields(bool);

impl<'de> Deserialize<'de> for HasFields {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self(false), |fields: &mut Self, _: Object<Requirement<Values>>| fields.0 = true)
    }
}

/// A node with a known operating system and otherwise unknown labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperatingSystem {
    Linux,
    Windows,
}

impl Node for OperatingSystem {
    fn label(&self, key: &str) -> LabelValue<'_> {
        match self {
            Self::Linux if ONLY_WINDOWS.contains(&key) => LabelValue::Absent,
            _ if !is_like_os(key) => LabelValue::Unknown,
            _ if !is_os(key) => LabelValue::Absent,
            Self::Linux => LabelValue::Value("linux"),
            Self::Windows => LabelValue::Value("windows"),
        }
    }
}

/// Conditions that hold together, so one of them is enough.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the list")]
struct Expressions {
    any: bool,
    not_on_linux: bool,
    not_on_windows: bool,
    on_a_build: bool,
}

impl Expressions {
    fn excludes(&self, system: OperatingSystem) -> bool {
        if system == OperatingSystem::Linux { self.not_on_linux } else { self.not_on_windows }
    }

    fn add(&mut self, key: &str, operator: &str, Values { first, more }: &Values) {
        // Values of such a label that a Linux node does not have.
        let are_of_windows =
            operator == "In" && !first.is_empty() && first.iter().all(|value| is_of_windows(key, names_windows(value)));
        let excludes = |system: OperatingSystem| {
            // An empty list is refused by the API server, and says nothing here.
            let is_empty = operator == "In" && first.is_empty();
            let is_ruled_out = !is_empty && holds(operator, first, system.label(key)) == Some(false);
            !more && (is_ruled_out || are_of_windows && system == OperatingSystem::Linux)
        };
        self.any = true;
        self.not_on_linux |= excludes(OperatingSystem::Linux);
        self.not_on_windows |= excludes(OperatingSystem::Windows);
        let pins = |value: &Text| pins_build(key, has_version(value));
        self.on_a_build |= operator == "In" && !more && !first.is_empty() && first.iter().all(pins);
    }
}

impl<'de> Deserialize<'de> for Expressions {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self::default(), |all: &mut Self, Object(requirement): Object<Requirement<Values>>| {
            all.add(requirement.key(), requirement.operator(), &requirement.values);
        })
    }
}

/// The values of one expression, while it is read.
#[derive(Default)]
struct Values {
    first: Vec<Text>,
    /// Whether there are others: then nothing is known of it.
    more: bool,
}

/// The most values of an expression that are looked at. There are fewer operating systems.
const MAX_VALUES: usize = 16;

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self::default(), |values: &mut Self, value: Text| {
            if values.first.len() < MAX_VALUES {
                values.first.push(value);
            } else {
                values.more = true;
            }
        })
    }
}
