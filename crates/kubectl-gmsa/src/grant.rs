//! `grant`: the ClusterRole and RoleBinding that let a service account use one credential spec, and nothing else.

use anyhow::{Context as _, bail};
use clap::Args;
use http::{Request, header::CONTENT_TYPE};
use serde_json::Value;
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

#[derive(Debug, Args)]
pub struct Options {
    /// The credential spec
    #[arg(long, value_name = "NAME", value_parser = spec_name)]
    credspec: SpecName,
    /// The service account
    #[arg(long, value_name = "NAMESPACE:NAME", value_parser = ServiceAccount::parse)]
    serviceaccount: ServiceAccount,
    /// Revoke the permission: only the RoleBinding is deleted, because other bindings may use the ClusterRole
    #[arg(long)]
    revoke: bool,
    /// Apply it to the cluster instead of printing it; with --revoke, delete it there
    #[arg(long)]
    apply: bool,
    #[command(flatten)]
    dry_run: DryRun,
}

pub(super) fn spec_name(text: &str) -> Result<SpecName, String> {
    SpecName::parse(text).ok_or_else(|| "expected a lower-case DNS name".to_owned())
}

/// A service account, as it is typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccount {
    /// Its namespace: a DNS label.
    pub namespace: String,
    /// Its name: a DNS subdomain.
    pub name: String,
}

impl ServiceAccount {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (namespace, name) = text.split_once(':').ok_or("expected NAMESPACE:NAME")?;
        if namespace.contains('.') || !is_dns_subdomain(namespace) {
            return Err(format!("{namespace:?} is not the name of a namespace"));
        }
        if !is_dns_subdomain(name) {
            return Err(format!("{name:?} is not the name of a service account"));
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

/// The objects that grant one credential spec to one service account.
pub(super) struct GrantObjects<'a> {
    pub spec: &'a SpecName,
    pub namespace: &'a str,
    pub service_account: &'a str,
}

impl GrantObjects<'_> {
    /// This name and the binding's follow from the grant, so that granting twice changes nothing.
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
        let field = |pointer: &str| document.value().pointer(pointer).and_then(Value::as_str);
        document.kind() == "RoleBinding"
            && field("/metadata/namespace") == Some(self.namespace)
            && field("/metadata/name") == Some(&self.binding())
    }

    /// Whether a RoleBinding of this grant's name gives this permission to this service account and nothing else. The names of two
    /// grants can be the same: `a-b` for `c`, and `a` for `b-c`.
    fn is_the_grant(&self, binding: &Document) -> bool {
        let subjects = binding.value().pointer("/subjects").and_then(Value::as_array);
        let is_the_subject = |subject: &Value| {
            let field = |name: &str| subject.get(name).and_then(Value::as_str);
            field("kind") == Some("ServiceAccount")
                && field("name") == Some(self.service_account)
                && field("namespace") == Some(self.namespace)
        };
        binding.value().pointer("/roleRef/name").and_then(Value::as_str) == Some(&self.role())
            && matches!(subjects.map(Vec::as_slice), Some([subject]) if is_the_subject(subject))
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

pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let grant = GrantObjects {
        spec: &options.credspec,
        namespace: &options.serviceaccount.namespace,
        service_account: &options.serviceaccount.name,
    };
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

async fn apply_grant(cluster: &Cluster, grant: &GrantObjects<'_>, dry_run: &DryRun) -> anyhow::Result<Outcome> {
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

/// Deletes the binding, and says where another one still gives the permission.
async fn revoke(cluster: &Cluster, grant: &GrantObjects<'_>, dry_run: &DryRun) -> anyhow::Result<Outcome> {
    let (binding, suffix) = (grant.binding(), dry_run.suffix());
    // RBAC is evaluated here and not by an access review: the API server's authorizer notices a deletion a moment later.
    let Manifests { documents, .. } =
        roles_and_bindings(cluster).await.context("cannot tell what else gives the permission")?;
    let (own, others): (Vec<Document>, Vec<Document>) =
        documents.into_iter().partition(|document| grant.is_binding(document));
    if !own.iter().all(|document| grant.is_the_grant(document)) {
        bail!("rolebinding/{binding} in {} grants something else: edit or delete it with kubectl", grant.namespace);
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
        let parsed = ServiceAccount::parse("shop:web.v1").unwrap();
        assert_eq!(parsed, ServiceAccount { namespace: "shop".to_owned(), name: "web.v1".to_owned() });
        for (text, error) in [
            ("web", "expected NAMESPACE:NAME"),
            ("a.b:web", "\"a.b\" is not the name of a namespace"),
            ("shop:", "\"\" is not the name of a service account"),
            ("shop:a/b", "\"a/b\" is not the name of a service account"),
        ] {
            assert_eq!(ServiceAccount::parse(text).unwrap_err(), error);
        }
    }
}
