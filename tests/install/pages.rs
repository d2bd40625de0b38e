//! Commands of the pages, run as they are printed, with the names in capitals replaced. Where there is no node, what waits for a rollout is left out.

use std::{collections::BTreeMap, fs, process::Command};

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature, printed},
    crd::CRD_BEFORE,
    desk::{self, Desk, blocks, cases, with_a_node},
    helm::CHART,
    objects::define_foreign_kinds,
    pods::SPEC,
    release::{GO_RELEASE, install},
};

#[test]
fn every_block_of_commands_is_run_or_says_what_it_needs() {
    let known = cases("commands");
    for page in ["install", "migrate", "gitops", "uninstall"] {
        for block in blocks(&format!("docs/{page}.md"), "sh") {
            let texts = known.iter().filter_map(|(text, _)| text.strip_prefix(page)?.strip_prefix(": "));
            assert_eq!(texts.filter(|text| block.contains(text)).count(), 1, "{page}: {block}");
        }
    }
}

/// The block of a page with this text in it, with the names in capitals replaced, and without what waits for a rollout where there is no node.
fn block(page: &str, text: &str) -> String {
    named(&desk::block(&format!("docs/{page}.md"), "sh", text))
}

fn named(commands: &str) -> String {
    let names = [("REGISTRY", "registry.example.com"), ("RELEASE", "gmsa"), ("NAMESPACE", "windows")];
    names.iter().fold(commands.to_owned(), |commands, (name, value)| commands.replace(name, value))
}

fn without_node(block: &str) -> String {
    block.split_inclusive('\n').filter(|line| !line.contains("rollout status")).collect()
}

/// The image of this Deployment.
fn image(cluster: &Cluster, deployment: &str) -> String {
    cluster.prints(&format!("get deployment/{deployment} -o jsonpath={{..image}}"))
}

/// The webhook configurations that are there.
fn configurations(cluster: &Cluster) -> String {
    cluster.names("mutatingwebhookconfigurations") + &cluster.names("validatingwebhookconfigurations")
}

/// What keeps an object from Helm, where the release says so.
const KEEP: &str = "helm.sh/resource-policy=keep";
const IMAGE: &str = "registry.example.com/gmsa-webhook:0.1.0";

#[test]
fn the_script_s_installation_comes_and_goes_as_printed() {
    let cluster = Cluster::start();
    if cluster.lacks(Feature::MatchConditions) {
        return;
    }
    let desk = Desk::in_repository(&cluster);
    let image = || image(&cluster, "gmsa-webhook -n gmsa-webhook");
    with_a_node(&cluster, || {
        desk.run(&block("install", "--dry-run=server   # look first"));
        assert_eq!(image(), IMAGE);
        // The one line of the migration is the same command.
        desk.run(&block("migrate", "deploy/deploy-gmsa-webhook.sh"));
        desk.run(&block("uninstall", "the file that the script wrote"));
        assert!(!cluster.exists("namespace gmsa-webhook"));

        desk.run(&block("install", "kubectl apply -f gmsa-webhook.yml"));
        assert_eq!(image(), IMAGE);
    });
    // From the script to Helm.
    let take = desk::block("docs/migrate.md", "sh", "--take-ownership").replace("NAMESPACE", "gmsa-webhook");
    desk.run(&named(&take.replace("NAME", "gmsa-webhook")));
    desk.run("helm uninstall gmsa-webhook -n gmsa-webhook");
    desk.run(&block("install", "helm template gmsa-webhook"));
    desk.run("kubectl apply -f gmsa-webhook.yml");
    assert_eq!(image(), IMAGE);
}

#[test]
fn a_trial_ends_and_an_emergency_is_met_as_printed() {
    let cluster = Cluster::start();
    let desk = Desk::in_repository(&cluster);
    let values = format!("image.repository={},webhooks.enforcement=Warn", named("REGISTRY/gmsa-webhook"));
    install(&cluster, "gmsa", CHART, &format!("--set {values}"));
    let is_trial =
        || cluster.prints("get deployment/gmsa -n windows -o jsonpath={..args}").contains("--enforcement=Warn");
    assert!(is_trial());
    desk.run(&block("migrate", "--set webhooks.enforcement=Enforce"));
    assert!(!is_trial());

    let has_guard = cluster.has(Feature::Guard);
    let of_version = |line: &&str| has_guard || !line.contains("# from Kubernetes 1.30 on");
    let emergency = block("uninstall", "kubectl delete mutatingwebhookconfiguration");
    desk.run(&emergency.split_inclusive('\n').filter(of_version).collect::<String>());
    assert_eq!(configurations(&cluster), "");
    desk.run(&block("uninstall", "helm uninstall RELEASE"));
}

/// What the page of the migration says to do first.
fn look_at_values(desk: &Desk<'_>) {
    let page = fs::read_to_string("docs/migrate.md").unwrap();
    let (_, values) = page.split_once("**Look at your values**: `").unwrap();
    desk.run(&named(values.split('`').next().unwrap()));
}

#[test]
fn a_release_of_the_go_chart_is_migrated_as_printed() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let desk = Desk::in_repository(&cluster);
    let uninstall = || desk.run(&block("uninstall", "helm uninstall RELEASE"));
    let image = || image(&cluster, "gmsa -n windows");
    let spec = || cluster.get("deployment/gmsa -n windows")["spec"].take();
    install(&cluster, "gmsa", GO_RELEASE, "--set replicaCount=3");
    look_at_values(&desk);
    desk.run(&without_node(&block("migrate", "--set certificates.certManager.enabled=true")));
    assert_eq!((spec()["replicas"].clone(), image()), (json!(3), IMAGE.to_owned()));
    uninstall();

    install(&cluster, "gmsa", GO_RELEASE, "");
    desk.run(&block("migrate", "--reuse-values \\\n"));
    assert_eq!(image(), IMAGE);
    uninstall();

    // Rancher's chart, with the values that matter: root, and a registry for all images.
    install(&cluster, "gmsa", GO_RELEASE, "--values tests/install/objects/rancher.yaml");
    desk.run(&without_node(&block("migrate", "--set podSecurityContext=null")));
    assert_eq!((spec()["replicas"].clone(), image()), (json!(3), IMAGE.to_owned()));
    let context = spec()["template"]["spec"]["securityContext"].take();
    assert_eq!((context.get("runAsUser"), &context["runAsNonRoot"]), (None, &json!(true)));
    let applied = desk.run(&block("migrate", "--force-conflicts -f charts"));
    assert!(applied.ends_with("/gmsacredentialspecs.windows.k8s.io serverside-applied\n"), "{applied}");
}

#[test]
fn the_certificate_s_source_is_changed_as_printed() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let desk = Desk::in_repository(&cluster);
    desk.run(&block("install", "helm install gmsa-webhook charts/gmsa-webhook"));
    let deployment = "deployment/gmsa-webhook -n gmsa-webhook";
    let arguments = || cluster.prints(&format!("get {deployment} -o jsonpath={{..args}}"));
    assert!(arguments().contains("--self-managed-secret=gmsa-webhook/gmsa-webhook-tls"));
    cluster.until("the Deployment is observed", || cluster.get(deployment)["status"]["replicas"].is_number());
    let change = without_node(&block("certificates", "--set certificates.certManager.injectCa=false"));
    let (first, second) = change.split_at(change.rfind("helm upgrade").unwrap());
    desk.run(first);
    assert!(arguments().contains("--publish-ca=/tls/ca.crt"));
    // No node ends the old pods, so the second step is early, and says so.
    let output = desk.shell(second);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("old pods are still being replaced"), "{said}");
}

/// Helm goes by what the release says: an annotation on the object saves nothing, a saved file does, also where the kind itself is deleted.
#[test]
fn credential_specs_are_saved_and_brought_back_as_printed() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let desk = Desk::in_repository(&cluster);
    let restore = block("uninstall", "kubectl wait --for=condition=Established");
    let (kind, specs) = restore.split_at(restore.rfind("kubectl apply").unwrap());
    let spec = || cluster.get("gmsacredentialspec/web-app1");
    install(&cluster, "gmsa", GO_RELEASE, "--values tests/install/objects/go-credential.yaml");
    let before = spec();

    cluster.prints(&format!("annotate gmsacredentialspec web-app1 {KEEP}"));
    desk.run(&block("uninstall", "> credential-specs.yaml"));
    desk.run(&block("uninstall", "helm uninstall RELEASE"));
    assert!(!cluster.exists("gmsacredentialspec web-app1"));
    desk.run(specs);
    assert_eq!(spec()["credspec"], before["credspec"]);

    desk.run(&block("uninstall", "kubectl delete crd"));
    cluster.until("the kind is gone", || !cluster.exists("gmsacredentialspecs"));
    desk.run(kind);
    cluster.until("the kind is served", || cluster.exists("gmsacredentialspecs"));
    desk.run(specs);
    assert_eq!(spec()["credspec"], before["credspec"]);
    assert_ne!(spec()["metadata"]["uid"], before["metadata"]["uid"]);
}

/// The CRD in a chart of its own, as an object of the release, beside the release of the webhook, which is migrated.
#[test]
fn the_crd_of_rancher_s_chart_outlives_its_release_as_printed() {
    let cluster = Cluster::start();
    define_foreign_kinds(&cluster);
    let desk = Desk::in_repository(&cluster);
    let name = "rancher-windows-gmsa-crd";
    fs::create_dir_all(desk.path(name).join("templates")).unwrap();
    let chart = json!({"apiVersion": "v2", "name": name, "version": "3.0.0"});
    desk.write(&format!("{name}/Chart.yaml"), &chart.to_string());
    desk.write(&format!("{name}/templates/crd.yaml"), CRD_BEFORE);
    let install_crd = || {
        desk.run(&format!("helm install {name} ./{name} -n windows --create-namespace"));
        cluster.until("the kind is served", || cluster.exists("gmsacredentialspecs"));
        cluster.apply(SPEC);
    };

    install_crd();
    cluster.prints(&format!("annotate crd gmsacredentialspecs.windows.k8s.io {KEEP}"));
    cluster.helm_prints(&format!("uninstall {name} -n windows"));
    cluster.until("the kind is gone", || !cluster.exists("gmsacredentialspecs"));

    install_crd();
    install(&cluster, "gmsa", GO_RELEASE, "--skip-crds");
    let before = cluster.uid("gmsacredentialspec/webapp1");
    look_at_values(&desk);
    desk.run(&without_node(&block("migrate", "--set podSecurityContext=null")));
    desk.run(&block("migrate", &format!("name={name}")));
    assert_eq!(desk.run("helm list -n windows -q"), "gmsa\n");
    desk.run(&block("migrate", "--force-conflicts -f charts"));
    desk.run(&block("uninstall", "helm uninstall RELEASE"));
    assert_eq!(cluster.uid("gmsacredentialspec/webapp1"), before);
}

/// Each object, in one order.
pub fn objects(yaml: &str) -> BTreeMap<String, Value> {
    let named = |object: Value| (format!("{}/{}", object["kind"], object["metadata"]["name"]), object);
    serde_saphyr::from_multiple::<Value>(yaml).unwrap().into_iter().map(named).collect()
}

/// The static manifest of a release, by plain kubectl: what it installs, and that its removal leaves every credential spec.
#[test]
fn the_manifest_comes_and_goes_and_every_credential_spec_stays() {
    let cluster = Cluster::start();
    let desk = Desk::in_repository(&cluster);
    let release = desk.path("release");
    let mut stamp = Command::new("python3");
    let address = ["deploy/stamp.py", "registry.example.com/gmsa-webhook", "https://git.example.com/gmsa"];
    printed(stamp.args(address).arg(&release).output().unwrap());
    // Older clusters have a file of their own, as the page says.
    let of_version = if cluster.has(Feature::MatchConditions) { "" } else { "-kubernetes-1.25" };
    let number = env!("CARGO_PKG_VERSION");
    let version = format!("{number}{of_version}");
    let name = format!("release/gmsa-webhook-{version}.yaml");
    fs::rename(release.join(format!("gmsa-webhook{of_version}.yaml")), desk.path(&name)).unwrap();
    let kustomization = desk.read("release/kustomization.yaml");
    let resource = |version: &str| format!("- gmsa-webhook-{version}.yaml");
    desk.write("release/kustomization.yaml", &kustomization.replace(&resource(number), &resource(&version)));
    fs::copy("deploy/gmsa-crd.yaml", release.join("gmsa-crd.yaml")).unwrap();
    assert_eq!(objects(&desk.run("kubectl kustomize release")), objects(&desk.read(&name)));
    let run = |page: &str| {
        let commands = without_node(&block(page, "-f gmsa-webhook-VERSION.yaml")).replace("VERSION", &version);
        desk.run(&format!("cd release\n{commands}"));
    };

    run("install");
    assert_eq!(image(&cluster, "gmsa-webhook -n gmsa-webhook"), IMAGE);
    cluster.until("the kind is served", || cluster.exists("gmsacredentialspecs"));
    cluster.apply(SPEC);
    let before = cluster.uid("gmsacredentialspec webapp1");

    run("uninstall");
    assert_eq!(configurations(&cluster), "");
    assert_eq!(cluster.uid("gmsacredentialspec webapp1"), before);
}
