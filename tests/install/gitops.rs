//! What Argo CD and Flux do with the chart: the rendered objects are applied on the server side, again and again, beside a webhook that writes into two fields.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use crate::{
    cluster::{Cluster, Feature, printed},
    nodes::name,
    pods::{Options, creation, pod},
    release::{Release, ca_bundles},
};

/// What the API server itself writes.
const OWN: [&str; 4] = ["/metadata/managedFields", "/metadata/resourceVersion", "/metadata/generation", "/status"];

#[test]
fn a_sync_leaves_what_the_webhook_writes_and_nothing_else_differs() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster, "");
    let port = release.get("service/gmsa")["spec"]["ports"][0]["port"].to_string();
    // From here on a controller of another name applies it, and Helm does no more.
    let ports = format!("service.port={port},containerPort={port}");
    let rendered = cluster.template(["-n", "windows", "--skip-tests", "--set", &ports]);
    let sync = |dry_run: &str| {
        let apply = format!("apply --server-side --field-manager=argocd-controller {dry_run} -o json -f -");
        let list: Value = serde_json::from_str(&printed(cluster.kubectl_with(&apply, &rendered))).unwrap();
        list["items"].as_array().unwrap().clone()
    };
    let before = sync("--dry-run=none");
    release.route_to_loopback();
    let _replica = release.start_replica();
    cluster.until("the webhook has written", || ca_bundles(&cluster).iter().all(Value::is_string));
    let after = sync("--dry-run=server");
    // Only the fields in `ignoreDifferences` of docs/gitops.md differ from what was rendered. This test itself changed
    // the Service.
    let mut differences = BTreeSet::new();
    for (before, after) in before.iter().zip(&after).filter(|(before, _)| before["kind"] != "Service") {
        for change in json_patch::diff(before, after).0 {
            let path = change.path().as_str();
            if !OWN.iter().any(|own| path.starts_with(own)) {
                differences.insert(format!("{}/{} {path}", before["kind"].as_str().unwrap(), name(before)));
            }
        }
    }
    let mut expected: Vec<_> = include_str!("outcomes/sync").lines().collect();
    expected.retain(|line| cluster.has(Feature::MatchConditions) || !line.contains("/zz-gmsa "));
    assert_eq!(differences.into_iter().collect::<Vec<_>>(), expected);
    let page = fs::read_to_string("docs/gitops.md").unwrap();
    for pointer in ["/data", ".webhooks[]?.clientConfig.caBundle"] {
        assert!(page.contains(pointer), "docs/gitops.md does not ignore {pointer}");
    }
}

/// The sample audit policy: what is recorded of pods that use GMSA is the webhook's annotations; no body, and nothing of other requests.
#[test]
fn the_audit_policy_records_the_annotations_and_no_body() {
    let mut cluster = Cluster::start();
    let log = cluster.audit(&fs::read_to_string("examples/audit-policy.yaml").unwrap());
    let release = Release::install_for_pods(&cluster, "");
    let _replica = release.start_replica();
    cluster.until("the API server asks", || {
        let said = creation(&cluster, &pod("p", "pod", Options::Name, "webapp1"));
        said.is_some_and(|said| said.contains("is not authorized to `use`"))
    });
    let events = || -> Vec<Value> {
        fs::read_to_string(&log).unwrap().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let refused = || events().into_iter().find(|event| event["responseStatus"]["code"] == 403);
    let event = cluster.found("the refusal is recorded", refused);
    for event in events() {
        assert_eq!((&event["level"], &event["stage"]), (&Value::from("Metadata"), &Value::from("ResponseComplete")));
        assert_eq!(event["objectRef"]["resource"], "pods", "{event}");
        assert!(event.get("requestObject").is_none() && event.get("responseObject").is_none(), "{event}");
    }
    let mut annotations = event["annotations"].as_object().unwrap().keys();
    let ours = "admission-webhook.windows-gmsa.sigs.k8s.io/validate-";
    assert!(annotations.any(|key| key.starts_with(ours)), "{event}");
    let written = fs::read_to_string(&log).unwrap();
    assert!(!written.contains("DomainJoinConfig"), "contents are in the audit log");
}
