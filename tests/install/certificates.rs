//! The scripts under `certs/`: what they put into a Secret is a certificate that the webhook can serve, by a CA that verifies it.

use std::{collections::HashSet, fs, process::Output, thread};

use serde_json::Value;

use crate::{
    cluster::{Cluster, printed},
    release::BINARY,
};

fn run(cluster: &Cluster, script: &str, args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = cluster.command("bash");
    let output =
        command.arg(fs::canonicalize(script).unwrap()).args(args).env("TMPDIR", folder.path()).output().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a key may be left behind");
    output
}

/// The Secret; what the webhook's own inspection says of it: everything fits.
fn served(cluster: &Cluster) -> Value {
    let mut secret = cluster.get("secret/gmsa-server-cert -n gmsa-webhook");
    assert_eq!(secret["type"], "kubernetes.io/tls");
    assert_eq!(secret["metadata"].get("annotations"), None, "an annotation may repeat the key");
    let inspect = ["certs", "inspect", "--secret", "gmsa-webhook/gmsa-server-cert"];
    let report = printed(cluster.command(BINARY).args(inspect).output().unwrap());
    let names = " for gmsa-webhook.gmsa-webhook.svc, gmsa-webhook.gmsa-webhook, gmsa-webhook, subject ";
    assert!(report.starts_with("certificate 1: serial ") && report.contains(names), "{report}");
    let checks = report.lines().skip(1);
    assert_eq!(checks.filter(|line| line.starts_with("ok    the ")).count(), 3, "{report}");
    assert_eq!(report.lines().count(), 4, "{report}");
    secret["data"].take()
}

#[test]
fn the_scripts_make_certificates_that_can_be_served() {
    let cluster = Cluster::start();
    cluster.create_namespace("gmsa-webhook");
    let folder = tempfile::tempdir().unwrap();
    let own = ["--folder", folder.path().to_str().unwrap()];
    let ca = || fs::read(folder.path().join("ca.crt")).unwrap();

    printed(run(&cluster, "certs/own-ca/issue-certificate.sh", &own));
    let (first, authority) = (served(&cluster), ca());
    printed(run(&cluster, "certs/own-ca/issue-certificate.sh", &own));
    let second = served(&cluster);
    assert_ne!(second["tls.crt"], first["tls.crt"]);
    assert_eq!((&second["ca.crt"], ca()), (&first["ca.crt"], authority), "the CA stays");

    let root = "configmap/kube-root-ca.crt -n gmsa-webhook";
    cluster.until("the cluster's CA is known in the namespace", || cluster.exists(root));
    let request = |args: &[&str]| run(&cluster, "certs/csr/request-certificate.sh", args);
    printed(request(&["--signer", "kubernetes.io/kubelet-serving"]));
    assert_ne!(served(&cluster)["ca.crt"], second["ca.crt"], "it is the cluster's");

    // No signer signs these. They are requested in the same second, and each is its own request.
    let nobody = || request(&["--signer", "example.com/nobody", "--wait", "1"]);
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
    served(&cluster);
}
