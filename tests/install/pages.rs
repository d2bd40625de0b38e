//! Commands of the pages, run as they are printed, with the names in capitals replaced: the migration, the change of the certificate's source, the backup of
//! credential specs. What waits for a rollout is left out, because there is no node.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    cluster::{Cluster, printed},
    objects::define_foreign_kinds,
};

const NAMESPACE: &str = "windows";

/// A user's desk: the repository's folders, and room for files.
struct Desk<'p> {
    cluster: &'p Cluster,
    folder: TempDir,
}

impl<'p> Desk<'p> {
    fn new(cluster: &'p Cluster) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["charts", "deploy", "certs", "examples"] {
            symlink(fs::canonicalize(name).unwrap(), folder.path().join(name)).unwrap();
        }
        Self { cluster, folder }
    }

    /// Runs this in a shell, which must succeed.
    fn run(&self, script: &str) -> String {
        let names = [("REGISTRY", "registry.example.com"), ("RELEASE", "gmsa"), ("NAMESPACE", NAMESPACE)];
        let script = names.iter().fold(script.to_owned(), |script, (name, value)| script.replace(name, value));
        let mut command = self.cluster.command("bash");
        printed(command.args(["-euo", "pipefail", "-c", &script]).current_dir(self.folder.path()).output().unwrap())
    }

    fn get(&self, object: &str) -> Value {
        let json = self.cluster.kubectl_prints(["get", object, "--namespace", NAMESPACE, "-o", "json"]);
        serde_json::from_str(&json).unwrap()
    }
}

/// The block of a page with this text in it, without waiting for rollouts.
fn block(page: &str, text: &str) -> String {
    let page_text = fs::read_to_string(format!("docs/{page}.md")).unwrap();
    let mut blocks = page_text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let block = blocks.find(|block| block.contains(text)).unwrap_or_else(|| panic!("{page} has no block with {text}"));
    block.split_inclusive('\n').filter(|line| !line.contains("rollout status")).collect()
}

#[test]
fn a_release_of_the_go_chart_is_migrated_as_printed() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let desk = Desk::new(&cluster);
    let go = fs::canonicalize("tests/install/go-release").unwrap();
    let install = |values: &str| {
        desk.run(&format!("helm install RELEASE {} -n NAMESPACE --create-namespace {values}", go.display()));
    };
    install("--set replicaCount=3");
    let page = fs::read_to_string("docs/migrate.md").unwrap();
    let (_, values) = page.split_once("**Look at your values**: `").unwrap();
    desk.run(values.split('`').next().unwrap());
    desk.run(&block("migrate", "--reset-values -f old-values.yaml"));
    let deployment = desk.get("deployment/gmsa");
    assert_eq!(deployment["spec"]["replicas"], 3);
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], "registry.example.com/gmsa-webhook:0.1.0");
    desk.run(&block("uninstall", "helm uninstall RELEASE"));

    // Rancher's chart, of which the values matter: root, and a registry for all images.
    let values = "--set podSecurityContext.runAsUser=0,podSecurityContext.runAsNonRoot=false,global.cattle.systemDefaultRegistry=rancher.example.com,\
                  credential.enableNonJoined=false,replicaCount=3";
    install(values);
    desk.run(&block("migrate", "--set podSecurityContext=null"));
    let deployment = desk.get("deployment/gmsa");
    assert_eq!(deployment["spec"]["replicas"], 3);
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], "registry.example.com/gmsa-webhook:0.1.0");
    assert_eq!(pod["securityContext"].get("runAsUser"), None);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
}

#[test]
fn the_certificate_s_source_is_changed_as_printed() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let desk = Desk::new(&cluster);
    let install = block("install", "charts/gmsa-webhook --namespace gmsa-webhook --create-namespace");
    desk.run(&install);
    let arguments = || {
        let all = ["get", "deployment/gmsa-webhook", "--namespace", "gmsa-webhook", "-o", "jsonpath={..args}"];
        cluster.kubectl_prints(all)
    };
    assert!(arguments().contains("--self-managed-secret=gmsa-webhook/gmsa-webhook-tls"));
    cluster.until("the Deployment is observed", || {
        let status =
            ["get", "deployment/gmsa-webhook", "--namespace", "gmsa-webhook", "-o", "jsonpath={.status.replicas}"];
        !cluster.kubectl_prints(status).is_empty()
    });
    let change = block("certificates", "--set certificates.certManager.injectCa=false");
    let (first, second) = change.split_at(change.rfind("helm upgrade").unwrap());
    desk.run(first);
    assert!(arguments().contains("--publish-ca=/tls/ca.crt"));
    // No node ends the old pods, so the second step is early, and says so.
    let mut early = cluster.command("bash");
    let output = early.args(["-c", second]).current_dir(desk.folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("pods of before are still being replaced"), "{said}");
}

#[test]
fn credential_specs_are_saved_and_brought_back_as_printed() {
    let cluster = Cluster::start();
    let desk = Desk::new(&cluster);
    desk.run(
        &block("uninstall", "kubectl wait --for=condition=Established").lines().take(2).collect::<Vec<_>>().join("\n"),
    );
    cluster.until("the kind is served", || cluster.kubectl(["get", "gmsacredentialspecs"]).status.success());
    cluster.apply(include_str!("credential-spec.yaml"));
    let spec = || desk.get("gmsacredentialspec/webapp1");
    let before = spec();
    desk.run(&block("uninstall", "kubectl delete crd"));
    cluster.until("the kind is gone", || !cluster.kubectl(["get", "gmsacredentialspecs"]).status.success());
    let restore = block("uninstall", "kubectl wait --for=condition=Established");
    let (kind, specs) = restore.split_at(restore.rfind("kubectl apply").unwrap());
    desk.run(kind);
    cluster.until("the kind is served", || cluster.kubectl(["get", "gmsacredentialspecs"]).status.success());
    desk.run(specs);
    let after = spec();
    assert_eq!((&after["credspec"], &after["metadata"]["name"]), (&before["credspec"], &json!("webapp1")));
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
}
