//! `grant`: the ClusterRole and RoleBinding that let a service account use one credential spec, and nothing else.

use anyhow::{Context as _, bail};
use clap::Args;
use http::{Request, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Outcome,
    connect::{CALL, Cluster, Connection, DryRun, block_on, is_missing},
    print,
    who_can::{by, roles_and_bindings},
};
use gmsa_cluster::{
    authorizer::rbac::Rbac,
    manifests::{Document, Manifests},
};
use gmsa_core::{
    admission::Subject,
    credspec::{GROUP, PLURAL, SpecName, USE_VERB, generate::scalar, is_dns_subdomain},
    diagnostic::printable::one_line,
};

const RBAC: &str = "rbac.authorization.k8s.io";
const GRANTS_MORE: &str = "grants something else: edit or delete it with kubectl";

#[derive(Debug, Args)]
pub struct Options {
    /// The credential spec
    #[arg(long, value_name = "NAME", value_parser = spec_name)]
    credspec: SpecName,
    /// The service account
    #[arg(long, value_name = "NAMESPACE:NAME", value_parser = service_account)]
    serviceaccount: Subject,
    /// Revoke the permission: with --apply the RoleBinding is deleted, otherwise it is printed, for kubectl delete. The ClusterRole stays, because other bindings may use it
    #[arg(long)]
    revoke: bool,
    /// Apply the objects to the cluster instead of printing them; with --revoke, delete the RoleBinding there
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    dry_run: DryRun,
}

pub(super) fn spec_name(text: &str) -> Result<SpecName, String> {
    SpecName::parse(text).ok_or_else(|| "expected a lower-case DNS name".to_owned())
}

pub(super) fn service_account(text: &str) -> Result<Subject, String> {
    let (namespace, name) = text.split_once(':').ok_or("expected NAMESPACE:NAME")?;
    if namespace.contains('.') || !is_dns_subdomain(namespace) {
        return Err(format!("{namespace:?} is not the name of a namespace"));
    }
    if !is_dns_subdomain(name) {
        return Err(format!("{name:?} is not the name of a service account"));
    }
    Ok(Subject { namespace: namespace.into(), service_account: name.into() })
}

/// The objects that grant one credential spec to one service account.
pub(super) struct GrantObjects<'a> {
    pub spec: &'a SpecName,
    pub namespace: &'a str,
    pub service_account: &'a str,
}

/// Both names follow from the grant, so that granting twice changes nothing.
impl GrantObjects<'_> {
    fn role(&self) -> String {
        format!("gmsa-use-{}", self.spec)
    }

    fn binding(&self) -> String {
        format!("gmsa-use-{}-{}", self.spec, self.service_account)
    }

    fn role_path(&self) -> String {
        format!("/apis/{RBAC}/v1/clusterroles/{}", self.role())
    }

    fn binding_path(&self) -> String {
        format!("/apis/{RBAC}/v1/namespaces/{}/rolebindings/{}", self.namespace, self.binding())
    }

    /// Whether the document is the RoleBinding of this grant's name.
    fn is_binding(&self, document: &Document) -> bool {
        let field = |pointer: &str| document.value.pointer(pointer).and_then(Value::as_str);
        document.kind == "RoleBinding"
            && field("/metadata/namespace") == Some(self.namespace)
            && field("/metadata/name") == Some(&self.binding())
    }

    /// Whether the RoleBinding of this grant's name gives nothing but this permission to this service account. The names of two
    /// grants can be the same: `a-b` for `c`, and `a` for `b-c`.
    fn is_own_binding(&self, binding: &Value) -> bool {
        let role = binding.get("roleRef").map(|role| (role["kind"].as_str(), role["name"].as_str()));
        let is_own = |subject: &Value| {
            let field = |name: &str| subject.get(name).and_then(Value::as_str);
            field("kind") == Some("ServiceAccount")
                && field("name") == Some(self.service_account)
                && field("namespace") == Some(self.namespace)
        };
        role == Some((Some("ClusterRole"), Some(&self.role()))) && all(binding, "subjects", is_own)
    }

    /// Whether the ClusterRole of this grant's name allows nothing but the use of the credential spec.
    fn is_own_role(&self, role: &Value) -> bool {
        let own = json!({
            "apiGroups": [GROUP], "resources": [PLURAL], "resourceNames": [self.spec.as_str()], "verbs": [USE_VERB],
        });
        all(role, "rules", |rule| *rule == own) && role.get("aggregationRule").is_none()
    }

    /// The manifests of both objects.
    pub(super) fn yaml(&self) -> String {
        format!("{}---\n{}", self.role_yaml(), self.binding_yaml())
    }

    fn role_yaml(&self) -> String {
        let (spec, role) = (scalar(self.spec.as_str()), scalar(&self.role()));
        format!(
            "apiVersion: {RBAC}/v1
kind: ClusterRole
metadata:
  name: {role}
rules:
- apiGroups: [{GROUP}]
  resources: [{PLURAL}]
  resourceNames: [{spec}]
  verbs: [{USE_VERB}]
"
        )
    }

    fn binding_yaml(&self) -> String {
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

/// Whether all items of a list are like this. A list that is missing has none.
fn all(object: &Value, list: &str, is_own: impl Fn(&Value) -> bool) -> bool {
    object.get(list).and_then(Value::as_array).into_iter().flatten().all(is_own)
}

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let Subject { namespace, service_account } = &options.serviceaccount;
    let grant = GrantObjects { spec: &options.credspec, namespace, service_account };
    if options.dry_run.is_off() && !options.apply {
        let yaml = if options.revoke { grant.binding_yaml() } else { grant.yaml() };
        return print(yaml.as_bytes());
    }
    block_on(async {
        let cluster = connection.cluster().await?;
        if options.revoke {
            revoke(&cluster, &grant, &options.dry_run).await
        } else {
            apply_grant(&cluster, &grant, &options.dry_run).await
        }
    })
}

/// Applies both objects. Their lists are replaced as a whole, so an object that grants something else is left alone.
async fn apply_grant(cluster: &Cluster, grant: &GrantObjects<'_>, dry_run: &DryRun) -> anyhow::Result<Outcome> {
    let role: Option<Value> = cluster.find(&grant.role_path()).await.context("cannot read the ClusterRole")?;
    if !role.is_none_or(|role| grant.is_own_role(&role)) {
        bail!("clusterrole/{} {GRANTS_MORE}", grant.role());
    }
    let binding: Option<Value> = cluster.find(&grant.binding_path()).await.context("cannot read the RoleBinding")?;
    if !binding.is_none_or(|binding| grant.is_own_binding(&binding)) {
        bail!("rolebinding/{} in {} {GRANTS_MORE}", grant.binding(), grant.namespace);
    }
    apply(cluster, &grant.role_path(), grant.role_yaml(), dry_run).await.context("cannot apply the ClusterRole")?;
    apply(cluster, &grant.binding_path(), grant.binding_yaml(), dry_run)
        .await
        .context("cannot apply the RoleBinding")?;
    let (role, binding, suffix) = (grant.role(), grant.binding(), dry_run.suffix());
    print(
        format!("clusterrole/{role} applied{suffix}\nrolebinding/{binding} applied in {}{suffix}\n", grant.namespace)
            .as_bytes(),
    )
}

/// Server-side apply: creates the object, and does nothing if it is already correct.
async fn apply(cluster: &Cluster, path: &str, yaml: String, dry_run: &DryRun) -> anyhow::Result<()> {
    let request = Request::patch(format!("{path}?fieldManager=kubectl-gmsa&force=true{}", dry_run.parameter()))
        .header(CONTENT_TYPE, "application/apply-patch+yaml")
        .body(yaml.into_bytes())?;
    cluster.api.call(request, Instant::now() + CALL).await?;
    Ok(())
}

/// Deletes the binding, and says where another one still gives the permission. A binding that grants something else stays.
async fn revoke(cluster: &Cluster, grant: &GrantObjects<'_>, dry_run: &DryRun) -> anyhow::Result<Outcome> {
    let (binding, suffix) = (grant.binding(), dry_run.suffix());
    // RBAC is evaluated here and not by an access review: the API server's authorizer notices a deletion a moment later.
    let Manifests { documents, .. } =
        roles_and_bindings(cluster).await.context("cannot tell what else gives the permission")?;
    let (own, others): (Vec<Document>, Vec<Document>) =
        documents.into_iter().partition(|document| grant.is_binding(document));
    if !own.iter().all(|document| grant.is_own_binding(&document.value)) {
        bail!("rolebinding/{binding} in {} {GRANTS_MORE}", grant.namespace);
    }
    let request = Request::delete(format!("{}?{}", grant.binding_path(), dry_run.parameter())).body(Vec::new())?;
    let deleted = cluster.api.call(request, Instant::now() + CALL).await.map_err(anyhow::Error::from);
    let mut text = match deleted {
        Ok(_) => format!("rolebinding/{binding} deleted in {}{suffix}\n", grant.namespace),
        Err(error) if is_missing(&error) => format!("there is no rolebinding/{binding} in {}\n", grant.namespace),
        Err(error) => return Err(error.context("cannot delete the RoleBinding")),
    };
    let (rbac, _) = Rbac::from_documents(&others);
    let subject = Subject { namespace: grant.namespace.into(), service_account: grant.service_account.into() };
    let other = rbac.grant(&subject, grant.spec);
    if let Some(other) = &other {
        let who = format!("{}:{}", grant.namespace, grant.service_account);
        text.extend([&who, " may still use ", grant.spec.as_str(), ", by ", &one_line(&by(other.binding)), "\n"]);
    }
    print(text.as_bytes())?;
    Ok(if other.is_some() { Outcome::Findings } else { Outcome::Clean })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_manifests_hold_the_names_as_strings() {
        let grant = GrantObjects { spec: &SpecName::parse("web.1").unwrap(), namespace: "no", service_account: "1" };
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

    #[test]
    fn service_accounts_are_typed_with_their_namespace() {
        let parsed = service_account("shop:web.v1").unwrap();
        assert_eq!(parsed, Subject { namespace: "shop".into(), service_account: "web.v1".into() });
        for (text, error) in [
            ("web", "expected NAMESPACE:NAME"),
            ("a.b:web", "\"a.b\" is not the name of a namespace"),
            ("shop:", "\"\" is not the name of a service account"),
            ("shop:a/b", "\"a/b\" is not the name of a service account"),
        ] {
            assert_eq!(service_account(text).unwrap_err(), error);
        }
    }
}
