//! The volumes of a pod as folders: empty ones, and those with files of the cluster, a token of the pod among them.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt as _, chown},
    path::Path,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gmsa_test_support::control_plane::Client;
use serde_json::{Value, json};

use super::{BETWEEN_LOOKS, Pod, list, text};

pub async fn make(client: &Client, pod: &Pod) {
    let group = pod.object["spec"]["securityContext"]["fsGroup"].as_u64().map(|group| u32::try_from(group).unwrap());
    for volume in list(&pod.object["spec"], "volumes") {
        let folder = pod.folder.join(text(&volume["name"]));
        fs::create_dir_all(&folder).unwrap();
        if volume["emptyDir"].is_object() {
            own(&folder, group, [0o777, 0o2777]);
            continue;
        }
        let of_itself = std::slice::from_ref(volume);
        for source in volume["projected"]["sources"].as_array().map_or(of_itself, Vec::as_slice) {
            for (path, contents) in files(client, pod, source).await {
                let file = folder.join(path);
                fs::write(&file, contents).unwrap();
                own(&file, group, [0o644, 0o640]);
            }
        }
    }
}

/// Gives a file to the group of the pod, where it has one: the second mode is for that.
fn own(path: &Path, group: Option<u32>, modes: [u32; 2]) {
    chown(path, None, group).unwrap();
    fs::set_permissions(path, Permissions::from_mode(modes[usize::from(group.is_some())])).unwrap();
}

async fn files(client: &Client, pod: &Pod, source: &Value) -> Vec<(String, Vec<u8>)> {
    let metadata = &pod.object["metadata"];
    let namespace = text(&metadata["namespace"]);
    let token = &source["serviceAccountToken"];
    if token.is_object() {
        let account = text(&pod.object["spec"]["serviceAccountName"]);
        let audiences: Vec<_> = token["audience"].as_str().into_iter().collect();
        let bound = json!({"kind": "Pod", "apiVersion": "v1", "name": metadata["name"], "uid": metadata["uid"]});
        let spec =
            json!({"audiences": audiences, "expirationSeconds": token["expirationSeconds"], "boundObjectRef": bound});
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let given = client.create(&path, &request).await.unwrap();
        return vec![(text(&token["path"]), text(&given["status"]["token"]).into_bytes())];
    }
    if source["downwardAPI"].is_object() {
        let item = &source["downwardAPI"]["items"][0];
        assert_eq!(item["fieldRef"]["fieldPath"], "metadata.namespace");
        return vec![(text(&item["path"]), namespace.into_bytes())];
    }
    // Some kube-apiservers are OpenShift's, which adds what an operator of its own makes.
    if source["configMap"]["name"] == "openshift-service-ca.crt" {
        return Vec::new();
    }
    let (kind, source) = if source["secret"].is_object() {
        ("secrets", &source["secret"])
    } else {
        ("configmaps", &source["configMap"])
    };
    let name =
        source["name"].as_str().or(source["secretName"].as_str()).unwrap_or_else(|| panic!("not played: {source}"));
    let path = format!("/api/v1/namespaces/{namespace}/{kind}/{name}");
    let mut found = client.get(&path).await;
    while found.is_err() {
        tokio::time::sleep(BETWEEN_LOOKS).await;
        found = client.get(&path).await;
    }
    let data = found.unwrap()["data"].take();
    let contents = |value: &Value| {
        if kind == "secrets" { BASE64_STANDARD.decode(text(value)).unwrap() } else { text(value).into_bytes() }
    };
    if source["items"].is_array() {
        let item = |item: &Value| (text(&item["path"]), contents(&data[text(&item["key"])]));
        return list(source, "items").map(item).collect();
    }
    data.as_object().unwrap().iter().map(|(key, value)| (key.clone(), contents(value))).collect()
}
