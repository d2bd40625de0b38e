//! The ClusterRole and RoleBinding that let a service account use exactly one credential spec, or export it.

use gmsa_cluster::manifests::Document;
use gmsa_core::credspec::{GROUP, PLURAL, SpecName, Verb, generate::scalar};
use serde_json::{Value, json};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The objects that grant one credential spec to one service account.
pub struct GrantObjects<'a> {
    pub verb: Verb,
    pub spec: &'a SpecName,
    pub namespace: &'a str,
    pub service_account: &'a str,
}

/// Both names follow from the grant, so that granting twice changes nothing.
impl GrantObjects<'_> {
    pub fn role(&self) -> String {
        format!("gmsa-{}-{}", self.verb.as_str(), self.spec)
    }

    pub fn binding(&self) -> String {
        format!("{}-{}", self.role(), self.service_account)
    }

    pub fn role_path(&self) -> String {
        format!("/apis/{RBAC}/v1/clusterroles/{}", self.role())
    }

    pub fn binding_path(&self) -> String {
        format!("/apis/{RBAC}/v1/namespaces/{}/rolebindings/{}", self.namespace, self.binding())
    }

    /// Whether the document is the RoleBinding of this grant's name.
    pub fn is_binding(&self, document: &Document) -> bool {
        if document.kind != "RoleBinding" {
            return false;
        }
        let binding = document.value();
        let field = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str);
        field("/metadata/namespace") == Some(self.namespace) && field("/metadata/name") == Some(&self.binding())
    }

    /// Whether the RoleBinding of this grant's name gives only this permission to only this service account. Two grants can have the same
    /// name: `a-b` for `c`, and `a` for `b-c`.
    pub fn is_own_binding(&self, binding: &Value) -> bool {
        let role = binding.get("roleRef").map(|role| (role["kind"].as_str(), role["name"].as_str()));
        let is_own = |subject: &Value| {
            let field = |name: &str| subject.get(name).and_then(Value::as_str);
            field("kind") == Some("ServiceAccount")
                && field("name") == Some(self.service_account)
                && field("namespace") == Some(self.namespace)
        };
        role == Some((Some("ClusterRole"), Some(&self.role()))) && all(binding, "subjects", is_own)
    }

    /// Whether the ClusterRole of this grant's name allows only this verb on the credential spec.
    pub fn is_own_role(&self, role: &Value) -> bool {
        let own = json!({
            "apiGroups": [GROUP], "resources": [PLURAL], "resourceNames": [self.spec.as_str()], "verbs": [self.verb.as_str()],
        });
        all(role, "rules", |rule| *rule == own) && role.get("aggregationRule").is_none()
    }

    /// The manifests of both objects.
    pub fn yaml(&self) -> String {
        format!("{}---\n{}", self.role_yaml(), self.binding_yaml())
    }

    pub fn role_yaml(&self) -> String {
        let (spec, role, verb) = (scalar(self.spec.as_str()), scalar(&self.role()), self.verb.as_str());
        format!(
            "apiVersion: {RBAC}/v1
kind: ClusterRole
metadata:
  name: {role}
rules:
- apiGroups: [{GROUP}]
  resources: [{PLURAL}]
  resourceNames: [{spec}]
  verbs: [{verb}]
"
        )
    }

    pub fn binding_yaml(&self) -> String {
        let [namespace, account] = [self.namespace, self.service_account].map(scalar);
        let (role, binding) = (scalar(&self.role()), scalar(&self.binding()));
        format!(
            "apiVersion: {RBAC}/v1
kind: RoleBinding
metadata:
  name: {binding}
  namespace: {namespace}
roleRef:
  apiGroup: {RBAC}
  kind: ClusterRole
  name: {role}
subjects:
- kind: ServiceAccount
  name: {account}
  namespace: {namespace}
"
        )
    }
}

/// Whether all items of a list match. A missing list has no items.
fn all(object: &Value, list: &str, is_own: impl Fn(&Value) -> bool) -> bool {
    object.get(list).and_then(Value::as_array).into_iter().flatten().all(is_own)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_manifests_hold_the_names_as_strings() {
        let (verb, spec) = (Verb::Use, SpecName::parse("web.1").unwrap());
        let grant = GrantObjects { verb, spec: &spec, namespace: "no", service_account: "1" };
        let printed: Vec<Value> = serde_saphyr::from_multiple(&grant.yaml()).unwrap();
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "gmsa-use-web.1"},
            "rules": [{
                "apiGroups": [GROUP], "resources": [PLURAL], "resourceNames": ["web.1"], "verbs": ["use"],
            }],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "gmsa-use-web.1-1", "namespace": "no"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gmsa-use-web.1"},
            "subjects": [{"kind": "ServiceAccount", "name": "1", "namespace": "no"}],
        });
        assert_eq!(printed, [role, binding]);
    }
}
