//! The commands that ask a cluster, against the simulated API server: what they ask, and what they make of each fault.

use std::path::Path;

use serde_json::{Value, json};

use super::{
    assert_printed,
    cluster::{healthy, kind, run},
    portable, program, shown,
    support::{Fault, SimulatedApi, Verb, credential_spec},
    text,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_is_applied_by_server_side_apply() {
    let api = healthy().await;
    api.fault(Verb::Patch, "/apis/rbac.authorization.k8s.io/v1/", usize::MAX, Fault::Object(json!({})));
    let output = run(&api, &["grant", "--credspec", "webapp1", "--serviceaccount", "shop:web", "--apply"]).await;
    let mut runs = vec![("--apply", shown(&output))];
    let patches: Vec<String> = api.requests(Verb::Patch, "").into_iter().map(|request| request.path).collect();
    runs.push(("what was patched", patches.join("\n") + "\n"));
    assert_printed("grant-applied", &runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_for_what_does_not_exist_says_so() {
    let api = healthy().await;
    api.fault(Verb::Patch, "/apis/rbac.authorization.k8s.io/v1/", usize::MAX, Fault::Object(json!({})));
    let grant = |account: &'static str| ["grant", "--credspec", "other", "--serviceaccount", account, "--apply"];
    let output = run(&api, &grant("nowhere:web")).await;
    assert_eq!((text(&output.stderr), output.status.code()), ("error: there is no namespace nowhere\n", Some(2)));
    assert_eq!(api.count(Verb::Patch, ""), 0);
    let output = run(&api, &grant("shop:api")).await;
    assert_eq!(
        text(&output.stdout),
        "clusterrole/gmsa-use-other applied\nrolebinding/gmsa-use-other-api applied in shop\n\
         there is no service account shop:api yet\nthere is no credential spec other yet\n"
    );
    assert_eq!(output.status.code(), Some(0));
    // Who may not read namespaces may still grant.
    api.fault(Verb::Get, "/api/v1/namespaces/nowhere", usize::MAX, Fault::forbidden());
    let output = run(&api, &grant("nowhere:web")).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_overwrites_nothing_that_grants_something_else() {
    let api = with_rbac("who-can").await;
    api.define(kind("v1", "Namespace", "namespaces", false));
    api.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}));
    api.fault(Verb::Patch, "/apis/rbac.authorization.k8s.io/v1/", usize::MAX, Fault::Object(json!({})));
    let grant = ["grant", "--credspec", "own", "--serviceaccount", "shop:web", "--apply"];
    let rule = json!({"apiGroups": ["windows.k8s.io"], "resources": ["gmsacredentialspecs"], "resourceNames": ["own"], "verbs": ["use"]});
    let apply_role = |rules: Value| {
        api.apply(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "gmsa-use-own"},
            "rules": rules,
        }));
    };
    let apply_binding = |kind: &str, subjects: &[&str]| {
        let subject = |name: &&str| json!({"kind": "ServiceAccount", "name": name, "namespace": "shop"});
        api.apply(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "gmsa-use-own-web", "namespace": "shop"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "gmsa-use-own"},
            "subjects": subjects.iter().map(subject).collect::<Vec<_>>(),
        }));
    };
    let refused = |object: &str| format!("error: {object} grants something else: edit or delete it with kubectl\n");

    apply_role(json!([rule, {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]));
    let output = run(&api, &grant).await;
    assert_eq!((text(&output.stderr), output.status.code()), (&*refused("clusterrole/gmsa-use-own"), Some(2)));
    apply_role(json!([rule]));
    for (kind, subjects) in [("ClusterRole", &["web", "api"][..]), ("Role", &["web"])] {
        apply_binding(kind, subjects);
        let output = run(&api, &grant).await;
        let expected = refused("rolebinding/gmsa-use-own-web in shop");
        assert_eq!((text(&output.stderr), output.status.code()), (&*expected, Some(2)));
    }
    assert_eq!(api.count(Verb::Patch, ""), 0);
    for subjects in [&["web"][..], &[]] {
        apply_binding("ClusterRole", subjects);
        let output = run(&api, &grant).await;
        assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)));
    }
    assert_eq!(api.count(Verb::Patch, ""), 4);
}

/// A server with the roles and bindings of a golden case.
async fn with_rbac(case: &str) -> SimulatedApi {
    let api = SimulatedApi::start().await;
    let group = "rbac.authorization.k8s.io/v1";
    for (name, plural, namespaced) in [
        ("ClusterRole", "clusterroles", false),
        ("Role", "roles", true),
        ("ClusterRoleBinding", "clusterrolebindings", false),
        ("RoleBinding", "rolebindings", true),
    ] {
        api.define(kind(group, name, plural, namespaced));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli").join(case).join("rbac.yaml");
    let objects: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(file).unwrap()).unwrap();
    for object in objects.into_iter().filter(|object| !object.is_null()) {
        api.apply(object);
    }
    api
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_of_a_grant_is_made_by_the_api_server() {
    let api = healthy().await;
    api.fault(Verb::Patch, "/apis/rbac.authorization.k8s.io/v1/", usize::MAX, Fault::Object(json!({})));
    let mut runs = Vec::new();
    for option in ["--dry-run", "--dry-run=server"] {
        api.forget_requests();
        let output = run(&api, &["grant", "--credspec", "webapp1", "--serviceaccount", "shop:web", option]).await;
        runs.push((option, shown(&output)));
        let patches = api.requests(Verb::Patch, "");
        assert_eq!(patches.len(), 2);
        assert!(patches.iter().all(|patch| patch.path.ends_with("&dryRun=All")), "{patches:?}");
    }
    assert_printed("grant-dry-run", &runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_revoked_is_deleted_and_what_is_left_is_said() {
    let api = with_rbac("who-can").await;
    let revoke = ["grant", "--credspec", "webapp1", "--serviceaccount", "shop:api", "--revoke", "--apply"];
    let path = "/namespaces/shop/rolebindings/gmsa-use-webapp1-api?";
    // The binding is there, and is not deleted by a dry run.
    api.fault(Verb::Delete, path, 2, Fault::Object(json!({})));
    let output = run(&api, &[&revoke[..], &["--dry-run"]].concat()).await;
    let mut runs = vec![("--dry-run", shown(&output))];
    assert!(api.requests(Verb::Delete, "")[0].path.ends_with("&dryRun=All"));
    let output = run(&api, &revoke).await;
    runs.push(("--apply", shown(&output)));
    assert_eq!(api.count(Verb::Delete, ""), 2);
    // Another binding gives the same.
    api.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "system:serviceaccounts:shop"}],
    }));
    let output = run(&api, &revoke).await;
    runs.push(("another binding is left", shown(&output)));
    // The grant of `webapp1-a` to `pi` and that of `webapp1` to `a-pi` have the same name: only the one that is asked for is deleted.
    api.apply(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "gmsa-use-webapp1-a-pi", "namespace": "shop"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "gmsa-use-webapp1-a"},
        "subjects": [{"kind": "ServiceAccount", "name": "pi", "namespace": "shop"}],
    }));
    let other = ["grant", "--credspec", "webapp1", "--serviceaccount", "shop:a-pi", "--revoke", "--apply"];
    let output = run(&api, &other).await;
    runs.push(("of another grant", shown(&output)));
    assert_printed("grant-revoked", &runs);
    assert_eq!(api.count(Verb::Delete, "gmsa-use-webapp1-a-pi"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn can_reads_the_cluster_s_credential_specs_and_roles() {
    let api = with_rbac("who-can").await;
    for name in ["webapp1", "webapp2"] {
        api.apply(credential_spec(name, json!({})));
    }
    let output = run(&api, &["can", "shop:web"]).await;
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/can/stdout");
    assert_eq!(text(&output.stdout), std::fs::read_to_string(written).unwrap(), "{}", text(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_can_reads_the_cluster_s_roles() {
    let api = with_rbac("who-can").await;
    let output = run(&api, &["who-can", "webapp1"]).await;
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/who-can/stdout");
    assert_eq!(text(&output.stdout), std::fs::read_to_string(written).unwrap(), "{}", text(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_cluster_it_says_why() {
    let mut api = SimulatedApi::start().await;
    api.stop().await;
    let output = run(&api, &["doctor"]).await;
    assert!(text(&output.stderr).starts_with("error: the API server cannot be reached: "), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(2));
    let output = run(&api, &["--context", "none", "doctor"]).await;
    assert_eq!(text(&output.stderr), "error: there is no context \"none\" in the kubeconfig\n");
    let output = run(&api, &["why", "a/b/c"]).await;
    let said =
        "error: invalid value 'a/b/c' for '<TYPE/NAME>': \"a\" is none of deploy, sts, ds, rs, job, cronjob and pod\n";
    assert!(text(&output.stderr).starts_with(said), "{}", text(&output.stderr));
    let folder = tempfile::tempdir().unwrap();
    let output = program(folder.path()).args(["doctor", "--kubeconfig", "none"]).output().unwrap();
    assert_eq!(
        portable(text(&output.stderr)),
        "error: cannot read the kubeconfig none: No such file or directory (os error 2)\n"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn version_is_that_of_the_plugin_and_of_the_running_webhook() {
    let plugin = env!("CARGO_PKG_VERSION");
    let mut api = healthy().await;
    // Its replicas cannot be asked, so their image says it.
    let mut runs = vec![("by the image", shown(&run(&api, &["version"]).await))];

    let metrics = "gmsa_webhook_build_info{version=\"0.2.0\"} 1\n# EOF\n";
    api.fault(Verb::Get, "/pods/webhook-a:9090/proxy/metrics", usize::MAX, Fault::Text(200, metrics));
    let output = run(&api, &["version", "-o", "json"]).await;
    let versions: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(versions, json!({"version": 1, "exitCode": 0, "plugin": plugin, "webhook": ["0.2.0"]}));

    api.delete("endpointslices", "gmsa", "webhook-1");
    runs.push(("no replica is ready", shown(&run(&api, &["version"]).await)));
    let mut by_url = api.object("mutatingwebhookconfigurations", "", "gmsa").unwrap();
    by_url["webhooks"][0]["clientConfig"] = json!({"url": "https://gmsa.contoso.com/mutate"});
    api.apply(by_url);
    runs.push(("by a URL", shown(&run(&api, &["version"]).await)));
    for (_, shown) in &mut runs {
        *shown = shown.replacen(plugin, "VERSION", 1);
    }
    assert_printed("version", &runs);
    api.delete("mutatingwebhookconfigurations", "", "gmsa");
    api.delete("validatingwebhookconfigurations", "", "gmsa");
    let output = run(&api, &["version", "-o", "json"]).await;
    let versions: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        versions,
        json!({"version": 1, "exitCode": 0, "plugin": plugin, "webhook": [], "unknown": "no GMSA webhook is installed"})
    );

    api.stop().await;
    let output = run(&api, &["version"]).await;
    let start = format!("plugin   {plugin}\nwebhook  unknown: the API server cannot be reached: ");
    assert!(text(&output.stdout).starts_with(&start), "{}", text(&output.stdout));
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)));
    let folder = tempfile::tempdir().unwrap();
    let output = program(folder.path()).arg("version").output().unwrap();
    let start = format!("plugin   {plugin}\nwebhook  unknown: there is no kubeconfig: ");
    assert!(text(&output.stdout).starts_with(&start), "{}", text(&output.stdout));
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)));
}
