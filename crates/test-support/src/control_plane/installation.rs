//! What is in a cluster where the webhook is installed: the kind of credential specs, service accounts, roles.

use serde_json::{Value, json};

use super::{Client, ControlPlane, until};

/// The webhook's namespace, and the name of its service.
pub const SERVICE: &str = "gmsa-webhook";

/// The path of all credential specs, and how roles name them.
pub const SPECS: &str = "/apis/windows.k8s.io/v1/gmsacredentialspecs";
const GROUP: &str = "windows.k8s.io";
const PLURAL: &str = "gmsacredentialspecs";

/// The path of everything of role-based access control.
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A service account for the webhook, and what it may do with credential specs.
pub struct Account<'a> {
    /// Its name, and that of its role.
    pub name: &'a str,
    /// The verbs that it has on credential specs.
    pub verbs: &'a [&'a str],
}

impl Account<'_> {
    /// Creates the account with its role, and gives its credentials.
    pub async fn create(&self, control_plane: &ControlPlane) -> Value {
        let client = &control_plane.client;
        service_account(client, SERVICE, self.name).await;
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": self.name},
            "rules": [
                {"apiGroups": [GROUP], "resources": [PLURAL], "verbs": self.verbs},
                {"apiGroups": ["authorization.k8s.io"], "resources": ["localsubjectaccessreviews"], "verbs": ["create"]},
            ],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": self.name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": self.name},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": SERVICE}],
        });
        client.create(&format!("{RBAC}/clusterroles"), &role).await.unwrap();
        client.create(&format!("{RBAC}/clusterrolebindings"), &binding).await.unwrap();
        let credentials = control_plane.kubeconfig_of(SERVICE, self.name).await;
        // The API server learns of a role a moment after it stored it.
        let own = Client::new(credentials.clone()).await;
        until("the role is in force", async || {
            own.get(&format!("{SPECS}/none")).await.err().filter(|error| error.code == 404)
        })
        .await;
        credentials
    }
}

/// Installs the kind of credential specs that the chart brings, and creates the webhook's namespace.
pub async fn install(client: &Client) {
    let definition = include_str!("../../../../charts/gmsa-webhook/crds/gmsacredentialspecs.yaml");
    let definition: Value = serde_saphyr::from_str(definition).unwrap();
    client.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.unwrap();
    until("credential specs are served", async || client.get(SPECS).await.ok()).await;
    namespace(client, SERVICE, &json!({})).await;
}

/// Creates a namespace with these labels.
pub async fn namespace(client: &Client, name: &str, labels: &Value) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    client.create("/api/v1/namespaces", &namespace).await.unwrap();
}

/// Creates a service account.
pub async fn service_account(client: &Client, namespace: &str, name: &str) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    client.create(&format!("/api/v1/namespaces/{namespace}/serviceaccounts"), &account).await.unwrap();
}

/// Lets a service account use these credential specs, from when this returns on.
pub async fn grant(client: &Client, namespace: &str, service_account: &str, specs: &[&str]) {
    let rules = json!([{"apiGroups": [GROUP], "resources": [PLURAL], "verbs": ["use"], "resourceNames": specs}]);
    let name = format!("{service_account}-uses-{}", specs[0]);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": name},
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": service_account, "namespace": namespace}],
    });
    client.create(&format!("{RBAC}/namespaces/{namespace}/roles"), &role).await.unwrap();
    client.create(&format!("{RBAC}/namespaces/{namespace}/rolebindings"), &binding).await.unwrap();
    let question = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": format!("system:serviceaccount:{namespace}:{service_account}"),
            "resourceAttributes":
                {"namespace": namespace, "verb": "use", "group": GROUP, "resource": PLURAL, "name": specs[0]},
        },
    });
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    until("the role is in force", async || {
        client.create(reviews, &question).await.unwrap()["status"]["allowed"].as_bool().filter(|allowed| *allowed)
    })
    .await;
}
