//! `grant`: the ClusterRole and RoleBinding that let a service account use one credential spec, and nothing else.

use anyhow::Context as _;
use clap::Args;
use http::{Request, header::CONTENT_TYPE};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Outcome,
    connect::{CALL, Cluster, Connection, block_on},
    print,
};
use gmsa_core::credspec::{GROUP, PLURAL, SpecName, USE_VERB, generate::scalar, is_dns_subdomain};

const RBAC: &str = "rbac.authorization.k8s.io";

/// What to grant, and to whom.
#[derive(Debug, Args)]
pub struct Options {
    /// The credential spec
    #[arg(long, value_name = "NAME", value_parser = spec_name)]
    credspec: SpecName,
    /// The service account
    #[arg(long, value_name = "NAMESPACE:NAME", value_parser = ServiceAccount::parse)]
    serviceaccount: ServiceAccount,
    /// Apply it to the cluster instead of printing it
    #[arg(long)]
    apply: bool,
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
    fn parse(text: &str) -> Result<Self, String> {
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
pub(super) struct Grant<'a> {
    pub spec: &'a str,
    pub namespace: &'a str,
    pub service_account: &'a str,
}

impl Grant<'_> {
    /// Names that are the same for the same grant, so that granting twice changes nothing.
    fn role(&self) -> String {
        format!("gmsa-use-{}", self.spec)
    }

    fn binding(&self) -> String {
        format!("gmsa-use-{}-{}", self.spec, self.service_account)
    }

    fn role_object(&self) -> Value {
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "ClusterRole",
            "metadata": {"name": self.role()},
            "rules": [{
                "apiGroups": [GROUP], "resources": [PLURAL], "resourceNames": [self.spec], "verbs": [USE_VERB],
            }],
        })
    }

    fn binding_object(&self) -> Value {
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": "RoleBinding",
            "metadata": {"name": self.binding(), "namespace": self.namespace},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": self.role()},
            "subjects": [{"kind": "ServiceAccount", "name": self.service_account, "namespace": self.namespace}],
        })
    }

    /// The manifest.
    pub(super) fn yaml(&self) -> String {
        let [spec, namespace, account] = [self.spec, self.namespace, self.service_account].map(scalar);
        let (role, binding) = (scalar(&self.role()), scalar(&self.binding()));
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
---
apiVersion: {RBAC}/v1
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

/// Prints the grant, or applies it.
///
/// # Errors
/// Where the cluster cannot be asked, or refuses.
pub fn run(options: &Options, connection: &Connection) -> anyhow::Result<Outcome> {
    let grant = Grant {
        spec: options.credspec.as_str(),
        namespace: &options.serviceaccount.namespace,
        service_account: &options.serviceaccount.name,
    };
    if !options.apply {
        return print(grant.yaml().as_bytes());
    }
    block_on(async {
        let cluster = connection.cluster().await?;
        let path = format!("/apis/{RBAC}/v1/clusterroles/{}", grant.role());
        apply(&cluster, &path, &grant.role_object()).await.context("cannot apply the ClusterRole")?;
        let path = format!("/apis/{RBAC}/v1/namespaces/{}/rolebindings/{}", grant.namespace, grant.binding());
        apply(&cluster, &path, &grant.binding_object()).await.context("cannot apply the RoleBinding")
    })?;
    let (role, binding) = (grant.role(), grant.binding());
    print(format!("clusterrole/{role} applied\nrolebinding/{binding} applied in {}\n", grant.namespace).as_bytes())
}

/// Server-side apply: the same request creates an object, and leaves one alone that is as it should be.
async fn apply(cluster: &Cluster, path: &str, object: &Value) -> anyhow::Result<()> {
    let request = Request::patch(format!("{path}?fieldManager=kubectl-gmsa&force=true"))
        .header(CONTENT_TYPE, "application/apply-patch+yaml")
        .body(object.to_string().into_bytes())?;
    cluster.api.call(request, Instant::now() + CALL).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_what_is_applied() {
        let grant = Grant { spec: "web.1", namespace: "no", service_account: "1" };
        let printed: Vec<Value> = serde_saphyr::from_multiple(&grant.yaml()).unwrap();
        assert_eq!(printed, [grant.role_object(), grant.binding_object()]);
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
