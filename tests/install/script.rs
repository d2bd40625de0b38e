//! The script: from an empty cluster on, from the Go webhook's script and on to Helm, and where it gives up.

use std::fs;

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature},
    crd::CRD_BEFORE,
    desk::{CA, Desk, cases, line_of_giving_up, with_a_node},
    helm::{CHART, Helm},
    pages::objects,
    pods::SPEC,
    release::{KINDS, publish},
};

const CRD: &str = "crd/gmsacredentialspecs.windows.k8s.io";

/// Everything that the script could leave in a cluster.
fn contents(cluster: &Cluster) -> String {
    cluster.names(&format!("crds,namespaces,{KINDS} -A"))
}

/// An object of the script's own namespace.
fn get(cluster: &Cluster, object: &str) -> Value {
    cluster.get(&format!("{object} -n gmsa-webhook"))
}

#[test]
fn the_script_installs_and_upgrades_and_never_loses_a_credential_spec() {
    let cluster = Cluster::start();
    if cluster.lacks(Feature::MatchConditions) {
        return;
    }
    let desk = Desk::new(&cluster);
    dry_runs_leave_nothing(&desk);
    // As the Go webhook's script left it: an older CRD, and a spec.
    cluster.define(CRD_BEFORE);
    cluster.apply(SPEC);
    let state = || {
        (
            cluster.uid(CRD),
            cluster.uid("gmsacredentialspec/webapp1"),
            cluster.get("gmsacredentialspec/webapp1")["credspec"].take(),
        )
    };
    let before = state();

    with_a_node(&cluster, || {
        installs(&desk);
        installs_again(&desk);
        upgrades(&desk);
        serves_a_certificate_from_a_folder(&desk);
    });
    assert_eq!(state(), before);

    desk.run("kubectl delete -f manifests.yml");
    assert!(!cluster.exists("namespace/gmsa-webhook"));
    assert!(!cluster.exists("mutatingwebhookconfiguration/zz-gmsa-webhook"));
    assert!(cluster.exists("gmsacredentialspec/webapp1"));
}

/// The same objects as the chart renders, for a certificate of the webhook's own and for one from a folder.
#[test]
fn the_policies_for_the_control_plane_are_those_of_the_chart() {
    let cluster = Cluster::start();
    if cluster.lacks(Feature::MatchConditions) {
        return;
    }
    let desk = Desk::new(&cluster);
    for (options, values) in [
        (&[][..], "certificates.mode=self-managed"),
        (&["--certs-dir", "certs"], "certificates.mode=secret,certificates.secretName=hook-cert"),
    ] {
        let args = ["--file", "m", "--dry-run", "--name", "hook", "--namespace", "win", "--static-policies", "s.yaml"];
        let printed = desk.installs(&[&args, &["--admins", "group:a:b,user:Jane Doe,user:joe"][..], options].concat());
        assert!(printed.starts_with("wrote m\nwrote s.yaml, for the disk of each API server\n"), "{printed}");
        let written = desk.read("s.yaml");
        assert!(!written.contains("${"), "{written}");
        let admins = "staticPolicies.admins.groups={a:b},staticPolicies.admins.users={Jane Doe,joe}";
        let values = format!("{values},staticPolicies.enabled=true,{admins}");
        let chart = ["template", "hook", CHART, "-n", "win", "--set", &values, "-s", "templates/static-policies.yaml"];
        assert_eq!(objects(&written), objects(&Helm::new().prints(chart)));
    }
}

fn dry_runs_leave_nothing(desk: &Desk<'_>) {
    let before = contents(desk.cluster);
    for (option, kind, mark) in
        [("-dry-run=server", "server", "(server dry run)"), ("--dry-run=client", "client", "(dry run)")]
    {
        let printed = desk.installs(&["--file", "manifests.yml", option]);
        let webhooks = "validatingwebhookconfiguration.admissionregistration.k8s.io";
        for object in ["namespace", "secret", "deployment.apps", webhooks] {
            let line = printed.lines().find(|line| line.starts_with(&format!("{object}/gmsa-webhook"))).unwrap();
            assert!(line.ends_with(&format!(" created {mark}")), "{line}");
        }
        let crd = printed.lines().find(|line| line.starts_with("customresourcedefinition.")).unwrap();
        assert!(crd.ends_with(mark), "{crd}");
        assert_eq!(printed.lines().last(), Some(format!("nothing was changed ({kind} dry run)").as_str()));
        assert_eq!(printed.contains("the namespace gmsa-webhook does not exist yet"), kind == "server");
        assert_eq!(contents(desk.cluster), before);
        assert_eq!(desk.files(), ["manifests.yml"]);
    }
    let printed = desk.installs(&["--file", "manifests.yml", "--dry-run=server", "--certs-dir", "certs"]);
    assert!(printed.contains("\nwould make a certificate in certs (dry run)\n"), "{printed}");
    assert_eq!(desk.files(), ["manifests.yml"]);
}

/// The spec of the pods that the script installs.
fn pod(desk: &Desk<'_>) -> Value {
    get(desk.cluster, "deployment/gmsa-webhook")["spec"]["template"]["spec"].take()
}

fn installs(desk: &Desk<'_>) {
    let printed = desk.installs(&["--file", "manifests.yml"]);
    let removal = "and keep the credential specs:\n  kubectl delete -f manifests.yml\n";
    let ready = format!("The GMSA webhook is ready. To remove it, {removal}");
    assert!(printed.ends_with(&ready), "{printed}");
    assert_eq!(get(desk.cluster, "deployment/gmsa-webhook")["status"]["readyReplicas"], 2);
    assert_eq!(pod(desk).get("tolerations"), None);
    desk.cluster.until("the short name is known", || desk.cluster.exists("gmsa"));
}

/// What the webhook itself has written meanwhile stays.
fn installs_again(desk: &Desk<'_>) {
    let cluster = desk.cluster;
    let written = json!({"data": {"ca.key": "a2V5"}});
    cluster.change("secret gmsa-webhook-tls -n gmsa-webhook", &written);
    publish(cluster, "mutatingwebhookconfiguration/gmsa-webhook", CA);
    let generation = || get(cluster, "deployment/gmsa-webhook")["metadata"]["generation"].take();
    let before = generation();

    let printed = desk.installs(&["--file", "manifests.yml", "--overwrite"]);
    assert!(printed.starts_with("note: --overwrite has nothing to do without --certs-dir: "), "{printed}");
    assert_eq!(generation(), before);
    assert_eq!(get(cluster, "secret/gmsa-webhook-tls")["data"], written["data"]);
    let configuration = get(cluster, "mutatingwebhookconfiguration/gmsa-webhook");
    assert_eq!(configuration["webhooks"][0]["clientConfig"]["caBundle"], CA);
}

fn upgrades(desk: &Desk<'_>) {
    let image = "registry.example.com:5000/gmsa-webhook:2";
    let args = ["--file=manifests.yml", "--image", image, "--tolerate-master"];
    let printed = desk.installs(&[&args[..], &["--dry-run=server"]].concat());
    assert!(printed.contains(&format!("\n+        image: {image}\n")), "no difference shown: {printed}");
    assert_eq!(pod(desk)["containers"][0]["image"], "gmsa-webhook:0.1.0");

    desk.installs(&args);
    assert_eq!(pod(desk)["containers"][0]["image"], image);
    let tolerated: Vec<_> = pod(desk)["tolerations"].as_array().unwrap().iter().map(|one| one["key"].clone()).collect();
    assert_eq!(tolerated, ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"]);
}

fn serves_a_certificate_from_a_folder(desk: &Desk<'_>) {
    let args = ["--file", "manifests.yml", "--certs-dir", "certs"];
    let overwrite = [&args[..], &["--overwrite"]].concat();
    let certificate = || desk.read("certs/tls.crt");
    desk.installs(&args);
    let (first, ca) = (certificate(), desk.read("certs/ca.crt"));
    desk.installs(&args);
    assert_eq!(certificate(), first, "replaced without --overwrite");
    desk.installs(&overwrite);
    assert_ne!(certificate(), first, "not replaced in spite of --overwrite");
    assert_eq!(desk.read("certs/ca.crt"), ca);

    let secret = get(desk.cluster, "secret/gmsa-webhook-cert");
    let keys: Vec<_> = secret["data"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["ca.crt", "tls.crt", "tls.key"]);
    assert_eq!(secret["metadata"].get("annotations"), None, "an annotation may repeat the key");
    assert!(!desk.read("manifests.yml").contains("PRIVATE KEY"));
    assert_eq!(pod(desk)["volumes"][0]["secret"]["secretName"], "gmsa-webhook-cert");

    fs::remove_file(desk.path("certs/ca.key")).unwrap();
    assert_eq!(
        line_of_giving_up(&desk.script(&overwrite)),
        "certs/ca.crt has no ca.key beside it to sign a certificate with: put tls.crt and tls.key there yourself"
    );
}

/// Every way in which it gives up before it has changed anything: one line, exit status 2.
#[test]
fn what_is_missing_is_said_in_one_line() {
    let cluster = Cluster::start();
    let desk = Desk::new(&cluster);
    if cluster.lacks(Feature::MatchConditions) {
        let said = "Kubernetes 1.25 is too old for this script: it needs 1.28; install with the Helm chart";
        assert_eq!(line_of_giving_up(&desk.script(&["--file", "m"])), said);
        assert_eq!(desk.files(), Vec::<String>::new());
        return;
    }
    for (args, said) in cases("refused/script") {
        let output = desk.script(&args.split('|').collect::<Vec<_>>());
        assert_eq!(line_of_giving_up(&output), said, "{args}");
    }
    let help = desk.installs(&["--help"]);
    let options = "--file --name --namespace --image --certs-dir --static-policies --admins --dry-run --overwrite";
    for option in options.split(' ').chain(["--tolerate-master"]) {
        assert!(help.lines().any(|line| line.trim_start().starts_with(option)), "{option} is not in the help");
    }

    cluster.prints("create serviceaccount installer -n default");
    fs::copy(cluster.kubeconfig_of("default", "installer"), desk.path("tmp/kubeconfig")).unwrap();
    let run = |env: (&str, &str)| line_of_giving_up(&desk.script_with(&["--file", "/dev/null"], &[env]));
    for (env, said) in cases("refused/script-with") {
        assert_eq!(run(env.split_once('=').unwrap()), said, "{env}");
    }
    cluster.apply(include_str!("objects/installer.yaml"));
    let account = "--as=system:serviceaccount:default:installer";
    let asked = format!("auth can-i get namespaces {account}");
    cluster.until("the role is in force", || cluster.kubectl(&asked).status.success());
    assert_eq!(
        run(("KUBECONFIG", "tmp/kubeconfig")),
        "no rights to list customresourcedefinitions, create clusterroles, patch clusterroles, create clusterrolebindings, patch clusterrolebindings, \
         list deployments, watch deployments, create roles, patch roles, create rolebindings, patch rolebindings"
    );
    fs::remove_file(desk.path("tmp/kubeconfig")).unwrap();
    assert_eq!(desk.files(), Vec::<String>::new());
}

/// In place: from the Go webhook's script to this one, and from this one to Helm.
#[test]
fn an_installation_of_the_go_script_is_upgraded_in_place() {
    let cluster = Cluster::start();
    if cluster.lacks(Feature::MatchConditions) {
        return;
    }
    cluster.apply(&include_str!("objects/go-script.yaml").replace("caBundle: CA", &format!("caBundle: {CA}")));
    let desk = Desk::new(&cluster);
    let get = |object: &str| get(&cluster, object);
    let uid = || cluster.uid("deployment/gmsa-webhook -n gmsa-webhook");
    let bundle = || get("mutatingwebhookconfiguration/gmsa-webhook")["webhooks"][0]["clientConfig"]["caBundle"].take();
    let before = uid();
    let printed = with_a_node(&cluster, || desk.installs(&["--file", "manifests.yml"]));

    assert_eq!(uid(), before);
    assert_eq!(get("deployment/gmsa-webhook")["spec"]["template"]["spec"].get("volumes"), None);
    assert_eq!(bundle(), CA, "the old pods are no longer trusted");
    assert_eq!(get("mutatingwebhookconfiguration/gmsa-webhook")["webhooks"][0]["namespaceSelector"], json!({}));
    let left = "objects that nothing uses any more. To remove them:\n  \
                kubectl delete clusterrolebinding/gmsa-webhook-gmsa-webhook-binding-to-gmsa-webhook-gmsa-webhook-rbac-role \
                clusterrole/gmsa-webhook-gmsa-webhook-rbac-role\n  kubectl --namespace gmsa-webhook delete secret/gmsa-webhook\n";
    assert!(printed.contains(left), "{printed}");
    // The namespace was there before: removing the webhook must not remove it.
    assert!(!desk.read("manifests.yml").contains("kind: Namespace"));

    // Helm takes over, as the documentation says it, with what the webhook has written since.
    let written = json!({"data": {"ca.key": "a2V5"}});
    cluster.change("secret gmsa-webhook-tls -n gmsa-webhook", &written);
    let release = format!("gmsa-webhook {CHART} -n gmsa-webhook --set image.repository=registry.example.com/gmsa");
    cluster.helm_prints(&format!("install --take-ownership --server-side=false {release}"));
    cluster.helm_prints(&format!("upgrade --set replicaCount=3 {release}"));

    assert_eq!(uid(), before);
    let spec = &get("deployment/gmsa-webhook")["spec"];
    assert_eq!(spec["replicas"], 3);
    assert_eq!(spec["template"]["spec"]["containers"][0]["image"], "registry.example.com/gmsa:0.1.0");
    assert_eq!(get("secret/gmsa-webhook-tls")["data"], written["data"]);
    assert_eq!(bundle(), CA);
}
