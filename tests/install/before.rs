//! `kubectl gmsa doctor --pre` and `kubectl gmsa check` of the workloads in the cluster: before anything is installed, beside the Go
//! webhook's release, and after the install.

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, printed},
    doctor::open,
    helm::Helm,
    pods::{NAMESPACE, Options, grant, pod},
    release::Release,
    tool::Tool,
};

/// A chart of our own that makes what the Go webhook's chart makes.
const GO_RELEASE: &str = "tests/install/go-release";
/// A CA certificate as far as the API server looks into one.
const CA: &str = include_str!("ca.pem.base64");

const READY: &str = "\
pass  API server       answers, vN
pass  your rights      you may create what the installation consists of, in gmsa-webhook and in the cluster
pass  namespace        gmsa-webhook does not exist yet: --create-namespace creates it
pass  custom resource  gmsacredentialspecs.windows.k8s.io does not exist yet: the installation creates it
pass  configuration    there is no other webhook for GMSA
";

#[test]
fn what_an_installation_finds_is_said_before_it() {
    let cluster = Cluster::start();
    let tool = Tool::new(&cluster);
    let (report, code) = tool.gmsa("doctor --pre");
    assert_eq!((open(&report).as_str(), code), (READY, 0));
    as_nobody(&tool);

    cluster.create_namespace(NAMESPACE);
    let helm = Helm::of_cluster(&cluster.kubeconfig());
    let ca = format!("certificates.certManager.enabled=false,certificates.caBundle={}", CA.trim());
    helm.prints(["install", "gmsa", GO_RELEASE, "--namespace", "windows", "--create-namespace", "--set", &ca]);
    beside_the_go_webhook(&tool);
    of_the_workloads(&cluster, &tool);
    stored_versions(&cluster, &tool);

    helm.prints(["uninstall", "gmsa", "--namespace", "windows"]);
    cluster.kubectl_prints(["delete", "crd", "gmsacredentialspecs.windows.k8s.io"]);
    let _release = Release::install(&cluster);
    let (report, code) = tool.gmsa("doctor --pre --namespace windows");
    let installed = "\
pass  API server       answers, vN
pass  your rights      you may create what the installation consists of, in windows and in the cluster
pass  namespace        windows enforces no Pod Security level: the webhook runs under every level, restricted included
pass  custom resource  serves v1, v1alpha1
pass  configuration    this webhook is installed already, by the Helm release gmsa in windows (gmsa, zz-gmsa): `kubectl gmsa doctor` checks it
";
    assert_eq!((open(&report).as_str(), code), (installed, 0));
}

/// A user who has no rights but those of everybody.
fn as_nobody(tool: &Tool<'_>) {
    let (report, code) = tool.gmsa("doctor --pre --as nobody --as-group system:authenticated");
    let lines: Vec<&str> = report.lines().map(str::trim_start).collect();
    let rights = "fail  your rights      you may not create, patch customresourcedefinitions (not with `--skip-crds`); get, create, patch, delete clusterrolebindings, \
                  clusterroles, mutatingwebhookconfigurations; get, create, patch, delete, list, watch validatingwebhookconfigurations; get, create, patch, delete deployments, poddisruptionbudgets, \
                  rolebindings, roles, serviceaccounts, services in gmsa-webhook; get, list, watch, create, update, patch, delete secrets in gmsa-webhook; you \
                  may not give the webhook what you lack yourself: create localsubjectaccessreviews; get, list, watch gmsacredentialspecs; get, patch \
                  mutatingwebhookconfigurations, validatingwebhookconfigurations [install-permissions]";
    let refused = |about: &str, resource: &str, verb: &str, group: &str, place: &str| {
        format!(
            "skip  {about:15}  could not be checked: the API server answered 403: {resource} is forbidden: User \"nobody\" cannot {verb} resource \
             \"{}\" in API group \"{group}\" {place} [not-checked]",
            resource.split(['.', ' ']).next().unwrap()
        )
    };
    assert_eq!(lines[1], rights);
    assert_eq!(
        lines[3],
        refused("namespace", "namespaces \"gmsa-webhook\"", "get", "", "in the namespace \"gmsa-webhook\"")
    );
    let crd = "customresourcedefinitions.apiextensions.k8s.io \"gmsacredentialspecs.windows.k8s.io\"";
    assert_eq!(lines[5], refused("custom resource", crd, "get", "apiextensions.k8s.io", "at the cluster scope"));
    let webhooks = "mutatingwebhookconfigurations.admissionregistration.k8s.io";
    assert_eq!(
        lines[7],
        refused("configuration", webhooks, "list", "admissionregistration.k8s.io", "at the cluster scope")
    );
    assert_eq!((lines.len(), code), (9, 1));
}

fn beside_the_go_webhook(tool: &Tool<'_>) {
    let (report, code) = tool.gmsa("doctor --pre --namespace windows");
    let expected = "\
pass  API server       answers, vN
pass  your rights      you may create what the installation consists of, in windows and in the cluster
pass  namespace        windows enforces no Pod Security level: the webhook runs under every level, restricted included
warn  custom resource  gmsacredentialspecs.windows.k8s.io exists and is not this project's, but applied by helm [crd-foreign]
                       -> Keep it: deleting it deletes every credential spec. Instead, install with `--skip-crds --set crds.upgrade=true`, which brings it up to date in place.
warn  configuration    another webhook for GMSA is installed, by the Helm release gmsa in windows (gmsa): both must admit a pod [webhook-present]
                       -> Upgrade it in place, by docs/migrate.md: `helm upgrade gmsa charts/gmsa-webhook -n windows` with the values that it names.
";
    assert_eq!((open(&report).as_str(), code), (expected, 1));
}

fn workload(kind: &str, name: &str, spec: &str) -> Value {
    let mut template = pod("p", "pod", Options::Name, spec);
    template["spec"]["nodeSelector"] = json!({"kubernetes.io/os": "windows"});
    let template = json!({"metadata": {"labels": {"app": name}}, "spec": template["spec"]});
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    if kind == "CronJob" {
        let mut template = template;
        template["spec"]["restartPolicy"] = json!("Never");
        let job = json!({"spec": {"template": template}});
        return json!({"apiVersion": "batch/v1", "kind": kind, "metadata": metadata, "spec": {"schedule": "0 0 1 1 *", "jobTemplate": job}});
    }
    let selector = json!({"matchLabels": {"app": name}});
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": {"replicas": 2, "selector": selector, "template": template}})
}

/// The Go webhook does not run, so there is no pod of them yet.
fn of_the_workloads(cluster: &Cluster, tool: &Tool<'_>) {
    cluster.apply(include_str!("credential-spec.yaml"));
    for (kind, name, spec) in [
        ("Deployment", "web", "webapp1"),
        ("StatefulSet", "very-long-name-web", "webapp1"),
        ("CronJob", "yearly", "gone"),
    ] {
        cluster.apply(&workload(kind, name, spec).to_string());
    }
    let replica_set = ["get", "replicasets", "--namespace", NAMESPACE, "-o", "name"];
    cluster.until("the Deployment has its ReplicaSet", || !cluster.kubectl_prints(replica_set).is_empty());
    let (report, code) = tool.gmsa("check -A --ignore not-authorized");
    let expected = "\
OBJECT                               SLOT          CREDENTIAL SPEC  RESULT
Deployment apps/web                  pod template  webapp1          refused, 403: not-authorized
StatefulSet apps/very-long-name-web  pod template  webapp1          refused, 403: not-authorized
CronJob apps/yearly                  pod template  gone             refused, 404: spec-missing

error[spec-missing] CronJob apps/yearly
  spec.jobTemplate.spec.template.spec.securityContext.windowsOptions.gmsaCredentialSpecName: cred spec gone does not exist
  fix: `kubectl gmsa credspec new gone --account NAME --from-ad FILE | kubectl apply -f -`, or use the name of one that exists: `kubectl get gmsacredentialspecs`.

note[shared-hostname] Deployment apps/web
  spec.replicas: the host names of its pods have the same first 15 characters: pods that share these and an account can lose their trust
  fix:
    spec:
      template:
        metadata:
          annotations: {gmsa-webhook/random-hostname: \"true\"}

warning[shared-hostname] StatefulSet apps/very-long-name-web
  metadata.name: the host names \"very-long-name-web-0\" and \"very-long-name-web-1\" have the same first 15 characters: pods that share these and an account can lose their trust
  fix: give it a name of at most 12 characters: a StatefulSet sets the host names of its pods itself, so the webhook gives none

1 error, 1 warning, 1 note in 4 objects, and 2 ignored
";
    assert_eq!((report.as_str(), code), (expected, 1), "a Deployment of the Go release is the fourth");

    grant(cluster, "default", &["webapp1".to_owned()]);
    let admitted = |report: &str| report.lines().filter(|line| line.ends_with("  gets its contents")).count();
    let (report, code) = tool.gmsa("check -n apps --ignore spec-missing --fail-on error");
    assert_eq!((admitted(&report), code), (2, 0), "{report}");

    // Who may list the workloads alone.
    let resources = "--resource=deployments.apps,statefulsets.apps,daemonsets.apps,replicasets.apps,cronjobs.batch,jobs.batch,\
                     replicationcontrollers,pods";
    cluster.kubectl_prints(["create", "clusterrole", "workloads", "--verb=list", resources]);
    let binding =
        ["create", "rolebinding", "workloads", "--namespace", NAMESPACE, "--clusterrole=workloads", "--user=developer"];
    cluster.kubectl_prints(binding);
    cluster.until("the binding is in force", || {
        cluster.kubectl(["get", "cronjobs", "--namespace", NAMESPACE, "--as", "developer"]).status.success()
    });
    let (report, code) = tool.gmsa("check -n apps --as developer");
    let unread = report.lines().filter(|line| line.ends_with("  could not be checked")).count();
    assert_eq!((unread, code), (3, 2), "{report}");
    let (report, code) = tool.gmsa("check -A --as developer");
    assert!(report.ends_with("\n8 unreadable parts in 0 objects\n"), "{report}");
    assert_eq!(code, 2);
}

/// The remedy is followed to the letter.
fn stored_versions(cluster: &Cluster, tool: &Tool<'_>) {
    let crd = "gmsacredentialspecs.windows.k8s.io";
    let both = json!({"status": {"storedVersions": ["v1alpha1", "v1"]}}).to_string();
    cluster.kubectl_prints(["patch", "crd", crd, "--subresource=status", "--type=merge", "--patch", &both]);
    let of_crd = |report: &str| {
        let lines: Vec<String> = report.lines().map(|line| line.trim_start().to_owned()).collect();
        let at = lines.iter().position(|line| line.ends_with(" [stored-version]"));
        at.map(|at| (lines[at].clone(), lines[at + 1].clone()))
    };
    let (found, remedy) = of_crd(&tool.gmsa("doctor --pre").0).unwrap();
    assert_eq!(found, "note  custom resource  credential specs may be stored as v1alpha1 [stored-version]");
    let (_, by_hand) = remedy.split_once("By hand: ").unwrap();
    let commands: Vec<&str> = by_hand.split('`').skip(1).step_by(2).collect();
    assert_eq!(commands.len(), 2, "{remedy}");
    for command in commands {
        printed(cluster.command("bash").args(["-o", "pipefail", "-c", command]).output().unwrap());
    }
    assert_eq!(of_crd(&tool.gmsa("doctor --pre").0), None);
}
