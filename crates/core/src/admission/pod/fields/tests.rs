//! Which fields of a pod do not fit Windows.

use gmsa_test_support::page;
use serde_json::{Value, json};

use super::*;

fn found(spec: &Value) -> Vec<String> {
    let json = json!({"spec": spec}).to_string();
    let line = |found: Occurrence<'_>| {
        let owner = found.container.map(|(kind, name)| format!(" of {kind} {name}")).unwrap_or_default();
        format!("{}{owner}{}", found.pointer, if found.is_false { ", false" } else { "" })
    };
    read(&json).fields(&Pod::from_json(&json).unwrap()).map(line).collect()
}

fn on_nano_server(spec: &Value) -> Vec<String> {
    let json = json!({"spec": spec}).to_string();
    let line = |slot: Slot<'_>| format!("{} {} {}", slot.kind, slot.index, slot.owner);
    read(&json).on_nano_server(&Pod::from_json(&json).unwrap()).map(line).collect()
}

#[test]
fn every_field_is_found_where_it_is() {
    let context = json!({
        "allowPrivilegeEscalation": false, "appArmorProfile": {}, "capabilities": {"drop": ["ALL"]}, "fsGroup": 1,
        "fsGroupChangePolicy": "Always", "privileged": true, "procMount": "Default", "readOnlyRootFilesystem": true,
        "runAsGroup": 1, "runAsUser": 0, "seLinuxChangePolicy": "x", "seLinuxOptions": {}, "seccompProfile": {},
        "supplementalGroups": [], "supplementalGroupsPolicy": "x", "sysctls": [], "runAsNonRoot": true,
    });
    let pod = found(&json!({
        "hostIPC": true, "hostPID": true, "hostUsers": false, "shareProcessNamespace": true, "hostNetwork": true,
        "resources": {"limits": {"cpu": "1"}}, "dnsPolicy": "ClusterFirstWithHostNet", "securityContext": context,
        "volumes": [{"name": "a"}, {"name": "b", "emptyDir": {"medium": "Memory"}}],
    }));
    assert_eq!(pod.len(), 7 + 16 + 1, "{pod:?}");
    assert_eq!(pod[0], "/spec/hostIPC");
    assert_eq!(pod[4..6], ["/spec/resources", "/spec/hostNetwork"]);
    assert_eq!(pod[6..8], ["/spec/dnsPolicy", "/spec/securityContext/allowPrivilegeEscalation, false"]);
    assert_eq!(pod[23], "/spec/volumes/1/emptyDir/medium");
    let container = found(&json!({
        "containers": [{"name": "a"}, {
            "name": "b", "securityContext": {"runAsUser": 0}, "resources": {"limits": {"hugepages-2Mi": "1"}},
            "volumeDevices": [{}], "volumeMounts": [{}, {"mountPropagation": "Bidirectional"}],
        }],
        "initContainers": [{"name": "c", "securityContext": {"capabilities": {}}}],
    }));
    assert_eq!(
        container,
        [
            "/spec/containers/1/securityContext/runAsUser of container b",
            "/spec/containers/1/resources of container b",
            "/spec/containers/1/volumeDevices of container b",
            "/spec/containers/1/volumeMounts/1/mountPropagation of container b",
            "/spec/initContainers/0/securityContext/capabilities of init container c",
        ]
    );
}

#[test]
fn one_field_of_a_container_is_enough() {
    for (field, place) in [
        (json!({"securityContext": {"runAsUser": 0}}), "securityContext/runAsUser"),
        (json!({"resources": {"requests": {"hugepages-2Mi": "1"}}}), "resources"),
        (json!({"volumeDevices": [{}]}), "volumeDevices"),
        (json!({"volumeMounts": [{"mountPropagation": "Bidirectional"}]}), "volumeMounts/0/mountPropagation"),
    ] {
        assert_eq!(found(&json!({ "containers": [field] })), [format!("/spec/containers/0/{place} of container ")]);
    }
}

#[test]
fn what_is_kept_is_bounded() {
    let nano = json!({"name": "bb", "image": "images.invalid/nanoserver:1", "securityContext": {"runAsUser": 0}});
    let many = json!({"spec": {"containers": vec![nano.clone(); 65], "initContainers": [nano]}});
    let many = read(&many.to_string());
    assert_eq!((many.fields.len(), many.on_nano_server.len()), (64, 64));
    let volume = json!({"emptyDir": {"medium": "Memory"}});
    let far = |before: usize| {
        let list: Vec<Value> = std::iter::repeat_n(json!({}), before).chain([volume.clone()]).collect();
        found(&json!({"volumes": list}))
    };
    // The pod, its spec and the list are values too, and so are the volume, `emptyDir` and its medium.
    assert_eq!(far(MAX_VALUES - 6), ["/spec/volumes/32762/emptyDir/medium"]);
    assert_eq!(far(MAX_VALUES - 5), [""; 0]);
    let long = |bytes: usize| {
        found(&json!({"hostPID": true, "x": "x".repeat(bytes - r#"{"spec":{"hostPID":true,"x":""}}"#.len())}))
    };
    assert_eq!((long(MAX_BYTES).len(), long(MAX_BYTES + 1).len()), (1, 0));
}

#[test]
fn every_field_is_listed_once() {
    let mut paths: Vec<_> = FIELDS.iter().map(|field| field.path).collect();
    assert!(["hostPID", "securityContext.runAsUser"].iter().all(|path| paths.contains(path)), "{paths:?}");
    let count = paths.len();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), count);
}

#[test]
fn what_is_not_set_is_not_found() {
    assert_eq!(
        found(&json!({
            "hostIPC": false, "hostPID": null, "hostNetwork": false, "dnsPolicy": "ClusterFirst",
            "shareProcessNamespace": null, "securityContext": null, "volumes": [{"emptyDir": {}}, {"emptyDir": null}],
            "containers": [{
                "name": "a", "securityContext": {"runAsUser": null, "runAsNonRoot": true}, "volumeDevices": [],
                "resources": {"limits": {"cpu": 1}, "requests": null}, "volumeMounts": [{"mountPropagation": "None"}],
            }],
        })),
        [""; 0]
    );
    assert_eq!(read("{}"), Unsupported::default());
    assert_eq!(
        found(&json!({"hostUsers": null, "shareProcessNamespace": false})),
        ["/spec/shareProcessNamespace, false"]
    );
    assert_eq!(found(&json!({"hostUsers": true, "shareProcessNamespace": null})), ["/spec/hostUsers, false"]);
}

#[test]
fn images_on_nano_server_are_found() {
    let image = "mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022";
    let spec = json!({"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": image}]});
    assert_eq!(on_nano_server(&spec), ["container 1 b"]);
}

#[test]
fn a_hostile_pod_is_bounded() {
    let container = json!({"name": "a", "securityContext": {"runAsUser": 0, "runAsGroup": 0}});
    assert_eq!(found(&json!({"containers": vec![container; 200]})).len(), MAX_FOUND);
}

#[test]
fn containers_that_do_not_matter_take_no_place_from_one_that_does() {
    let mut containers = vec![json!({"name": "a", "securityContext": {"privileged": null}}); MAX_FOUND];
    containers.push(json!({"name": "b", "securityContext": {"runAsUser": 0}}));
    let expected = format!("/spec/containers/{MAX_FOUND}/securityContext/runAsUser of container b");
    assert_eq!(found(&json!({"containers": containers})), [expected]);
}

/// `UPDATE_SNAPSHOTS=1 cargo test -p gmsa-core` writes the table.
#[test]
fn the_documentation_has_every_field() {
    let row = |LinuxField { path, is_refused, explanation }: &LinuxField| {
        format!("| `{path}` | {} | {explanation} |\n", if *is_refused { "yes" } else { "no" })
    };
    let table =
        format!("| Field | Refused | What happens |\n|---|---|---|\n{}", FIELDS.iter().map(row).collect::<String>());
    let command = "UPDATE_SNAPSHOTS=1 cargo test -p gmsa-core";
    page::assert_section("docs/windows-pods.md", "fields", command, &table);
}
