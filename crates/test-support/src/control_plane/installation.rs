//! What is in a cluster where the webhook is installed: the kind of credential specs, service accounts, roles.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{Client, ControlPlane, Registration, until};

/// The webhook's namespace, and the name of its service.
pub const SERVICE: &str = "gmsa-webhook";

/// The path of all credential specs, and how roles name them.
pub const SPECS: &str = "/apis/windows.k8s.io/v1/gmsacredentialspecs";
const GROUP: &str = "windows.k8s.io";
const PLURAL: &str = "gmsacredentialspecs";

/// The service account of the benchmarks' pods, and their credential spec, from the examples.
pub const USER: &str = "user";
pub const SPEC: &str = "gmsa-webapp1";

/// The path of everything of role-based access control.
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A service account for the webhook, and what it may do with credential specs.
pub struct Account<'a> {
    /// The name of the account and its role.
    pub name: &'a str,
    /// The verbs that it has on credential specs.
    pub verbs: &'a [&'a str],
}

impl Account<'_> {
    /// Creates the account with its role, and gives its credentials.
    pub async fn create(&self, control_plane: &ControlPlane) -> Value {
        let client = &control_plane.client;
        service_account(client, SERVICE, self.name).await;
        let rules = json!([
            {"apiGroups": [GROUP], "resources": [PLURAL], "verbs": self.verbs},
            {"apiGroups": ["authorization.k8s.io"], "resources": ["localsubjectaccessreviews"], "verbs": ["create"]},
        ]);
        create_role(client, "", "ClusterRole", self.name, rules, (SERVICE, self.name)).await;
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

pub async fn service_account(client: &Client, namespace: &str, name: &str) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    client.create(&format!("/api/v1/namespaces/{namespace}/serviceaccounts"), &account).await.unwrap();
}

/// Lets a service account use these credential specs, from when this returns on.
pub async fn grant(client: &Client, namespace: &str, service_account: &str, specs: &[&str]) {
    let rules = json!([{"apiGroups": [GROUP], "resources": [PLURAL], "verbs": ["use"], "resourceNames": specs}]);
    let name = format!("{service_account}-uses-{}", specs[0]);
    let subject = (namespace, service_account);
    create_role(client, &format!("/namespaces/{namespace}"), "Role", &name, rules, subject).await;
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

/// Creates a role and its binding to one service account, which is given with its namespace.
pub async fn create_role(client: &Client, place: &str, kind: &str, name: &str, rules: Value, subject: (&str, &str)) {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": subject.1, "namespace": subject.0}],
    });
    let path = format!("{RBAC}{place}/{}", kind.to_lowercase());
    client.create(&format!("{path}s"), &role).await.unwrap();
    client.create(&format!("{path}bindings"), &binding).await.unwrap();
}

/// The credential spec of the examples, `gmsa-webapp1`.
pub fn example() -> Value {
    serde_saphyr::from_str(include_str!("../../../../examples/credspec.yaml")).unwrap()
}

/// A pod as the benchmarks create it, with these `windowsOptions`.
pub fn pod(name: &str, options: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "os": {"name": "windows"},
            "serviceAccountName": USER,
            "securityContext": {"windowsOptions": options},
            "containers": [{"name": "app", "image": "images.invalid/app:1"}],
        },
    })
}

/// Creates these namespaces, with a service account that may use the credential spec of the examples, in a new cluster.
pub async fn tenants(client: &Client, names: &[&str]) {
    install(client).await;
    client.create(SPECS, &example()).await.unwrap();
    for name in names {
        namespace(client, name, &json!({})).await;
        service_account(client, name, USER).await;
        grant(client, name, USER, &[SPEC]).await;
    }
}

/// Has the API server ask the webhook at this address about the pods of one namespace, whose name the registration has too.
pub async fn register_for(client: &Client, namespace: &str, address: SocketAddr, ca_pem: &str) {
    let location = |path: &str| json!({"url": format!("https://{address}{path}")});
    let namespaces = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    Registration { name: namespace, location: &location, ca_pem, namespaces }.create(client).await;
}

/// Waits until the API server asks a webhook about the pods of a namespace, on both of its paths.
pub async fn until_asked(client: &Client, namespace: &str) {
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    let named = pod("asked", &json!({"gmsaCredentialSpecName": SPEC}));
    let unnamed = pod("asked", &json!({"gmsaCredentialSpec": "{}"}));
    until("the API server asks the webhook", async || {
        let stored = client.create(&path, &named).await.ok()?;
        stored["spec"]["securityContext"]["windowsOptions"].get("gmsaCredentialSpec")?;
        client.create(&path, &unnamed).await.err().filter(|refusal| refusal.code == 422)
    })
    .await;
}
