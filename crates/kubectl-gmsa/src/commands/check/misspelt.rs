//! Misspelt fields of a pod, corrected before a decision: `serviceaccountName` would otherwise be found as a service account without a grant,
//! and the fix would grant the credential spec to `default`.

use gmsa_cluster::manifests::Document;
use gmsa_core::{admission::workload::KINDS, credspec, diagnostic::Diagnostic};
use serde_json::Value;

use super::pointer::{Step, pointer};
use crate::shared::rules;

/// The fields that decisions and advice rest on, and those that are written almost like them, of each object below a pod's spec; the outer
/// ones first. `*` is every item of a list.
const LEVELS: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "serviceAccountName",
            "serviceAccount",
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
        ],
    ),
    ("os", &["name"]),
    ("affinity", &["nodeAffinity", "podAffinity", "podAntiAffinity"]),
    (
        "affinity/nodeAffinity",
        &["requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"],
    ),
    ("affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution", &["nodeSelectorTerms"]),
    (
        "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/*",
        &["matchExpressions", "matchFields"],
    ),
    (
        "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/*/matchExpressions/*",
        &["key", "operator", "values"],
    ),
    ("securityContext", CONTEXT),
    ("securityContext/windowsOptions", OPTIONS),
    ("containers/*", CONTAINER),
    ("containers/*/securityContext", CONTEXT),
    ("containers/*/securityContext/windowsOptions", OPTIONS),
    ("initContainers/*", CONTAINER),
    ("initContainers/*/securityContext", CONTEXT),
    ("initContainers/*/securityContext/windowsOptions", OPTIONS),
    ("ephemeralContainers/*", CONTAINER),
    ("ephemeralContainers/*/securityContext", CONTEXT),
    ("ephemeralContainers/*/securityContext/windowsOptions", OPTIONS),
];
const CONTAINER: &[&str] = &["securityContext", "image"];
const CONTEXT: &[&str] = &["windowsOptions"];
const OPTIONS: &[&str] = &["runAsUserName", "hostProcess"];

/// A field of a pod that is misspelt.
pub(super) struct Slip {
    /// Its place in the pod, and what is meant.
    pub at: String,
    pub field: &'static str,
}

impl Slip {
    /// The place in the document's pod of a place in the corrected one.
    pub(super) fn written(&self, pointer: &str) -> Option<String> {
        let (around, _) = self.at.rsplit_once('/')?;
        let rest = pointer.strip_prefix(around)?.strip_prefix('/')?.strip_prefix(self.field)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", self.at))
    }
}

/// Corrects the misspelt fields of a pod, so that what is said of the rest does not follow from them; gives what was found, the outer ones
/// first.
pub(super) fn correct(pod: &mut Value) -> Vec<Slip> {
    let mut slips = Vec::new();
    let Some(spec) = pod.get_mut("spec") else { return slips };
    for (level, fields) in LEVELS {
        let steps: Vec<&str> = level.split('/').filter(|step| !step.is_empty()).collect();
        below(spec, "/spec", &steps, fields, &mut slips);
    }
    slips
}

fn below(value: &mut Value, at: &str, steps: &[&str], fields: &[&'static str], slips: &mut Vec<Slip>) {
    match steps {
        [] => rename(value, at, fields, slips),
        ["*", rest @ ..] => {
            for (index, item) in value.as_array_mut().into_iter().flatten().enumerate() {
                below(item, &format!("{at}/{index}"), rest, fields, slips);
            }
        }
        [step, rest @ ..] => {
            if let Some(value) = value.get_mut(step) {
                below(value, &format!("{at}/{step}"), rest, fields, slips);
            }
        }
    }
}

fn rename(object: &mut Value, at: &str, fields: &[&'static str], slips: &mut Vec<Slip>) {
    let Some(object) = object.as_object_mut() else { return };
    let is_right = |key: &String| fields.contains(&key.as_str());
    let meant =
        |key: &String| fields.iter().copied().find(|field| is_slip(key, field)).map(|field| (key.clone(), field));
    let wrong: Vec<(String, &str)> = object.keys().filter(|key| !is_right(key)).filter_map(meant).collect();
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
    key.len() < 2 * field.len() && strsim::osa_distance(&bare(key), &bare(field)) <= field.len() / 6
}

/// A kind in another case than it has: the API server knows no `deployment`.
pub(super) fn kind(document: &Document) -> Option<Diagnostic> {
    let (kind, group) = (&document.kind, document.group());
    let known = KINDS.iter().map(|of| of.split_once('.').unwrap_or((of, "")));
    let others = [("Pod", ""), ("ServiceAccount", ""), (credspec::KIND, credspec::GROUP)];
    let roles =
        ["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"].map(|kind| (kind, "rbac.authorization.k8s.io"));
    let (meant, _) = known
        .chain(others)
        .chain(roles)
        .find(|(known, of)| *of == group && known != kind && known.eq_ignore_ascii_case(kind))?;
    let message = format!("the API server knows no kind {kind:?}: {meant} is meant");
    let found = Diagnostic { field: "kind".to_owned(), ..Diagnostic::new(&rules::MANIFEST_INVALID, message) };
    Some(found.with_fix(format!("kind: {meant}")).at(document.location_of("/kind")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn no_field_of_kubernetes_is_a_slip() {
        let object = |fields: &str| {
            Value::Object(fields.split(' ').map(|field| (field.to_owned(), json!({}))).collect::<Map<_, _>>())
        };
        let container = object(
            "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports readinessProbe resizePolicy resources \
             restartPolicy restartPolicyRules securityContext startupProbe stdin stdinOnce targetContainerName terminationMessagePath \
             terminationMessagePolicy tty volumeDevices volumeMounts workingDir",
        );
        let mut spec = object(
            "activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy enableServiceLinks ephemeralContainers \
             hostAliases hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride imagePullSecrets initContainers nodeName nodeSelector os \
             overhead preemptionPolicy priority priorityClassName readinessGates resourceClaims resources restartPolicy runtimeClassName \
             schedulerName schedulingGates securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain \
             terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes workloadRef",
        );
        spec["containers"] = json!([container]);
        spec["os"] = object("name");
        spec["affinity"] = object("nodeAffinity podAffinity podAntiAffinity");
        spec["affinity"]["nodeAffinity"] =
            object("requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution");
        let term = object("matchExpressions matchFields");
        spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
            json!({"nodeSelectorTerms": [term, {"matchExpressions": [object("key operator values")]}]});
        spec["securityContext"] = object(
            "appArmorProfile fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser seLinuxChangePolicy seLinuxOptions seccompProfile \
             supplementalGroups supplementalGroupsPolicy sysctls windowsOptions",
        );
        spec["securityContext"]["windowsOptions"] =
            object("gmsaCredentialSpec gmsaCredentialSpecName hostProcess runAsUserName");
        let mut pod = json!({"spec": spec});
        let written = pod.clone();
        assert_eq!(correct(&mut pod).into_iter().map(|slip| slip.at).collect::<Vec<_>>(), Vec::<String>::new());
        assert_eq!(pod, written);
    }
}
