//! Where a pod may land, as far as its own spec says: the fields that keep it on Windows nodes.
//!
//! Only what the scheduler must honour counts: a preference does not. Invariants: lists become flags while
//! they are read, so that none of them takes memory.

use serde::{Deserialize, Deserializer};

use crate::json::{Object, Text, fold, fold_entries, null_is_default};

/// What kubelets say of their operating system: the second is deprecated, and still set.
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

/// The operating systems that a node can have.
const ANY_OS: [&str; 2] = ["windows", "linux"];

fn is_os(key: &str) -> bool {
    OS.contains(&key)
}

/// Whether a key is about the operating system, in any case.
fn is_like_os(key: &str) -> bool {
    OS.iter().any(|os| key.eq_ignore_ascii_case(os))
}

#[derive(Debug, Default)]
pub(super) struct NodeSelector {
    pub on_windows: bool,
    /// Whether the pod stays on nodes of one build of Windows.
    pub on_a_build: bool,
    /// Whether it is about an operating system in a way that no node has it: in other case, with another value.
    pub on_no_node: bool,
}

impl<'de> Deserialize<'de> for NodeSelector {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold_entries(input, Self::default(), |selector: &mut Self, key: Text, value: Option<Text>| {
            let value = value.as_deref();
            selector.on_windows |= is_os(&key) && value == Some("windows");
            selector.on_windows |= value.is_some() && is_of_windows(&key, value.is_some_and(names_windows));
            selector.on_a_build |= value.is_some() && pins_build(&key, value.is_some_and(has_version));
            let is_known = || is_os(&key) && value.is_some_and(|value| ANY_OS.contains(&value));
            selector.on_no_node |= is_like_os(&key) && !is_known();
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Affinity {
    #[serde(default, deserialize_with = "null_is_default")]
    node_affinity: Object<NodeAffinity>,
}

impl Affinity {
    pub fn on_windows(&self) -> bool {
        let terms = &self.node_affinity.required.node_selector_terms;
        terms.any && !terms.one_not_on_windows
    }

    /// Whether the pod stays on nodes of certain builds of Windows.
    pub fn on_a_build(&self) -> bool {
        let terms = &self.node_affinity.required.node_selector_terms;
        terms.any && !terms.one_not_on_a_build
    }

    pub fn on_no_node(&self) -> bool {
        let terms = &self.node_affinity.required.node_selector_terms;
        terms.any && !terms.one_on_a_node
    }
}

#[derive(Debug, Default, Deserialize)]
struct NodeAffinity {
    #[serde(rename = "requiredDuringSchedulingIgnoredDuringExecution", default, deserialize_with = "null_is_default")]
    required: Object<Required>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Required {
    #[serde(default)]
    node_selector_terms: Terms,
}

/// Alternatives: one of them must hold, so each of them must keep the pod on Windows.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the list")]
struct Terms {
    any: bool,
    one_not_on_windows: bool,
    one_not_on_a_build: bool,
    one_on_a_node: bool,
}

impl<'de> Deserialize<'de> for Terms {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self::default(), |terms: &mut Self, Object(Term { match_expressions: all })| {
            terms.any = true;
            terms.one_not_on_windows |= !all.on_windows && !all.on_no_node;
            terms.one_not_on_a_build |= !all.on_a_build;
            terms.one_on_a_node |= !all.on_no_node;
        })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Term {
    #[serde(default)]
    match_expressions: Expressions,
}

/// Conditions that hold together, so one of them is enough.
#[derive(Default)]
struct Expressions {
    on_windows: bool,
    on_a_build: bool,
    on_no_node: bool,
}

impl<'de> Deserialize<'de> for Expressions {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self::default(), |all: &mut Self, Object(expression): Object<Expression>| {
            let (key, values) = (expression.key.as_deref().unwrap_or_default(), expression.values);
            match expression.operator.as_deref() {
                Some("In") if values.any => {
                    all.on_windows |= is_os(key) && !values.another_os || is_of_windows(key, !values.another_name);
                    all.on_a_build |= pins_build(key, !values.one_without_version);
                    all.on_no_node |= is_like_os(key) && !(is_os(key) && values.any_os);
                }
                Some("NotIn") => all.on_windows |= is_os(key) && values.linux,
                Some("Exists") => all.on_windows |= is_of_windows(key, false),
                // The others do not say which values the label may have.
                _ => {}
            }
        })
    }
}

#[derive(Deserialize)]
struct Expression {
    key: Option<Text>,
    operator: Option<Text>,
    #[serde(default)]
    values: Values,
}

#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact about the list")]
struct Values {
    any: bool,
    another_os: bool,
    another_name: bool,
    one_without_version: bool,
    any_os: bool,
    linux: bool,
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        fold(input, Self::default(), |values: &mut Self, value: Text| {
            values.any = true;
            values.another_os |= &*value != "windows";
            values.another_name |= !names_windows(&value);
            values.one_without_version |= !has_version(&value);
            values.any_os |= ANY_OS.contains(&&*value);
            values.linux |= &*value == "linux";
        })
    }
}
