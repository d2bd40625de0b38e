//! Every way in which the script gives up before it has changed anything: one line, exit status 2.

use std::fs;

use crate::{
    cluster::Cluster,
    desk::{Desk, cases, line_of_giving_up},
};

#[test]
fn what_is_missing_is_said_in_one_line() {
    let cluster = Cluster::start();
    let desk = Desk::new(&cluster);
    let cases_of_arguments = cases("refused/script");
    assert_eq!(cases_of_arguments.len(), 31);
    for (args, said) in cases_of_arguments {
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
