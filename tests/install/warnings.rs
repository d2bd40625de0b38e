//! What `kubectl apply` shows of the webhooks that warn: whole lines, by the chart's own wiring; and that each can be turned off.

use std::process::Output;

use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    pods::{NAMESPACE, grant},
    release::Release,
};

/// A Deployment with everything to warn of, and a Job and a `CronJob` that name what is not there.
const WORKLOADS: &str = r#"apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: apps}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: web
      securityContext: {windowsOptions: {gmsaCredentialSpecName: webapp1}}
      containers:
      - {name: iis, image: i, securityContext: {windowsOptions: {runAsUserName: ContainerUser}}}
      - {name: side, image: i, securityContext: {windowsOptions: {gmsaCredentialSpec: "{}"}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: apps}
spec:
  template:
    spec:
      os: {name: windows}
      restartPolicy: Never
      containers:
      - {name: main, image: i, securityContext: {windowsOptions: {gmsaCredentialSpecName: no-such-spec}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly, namespace: apps}
spec:
  schedule: 0 0 1 1 *
  jobTemplate:
    spec:
      template:
        spec:
          os: {name: windows}
          restartPolicy: Never
          containers: [{name: main, image: i}]
          initContainers:
          - {name: init, image: i, securityContext: {windowsOptions: {gmsaCredentialSpecName: later}}}
"#;

const WORKLOAD_WARNINGS: &str = r#"Warning: container "side" has GMSA cred spec contents without its name: the pods will be refused [contents-without-name]
Warning: service account "web" may not use GMSA cred spec "webapp1": the pods will be refused [not-authorized]
Warning: the pod uses GMSA but may land on a Linux node: set spec.os.name and nodeSelector kubernetes.io/os: windows [linux-node]
Warning: container "iis" runs as "ContainerUser": only SYSTEM and NETWORK SERVICE act as the gMSA [run-as-user]
Warning: GMSA cred spec "no-such-spec" does not exist: the pods will be refused [spec-missing]
Warning: service account "default" may not use GMSA cred spec "no-such-spec": the pods will be refused [not-authorized]
Warning: GMSA cred spec "later" does not exist: the pods will be refused [spec-missing]
Warning: service account "default" may not use GMSA cred spec "later": the pods will be refused [not-authorized]
"#;

const WORKLOADS_MADE: &str = "deployment.apps/web\njob.batch/once\ncronjob.batch/nightly\n";

/// The credential spec of `credential-spec.yaml` with mistakes that take knowledge of domains, so the CRD takes it.
fn mistaken() -> String {
    include_str!("credential-spec.yaml")
        .replace("name: webapp1", "name: mistaken")
        .replace("    DnsName: corp.example.com", "    DnsName: corp")
        .replace("    DnsTreeName: example.com", "    DnsTreeName: exa mple.com")
}

const SPEC_WARNINGS: &str = "\
Warning: DomainJoinConfig.DnsName: \"corp\" has no dot: it looks like the NetBIOS name [dns-name]
Warning: DomainJoinConfig.DnsTreeName: \"exa mple.com\" is not a DNS name [dns-tree-name]
";

fn apply(cluster: &Cluster, objects: &str) -> Output {
    cluster.kubectl_with(["apply", "--output=name", "-f", "-"], objects)
}

fn seen(output: &Output) -> (&str, &str, bool) {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.success())
}

#[test]
fn kubectl_apply_shows_what_will_go_wrong() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster);
    release.route_to_loopback();
    cluster.create_namespace(NAMESPACE);
    cluster.kubectl_prints(["create", "serviceaccount", "web", "--namespace", NAMESPACE]);
    cluster.apply(include_str!("credential-spec.yaml"));
    wiring(&release, &json!([["workloads", "Ignore", 2], ["credentialspecs", "Ignore", 2]]));

    let replica = release.start_replica();
    cluster.until("the API server trusts the webhook", || {
        let probe = cluster.kubectl_with(["create", "--dry-run=server", "-f", "-"], &mistaken());
        probe.stderr.starts_with(b"Warning: ")
    });
    let output = apply(&cluster, WORKLOADS);
    assert_eq!(seen(&output), (WORKLOADS_MADE, WORKLOAD_WARNINGS, true));
    // An update that leaves the pods as they are says nothing new, so the API server does not ask.
    let again = cluster.kubectl(["label", "deployment", "web", "--namespace", NAMESPACE, "a=b"]);
    assert_eq!(seen(&again), ("deployment.apps/web labeled\n", "", true));
    let output = apply(&cluster, &mistaken());
    assert_eq!(seen(&output), ("gmsacredentialspec.windows.k8s.io/mistaken\n", SPEC_WARNINGS, true));
    pods(&cluster);
    drop(replica);

    strict(&release);
    off(&release);
}

/// The webhooks that warn, each with its failure policy and its seconds.
fn wiring(release: &Release<'_>, expected: &Value) {
    let configuration = release.get("validatingwebhookconfiguration/gmsa");
    let webhooks = configuration["webhooks"].as_array().unwrap().iter().skip(1);
    let found = webhooks.map(|webhook| {
        let name = webhook["name"].as_str().unwrap().split('.').next();
        json!([name, webhook["failurePolicy"], webhook["timeoutSeconds"]])
    });
    assert_eq!(&found.collect::<Value>(), expected);
}

/// The advice comes along with a pod that is admitted.
fn pods(cluster: &Cluster) {
    grant(cluster, "web", &["webapp1".to_owned()]);
    let pod = r"apiVersion: v1
kind: Pod
metadata: {name: web, namespace: apps}
spec:
  serviceAccountName: web
  securityContext: {windowsOptions: {gmsaCredentialSpecName: webapp1}}
  containers:
  - {name: iis, image: i, securityContext: {windowsOptions: {runAsUserName: ContainerAdministrator}}}
";
    cluster.until("the grant is in force", || {
        let said = cluster.kubectl_with(["create", "--dry-run=server", "-f", "-"], pod).stderr;
        !String::from_utf8(said).unwrap().contains("is not authorized to")
    });
    let output = apply(cluster, pod);
    let advice = "\
Warning: the pod uses GMSA but may land on a Linux node: set spec.os.name and nodeSelector kubernetes.io/os: windows [linux-node]
Warning: container \"iis\" runs as \"ContainerAdministrator\": only SYSTEM and NETWORK SERVICE act as the gMSA [run-as-user]
";
    assert_eq!(seen(&output), ("pod/web\n", advice, true));
}

/// A credential spec with mistakes is refused; one with mere warnings is not, and a deletion never is.
fn strict(release: &Release<'_>) {
    let cluster = release.cluster;
    release.upgrade("webhooks.credentialSpecs.strict=true");
    wiring(release, &json!([["workloads", "Ignore", 2], ["credentialspecs", "Fail", 2]]));
    let _replica = release.start_replica();
    let refused = mistaken().replace("name: mistaken", "name: refused");
    cluster.until("the API server asks the new replica", || {
        !cluster.kubectl_with(["create", "--dry-run=server", "-f", "-"], &refused).status.success()
    });
    let output = apply(cluster, &refused);
    // A single-label domain is possible.
    let refusal = "Warning: DomainJoinConfig.DnsName: \"corp\" has no dot: it looks like the NetBIOS name [dns-name]\n\
                   The request is invalid: error when creating \"STDIN\": admission webhook \
                   \"credentialspecs.windows-gmsa.sigs.k8s.io\" denied the request: the GMSA cred spec cannot work: \
                   credspec.DomainJoinConfig.DnsTreeName: \
                   \"exa mple.com\" is not a DNS name (the container starts, but has no trust with the domain: every logon fails; right: \
                   (Get-ADDomain).Forest)\n";
    assert_eq!(seen(&output), ("", refusal, false));
    cluster.kubectl_prints(["delete", "gmsacredentialspec", "mistaken"]);
    let one_scope = include_str!("credential-spec.yaml")
        .replace("name: webapp1", "name: one-scope")
        .replace("      - {Name: WebApp1, Scope: CORP}\n", "");
    let output = apply(cluster, &one_scope);
    let warning = "Warning: ActiveDirectoryConfig.GroupManagedServiceAccounts: has no entry whose Scope is the NetBIOS name \
                   \"CORP\" [accounts]\n";
    assert_eq!(seen(&output), ("gmsacredentialspec.windows.k8s.io/one-scope\n", warning, true));
}

/// Each of them can be turned off by a value.
fn off(release: &Release<'_>) {
    let cluster = release.cluster;
    release.upgrade("webhooks.workloads.enabled=false");
    wiring(release, &json!([["credentialspecs", "Ignore", 2]]));
    let _replica = release.start_replica();
    let deployment = WORKLOADS.split("---").next().unwrap().replace("name: web,", "name: other,");
    cluster.until("workloads are not asked about", || {
        seen(&cluster.kubectl_with(["create", "--dry-run=server", "-f", "-"], &deployment)).1.is_empty()
    });
    let unasked = apply(cluster, &deployment);
    assert_eq!(seen(&unasked), ("deployment.apps/other\n", "", true));

    release.upgrade("webhooks.credentialSpecs.enabled=false");
    wiring(release, &json!([["workloads", "Ignore", 2]]));
    cluster.until("credential specs are not asked about", || {
        let output = cluster.kubectl_with(["create", "--dry-run=server", "--validate=false", "-f", "-"], &mistaken());
        seen(&output).1.is_empty()
    });
}
