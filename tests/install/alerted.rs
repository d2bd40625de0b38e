//! What alerts ask the API server for is what it counts.

use crate::{
    cluster::Cluster,
    helm::Helm,
    pods::{NAMESPACE, Options, creation, pod},
    release::Release,
};

/// The matchers of the alert's metric, apart from the name of the webhook.
const COUNTED: &str = "apiserver_admission_webhook_rejection_count{error_type=\"calling_webhook_error\",";

#[test]
fn the_api_server_counts_the_calls_that_fail() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster);
    release.route_to_loopback();
    cluster.create_namespace(NAMESPACE);
    let calls = ["--set", "prometheusRule.enabled=true", "--show-only", "templates/prometheusrule.yaml"];
    let rules = Helm::new().template(calls);
    assert!(rules.contains(&format!("{COUNTED}name=~\".+[.]windows-gmsa[.]sigs[.]k8s[.]io\"")), "{rules}");

    // No replica runs.
    cluster.until("the API server asks", || {
        let said = creation(&cluster, &pod("p", "pod", Options::Name, "webapp1"));
        said.is_some_and(|said| said.contains("failed calling webhook"))
    });
    let metrics = cluster.kubectl_prints(["get", "--raw", "/metrics"]);
    let counted: Vec<_> = metrics.lines().filter(|line| line.starts_with(COUNTED)).collect();
    let webhook = format!("{COUNTED}name=\"admission-webhook.windows-gmsa.sigs.k8s.io\",");
    assert!(!counted.is_empty() && counted.iter().all(|line| line.starts_with(&webhook)), "{counted:?}");
}
