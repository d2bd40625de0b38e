//! `doctor --pre`: what it says of a cluster before the installation, and that it changes nothing.

use serde_json::{Value, json};

use super::super::{
    cluster::{configurations, healthy, run},
    support::{Fault, SimulatedApi, Verb},
    text,
};

const REVIEWS: &str = "/selfsubjectaccessreviews";

fn may(allowed: bool) -> Fault {
    Fault::Object(json!({"status": {"allowed": allowed}}))
}

/// The healthy cluster, in which the user may do everything.
async fn installed() -> SimulatedApi {
    let api = healthy().await;
    api.fault(Verb::Create, REVIEWS, usize::MAX, may(true));
    api
}

/// The same without an installation.
async fn fresh() -> SimulatedApi {
    let api = installed().await;
    for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        api.delete(plural, "", "gmsa");
    }
    api.delete("customresourcedefinitions", "", "gmsacredentialspecs.windows.k8s.io");
    api
}

/// What does not pass, each with what to do, and the exit code.
async fn complaints(api: &SimulatedApi) -> (Vec<String>, i32) {
    let output = run(api, &["doctor", "--pre", "-o", "json"]).await;
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let checks = printed["checks"].as_array().unwrap().iter().filter(|check| check["status"] != "pass");
    let complaint = |check: &Value| {
        let [status, about, text, rule, remedy] =
            ["status", "about", "text", "rule", "remedy"].map(|key| check[key].as_str().unwrap());
        format!("{status} {about}: {text} [{rule}] -> {remedy}")
    };
    (checks.map(complaint).collect(), output.status.code().unwrap())
}

fn crd(mut metadata: Value, versions: &Value, stored: &Value) -> Value {
    metadata["name"] = json!("gmsacredentialspecs.windows.k8s.io");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata,
        "spec": {"versions": versions},
        "status": {"conditions": [{"type": "Established", "status": "True"}], "storedVersions": stored},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_anything_is_ready() {
    let api = fresh().await;
    let output = run(&api, &["doctor", "--pre"]).await;
    let expected = "\
pass  API server       answers, v1.36.0
pass  your rights      you may create what the installation consists of, in gmsa-webhook and in the cluster
pass  namespace        gmsa-webhook does not exist yet: --create-namespace creates it
pass  custom resource  gmsacredentialspecs.windows.k8s.io does not exist yet: the installation creates it
pass  configuration    there is no other webhook for GMSA
";
    assert_eq!((text(&output.stdout), text(&output.stderr), output.status.code()), (expected, "", Some(0)));
    let asked = |resource: &str| {
        let of_resource = |body: &Value| body["spec"]["resourceAttributes"]["resource"] == resource;
        api.requests(Verb::Create, REVIEWS).iter().filter(|request| of_resource(&request.body)).count()
    };
    assert_eq!((asked("namespaces"), asked("customresourcedefinitions"), asked("secrets")), (1, 2, 7));
    assert_eq!(api.count(Verb::Create, ""), api.count(Verb::Create, REVIEWS));
    for changing in [Verb::Update, Verb::Patch, Verb::Delete] {
        assert_eq!(api.count(changing, ""), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_of_this_webhook_is_told_from_another_one() {
    let api = installed().await;
    let output = run(&api, &["doctor", "--pre", "--namespace", "gmsa"]).await;
    let expected = "\
pass  API server       answers, v1.36.0
pass  your rights      you may create what the installation consists of, in gmsa and in the cluster
pass  namespace        gmsa enforces no Pod Security level: the webhook runs under every level, restricted included
pass  custom resource  serves v1, v1alpha1
pass  configuration    this webhook is installed already, by the Helm release webhook in gmsa (gmsa): `kubectl gmsa doctor` checks it
";
    assert_eq!((text(&output.stdout), output.status.code()), (expected, Some(0)));

    // The Go webhook has no rule for ephemeral containers.
    configurations(&api, |webhook| webhook["rules"][0]["resources"] = json!(["pods"]));
    let (found, code) = complaints(&api).await;
    let upgrade = "warn configuration: another webhook for GMSA is installed, by the Helm release webhook in gmsa (gmsa): both must admit a pod \
                   [webhook-present] -> Upgrade it in place, by docs/migrate.md: `helm upgrade webhook charts/gmsa-webhook -n gmsa` with the values that it \
                   names.";
    assert_eq!((found, code), (vec![upgrade.to_owned()], 1));
    let own = |metadata: Value| {
        for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            let mut configuration = api.object(plural, "", "gmsa").unwrap();
            configuration["metadata"] = metadata.clone();
            configuration["metadata"]["name"] = json!("gmsa");
            api.apply(configuration);
        }
    };
    own(json!({}));
    let by_script = "warn configuration: another webhook for GMSA is installed, by a manifest (gmsa): both must admit a pod [webhook-present] -> Upgrade \
                     it in place, with the same name and namespace: \"An installation by its script\" in docs/migrate.md.";
    assert_eq!(complaints(&api).await.0, [by_script]);
    own(json!({"labels": {"kubernetes.azure.com/managedby": "aks"}}));
    let by_aks = "warn configuration: another webhook for GMSA is installed, by AKS (--enable-windows-gmsa) (gmsa): both must admit a pod \
                  [webhook-present] -> Keep it: AKS manages it, and the nodes get their plugin and DNS from it. See docs/platforms.md.";
    assert_eq!(complaints(&api).await.0, [by_aks]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_custom_resource_of_somebody_else_has_an_owner() {
    let both = json!([{"name": "v1", "served": true, "storage": true}, {"name": "v1alpha1", "served": true, "storage": false}]);
    let helm =
        json!({"annotations": {"meta.helm.sh/release-name": "crds", "meta.helm.sh/release-namespace": "cattle"}});
    let hostile =
        json!({"annotations": {"meta.helm.sh/release-name": "x; reboot", "meta.helm.sh/release-namespace": "y"}});
    let applied = json!({"managedFields": [
        {"manager": "kube-apiserver", "subresource": "status"}, {"manager": "kubectl-client-side-apply"}, {"manager": "helm"},
    ]});
    let aks = json!({"labels": {"kubernetes.azure.com/managedby": "aks"}});
    let is = "warn custom resource: gmsacredentialspecs.windows.k8s.io exists and is not this project's, but";
    let keep = "Keep it: deleting it deletes every credential spec. Instead, install with `--skip-crds --set crds.upgrade=true`, which brings it up \
                to date in place.";
    for (metadata, owner, remedy) in [
        (
            helm,
            "of the Helm release crds in cattle",
            "`helm uninstall crds -n cattle` would delete it, and with it every credential spec: keep that release, and install with `--skip-crds \
             --set crds.upgrade=true`, which brings it up to date in place.",
        ),
        (applied, "applied by helm, kubectl-client-side-apply", keep),
        (hostile, "applied by an unknown client", keep),
        (aks, "managed by AKS (--enable-windows-gmsa)", "Keep it as it is: install with `--skip-crds`."),
    ] {
        let api = fresh().await;
        api.apply(crd(metadata, &both, &json!(["v1"])));
        assert_eq!(complaints(&api).await, (vec![format!("{is} {owner} [crd-foreign] -> {remedy}")], 1));
    }
}

/// Helm applies the custom resource when it installs, and what another client has applied is a conflict.
#[tokio::test(flavor = "multi_thread")]
async fn a_custom_resource_of_another_release_that_somebody_has_applied_is_a_conflict() {
    let versions = json!([{"name": "v1", "served": true, "storage": true}]);
    let of = |revision: &str, managers: &[&str]| {
        let managers: Vec<Value> = managers.iter().map(|name| json!({"manager": name})).collect();
        let metadata = json!({"annotations": {"gmsa-webhook/crd-revision": revision}, "managedFields": managers});
        crd(metadata, &versions, &json!(["v1"]))
    };
    let api = fresh().await;
    for (owners, named) in [
        (&["kubectl"][..], "kubectl"),
        (&["helm", "kubectl-client-side-apply"], "kubectl-client-side-apply"),
        (&["argocd-controller", "kubectl"], "argocd-controller, kubectl"),
    ] {
        api.apply(of("1", owners));
        let conflict = format!(
            "warn custom resource: it is of revision 1, not 2, and {named} has applied it: `helm install` stops with a conflict [crd-outdated] -> \
             Instead, install with `--skip-crds --set crds.upgrade=true`, which brings it up to date in place."
        );
        assert_eq!(complaints(&api).await, (vec![conflict], 1));
    }
    // Of this revision, Helm changes nothing.
    api.apply(of("2", &["kubectl"]));
    assert_eq!(complaints(&api).await, (vec![], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_credential_specs_may_be_stored_in_is_worth_a_note() {
    let api = fresh().await;
    let ours = json!({"annotations": {"gmsa-webhook/crd-revision": "2"}});
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage});
    api.apply(crd(ours.clone(), &json!([version("v1", true)]), &json!(["v1alpha1", "v1"])));
    let found = "note custom resource: credential specs may be stored as v1alpha1 [stored-version] -> `crds.upgrade=true` in the chart does this. By hand: ";
    let commands = "`kubectl get gmsacredentialspecs.windows.k8s.io -o json | kubectl replace -f -` writes each as v1; then `kubectl patch crd \
                    gmsacredentialspecs.windows.k8s.io --subresource=status --type=merge -p '{\"status\":{\"storedVersions\":[\"v1\"]}}'`. The \
                    installation does not depend on it.";
    assert_eq!(complaints(&api).await, (vec![format!("{found}{commands}")], 0));
    api.apply(crd(ours, &json!([version("v1", false), version("v1alpha1", true)]), &json!(["v1alpha1"])));
    let first = "after the custom resource has been brought up to date, ";
    assert_eq!(complaints(&api).await, (vec![format!("{found}{first}{commands}")], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_are_missing_are_named() {
    let api = fresh().await;
    api.heal();
    api.fault(Verb::Get, "/version", usize::MAX, Fault::Object(json!({"gitVersion": "v1.29.3-eks-1"})));
    for lacked in ["\"resource\":\"deployments\"", "\"resource\":\"gmsacredentialspecs\"", "\"verb\":\"escalate\""] {
        api.fault_of_body(Verb::Create, REVIEWS, lacked, may(false));
    }
    api.fault(Verb::Create, REVIEWS, usize::MAX, may(true));
    let old = "warn API server: v1.29.3-eks-1 has no match conditions: the webhook is asked about every pod [kubernetes-version] -> Upgrade the cluster \
               to 1.30 or later, or read \"Older clusters\" in docs/install.md first.";
    let lacking = "fail your rights: you may not get, create, patch, delete deployments in gmsa-webhook; you may not give the webhook \
                   what you lack yourself: get, list, watch gmsacredentialspecs [install-permissions] -> Install as a user who has it, such \
                   as a cluster administrator (`--as`, `--context`). docs/rights.md lists the rights.";
    assert_eq!(complaints(&api).await, (vec![old.to_owned(), lacking.to_owned()], 1));

    // What takes no part in the installation itself, but in its end, and what an option does without.
    api.heal();
    api.fault(Verb::Get, "/version", usize::MAX, Fault::Object(json!({"gitVersion": "v1.30.0"})));
    for lacked in ["\"verb\":\"watch\"", "\"resource\":\"customresourcedefinitions\""] {
        api.fault_of_body(Verb::Create, REVIEWS, lacked, may(false));
    }
    api.fault(Verb::Create, REVIEWS, usize::MAX, may(true));
    let (found, _) = complaints(&api).await;
    let lacking = "fail your rights: you may not create, patch customresourcedefinitions (not with `--skip-crds`); watch \
                   validatingwebhookconfigurations; watch secrets in gmsa-webhook [install-permissions]";
    assert!(found.iter().any(|line| line.starts_with(lacking)), "{found:?}");

    // Who may escalate gives what they lack.
    api.heal();
    api.fault(Verb::Get, "/version", usize::MAX, Fault::Object(json!({"gitVersion": "v1.30.0"})));
    api.fault_of_body(Verb::Create, REVIEWS, "\"resource\":\"gmsacredentialspecs\"", may(false));
    api.fault(Verb::Create, REVIEWS, usize::MAX, may(true));
    assert_eq!(complaints(&api).await, (vec![], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_namespace_must_be_there_to_stay() {
    let api = fresh().await;
    let namespace = |metadata: Value| {
        let mut metadata = metadata;
        metadata["name"] = json!("gmsa-webhook");
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    };
    api.apply(namespace(json!({"labels": {"pod-security.kubernetes.io/enforce": "restricted"}})));
    let output = run(&api, &["doctor", "--pre"]).await;
    let line = "pass  namespace        gmsa-webhook enforces the Pod Security level restricted: the webhook runs under every level, restricted included\n";
    assert!(text(&output.stdout).contains(line), "{}", text(&output.stdout));
    api.apply(namespace(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"})));
    let ends = "fail namespace: gmsa-webhook is being deleted [namespace-unusable] -> Wait until it is gone, or install into another one: `--namespace`.";
    assert_eq!(complaints(&api).await, (vec![ends.to_owned()], 1));
    let output = run(&api, &["doctor", "--pre", "--namespace", "a.b"]).await;
    assert_eq!(
        (text(&output.stderr), output.status.code()),
        ("error: \"a.b\" is not the name of a namespace\n", Some(2))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_skipped() {
    let api = fresh().await;
    for (verb, path) in [
        (Verb::Get, "/customresourcedefinitions/"),
        (Verb::List, "/mutatingwebhookconfigurations"),
        (Verb::Get, "/api/v1/namespaces/gmsa-webhook"),
    ] {
        api.fault(verb, path, usize::MAX, Fault::forbidden());
    }
    let skipped = |(about, right): (&str, &str)| {
        format!(
            "skip {about}: could not be checked: the API server answered 403: not allowed here [not-checked] -> Run the command as a user who may {right} (`--as`, `--context`)."
        )
    };
    let expected = [
        ("namespace", "get namespaces"),
        ("custom resource", "get customresourcedefinitions"),
        ("configuration", "list mutatingwebhookconfigurations"),
    ]
    .map(skipped);
    assert_eq!(complaints(&api).await, (expected.into(), 2));
}
