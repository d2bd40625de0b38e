//! Every way in which the script gives up before it has changed anything: one line, exit status 2.

use std::fs;

use crate::{
    cluster::Cluster,
    desk::{Desk, SCRIPT, line_of_giving_up},
};

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_is_missing_is_said_in_one_line() {
    let cluster = Cluster::start();
    let desk = Desk::new(&cluster);
    let long = "n".repeat(51);
    for (args, line) in [
        (&["--file", "m", "--bogus"][..], "unknown option --bogus (--help lists them)"),
        (&["m"], "unknown option m (--help lists them)"),
        (&["--dry-run"], "--file is missing: where shall the manifests be written to?"),
        (&["--file"], "--file needs a value"),
        (&["--file", "--overwrite"], "--file needs a value"),
        (&["--file", "."], "--file . is a folder"),
        (&["--file", "no/m"], "--file no/m: its folder does not exist"),
        // A folder in which no user can create files, root included.
        (&["--file", "/proc/m"], "--file /proc/m cannot be written"),
        (&["--file", "m", "--certs-dir", "/dev/null"], "--certs-dir /dev/null is not a folder"),
        (&["--file", "m", "-dry-run=maybe"], "unknown kind of dry run maybe: client and server are known"),
        (&["--file", "m", "--dry-run=maybe"], "unknown kind of dry run maybe: client and server are known"),
        (&["--file", "m", "--overwrite=yes"], "--overwrite takes no value"),
        (&["--file", "m", "--name", "A"], "--name A is not a lower-case DNS label of at most 50 characters"),
        (&["--file", "m", "--namespace=a.b"], "--namespace a.b is not a lower-case DNS label"),
        (&["--file", "m", "--image", "a b"], "--image a b is not an image's name"),
        (
            &["--file", "m", "--image", "registry.k8s.io/gmsa-webhook/k8s-gmsa-webhook:v0.13.0"],
            "--image registry.k8s.io/gmsa-webhook/k8s-gmsa-webhook:v0.13.0 is the Go webhook's image; this script installs another program",
        ),
        (&["--file", "m", "--timeout", "soon"], "--timeout soon is not a number of seconds"),
        (
            &["--file", "m", "--static-policies", "s"],
            "--static-policies needs --admins: the users and groups that may upgrade the webhook, such as group:kubeadm:cluster-admins",
        ),
        (&["--file", "m", "--admins", "user:a"], "--admins is for the policies of --static-policies FILE"),
        (
            &["--file", "m", "--static-policies", "m", "--admins", "user:a"],
            "--static-policies and --file name the same file",
        ),
        (
            &["--file", "m", "--static-policies", "no/s", "--admins", "user:a"],
            "--static-policies no/s: its folder does not exist",
        ),
        (
            &["--file", "m", "--static-policies", "s", "--admins", "user:a,,group:b"],
            "--admins user:a,,group:b is not a list of user:NAME and group:NAME, separated by commas",
        ),
        (
            &["--file", "m", "--static-policies", "s", "--admins", "kubeadm:cluster-admins"],
            "--admins kubeadm:cluster-admins is not a list of user:NAME and group:NAME, separated by commas",
        ),
        (
            &["--file", "m", "--static-policies", "s", "--admins", "user:a,b"],
            "--admins user:a,b is not a list of user:NAME and group:NAME, separated by commas",
        ),
        (
            &["--file", "m", "--static-policies", "s", "--admins", "group:"],
            "--admins group: is not a list of user:NAME and group:NAME, separated by commas",
        ),
        (
            &["--file", "m", "--static-policies", "s", "--admins", "user:kubeadm:cluster-admins"],
            "--admins has user:kubeadm:cluster-admins, which is a group: group:kubeadm:cluster-admins",
        ),
        (
            &["--file", "m", "--static-policies", "s", "--admins", "group:system:serviceaccount:argocd:b"],
            "--admins has group:system:serviceaccount:argocd:b, which is a user: user:system:serviceaccount:argocd:b",
        ),
        (
            &["--file", "m", "--static-policies", "s", "--admins", "user:a\"b"],
            "--admins user:a\"b is not a list of user:NAME and group:NAME, separated by commas",
        ),
        (
            &["--file", "m", "--static-policies", "s", "--admins", "user:a,group:system:authenticated"],
            "--admins has system:authenticated, which is what the policies protect against",
        ),
        (
            &[
                "--file",
                "m",
                "--static-policies",
                "s",
                "--admins",
                "user:system:serviceaccount:n:w",
                "--name",
                "w",
                "--namespace=n",
            ],
            "--admins has system:serviceaccount:n:w, which is what the policies protect against",
        ),
    ] {
        assert_eq!(desk.gives_up(args), line);
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
