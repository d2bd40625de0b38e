//! Misspelt fields of a pod, corrected before a decision: `serviceaccountName` would otherwise be found as a service account without a grant,
//! and the fix would grant the credential spec to `default`.

use gmsa_core::admission::pod::SlotKind;
use serde_json::Value;

use super::pointer::{Step, pointer};

/// The fields that decisions and advice rest on: of a pod's spec, of a container, and of what is in both.
const OF_POD: [&str; 11] = [
    "serviceAccountName",
    "nodeSelector",
    "securityContext",
    "runtimeClassName",
    "hostname",
    "affinity",
    "tolerations",
    "containers",
    "initContainers",
    "ephemeralContainers",
    "os",
];
const OF_CONTAINER: [&str; 2] = ["securityContext", "image"];
const OF_SECURITY_CONTEXT: [&str; 1] = ["windowsOptions"];
const OF_OPTIONS: [&str; 2] = ["runAsUserName", "hostProcess"];

/// A field of a pod that is misspelt.
pub(super) struct Slip {
    /// Its place in the pod, and what is meant.
    pub at: String,
    pub field: &'static str,
}

/// Corrects the misspelt fields of a pod, so that what is said of the rest does not follow from them; gives what was found.
pub(super) fn correct(pod: &mut Value) -> Vec<Slip> {
    let mut slips = Vec::new();
    let Some(spec) = pod.get_mut("spec") else { return slips };
    rename(spec, "/spec", &OF_POD, &mut slips);
    options(spec, "/spec", &mut slips);
    for kind in [SlotKind::InitContainer, SlotKind::Container, SlotKind::EphemeralContainer] {
        let Some(list) = kind.field() else { continue };
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for (index, container) in containers.into_iter().flatten().enumerate() {
            let at = format!("/spec/{list}/{index}");
            rename(container, &at, &OF_CONTAINER, &mut slips);
            options(container, &at, &mut slips);
        }
    }
    slips
}

fn options(of: &mut Value, at: &str, slips: &mut Vec<Slip>) {
    let Some(context) = of.get_mut("securityContext") else { return };
    let at = format!("{at}/securityContext");
    rename(context, &at, &OF_SECURITY_CONTEXT, slips);
    if let Some(options) = context.get_mut("windowsOptions") {
        rename(options, &format!("{at}/windowsOptions"), &OF_OPTIONS, slips);
    }
}

fn rename(object: &mut Value, at: &str, fields: &[&'static str], slips: &mut Vec<Slip>) {
    let Some(object) = object.as_object_mut() else { return };
    let meant =
        |key: &String| fields.iter().copied().find(|field| is_slip(key, field)).map(|field| (key.clone(), field));
    let wrong: Vec<(String, &str)> = object.keys().filter_map(meant).collect();
    for (key, field) in wrong {
        if let Some(value) = object.remove(&key) {
            object.entry(field).or_insert(value);
        }
        slips.push(Slip { at: format!("{at}{}", pointer(&[Step::Field(&key)])), field });
    }
}

/// Whether a key is this field, in other case or with a letter in six wrong.
fn is_slip(key: &str, field: &str) -> bool {
    let bare = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
    // A key that is longer is no slip.
    key != field && key.len() < 2 * field.len() && strsim::osa_distance(&bare(key), &bare(field)) <= field.len() / 6
}
