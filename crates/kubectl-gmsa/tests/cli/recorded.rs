//! The bundles of cases: what a folder's `bundle.yaml` changes in the healthy cluster, as a JSON Merge Patch (RFC 7386) of its bundle.
//!
//! A case with such a file is run with `--from` a bundle: what the cluster holds, what is typed, what is printed.

use std::{fs, path::Path};

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::cluster;

/// The lists that are there without an object in the healthy cluster.
const EMPTY: [&str; 9] = [
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/statefulsets",
    "/apis/apps/v1/daemonsets",
    "/apis/apps/v1/replicasets",
    "/apis/batch/v1/jobs",
    "/apis/batch/v1/cronjobs",
    "/api/v1/replicationcontrollers",
    "/api/v1/events",
    "/apis/node.k8s.io/v1/runtimeclasses",
];

/// Roles and bindings that let `shop:web` use `webapp1`.
const RBAC: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: gmsa-use-webapp1}
rules:
- {apiGroups: [windows.k8s.io], resources: [gmsacredentialspecs], resourceNames: [webapp1], verbs: [use]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: gmsa-use-webapp1-web, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: gmsa-use-webapp1}
subjects:
- {kind: ServiceAccount, name: web, namespace: shop}
";

/// The bundle of a case that has one.
pub fn bundle(case: &Path) -> Option<NamedTempFile> {
    let change = fs::read_to_string(case.join("bundle.yaml")).ok()?;
    let mut bundle = healthy();
    json_patch::merge(&mut bundle, &serde_saphyr::from_str(&change).unwrap());
    let file = NamedTempFile::new().unwrap();
    fs::write(file.path(), bundle.to_string()).unwrap();
    Some(file)
}

pub fn healthy() -> Value {
    let mut lists = json!({
        "/apis/rbac.authorization.k8s.io/v1/roles": {},
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings": {},
    });
    for path in EMPTY {
        lists[path] = json!({});
    }
    let rbac: Vec<Value> = serde_saphyr::from_multiple(RBAC).unwrap();
    for mut object in cluster::objects().into_iter().chain(rbac) {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (version, plural) =
            (text("/apiVersion"), format!("{}s", text("/kind").to_lowercase()).replace("ys", "ies"));
        let root = if version.contains('/') { "apis" } else { "api" };
        let key = match text("/metadata/namespace").as_str() {
            "" => text("/metadata/name"),
            namespace => format!("{namespace}/{}", text("/metadata/name")),
        };
        object["metadata"]["uid"] = json!(format!("{plural}/{key}"));
        lists[format!("/{root}/{version}/{plural}")][key] = object;
    }
    let protected = json!({
        "tried": "create", "cause": "the API server answered 403", "code": 403,
        "said": "the static policies of the GMSA webhook gmsa are in force", "remedy": {"text": "", "mayPass": false},
    });
    json!({
        "version": 2,
        "plugin": "0",
        "taken": "2026-11-24T00:00:00Z",
        "namespace": "default",
        "lists": lists,
        // The webhook is not run by a Deployment of its Service's name.
        "objects": {
            "/version": {"gitVersion": "v1.36.0"},
            "/apis/apps/v1/namespaces/gmsa/deployments/webhook": null,
        },
        "answers": {
            "/mutate": "refused",
            "/validate": "refused",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews": {"status": {"allowed": true}},
        },
        "unread": {
            "create /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All": protected,
        },
    })
}
