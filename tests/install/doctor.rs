//! `kubectl gmsa doctor` after an install, line by line: green where all is well, and what it says of a cluster in which it is not.

use crate::{
    cluster::Cluster,
    nodes::{join, run_pods},
    pods::{NAMESPACE, Options, creation, pod},
    release::{RELEASE_NAMESPACE, Release},
    tool::Tool,
};

/// The report with what differs between runs left open: the API server's version, and days.
pub fn open(report: &str) -> String {
    let line = |line: &str| match (line.split_once("answers, v"), line.split_once(" is valid for ")) {
        (Some((head, _)), _) => format!("{head}answers, vN\n"),
        (_, Some((head, _))) => format!("{head} is valid for N days\n"),
        _ => format!("{line}\n"),
    };
    report.lines().map(line).collect()
}

/// The report on an install that is in order: what it says of credential specs, of pods and of Windows nodes is the caller's.
pub fn in_order(namespaces: usize, users: &str) -> String {
    format!(
        "\
pass  API server         answers, vN
pass  custom resource    serves v1, v1alpha1
pass  webhook            Deployment windows/gmsa has 2 of 2 pods, and they run
pass  configuration      gmsa/admission-webhook.windows-gmsa.sigs.k8s.io (mutating) is complete
pass  certificate        the caBundle of gmsa/admission-webhook.windows-gmsa.sigs.k8s.io (mutating) is valid for N days
pass  configuration      zz-gmsa/last.windows-gmsa.sigs.k8s.io (mutating) is complete
pass  certificate        the caBundle of zz-gmsa/last.windows-gmsa.sigs.k8s.io (mutating) is valid for N days
pass  configuration      gmsa/admission-webhook.windows-gmsa.sigs.k8s.io (validating) is complete
pass  certificate        the caBundle of gmsa/admission-webhook.windows-gmsa.sigs.k8s.io (validating) is valid for N days
pass  call of /mutate    the API server reaches it and trusts its certificate (dry run in default)
pass  call of /validate  the API server reaches it and trusts its certificate (dry run in default)
note  protection         no static policies protect the webhook configurations of gmsa [static-policies]
                         -> On a control plane of your own, load the static policies of the chart, which no user of the API can change: docs/static-policies.md.
pass  service            windows/gmsa has 2 of 2 endpoints ready
pass  service            runs gmsa-webhook:0.1.0
pass  permissions        windows:gmsa has the permissions that it needs
note  network            every pod can connect to the webhook: no NetworkPolicy of windows is about incoming connections of its pods [network-open]
                         -> Set `networkPolicy.enabled=true` in the chart, and the addresses of the API servers as `networkPolicy.apiServerCidrs`.
pass  namespaces         pods are reviewed in {namespaces} of {namespaces}
{users}"
    )
}

/// Has the release's pods run on a node, and waits until its Service has them; then its replica is what answers.
pub fn put_in_service(release: &Release<'_>) {
    let cluster = release.cluster;
    join(cluster, "linux-1", "linux");
    run_pods(cluster, RELEASE_NAMESPACE, "linux-1", 2);
    let ready = "jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].targetRef.name}";
    cluster.until("the Service has its endpoints", || {
        let slices = ["get", "endpointslices", "--namespace", RELEASE_NAMESPACE, "-o", ready];
        cluster.kubectl_prints(slices).split_whitespace().count() == 2
    });
    release.route_to_loopback();
}

#[test]
fn an_install_is_green_and_what_is_not_is_said() {
    let cluster = Cluster::start();
    let tool = Tool::new(&cluster);
    let (report, code) = tool.gmsa("doctor");
    assert_eq!(
        (open(&report).as_str(), code),
        (
            "\
pass  API server       answers, vN
fail  custom resource  gmsacredentialspecs.windows.k8s.io is not installed [crd-missing]
                       -> Install the chart: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`. It brings the CRD GMSACredentialSpec.
fail  configuration    no MutatingWebhookConfiguration sends pods to a GMSA webhook [webhook-missing]
                       -> Install the chart: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`.
fail  configuration    no ValidatingWebhookConfiguration sends pods to a GMSA webhook [webhook-missing]
                       -> Install the chart: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`.
pass  pods             none uses GMSA yet
pass  workloads        no pod template uses GMSA yet
warn  Windows nodes    there are none [windows-nodes]
                       -> Add one: until then, Pods that use GMSA stay Pending.
",
            1
        )
    );

    let release = Release::install(&cluster);
    put_in_service(&release);
    let mut replica = release.start_replica();
    let (report, code) = tool.gmsa("doctor --wait 60");
    let fresh = "\
pass  credential specs   there are none yet: kubectl gmsa credspec new makes one
pass  pods               none uses GMSA yet
pass  workloads          no pod template uses GMSA yet
warn  Windows nodes      there are none [windows-nodes]
                         -> Add one: until then, Pods that use GMSA stay Pending.
";
    let fresh = in_order(5, fresh);
    assert_eq!((open(&report), code), (fresh.clone(), 0), "the install is ready, so waiting is over");
    let (report, code) = tool.gmsa("doctor");
    assert_eq!((open(&report), code), (fresh, 1), "a cluster without Windows nodes is worth a warning");

    cluster.create_namespace(NAMESPACE);
    cluster.apply(include_str!("credential-spec.yaml"));
    cluster.apply(include_str!("coredns.yaml"));
    one_pod(&cluster, &tool);
    let (report, code) = tool.gmsa("doctor");
    let used = "\
pass  credential specs   no problems found in 1 credential spec
pass  pods               1 uses GMSA, with up-to-date contents
pass  workloads          no pod template uses GMSA yet
pass  DNS                corp.example.com: the zone corp.example.com goes to 10.0.0.4, 10.0.0.5 (ConfigMap kube-system/coredns)
pass  Windows nodes      1 of 10.0.20348
";
    assert_eq!((open(&report), code), (in_order(6, used), 0));

    as_somebody_else(&tool);
    replica.end();
    down(&cluster, &tool);
}

/// A pod from its refusal to its node.
fn one_pod(cluster: &Cluster, tool: &Tool<'_>) {
    let pod = pod("web", "pod", Options::Name, "webapp1");
    assert!(creation(cluster, &pod).is_some_and(|said| said.contains("is not authorized to")));
    let granted = tool.gmsa(&format!("grant --credspec webapp1 --serviceaccount {NAMESPACE}:default --apply"));
    let applied =
        format!("clusterrole/gmsa-use-webapp1 applied\nrolebinding/gmsa-use-webapp1-default applied in {NAMESPACE}\n");
    assert_eq!(granted, (applied, 0));
    cluster.until("the grant is in force", || creation(cluster, &pod).is_none());
    cluster.apply(&pod.to_string());

    let (report, code) = tool.gmsa("doctor --pod apps/web");
    let admitted = "\
pass  template         names webapp1
pass  permission       apps:default may use webapp1
pass  admission        the pod carries the contents of its credential spec
warn  admission        the pod uses GMSA but may land on a Linux node: set spec.os.name and nodeSelector kubernetes.io/os: windows [linux-node]
                       -> Set `spec.os.name: windows` and the node selector `kubernetes.io/os: windows`.
";
    let pending = format!(
        "\
{admitted}fail  scheduling       the pod is not on a node: the scheduler has not tried it; the cluster has no Windows node [windows-nodes]
                       -> Add one: until then, Pods that use GMSA stay Pending.
skip  sandbox          not reached [not-checked]
skip  init containers  not reached [not-checked]
skip  containers       not reached [not-checked]
skip  in the pod       not reached [not-checked]
"
    );
    assert_eq!((report, code), (pending, 1));

    join(cluster, "windows-1", "windows");
    run_pods(cluster, NAMESPACE, "windows-1", 1);
    let (report, code) = tool.gmsa("doctor --pod web --namespace apps --wait 60");
    let running = format!(
        "\
{admitted}pass  scheduling       on windows-1, which is of 10.0.20348
pass  sandbox          was created
pass  init containers  the kubelet has reported nothing of them
pass  containers       Running on windows-1
pass  in the pod       run: kubectl gmsa verify apps/web
"
    );
    assert_eq!((report, code), (running, 0));
}

/// `--as` goes along with every request.
fn as_somebody_else(tool: &Tool<'_>) {
    let output = tool.kubectl("gmsa who-can webapp1 --as nobody --as-group nogroup");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        said,
        "error: the API server answered 403: clusterroles.rbac.authorization.k8s.io is forbidden: User \"nobody\" cannot list \
         resource \"clusterroles\" in API group \"rbac.authorization.k8s.io\" at the cluster scope\n"
    );
    assert_eq!(output.status.code(), Some(2));
}

/// The webhook is gone, and its pods still count as ready: only the API server's own call shows it.
fn down(cluster: &Cluster, tool: &Tool<'_>) {
    cluster.until("the webhook is missed", || {
        creation(cluster, &pod("p", "pod", Options::Name, "webapp1"))
            .is_some_and(|said| said.contains("failed calling"))
    });
    let (report, code) = tool.gmsa("doctor");
    assert_eq!(code, 1);
    let complaints = report.lines().filter(|line| !line.starts_with("pass") && line.ends_with(']'));
    let rules: Vec<_> =
        complaints.map(|line| (line.split("  ").nth(1).unwrap(), line.rsplit_once(" [").unwrap().1)).collect();
    let expected = [
        ("call of /mutate", "webhook-unreachable]"),
        ("call of /validate", "not-checked]"),
        ("protection", "static-policies]"),
        ("network", "network-open]"),
    ];
    assert_eq!(rules, expected, "{report}");
}
