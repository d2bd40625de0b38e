//! `certs inspect` as docs/certificates.md prints it for a pod of the release: the pod's own rights must do.

use std::{fs, process::Command};

use crate::{
    cluster::{Cluster, printed},
    release::{RELEASE_NAMESPACE, Release},
};

#[test]
fn a_pod_may_inspect_its_own_certificate() {
    let cluster = Cluster::start();
    let release = Release::install(&cluster);
    release.route_to_loopback();
    let _replica = release.start_replica();
    let page = fs::read_to_string("docs/certificates.md").unwrap();
    let (_, command) = page.split_once("exec deploy/gmsa-webhook -- /gmsa-webhook ").unwrap();
    let command = command.split("```").next().unwrap().replace('\\', " ");
    // The page's release and its namespace are both called gmsa-webhook.
    let command = command
        .replace("gmsa-webhook/gmsa-webhook-tls", &format!("{RELEASE_NAMESPACE}/gmsa-tls"))
        .replace("gmsa-webhook", "gmsa");
    let mut inspect = Command::new(env!("CARGO_BIN_EXE_gmsa-webhook"));
    // With the credentials of the release's service account, which the replica has.
    inspect.args(command.split_whitespace()).env_clear().env("KUBECONFIG", cluster.folder().join("gmsa.kubeconfig"));
    let report = printed(inspect.output().unwrap());
    assert!(report.lines().skip(1).all(|line| line.starts_with("ok ")), "{report}");
    for configuration in ["mutating/gmsa", "mutating/zz-gmsa", "validating/gmsa"] {
        assert!(report.contains(configuration), "{report}");
    }
}
