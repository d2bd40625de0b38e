//! The script from an empty cluster on: dry runs, installs, upgrades, certificates, removal.

use std::fs;

use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    desk::{CA, Desk, with_a_node},
    helm::{CHART, Helm},
};

/// Everything that the script could leave in a cluster.
fn contents(cluster: &Cluster) -> String {
    let kinds = "crd,namespace,clusterrole,clusterrolebinding,mutatingwebhookconfiguration,validatingwebhookconfiguration,\
                 serviceaccount,secret,service,deployment,role,rolebinding,poddisruptionbudget";
    cluster.kubectl_prints(["get", kinds, "--all-namespaces", "-o", "name"])
}

#[test]
fn the_script_installs_and_upgrades_and_never_loses_a_credential_spec() {
    let cluster = Cluster::start();
    let desk = Desk::new(&cluster);
    dry_runs_leave_nothing(&desk);
    // As the Go webhook's script left it: an older CRD, and a spec.
    cluster.kubectl_prints(["create", "-f", "tests/install/go-release/crds/crd.yaml"]);
    cluster.kubectl_prints(["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
    cluster.until("the kind is served", || cluster.kubectl(["get", "gmsacredentialspecs"]).status.success());
    cluster.apply(include_str!("credential-spec.yaml"));
    let before = [desk.get("crd/gmsacredentialspecs.windows.k8s.io"), desk.get("gmsacredentialspec/webapp1")];

    with_a_node(&cluster, "gmsa-webhook", || {
        installs(&desk);
        installs_again(&desk);
        upgrades(&desk);
        serves_a_certificate_from_a_folder(&desk);
    });
    let after = [desk.get("crd/gmsacredentialspecs.windows.k8s.io"), desk.get("gmsacredentialspec/webapp1")];
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    }
    assert_eq!(after[1]["credspec"], before[1]["credspec"]);

    cluster.kubectl_prints(["delete", "-f", desk.path("manifests.yml").to_str().unwrap()]);
    assert!(!desk.exists("namespace/gmsa-webhook") && !desk.exists("mutatingwebhookconfiguration/zz-gmsa-webhook"));
    assert!(desk.exists("gmsacredentialspec/webapp1"));
}

/// The same objects as the chart renders, for a certificate of the webhook's own and for one from a folder.
#[test]
fn the_policies_for_the_control_plane_are_those_of_the_chart() {
    let cluster = Cluster::start();
    let desk = Desk::new(&cluster);
    for (options, values) in [
        (&[][..], "certificates.mode=self-managed"),
        (&["--certs-dir", "certs"], "certificates.mode=secret,certificates.secretName=hook-cert"),
    ] {
        let args = ["--file", "m", "--dry-run", "--name", "hook", "--namespace", "win", "--static-policies", "s.yaml"];
        let printed = desk.prints(&[&args, &["--admins", "group:a:b,user:Jane Doe,user:joe"][..], options].concat());
        assert!(printed.starts_with("wrote m\nwrote s.yaml, for the disk of each API server\n"), "{printed}");
        let written = fs::read_to_string(desk.path("s.yaml")).unwrap();
        assert!(!written.contains("${"), "{written}");
        let values = format!(
            "{values},staticPolicies.enabled=true,staticPolicies.admins.groups={{a:b}},staticPolicies.admins.users={{Jane Doe,joe}}"
        );
        let chart =
            ["template", "hook", CHART, "--namespace", "win", "--set", &values, "-s", "templates/static-policies.yaml"];
        let objects = |text: &str| {
            let mut objects: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
            objects.sort_by_key(|object| (object["kind"].to_string(), object["metadata"]["name"].to_string()));
            objects
        };
        assert_eq!(objects(&written), objects(&Helm::new().prints(chart)));
    }
}

fn dry_runs_leave_nothing(desk: &Desk<'_>) {
    let before = contents(desk.cluster);
    for (option, kind, mark) in
        [("-dry-run=server", "server", "(server dry run)"), ("--dry-run=client", "client", "(dry run)")]
    {
        let printed = desk.prints(&["--file", "manifests.yml", option]);
        for object in
            ["namespace", "secret", "deployment.apps", "validatingwebhookconfiguration.admissionregistration.k8s.io"]
        {
            let line = printed.lines().find(|line| line.starts_with(&format!("{object}/gmsa-webhook"))).unwrap();
            assert!(line.ends_with(&format!(" created {mark}")), "{line}");
        }
        let crd = printed.lines().find(|line| line.starts_with("customresourcedefinition.")).unwrap();
        assert!(crd.ends_with(mark), "{crd}");
        assert_eq!(printed.lines().last(), Some(format!("nothing was changed ({kind} dry run)").as_str()));
        assert_eq!(
            printed.contains("the namespace gmsa-webhook does not exist yet, so the API server checks the objects in it as if they were in default:"),
            kind == "server"
        );
        assert_eq!(contents(desk.cluster), before);
        assert_eq!(desk.files(), ["manifests.yml"]);
    }
    let printed = desk.prints(&["--file", "manifests.yml", "--dry-run=server", "--certs-dir", "certs"]);
    assert!(printed.contains("\nwould make a certificate in certs (dry run)\n"), "{printed}");
    assert_eq!(desk.files(), ["manifests.yml"]);
}

fn installs(desk: &Desk<'_>) {
    let printed = desk.prints(&["--file", "manifests.yml"]);
    assert!(
        printed.ends_with(
            "The GMSA webhook is ready. To remove it, and keep the credential specs:\n  kubectl delete -f manifests.yml\n"
        ),
        "{printed}"
    );
    let deployment = desk.get("deployment/gmsa-webhook");
    assert_eq!(deployment["status"]["readyReplicas"], 2);
    assert_eq!(deployment["spec"]["template"]["spec"].get("tolerations"), None);
    desk.cluster.until("the short name is known", || desk.cluster.kubectl(["get", "gmsa"]).status.success());
}

/// What the webhook itself has written meanwhile stays.
fn installs_again(desk: &Desk<'_>) {
    let data = json!({"data": {"ca.key": "a2V5"}}).to_string();
    desk.cluster.kubectl_prints([
        "patch",
        "secret",
        "gmsa-webhook-tls",
        "--namespace",
        "gmsa-webhook",
        "--patch",
        &data,
    ]);
    let bundle = json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": CA}]).to_string();
    desk.cluster.kubectl_prints([
        "patch",
        "mutatingwebhookconfiguration/gmsa-webhook",
        "--type=json",
        "--patch",
        &bundle,
    ]);
    let generation = desk.get("deployment/gmsa-webhook")["metadata"]["generation"].clone();

    let printed = desk.prints(&["--file", "manifests.yml", "--overwrite"]);
    assert!(
        printed.starts_with(
            "note: --overwrite has nothing to do without --certs-dir: the webhook renews its own certificate\n"
        ),
        "{printed}"
    );
    assert_eq!(desk.get("deployment/gmsa-webhook")["metadata"]["generation"], generation);
    assert_eq!(desk.get("secret/gmsa-webhook-tls")["data"], json!({"ca.key": "a2V5"}));
    let configuration = desk.get("mutatingwebhookconfiguration/gmsa-webhook");
    assert_eq!(configuration["webhooks"][0]["clientConfig"]["caBundle"], CA);
}

fn upgrades(desk: &Desk<'_>) {
    let args = ["--file=manifests.yml", "--image", "registry.example.com:5000/gmsa-webhook:2", "--tolerate-master"];
    let printed = desk.prints(&[&args[..], &["--dry-run=server"]].concat());
    assert!(
        printed.contains("\n+        image: registry.example.com:5000/gmsa-webhook:2\n"),
        "no difference shown: {printed}"
    );
    let pod = |desk: &Desk<'_>| desk.get("deployment/gmsa-webhook")["spec"]["template"]["spec"].clone();
    assert_eq!(pod(desk)["containers"][0]["image"], "gmsa-webhook:0.1.0");

    desk.prints(&args);
    assert_eq!(pod(desk)["containers"][0]["image"], "registry.example.com:5000/gmsa-webhook:2");
    let tolerated: Vec<_> = pod(desk)["tolerations"].as_array().unwrap().iter().map(|one| one["key"].clone()).collect();
    assert_eq!(tolerated, ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"]);
}

fn serves_a_certificate_from_a_folder(desk: &Desk<'_>) {
    let args = ["--file", "manifests.yml", "--certs-dir", "certs"];
    let certificate = || fs::read(desk.path("certs/tls.crt")).unwrap();
    desk.prints(&args);
    let (first, ca) = (certificate(), fs::read(desk.path("certs/ca.crt")).unwrap());
    desk.prints(&args);
    assert_eq!(certificate(), first, "replaced without --overwrite");
    desk.prints(&[&args[..], &["--overwrite"]].concat());
    assert_ne!(certificate(), first, "not replaced in spite of --overwrite");
    assert_eq!(fs::read(desk.path("certs/ca.crt")).unwrap(), ca);

    let secret = desk.get("secret/gmsa-webhook-cert");
    let keys: Vec<_> = secret["data"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["ca.crt", "tls.crt", "tls.key"]);
    assert_eq!(secret["metadata"].get("annotations"), None, "an annotation may repeat the key");
    assert!(!fs::read_to_string(desk.path("manifests.yml")).unwrap().contains("PRIVATE KEY"));
    let volumes = desk.get("deployment/gmsa-webhook")["spec"]["template"]["spec"]["volumes"].clone();
    assert_eq!(volumes[0]["secret"]["secretName"], "gmsa-webhook-cert");

    fs::remove_file(desk.path("certs/ca.key")).unwrap();
    assert_eq!(
        desk.gives_up(&[&args[..], &["--overwrite"]].concat()),
        "certs/ca.crt has no ca.key beside it to sign a certificate with: put tls.crt and tls.key there yourself"
    );
}
