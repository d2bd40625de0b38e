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

/// The nodes that a pod may land on, as far as one of its fields says. A requirement takes some away.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllowedNodes {
    linux: bool,
    windows: bool,
    /// Whether they may have any build of Windows.
    any_build: bool,
}

impl Default for AllowedNodes {
    fn default() -> Self {
        Self { linux: true, windows: true, any_build: true }
    }
}

impl AllowedNodes {
    pub fn are_windows(self) -> bool {
        self.windows && !self.linux
    }

    /// Whether they have certain builds of Windows.
    pub fn are_of_a_build(self) -> bool {
        !self.any_build
    }

    /// Whether a label or a value of an operating system is required that no node has, such as one in another case.
    pub fn are_none(self) -> bool {
        !self.linux && !self.windows
    }

    fn require(&mut self, key: &str, operator: &str, Values { first, more }: &Values) {
        // An empty list is refused by the API server, and says nothing here.
        let is_in = operator == "In" && !first.is_empty();
        let windows =
            |value: &Text| value.get(.."windows".len()).is_some_and(|start| start.eq_ignore_ascii_case("windows"));
        let has_version = |value: &Text| value.ends_with(|c: char| c.is_ascii_digit());
        let is_version = VERSION_LABELS.contains(&key);
        // Nodes of Windows alone have such a label, or such values of it.
        let names_windows = (NAMES_WINDOWS.contains(&key) || is_version) && first.iter().all(windows);
        let are_of_windows = is_in && (ONLY_WINDOWS.contains(&key) || names_windows);
        let allows = |system: OperatingSystem| {
            let is_ruled_out = (operator != "In" || is_in) && holds(operator, first, system.label(key)) == Some(false);
            *more || !(is_ruled_out || are_of_windows && system == OperatingSystem::Linux)
        };
        self.linux &= allows(OperatingSystem::Linux);
        self.windows &= allows(OperatingSystem::Windows);
        let pins_build = is_in && !more && (key == BUILD || is_version && first.iter().all(has_version));
        self.any_build &= !pins_build;
    }
}

/// Reads a node selector: each label with its value is a requirement.
impl<'de> Deserialize<'de> for AllowedNodes {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold_entries(input, Self::default(), |nodes, key, value: Option<Text>| {
            nodes.require(&key, "In", &Values { first: vec![value.unwrap_or_default()], more: false });
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Affinity {
    #[serde(default, deserialize_with = "null_is_default")]
    node_affinity: Object<AffinityFields<Terms>>,
}

/// Reads an affinity.
pub(super) fn affinity<'de, D: Deserializer<'de>>(input: D) -> Result<AllowedNodes, D::Error> {
    let affinity: Object<Affinity> = null_is_default(input)?;
    Ok(affinity.node_affinity.terms().and_then(|terms| terms.0).unwrap_or_default())
}

/// Alternatives: the nodes of any of them are allowed. `None` where there are no terms, which the API server refuses.
#[derive(Default)]
struct Terms(Option<AllowedNodes>);

impl<'de> Deserialize<'de> for Terms {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        const NONE: AllowedNodes = AllowedNodes { linux: false, windows: false, any_build: false };
        fold(input, Self::default(), |Self(nodes), Object(term): Object<Term<Expressions, HasFields>>| {
            let of_term = match (term.match_expressions.0, term.match_fields.0) {
                // No node matches an empty term.
                (None, false) => NONE,
                (required, _) => required.unwrap_or_default(),
            };
            let nodes = nodes.get_or_insert(NONE);
            nodes.linux |= of_term.linux;
            nodes.windows |= of_term.windows;
            nodes.any_build |= of_term.any_build && !of_term.are_none();
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

/// Requirements that hold together; `None` where there are none.
#[derive(Default)]
struct Expressions(Option<AllowedNodes>);

impl<'de> Deserialize<'de> for Expressions {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self::default(), |Self(nodes), Object(requirement): Object<Requirement<Values>>| {
            let Requirement { key, operator, values } = &requirement;
            nodes.get_or_insert_default().require(key, operator, values);
        })
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
            _ if !OS.iter().any(|os| key.eq_ignore_ascii_case(os)) => LabelValue::Unknown,
            // In another case, no node has it.
            _ if !OS.contains(&key) => LabelValue::Absent,
            Self::Linux => LabelValue::Value("linux"),
            Self::Windows => LabelValue::Value("windows"),
        }
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
