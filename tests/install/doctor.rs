//! `kubectl gmsa doctor` after an install, line by line: green where all is well, and what it says of a cluster in which it is not.

use serde_json::json;

use crate::{
    helm::CHART,
    nodes::{join, run_pods},
    plane::Plane,
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
pass  configuration      gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is complete
pass  certificate        the caBundle of gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is valid for N days
pass  configuration      zz-gmsa/last.windows-gmsa.sigs.k8s.io is complete
pass  certificate        the caBundle of zz-gmsa/last.windows-gmsa.sigs.k8s.io is valid for N days
pass  configuration      gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is complete
pass  certificate        the caBundle of gmsa/admission-webhook.windows-gmsa.sigs.k8s.io is valid for N days
pass  call of /mutate    the API server reaches it and trusts its certificate (dry run in default)
pass  call of /validate  the API server reaches it and trusts its certificate (dry run in default)
pass  service            windows/gmsa has 2 of 2 endpoints ready
pass  service            runs gmsa-webhook:0.1.0
pass  permissions        windows:gmsa has the permissions that it needs
pass  namespaces         pods are reviewed in {namespaces} of {namespaces}
{users}"
    )
}

/// Has the release's pods run on a node, and waits until its Service has them; then its replica is what answers.
pub fn put_in_service(release: &Release<'_>) {
    let plane = release.plane;
    join(plane, "linux-1", "linux");
    run_pods(plane, RELEASE_NAMESPACE, "linux-1", 2);
    let ready = "jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].targetRef.name}";
    plane.until("the Service has its endpoints", || {
        let slices = ["get", "endpointslices", "--namespace", RELEASE_NAMESPACE, "-o", ready];
        plane.kubectl_prints(slices).split_whitespace().count() == 2
    });
    release.route_to_loopback();
}

#[test]
fn an_install_is_green_and_what_is_not_is_said() {
    let plane = Plane::start();
    let tool = Tool::new(&plane);
    let (report, code) = tool.gmsa("doctor");
    assert_eq!(
        (open(&report).as_str(), code),
        (
            "\
pass  API server       answers, vN
fail  custom resource  gmsacredentialspecs.windows.k8s.io is not installed [crd-missing]
                       -> Install the chart: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`.
fail  configuration    no MutatingWebhookConfiguration sends pods to a GMSA webhook [webhook-missing]
                       -> Install the chart: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`.
fail  configuration    no ValidatingWebhookConfiguration sends pods to a GMSA webhook [webhook-missing]
                       -> Install the chart: `helm install gmsa-webhook charts/gmsa-webhook -n gmsa-webhook --create-namespace`.
pass  pods             none uses GMSA yet
warn  Windows nodes    there are none [windows-nodes]
                       -> Add one: until then, Pods that use GMSA stay Pending.
",
            1
        )
    );

    let release = Release::install(&plane);
    put_in_service(&release);
    let mut replica = release.start_replica();
    let (report, code) = tool.gmsa("doctor --wait 60");
    let fresh = "\
pass  credential specs   there are none yet: kubectl gmsa credspec new makes one
pass  pods               none uses GMSA yet
warn  Windows nodes      there are none [windows-nodes]
                         -> Add one: until then, Pods that use GMSA stay Pending.
";
    let fresh = in_order(5, fresh);
    assert_eq!((open(&report), code), (fresh.clone(), 0), "the install is ready, so waiting is over");
    let (report, code) = tool.gmsa("doctor");
    assert_eq!((open(&report), code), (fresh, 1), "a cluster without Windows nodes is worth a warning");

    plane.create_namespace(NAMESPACE);
    plane.apply(include_str!("credential-spec.yaml"));
    one_pod(&plane, &tool);
    let (report, code) = tool.gmsa("doctor");
    let used = "\
pass  credential specs   no problems found in 1 credential spec
pass  pods               1 uses GMSA, with up-to-date contents
pass  Windows nodes      1 of 10.0.20348
";
    assert_eq!((open(&report), code), (in_order(6, used), 0));

    as_somebody_else(&tool);
    half_broken(&release, &tool);
    broken(&release, &tool);
    replica.end();
    down(&plane, &tool);
}

/// What `doctor` complains of: each line, and what to do about it.
fn complaints(tool: &Tool<'_>) -> Vec<(String, String)> {
    let (report, _) = tool.gmsa("doctor");
    let mut lines = report.lines().filter(|line| !line.starts_with("pass")).map(str::to_owned);
    let mut found = Vec::new();
    while let (Some(line), Some(remedy)) = (lines.next(), lines.next()) {
        found.push((line, remedy.trim_start().trim_start_matches("-> ").to_owned()));
    }
    found
}

/// Runs the command in backquotes that a remedy begins with, by a shell, with the chart for `CHART`.
fn follow(release: &Release<'_>, remedy: &str) {
    for command in remedy.split('`').skip(1).step_by(2) {
        let command = command.replace("CHART", CHART);
        let output = release.plane.command("bash").args(["-ec", &command]).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// What is broken is found, and what `doctor` says to do about it mends it.
fn broken(release: &Release<'_>, tool: &Tool<'_>) {
    let plane = release.plane;
    plane.kubectl_prints(["delete", "clusterrole/gmsa"]);
    let forbidden = "fail  call of /mutate    the API server answered 500: admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: \
            unable to retrieve the contents of cred spec gmsa-webhook-test-does-not-exist: the API server answered 403: \
            gmsacredentialspecs.windows.k8s.io \"gmsa-webhook-test-does-not-exist\" is forbidden: User \"system:serviceaccount:windows:gmsa\" cannot \
            get resource \"gmsacredentialspecs\" in API group \"windows.k8s.io\" at the cluster scope: RBAC: clusterrole.rbac.authorization.k8s.io \"gmsa\" not found \
            [webhook-failing]";
    let remedy = first_complaint(plane, tool, forbidden);
    mended(release, tool, &remedy);

    plane.kubectl_prints(["delete", "crd/gmsacredentialspecs.windows.k8s.io"]);
    let not_installed = "fail  custom resource    gmsacredentialspecs.windows.k8s.io is not installed [crd-missing]";
    let remedy = first_complaint(plane, tool, not_installed);
    follow(release, &remedy);
    let spec = include_str!("credential-spec.yaml");
    plane.until("the API server has the custom resource", || {
        plane.kubectl_with(["apply", "-f", "-"], spec).status.success()
    });
    is_in_order(plane, tool);

    plane.kubectl_prints(["delete", "mutatingwebhookconfiguration/gmsa", "mutatingwebhookconfiguration/zz-gmsa"]);
    let missing =
        "fail  configuration      no MutatingWebhookConfiguration sends pods to a GMSA webhook [webhook-missing]";
    let remedy = first_complaint(plane, tool, missing);
    mended(release, tool, &remedy);

    // As AKS does it: expressions in a selector that the chart does not render.
    let mut configuration = release.get("validatingwebhookconfiguration/gmsa");
    configuration["webhooks"][0]["namespaceSelector"] =
        json!({"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]});
    let replace = ["replace", "--field-manager", "admissionsenforcer", "-f", "-"];
    assert!(plane.kubectl_with(replace, &configuration.to_string()).status.success());
    for object in ["role/gmsa", "secret/gmsa-tls"] {
        plane.kubectl_prints(["delete", object, "--namespace", RELEASE_NAMESPACE]);
    }
    let found = complaints(tool);
    let lines: Vec<_> = found.iter().map(|(line, _)| line.as_str()).collect();
    let selectors = "warn  configuration      the selectors of gmsa/admission-webhook.windows-gmsa.sigs.k8s.io were changed after the installation, by \
        admissionsenforcer [selectors-changed]";
    let role = "fail  permissions        windows:gmsa may not get secrets/gmsa-tls, watch secrets/gmsa-tls, update secrets/gmsa-tls [webhook-permissions]";
    let secret = "fail  secret             windows/gmsa-tls does not exist [secret-missing]";
    assert_eq!(lines, [selectors, role, secret]);
    mended(release, tool, &found[0].1);
}

/// Waits until this is the first complaint, and returns what to do about it.
fn first_complaint(plane: &Plane, tool: &Tool<'_>, line: &str) -> String {
    let first = || complaints(tool).into_iter().next().filter(|(found, _)| found == line);
    plane.until(line, || first().is_some());
    first().unwrap().1
}

/// What `doctor` said to do is done, and then there is nothing to complain of.
fn mended(release: &Release<'_>, tool: &Tool<'_>, remedy: &str) {
    follow(release, remedy);
    release.route_to_loopback();
    is_in_order(release.plane, tool);
}

fn is_in_order(plane: &Plane, tool: &Tool<'_>) {
    plane.until("everything is in order again", || complaints(tool).is_empty());
}

/// The validating webhook alone is broken: no pod with GMSA can be created, although the mutating one answers.
fn half_broken(release: &Release<'_>, tool: &Tool<'_>) {
    let plane = release.plane;
    let restricted = ["label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted"];
    plane.kubectl_prints(restricted);
    let lines = |report: &str| -> Vec<String> {
        report.lines().filter(|line| line.contains("call of /")).map(str::to_owned).collect()
    };
    let reached = |webhook: &str| {
        format!("pass  call of {webhook}the API server reaches it and trusts its certificate (dry run in {NAMESPACE})")
    };
    let (report, code) = tool.gmsa(&format!("doctor --namespace {NAMESPACE}"));
    assert_eq!((lines(&report), code), (vec![reached("/mutate    "), reached("/validate  ")], 0));

    let port = |port: &serde_json::Value| {
        let path = "/webhooks/0/clientConfig/service/port";
        let patch = json!([{"op": "replace", "path": path, "value": port}]).to_string();
        plane.kubectl_prints(["patch", "validatingwebhookconfiguration/gmsa", "--type=json", "--patch", &patch]);
    };
    let right =
        release.get("validatingwebhookconfiguration/gmsa")["webhooks"][0]["clientConfig"]["service"]["port"].clone();
    // Nothing listens there.
    port(&json!(1));
    let broken = || lines(&tool.gmsa(&format!("doctor --namespace {NAMESPACE}")).0);
    plane.until("the API server calls the wrong port", || broken()[1].starts_with("fail"));
    let found = broken();
    assert_eq!(found[0], reached("/mutate    "));
    assert!(found[1].ends_with("connect: connection refused [webhook-unreachable]"), "{}", found[1]);
    port(&right);
    plane.until("the API server calls the right port", || broken() == [reached("/mutate    "), reached("/validate  ")]);
    plane.kubectl_prints(["label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce-"]);
}

/// A pod from its refusal to its node.
fn one_pod(plane: &Plane, tool: &Tool<'_>) {
    let pod = pod("web", "pod", Options::Name, "webapp1");
    assert!(creation(plane, &pod).is_some_and(|said| said.contains("is not authorized to")));
    let granted = tool.gmsa(&format!("grant --credspec webapp1 --serviceaccount {NAMESPACE}:default --apply"));
    let applied =
        format!("clusterrole/gmsa-use-webapp1 applied\nrolebinding/gmsa-use-webapp1-default applied in {NAMESPACE}\n");
    assert_eq!(granted, (applied, 0));
    plane.until("the grant is in force", || creation(plane, &pod).is_none());
    plane.apply(&pod.to_string());

    let (report, code) = tool.gmsa("doctor --pod apps/web");
    let pending = "\
pass  admission   the pod carries the contents of its credential spec
pass  permission  apps:default may use webapp1
warn  node        the pod uses GMSA but may land on a Linux node: set spec.os.name and nodeSelector kubernetes.io/os: windows [linux-node]
                  -> Set `spec.os.name: windows` and the node selector `kubernetes.io/os: windows`.
fail  node        the pod is not on a node: the scheduler has not tried it [not-scheduled]
                  -> See docs/windows-placement.md.
";
    assert_eq!((report.as_str(), code), (pending, 1));

    join(plane, "windows-1", "windows");
    run_pods(plane, NAMESPACE, "windows-1", 1);
    let (report, code) = tool.gmsa("doctor --pod web --namespace apps --wait 60");
    let running = "\
pass  admission   the pod carries the contents of its credential spec
pass  permission  apps:default may use webapp1
warn  node        the pod uses GMSA but may land on a Linux node: set spec.os.name and nodeSelector kubernetes.io/os: windows [linux-node]
                  -> Set `spec.os.name: windows` and the node selector `kubernetes.io/os: windows`.
pass  node        Running on windows-1
pass  in the pod  run: kubectl gmsa verify apps/web
";
    assert_eq!((report.as_str(), code), (running, 0));
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
fn down(plane: &Plane, tool: &Tool<'_>) {
    plane.until("the webhook is missed", || {
        creation(plane, &pod("p", "pod", Options::Name, "webapp1")).is_some_and(|said| said.contains("failed calling"))
    });
    let (report, code) = tool.gmsa("doctor");
    assert_eq!(code, 1);
    let complaints: Vec<_> = report.lines().filter(|line| !line.starts_with("pass")).map(str::trim_start).collect();
    let [call, remedy, rest @ ..] = &complaints[..] else { panic!("two complaints are expected: {report}") };
    let start = "fail  call of /mutate    the API server answered 500: Internal error occurred: failed calling webhook \
                 \"admission-webhook.windows-gmsa.sigs.k8s.io\": failed to call webhook: Post \"https://gmsa.windows.svc:";
    assert!(call.starts_with(start) && call.ends_with("connect: connection refused [webhook-unreachable]"), "{call}");
    let first = [
        "skip  call of /validate  could not be checked: /mutate is called first, and fails [not-checked]",
        "-> Correct the call of /mutate first.",
    ];
    assert_eq!(
        *remedy,
        "-> Check its Pods, its Service, the network between, and the `caBundle` against the certificate."
    );
    assert_eq!(rest, first);
}
