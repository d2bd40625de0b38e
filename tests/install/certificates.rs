//! The scripts under `certs/`: what they put into a Secret is a certificate that the webhook can serve, by a CA that verifies it.

use std::{collections::HashSet, fs, process::Output, thread};

use serde_json::Value;

use crate::cluster::{Cluster, printed};

const SECRET: &str = "secret/gmsa-server-cert";

fn run(cluster: &Cluster, script: &str, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = cluster.command("bash");
    let output =
        command.arg(fs::canonicalize(script).unwrap()).args(args).env("TMPDIR", folder.path()).output().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a key may be left behind");
    output
}

fn stored(cluster: &Cluster) -> Value {
    let printed = cluster.kubectl_prints(["get", SECRET, "--namespace", "gmsa-webhook", "-o", "json"]);
    serde_json::from_str(&printed).unwrap()
}

/// What the webhook's own inspection says of the Secret: everything fits.
fn assert_serves(cluster: &Cluster) {
    let secret = stored(cluster);
    assert_eq!(secret["type"], "kubernetes.io/tls");
    assert_eq!(secret["metadata"].get("annotations"), None, "an annotation may repeat the key");
    let mut command = cluster.command(env!("CARGO_BIN_EXE_gmsa-webhook"));
    let report =
        printed(command.args(["certs", "inspect", "--secret", "gmsa-webhook/gmsa-server-cert"]).output().unwrap());
    let names = " for gmsa-webhook.gmsa-webhook.svc, gmsa-webhook.gmsa-webhook, gmsa-webhook, subject ";
    assert!(report.starts_with("certificate 1: serial ") && report.contains(names), "{report}");
    let checks: Vec<&str> = report.lines().skip(1).collect();
    assert!(checks[0].starts_with("ok    the certificate expires at "), "{report}");
    let rest = [
        "ok    the private key is the key of the certificate",
        "ok    the certificate authority accepts the certificate",
    ];
    assert_eq!(checks[1..], rest);
}

#[test]
fn the_scripts_make_certificates_that_can_be_served() {
    let cluster = Cluster::start();
    cluster.create_namespace("gmsa-webhook");
    let folder = tempfile::tempdir().unwrap();
    let own = ["--folder", folder.path().to_str().unwrap()];
    let ca = || fs::read(folder.path().join("ca.crt")).unwrap();

    printed(run(&cluster, "certs/own-ca/issue-certificate.sh", &own));
    assert_serves(&cluster);
    let (first, authority) = (stored(&cluster)["data"].clone(), ca());
    printed(run(&cluster, "certs/own-ca/issue-certificate.sh", &own));
    assert_serves(&cluster);
    let second = stored(&cluster)["data"].clone();
    assert_ne!(second["tls.crt"], first["tls.crt"]);
    assert_eq!((&second["ca.crt"], ca()), (&first["ca.crt"], authority), "the CA stays");

    cluster.until("the cluster's CA is known in the namespace", || {
        cluster.kubectl(["get", "configmap/kube-root-ca.crt", "--namespace", "gmsa-webhook"]).status.success()
    });
    let signer = ["--signer", "kubernetes.io/kubelet-serving"];
    printed(run(&cluster, "certs/csr/request-certificate.sh", &signer));
    assert_serves(&cluster);
    assert_ne!(stored(&cluster)["data"]["ca.crt"], second["ca.crt"], "it is the cluster's");

    // Nobody signs for these. They are requested in the same second, and are requests of their own.
    let nobody =
        || run(&cluster, "certs/csr/request-certificate.sh", &["--signer", "example.com/nobody", "--wait", "1"]);
    let outputs = thread::scope(|scope| [(); 3].map(|()| scope.spawn(nobody)).map(|run| run.join().unwrap()));
    let requests = outputs.map(|output| {
        let complaint = String::from_utf8(output.stderr).unwrap();
        let name = complaint.split_whitespace().find(|word| word.starts_with("gmsa-webhook.gmsa-webhook.svc-"));
        let name = name.unwrap_or_else(|| panic!("no request in: {complaint}")).to_owned();
        let expected = format!(
            "error: example.com/nobody has not signed {name} within 1 s: is there such a signer, and does it sign for \
             Services? (kubectl describe csr {name})\n"
        );
        assert_eq!((output.status.code(), complaint), (Some(2), expected));
        name
    });
    assert_eq!(HashSet::from(requests).len(), 3);
    assert_serves(&cluster);
}
