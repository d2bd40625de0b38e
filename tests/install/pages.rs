//! Commands of the pages, run as they are printed, with the names in capitals replaced. Where there is no node, what waits for a rollout is left out.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    cluster::{Cluster, printed},
    desk::with_a_node,
    objects::define_foreign_kinds,
};

const NAMESPACE: &str = "windows";

/// The blocks of commands that tests run, by a text in each.
const RUN: &[(&str, &str)] = &[
    ("install", "helm install gmsa-webhook charts/gmsa-webhook"),
    ("install", "--dry-run=server   # look first"),
    ("install", "-f gmsa-webhook-VERSION.yaml"),
    ("install", "kubectl apply -f gmsa-webhook.yml"),
    ("install", "helm template gmsa-webhook"),
    ("migrate", "--set certificates.certManager.enabled=true"),
    ("migrate", "--reuse-values \\\n"),
    ("migrate", "--force-conflicts -f charts"),
    ("migrate", "--set webhooks.enforcement=Enforce"),
    ("migrate", "deploy/deploy-gmsa-webhook.sh"),
    ("migrate", "--set podSecurityContext=null"),
    ("migrate", "--take-ownership"),
    ("migrate", "name=rancher-windows-gmsa-crd"),
    ("uninstall", "helm uninstall RELEASE"),
    ("uninstall", "the file that the script wrote"),
    ("uninstall", "-f gmsa-webhook-VERSION.yaml"),
    ("uninstall", "kubectl delete mutatingwebhookconfiguration"),
    ("uninstall", "> credential-specs.yaml"),
    ("uninstall", "kubectl delete crd"),
    ("uninstall", "kubectl wait --for=condition=Established"),
];

/// The others, and what they need.
const NOT_RUN: &[(&str, &str, &str)] = &[
    ("install", "doctor --pre", "the plugin on the path: `before` runs it"),
    ("migrate", "doctor --pre", "the plugin on the path: `before` runs it"),
    ("install", "buildah push", "a registry"),
    ("install", "just image arm64", "another architecture"),
    ("install", "buildah manifest push", "a registry"),
    ("install", "docker buildx", "Docker, and a registry"),
    ("install", "kubectl krew install", "krew, and a release"),
    ("install", "cp \"${KREW_ROOT", "krew, and a release"),
    ("install", "cargo install", "what CI has built already"),
    ("install", "oci://REGISTRY/charts/gmsa-webhook --version 0.1.0 --namespace", "a registry"),
    ("install", "helm test gmsa-webhook", "a node that runs pods: `installed` does what the pod of the test does"),
    ("install", "cosign verify", "a release and its signatures"),
    ("migrate", "helm test RELEASE", "a node that runs pods"),
    ("install", "skopeo copy", "a registry"),
];

#[test]
fn every_block_of_commands_is_run_or_says_what_it_needs() {
    for page in ["install", "migrate", "gitops", "uninstall"] {
        for block in blocks(page) {
            let run = RUN.iter().filter(|(of, text)| *of == page && block.contains(text)).count();
            let not_run = NOT_RUN.iter().filter(|(of, text, _)| *of == page && block.contains(text)).count();
            assert_eq!(run + not_run, 1, "{page}: {block}");
        }
    }
}

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

/// The blocks of commands of a page.
fn blocks(page: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("docs/{page}.md")).unwrap();
    text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// The block of a page with this text in it.
fn block(page: &str, text: &str) -> String {
    let found = blocks(page).into_iter().find(|block| block.contains(text));
    found.unwrap_or_else(|| panic!("{page} has no block with {text}"))
}

/// The same without what waits for a rollout.
fn without_node(block: &str) -> String {
    block.split_inclusive('\n').filter(|line| !line.contains("rollout status")).collect()
}

#[test]
fn the_script_s_installation_comes_and_goes_as_printed() {
    let cluster = Cluster::start();
    let desk = Desk::new(&cluster);
    let image = || {
        let image = ["get", "deployment/gmsa-webhook", "--namespace", "gmsa-webhook", "-o", "jsonpath={..image}"];
        cluster.kubectl_prints(image)
    };
    with_a_node(&cluster, "gmsa-webhook", || {
        desk.run(&block("install", "--dry-run=server   # look first"));
        assert_eq!(image(), "registry.example.com/gmsa-webhook:0.1.0");
        // The one line of the migration is the same command.
        desk.run(&block("migrate", "deploy/deploy-gmsa-webhook.sh"));
        desk.run(&block("uninstall", "the file that the script wrote"));
        assert!(!cluster.kubectl(["get", "namespace", "gmsa-webhook"]).status.success());

        desk.run(&block("install", "kubectl apply -f gmsa-webhook.yml"));
        assert_eq!(image(), "registry.example.com/gmsa-webhook:0.1.0");
    });
    // From the script to Helm.
    desk.run(
        &block("migrate", "--take-ownership").replace("NAMESPACE", "gmsa-webhook").replace("NAME", "gmsa-webhook"),
    );
    desk.run("helm uninstall gmsa-webhook -n gmsa-webhook");
    desk.run(&block("install", "helm template gmsa-webhook"));
    desk.run("kubectl apply -f gmsa-webhook.yml");
    assert_eq!(image(), "registry.example.com/gmsa-webhook:0.1.0");
}

#[test]
fn a_trial_ends_and_an_emergency_is_met_as_printed() {
    let cluster = Cluster::start();
    let desk = Desk::new(&cluster);
    let values = "image.repository=REGISTRY/gmsa-webhook,webhooks.enforcement=Warn";
    desk.run(&format!("helm install RELEASE charts/gmsa-webhook -n NAMESPACE --create-namespace --set {values}"));
    let arguments = || desk.get("deployment/gmsa")["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
    assert!(arguments().contains("--enforcement=Warn"), "{}", arguments());
    desk.run(&block("migrate", "--set webhooks.enforcement=Enforce"));
    assert!(!arguments().contains("--enforcement=Warn"), "{}", arguments());

    desk.run(&block("uninstall", "kubectl delete mutatingwebhookconfiguration"));
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        assert_eq!(cluster.kubectl_prints(["get", kind, "-o", "name"]), "");
    }
    desk.run(&block("uninstall", "helm uninstall RELEASE"));
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
    desk.run(&without_node(&block("migrate", "--set certificates.certManager.enabled=true")));
    let image = || {
        desk.get("deployment/gmsa")["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap().to_owned()
    };
    assert_eq!(desk.get("deployment/gmsa")["spec"]["replicas"], 3);
    assert_eq!(image(), "registry.example.com/gmsa-webhook:0.1.0");
    desk.run(&block("uninstall", "helm uninstall RELEASE"));

    install("");
    desk.run(&block("migrate", "--reuse-values \\\n"));
    assert_eq!(image(), "registry.example.com/gmsa-webhook:0.1.0");
    desk.run(&block("uninstall", "helm uninstall RELEASE"));

    // Rancher's chart, of which the values matter: root, and a registry for all images.
    let values = "--set podSecurityContext.runAsUser=0,podSecurityContext.runAsNonRoot=false,global.cattle.systemDefaultRegistry=rancher.example.com,\
                  credential.enableNonJoined=false,replicaCount=3";
    install(values);
    desk.run(&without_node(&block("migrate", "--set podSecurityContext=null")));
    assert_eq!(image(), "registry.example.com/gmsa-webhook:0.1.0");
    let deployment = desk.get("deployment/gmsa");
    assert_eq!(deployment["spec"]["replicas"], 3);
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"].get("runAsUser"), None);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let applied = desk.run(&block("migrate", "--force-conflicts -f charts"));
    assert_eq!(
        applied,
        "customresourcedefinition.apiextensions.k8s.io/gmsacredentialspecs.windows.k8s.io serverside-applied\n"
    );
}

#[test]
fn the_certificate_s_source_is_changed_as_printed() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let desk = Desk::new(&cluster);
    let install = block("install", "helm install gmsa-webhook charts/gmsa-webhook");
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
    let change = without_node(&block("certificates", "--set certificates.certManager.injectCa=false"));
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
    desk.run(&block("uninstall", "> credential-specs.yaml"));
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

/// Helm goes by what the release says: an annotation on the object saves nothing, a saved file does.
#[test]
fn a_credential_spec_of_the_go_chart_outlives_its_release_as_printed() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let desk = Desk::new(&cluster);
    let go = fs::canonicalize("tests/install/go-release").unwrap();
    let domain = "machineAccountName=WebApp1,dnsName=corp.example.com,dnsTreeName=corp.example.com,netBiosName=CORP,\
                  guid=244818ae-87ac-4fcd-92ec-e79e5252348a,sid=S-1-5-21-2126449477-2524075714-3094792973";
    let values = format!(
        "credential.enabled=true,credential.domainJoinConfig.{}",
        domain.replace(',', ",credential.domainJoinConfig.")
    );
    desk.run(&format!("helm install RELEASE {} -n NAMESPACE --create-namespace --set {values}", go.display()));
    let before = desk.get("gmsacredentialspec/webapp1");

    desk.run("kubectl annotate gmsacredentialspec webapp1 helm.sh/resource-policy=keep");
    desk.run(&block("uninstall", "> credential-specs.yaml"));
    desk.run(&block("uninstall", "helm uninstall RELEASE"));
    assert!(!cluster.kubectl(["get", "gmsacredentialspec", "webapp1"]).status.success());
    let restore = block("uninstall", "kubectl wait --for=condition=Established");
    desk.run(restore.lines().last().unwrap());
    assert_eq!(desk.get("gmsacredentialspec/webapp1")["credspec"], before["credspec"]);
}

/// The CRD in a chart of its own, as an object of the release, beside the release of the webhook, which is migrated.
#[test]
fn the_crd_of_rancher_s_chart_outlives_its_release_as_printed() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let desk = Desk::new(&cluster);
    let chart = desk.folder.path().join("rancher-windows-gmsa-crd");
    fs::create_dir_all(chart.join("templates")).unwrap();
    let name = "rancher-windows-gmsa-crd";
    fs::write(chart.join("Chart.yaml"), json!({"apiVersion": "v2", "name": name, "version": "3.0.0"}).to_string())
        .unwrap();
    fs::copy("tests/install/go-release/crds/crd.yaml", chart.join("templates/crd.yaml")).unwrap();
    let install = || {
        desk.run(&format!("helm install {name} ./{name} -n NAMESPACE --create-namespace"));
        cluster.until("the kind is served", || cluster.kubectl(["get", "gmsacredentialspecs"]).status.success());
        cluster.apply(include_str!("credential-spec.yaml"));
    };

    install();
    desk.run("kubectl annotate crd gmsacredentialspecs.windows.k8s.io helm.sh/resource-policy=keep");
    desk.run(&format!("helm uninstall {name} -n NAMESPACE"));
    cluster.until("the kind is gone", || !cluster.kubectl(["get", "gmsacredentialspecs"]).status.success());

    install();
    let go = fs::canonicalize("tests/install/go-release").unwrap();
    desk.run(&format!("helm install RELEASE {} -n NAMESPACE --skip-crds", go.display()));
    let uid = || desk.get("gmsacredentialspec/webapp1")["metadata"]["uid"].clone();
    let before = uid();
    let page = fs::read_to_string("docs/migrate.md").unwrap();
    let (_, values) = page.split_once("**Look at your values**: `").unwrap();
    desk.run(values.split('`').next().unwrap());
    desk.run(&without_node(&block("migrate", "--set podSecurityContext=null")));
    desk.run(&block("migrate", &format!("name={name}")));
    assert_eq!(desk.run("helm list -n NAMESPACE -q"), "gmsa\n");
    desk.run(&block("migrate", "--force-conflicts -f charts"));
    desk.run(&block("uninstall", "helm uninstall RELEASE"));
    assert_eq!(uid(), before);
}
