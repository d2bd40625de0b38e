//! What `kubectl gmsa doctor` says of an installation that is broken: its remedies are followed to the letter, and then all is well.

use serde_json::json;

use crate::{
    cluster::Cluster,
    doctor::put_in_service,
    helm::CHART,
    nodes::{join, run_new_pods},
    pods::NAMESPACE,
    release::{RELEASE_NAMESPACE, Release},
    tool::Tool,
};

/// An installation with nothing to complain of. Its replica is the caller's.
fn in_order(cluster: &Cluster) -> Release<'_> {
    let release = Release::install(cluster);
    put_in_service(&release);
    cluster.create_namespace(NAMESPACE);
    cluster.apply(include_str!("coredns.yaml"));
    join(cluster, "windows-1", "windows");
    release
}

#[test]
fn what_doctor_says_to_do_mends_what_is_missing() {
    let cluster = Cluster::start();
    let release = in_order(&cluster);
    let tool = Tool::new(&cluster);
    let mut replica = release.start_replica();
    is_in_order(&cluster, &tool);
    cluster_role(&release, &tool);
    custom_resource(&release, &tool);
    configurations(&release, &tool);
    second_release(&release, &tool);
    selectors_role_and_secret(&release, &tool);
    service_account(&release, &tool, || {
        replica.end();
        replica = release.start_replica();
    });
}

/// In a total outage the webhook answers, and cannot ask the API server.
fn cluster_role(release: &Release<'_>, tool: &Tool<'_>) {
    let cluster = release.cluster;
    cluster.kubectl_prints(["delete", "clusterrole/gmsa"]);
    let remedy = first_complaint(cluster, tool, "call of /mutate", "webhook-failing");
    mended(release, tool, &remedy);
}

/// Helm never creates it again.
fn custom_resource(release: &Release<'_>, tool: &Tool<'_>) {
    let cluster = release.cluster;
    cluster.kubectl_prints(["delete", "crd/gmsacredentialspecs.windows.k8s.io"]);
    let remedy = first_complaint(cluster, tool, "custom resource", "crd-missing");
    follow(release, &remedy);
    let spec = include_str!("credential-spec.yaml");
    cluster.until("the API server has the custom resource", || {
        cluster.kubectl_with(["apply", "-f", "-"], spec).status.success()
    });
    is_in_order(cluster, tool);
}

/// The configurations, which the release still has.
fn configurations(release: &Release<'_>, tool: &Tool<'_>) {
    let cluster = release.cluster;
    cluster.kubectl_prints(["delete", "mutatingwebhookconfiguration/gmsa", "mutatingwebhookconfiguration/zz-gmsa"]);
    let remedy = first_complaint(cluster, tool, "configuration", "webhook-missing");
    mended(release, tool, &remedy);
}

/// A second release, which refuses every pod: it is checked too, and named with the command that removes it.
fn second_release(release: &Release<'_>, tool: &Tool<'_>) {
    let cluster = release.cluster;
    release.helm().prints(["install", "other", CHART, "--namespace", "other", "--create-namespace"]);
    let found = rules(&complaints(tool));
    for (step, rule) in [("configuration", "webhook-duplicate"), ("service", "endpoints")] {
        assert!(found.contains(&(step.to_owned(), rule.to_owned())), "{found:?}");
    }
    follow(release, "`helm uninstall other -n other`");
    is_in_order(cluster, tool);
}

/// AKS adds expressions to a selector that the chart does not render.
fn selectors_role_and_secret(release: &Release<'_>, tool: &Tool<'_>) {
    let cluster = release.cluster;
    let mut configuration = release.get("validatingwebhookconfiguration/gmsa");
    configuration["webhooks"][0]["namespaceSelector"] =
        json!({"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]});
    let replace = ["replace", "--field-manager", "admissionsenforcer", "-f", "-"];
    assert!(cluster.kubectl_with(replace, &configuration.to_string()).status.success());
    for object in ["role/gmsa", "secret/gmsa-tls"] {
        cluster.kubectl_prints(["delete", object, "--namespace", RELEASE_NAMESPACE]);
    }
    let found = complaints(tool);
    let wrong =
        [("configuration", "selectors-changed"), ("permissions", "webhook-permissions"), ("secret", "secret-missing")];
    assert_eq!(rules(&found), wrong.map(|(step, rule)| (step.to_owned(), rule.to_owned())), "{found:?}");
    mended(release, tool, &found[0].1);
}

/// The service account is deleted: the tokens of the replicas are dead, also after it is there again.
fn service_account(release: &Release<'_>, tool: &Tool<'_>, replace_the_replica: impl FnOnce()) {
    let cluster = release.cluster;
    cluster.kubectl_prints(["delete", "serviceaccount/gmsa", "--namespace", RELEASE_NAMESPACE]);
    let remedy = first_complaint(cluster, tool, "call of /mutate", "webhook-failing");
    follow(release, &remedy);
    // Nothing runs the Deployment's pods here.
    replace_the_replica();
    cluster.until("everything is in order again, with the pods of the restart", || {
        run_new_pods(cluster, RELEASE_NAMESPACE, "linux-1");
        complaints(tool).is_empty()
    });
}

/// No pod with GMSA can be created then, although the mutating webhook answers.
#[test]
fn a_validating_webhook_that_alone_is_broken_is_found_in_a_restricted_namespace() {
    let cluster = Cluster::start();
    let release = in_order(&cluster);
    let tool = Tool::new(&cluster);
    let _replica = release.start_replica();
    is_in_order(&cluster, &tool);
    let restricted = ["label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted"];
    cluster.kubectl_prints(restricted);
    let lines = |report: &str| -> Vec<String> {
        report.lines().filter(|line| line.contains("call of /")).map(str::to_owned).collect()
    };
    let reached = |webhook: &str| {
        format!("pass  call of {webhook}the API server reaches it and trusts its certificate (dry run in {NAMESPACE})")
    };
    let (report, code) = tool.gmsa(&format!("doctor --namespace {NAMESPACE}"));
    assert_eq!((lines(&report), code), (vec![reached("/mutate    "), reached("/validate  ")], 0));

    let call = |port: &serde_json::Value| {
        let path = "/webhooks/0/clientConfig/service/port";
        let change = json!([{"op": "replace", "path": path, "value": port}]).to_string();
        cluster.kubectl_prints(["patch", "validatingwebhookconfiguration/gmsa", "--type=json", "--patch", &change]);
    };
    let right =
        release.get("validatingwebhookconfiguration/gmsa")["webhooks"][0]["clientConfig"]["service"]["port"].clone();
    // Nothing listens there.
    call(&json!(1));
    let broken = || lines(&tool.gmsa(&format!("doctor --namespace {NAMESPACE}")).0);
    cluster.until("the API server calls the wrong port", || broken()[1].starts_with("fail"));
    let found = broken();
    assert_eq!(found[0], reached("/mutate    "));
    assert!(found[1].ends_with("connect: connection refused [webhook-unreachable]"), "{}", found[1]);
    call(&right);
    cluster
        .until("the API server calls the right port", || broken() == [reached("/mutate    "), reached("/validate  ")]);
}

/// What `doctor` complains of: each line, and what to do about it. A note is no complaint.
fn complaints(tool: &Tool<'_>) -> Vec<(String, String)> {
    let (report, _) = tool.gmsa("doctor");
    let mut lines = report.lines().filter(|line| !line.starts_with("pass")).map(str::to_owned);
    let mut found = Vec::new();
    while let (Some(line), Some(remedy)) = (lines.next(), lines.next()) {
        found.push((line, remedy.trim_start().trim_start_matches("-> ").to_owned()));
    }
    found.retain(|(line, _)| !line.starts_with("note"));
    found
}

/// Runs the commands in backquotes, one after the other, by a shell, with the chart for `CHART`.
fn follow(release: &Release<'_>, remedy: &str) {
    for command in remedy.split('`').skip(1).step_by(2) {
        let command = command.replace("CHART", CHART);
        let output = release.cluster.command("bash").args(["-ec", &command]).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Of each complaint, what it is about and its rule.
fn rules(complaints: &[(String, String)]) -> Vec<(String, String)> {
    let of = |line: &str| {
        let (step, rule) = (line.split("  ").nth(1).unwrap(), line.rsplit_once(" [").unwrap().1);
        (step.to_owned(), rule.trim_end_matches(']').to_owned())
    };
    complaints.iter().map(|(line, _)| of(line)).collect()
}

/// Waits until the first complaint is of this rule, and returns what to do about it.
fn first_complaint(cluster: &Cluster, tool: &Tool<'_>, step: &str, rule: &str) -> String {
    let first = || complaints(tool).into_iter().next();
    let wanted = [(step.to_owned(), rule.to_owned())];
    cluster.until(rule, || first().is_some_and(|first| rules(&[first]) == wanted));
    first().unwrap().1
}

/// What `doctor` said to do is done, and then there is nothing to complain of.
fn mended(release: &Release<'_>, tool: &Tool<'_>, remedy: &str) {
    follow(release, remedy);
    release.route_to_loopback();
    is_in_order(release.cluster, tool);
}

fn is_in_order(cluster: &Cluster, tool: &Tool<'_>) {
    cluster.until("everything is in order again", || complaints(tool).is_empty());
}
