//! Every way in which the script gives up before it has changed anything: one line, exit status 2.

use std::fs;

use crate::{
    cluster::Cluster,
    desk::{Desk, SCRIPT, line_of_giving_up},
};

#[test]
fn what_is_missing_is_said_in_one_line() {
    let cluster = Cluster::start();
    let desk = Desk::new(&cluster);
    let long = "n".repeat(51);
    let cases = include_str!("complaints").lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>();
    assert_eq!((cases.len(), cases.len() % 2), (60, 0));
    for case in cases.chunks(2) {
        let args: Vec<&str> = case[0].split('|').collect();
        assert_eq!(desk.gives_up(&args), case[1].trim_start(), "{args:?}");
    }
    assert_eq!(
        desk.gives_up(&["--file", "m", "--name", &long]),
        format!("--name {long} is not a lower-case DNS label of at most 50 characters")
    );
    let help = desk.prints(&["--help"]);
    for option in [
        "--file",
        "--name",
        "--namespace",
        "--image",
        "--certs-dir",
        "--static-policies",
        "--admins",
        "--dry-run",
        "--overwrite",
        "--tolerate-master",
    ] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(option)), "{option} is not in the help");
    }

    let script = fs::canonicalize(SCRIPT).unwrap();
    let mut without_kubectl = cluster.command("bash");
    without_kubectl.arg(&script).args(["--file", "/dev/null"]).env("KUBECTL", "/nowhere/kubectl");
    assert_eq!(
        line_of_giving_up(&without_kubectl.output().unwrap()),
        "kubectl is missing: install it, or set KUBECTL to its path"
    );
    let mut without_cluster = cluster.command("bash");
    without_cluster.arg(&script).args(["--file", "/dev/null"]).env("KUBECONFIG", "/dev/null");
    assert_eq!(
        line_of_giving_up(&without_cluster.output().unwrap()),
        "no cluster: The connection to the server localhost:8080 was refused - did you specify the right host or port?"
    );
    missing_rights_are_named(&desk);
    assert_eq!(desk.files(), Vec::<String>::new());
}

fn missing_rights_are_named(desk: &Desk<'_>) {
    let cluster = desk.cluster;
    cluster.kubectl_prints(["create", "serviceaccount", "installer", "--namespace", "default"]);
    let (control_plane, runtime) = cluster.control_plane();
    let credentials = runtime.block_on(control_plane.kubeconfig_of("default", "installer"));
    fs::write(desk.path("tmp/kubeconfig"), credentials.to_string()).unwrap();
    let run = || {
        let script = fs::canonicalize(SCRIPT).unwrap();
        let mut command = cluster.command("bash");
        command.arg(script).args(["--file", "/dev/null"]).env("KUBECONFIG", desk.path("tmp/kubeconfig"));
        line_of_giving_up(&command.output().unwrap())
    };
    assert_eq!(
        run(),
        "no rights: namespaces \"gmsa-webhook\" is forbidden: User \"system:serviceaccount:default:installer\" cannot get \
         resource \"namespaces\" in API group \"\" in the namespace \"gmsa-webhook\""
    );
    cluster.apply(
        r"apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: installer}
rules:
  - {apiGroups: ['*'], resources: ['*'], verbs: [get]}
  - {apiGroups: ['', apps, policy, apiextensions.k8s.io, admissionregistration.k8s.io], resources: ['*'], verbs: [create, patch]}
",
    );
    cluster.kubectl_prints([
        "create",
        "clusterrolebinding",
        "installer",
        "--clusterrole=installer",
        "--serviceaccount=default:installer",
    ]);
    cluster.until("the role is in force", || {
        let asked = ["auth", "can-i", "get", "namespaces", "--as=system:serviceaccount:default:installer"];
        cluster.kubectl(asked).status.success()
    });
    assert_eq!(
        run(),
        "no rights to list customresourcedefinitions, create clusterroles, patch clusterroles, create clusterrolebindings, patch clusterrolebindings, \
         list deployments, watch deployments, create roles, patch roles, create rolebindings, patch rolebindings"
    );
    fs::remove_file(desk.path("tmp/kubeconfig")).unwrap();
}
