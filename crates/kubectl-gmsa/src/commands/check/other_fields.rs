//! Misspelt fields of a pod, except those of GMSA. They are corrected before the decision. Otherwise `serviceaccountName` would be
//! reported as a missing grant, and the fix would grant the credential spec to `default`.

use gmsa_cluster::manifests::Document;
use gmsa_core::{admission::workload::Kind, credspec, diagnostic::Diagnostic};
use serde_json::Value;

use super::pointer::{Segment, pointer};
use crate::shared::rules;

/// The fields below a pod's spec that decisions and advice use; outer fields first. `*` is every item of a list, `containers` each of
/// the three lists of containers.
const FIELDS: &[&str] = &[
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
    "os/name",
    "affinity/nodeAffinity",
    "affinity/podAffinity",
    "affinity/podAntiAffinity",
    "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution",
    "affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution",
    "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
    "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/*/matchExpressions",
    "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/*/matchFields",
    "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/*/matchExpressions/*/key",
    "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/*/matchExpressions/*/operator",
    "affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/*/matchExpressions/*/values",
    "securityContext/windowsOptions",
    "securityContext/windowsOptions/runAsUserName",
    "securityContext/windowsOptions/hostProcess",
    "containers/*/securityContext",
    "containers/*/image",
    "containers/*/securityContext/windowsOptions",
    "containers/*/securityContext/windowsOptions/runAsUserName",
    "containers/*/securityContext/windowsOptions/hostProcess",
];

/// A field of a pod that is misspelt.
pub(super) struct Misspelling {
    /// Its place in the pod: the key as it is written, below the corrected names around it.
    pub at: String,
    pub field: &'static str,
}

impl Misspelling {
    /// Converts a place in the corrected pod to its place in the document.
    pub(super) fn written(&self, pointer: &str) -> Option<String> {
        let (around, _) = self.at.rsplit_once('/')?;
        let rest = pointer.strip_prefix(around)?.strip_prefix('/')?.strip_prefix(self.field)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{}{rest}", self.at))
    }
}

/// Corrects the misspelt fields of a pod, so that other findings do not follow from them. Returns the misspellings, outer first.
pub(super) fn correct(pod: &mut Value) -> Vec<Misspelling> {
    let mut misspellings = Vec::new();
    if let Some(spec) = pod.get_mut("spec") {
        for path in FIELDS {
            let (around, field) = path.rsplit_once('/').unwrap_or(("", path));
            let steps: Vec<&str> = around.split('/').filter(|step| !step.is_empty()).collect();
            rename(spec, "/spec", &steps, field, &mut misspellings);
        }
    }
    misspellings
}

/// Renames misspellings of this field in the objects at the end of the steps.
fn rename(value: &mut Value, at: &str, steps: &[&str], field: &'static str, misspellings: &mut Vec<Misspelling>) {
    let mut below = |value: Option<&mut Value>, step: &str, rest: &[&str]| {
        if let Some(value) = value {
            rename(value, &format!("{at}/{step}"), rest, field, misspellings);
        }
    };
    match steps {
        ["*", rest @ ..] => {
            let items = value.as_array_mut().into_iter().flatten().enumerate();
            items.for_each(|(index, item)| below(Some(item), &index.to_string(), rest));
        }
        ["containers", rest @ ..] => {
            for list in ["containers", "initContainers", "ephemeralContainers"] {
                below(value.get_mut(list), list, rest);
            }
        }
        [step, rest @ ..] => below(value.get_mut(step), step, rest),
        [] => {
            let Some(object) = value.as_object_mut() else { return };
            let is_field = |key: &str| FIELDS.iter().any(|path| path.rsplit('/').next() == Some(key));
            let wrong = object.keys().filter(|key| is_misspelling(key, field) && !is_field(key)).cloned();
            for key in wrong.collect::<Vec<_>>() {
                if let Some(value) = object.remove(&key) {
                    object.entry(field).or_insert(value);
                }
                misspellings.push(Misspelling { at: format!("{at}{}", pointer(&[Segment::Field(&key)])), field });
            }
        }
    }
}

/// Whether a key is this field in another case, or with at most one wrong letter in six.
fn is_misspelling(key: &str, field: &str) -> bool {
    let bare = |text: &str| text.replace(['-', '_'], "").to_ascii_lowercase();
    // A much longer key is another word.
    key.len() < 2 * field.len() && strsim::osa_distance(&bare(key), &bare(field)) <= field.len() / 6
}

/// The finding on a kind in the wrong case: the API server does not know `deployment`.
pub(super) fn kind(document: &Document) -> Option<Diagnostic> {
    let (kind, group) = (&document.kind, document.group());
    let known = Kind::ALL.into_iter().map(|kind| (kind.as_str(), kind.group()));
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
        assert_eq!(
            correct(&mut pod).into_iter().map(|misspelling| misspelling.at).collect::<Vec<_>>(),
            Vec::<String>::new()
        );
        assert_eq!(pod, written);
    }
}
