//! `check --all-namespaces`, and `check --namespace` without files, against the simulated API server.

use std::process::Output;

use serde_json::{Value, json};

use super::{
    assert_printed,
    cluster::{configurations, healthy, kind, pod, run},
    shown,
    support::{Fault, SimulatedApi, Table, Verb},
    text,
};

/// The healthy cluster with all kinds of workloads.
///
/// It has two pods of its own: `shop/web`, and one of the webhook.
async fn cluster() -> SimulatedApi {
    let api = healthy().await;
    for (kind_name, plural) in
        [("StatefulSet", "statefulsets"), ("DaemonSet", "daemonsets"), ("ReplicaSet", "replicasets")]
    {
        api.define(kind("apps/v1", kind_name, plural, true));
    }
    api.define(kind("batch/v1", "CronJob", "cronjobs", true));
    api.define(kind("batch/v1", "Job", "jobs", true));
    api.define(kind("v1", "ReplicationController", "replicationcontrollers", true));
    api
}

/// A template of pods that use a credential spec.
fn template(spec: &str) -> Value {
    let pod = pod("a", &json!({"gmsaCredentialSpecName": spec}));
    let mut spec = pod["spec"].clone();
    spec["nodeSelector"] = json!({"kubernetes.io/os": "windows"});
    json!({"metadata": {"labels": {"app": "web"}}, "spec": spec})
}

fn workload(kind: &str, [namespace, name]: [&str; 2], spec: &str) -> Value {
    let version = if kind == "CronJob" { "batch/v1" } else { "apps/v1" };
    let template = template(spec);
    let spec = if kind == "CronJob" {
        json!({"jobTemplate": {"spec": {"template": template}}})
    } else {
        json!({"replicas": 1, "template": template})
    };
    json!({"apiVersion": version, "kind": kind, "metadata": {"namespace": namespace, "name": name}, "spec": spec})
}

fn owned(mut object: Value, version: &str, kind: &str) -> Value {
    object["metadata"]["ownerReferences"] =
        json!([{"apiVersion": version, "kind": kind, "name": "x", "uid": "u", "controller": true}]);
    object
}

fn exit(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_workloads_of_all_namespaces_are_checked_and_nothing_is_created() {
    let api = cluster().await;
    api.authorize_by(Table::of(&[("shop", "web", "webapp1")]));
    api.apply(workload("Deployment", ["shop", "fine"], "webapp1"));
    api.apply(workload("CronJob", ["shop", "gone"], "gone"));
    let mut alike = workload("StatefulSet", ["shop", "very-long-name-web"], "webapp1");
    alike["spec"]["replicas"] = json!(2);
    api.apply(alike);
    let mut default = workload("DaemonSet", ["default", "agent"], "webapp1");
    default["spec"]["template"]["spec"]["serviceAccountName"] = json!("default");
    api.apply(default);
    // These are checked where they come from, or are done.
    api.apply(owned(workload("ReplicaSet", ["shop", "fine-1"], "gone"), "apps/v1", "Deployment"));
    api.apply(owned(pod("fine-1-a", &json!({"gmsaCredentialSpecName": "gone"})), "apps/v1", "ReplicaSet"));
    let mut done = pod("done", &json!({"gmsaCredentialSpecName": "gone"}));
    done["status"] = json!({"phase": "Succeeded"});
    api.apply(done);
    // Nothing else checks that of a kind that is not listed.
    api.apply(owned(workload("ReplicaSet", ["shop", "rollout-1"], "webapp1"), "argoproj.io/v1alpha1", "Rollout"));
    let output = run(&api, &["check", "-A"]).await;
    let expected = "\
OBJECT                               SLOT          CREDENTIAL SPEC  RESULT
Deployment shop/fine                 pod template  webapp1          gets its contents
StatefulSet shop/very-long-name-web  pod template  webapp1          gets its contents
DaemonSet default/agent              pod template  webapp1          refused, 403: not-authorized
ReplicaSet shop/rollout-1            pod template  webapp1          gets its contents
CronJob shop/gone                    pod template  gone             refused, 404: spec-missing
Pod shop/web                         pod \"web\"     webapp1          carries its contents already

error[not-authorized] DaemonSet default/agent
  spec.template.spec.securityContext.windowsOptions.gmsaCredentialSpecName: service account \"default\" is not authorized to `use` GMSA cred spec \"webapp1\"
  fix:
    # or: kubectl gmsa grant --credspec webapp1 --serviceaccount default:default --apply
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata:
      name: gmsa-use-webapp1
    rules:
    - apiGroups: [windows.k8s.io]
      resources: [gmsacredentialspecs]
      resourceNames: [webapp1]
      verbs: [use]
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata:
      name: gmsa-use-webapp1-default
      namespace: default
    roleRef:
      apiGroup: rbac.authorization.k8s.io
      kind: ClusterRole
      name: gmsa-use-webapp1
    subjects:
    - kind: ServiceAccount
      name: default
      namespace: default

error[spec-missing] CronJob shop/gone
  spec.jobTemplate.spec.template.spec.securityContext.windowsOptions.gmsaCredentialSpecName: cred spec gone does not exist
  fix: `kubectl gmsa credspec new gone --account NAME --from-ad FILE | kubectl apply -f -`, or use the name of one that exists: `kubectl get gmsacredentialspecs`.

warning[shared-hostname] StatefulSet shop/very-long-name-web
  metadata.name: the host names \"very-long-name-web-0\" and \"very-long-name-web-1\" have the same first 15 characters: pods that share these and an account can lose their trust
  fix: give it a name of at most 12 characters: a StatefulSet sets the host names of its pods itself, so the webhook gives none

2 errors, 1 warning in 7 objects
";
    assert_eq!((text(&output.stdout), text(&output.stderr), exit(&output)), (expected, "", 1));
    let created: Vec<String> = api
        .requests(Verb::Create, "")
        .into_iter()
        .map(|request| request.path)
        .filter(|path| !path.contains("accessreview"))
        .collect();
    assert_eq!(created, [""; 0]);
    for changing in [Verb::Update, Verb::Patch, Verb::Delete] {
        assert_eq!(api.count(changing, ""), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_is_checked_alone() {
    let api = cluster().await;
    api.apply(workload("Deployment", ["shop", "fine"], "webapp1"));
    api.apply(workload("Deployment", ["default", "other"], "gone"));
    let output = run(&api, &["check", "--namespace", "default"]).await;
    let expected = "\
OBJECT                    SLOT          CREDENTIAL SPEC  RESULT
Deployment default/other  pod template  gone             refused, 404: spec-missing

error[spec-missing] Deployment default/other
  spec.template.spec.securityContext.windowsOptions.gmsaCredentialSpecName: cred spec gone does not exist
  fix: `kubectl gmsa credspec new gone --account NAME --from-ad FILE | kubectl apply -f -`, or use the name of one that exists: `kubectl get gmsacredentialspecs`.

error[service-account-missing] Deployment default/other
  spec.template.spec.serviceAccountName: there is no service account \"web\" in namespace \"default\" in the cluster
  fix: Create it: `kubectl create serviceaccount web --namespace default`. Or correct the name in the Pod.

2 errors in 1 object
";
    let lists = [
        "apps/v1/namespaces/default/deployments",
        "batch/v1/namespaces/default/cronjobs",
        "api/v1/namespaces/default/pods",
    ];
    for list in lists {
        assert_eq!(api.count(Verb::List, list), 1, "{list}");
    }
    assert_eq!((text(&output.stdout), exit(&output)), (expected, 1));
    // Of all namespaces where both are said, as with kubectl.
    let all = run(&api, &["check", "-A", "-n", "default", "-o", "json"]).await;
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    assert_eq!(all["totals"]["objects"], 4);
    // A list of nothing does not say whether there is such a namespace.
    let none = run(&api, &["check", "-n", "shopp"]).await;
    assert_eq!((text(&none.stderr), exit(&none)), ("error: there is no namespace \"shopp\"\n", 2));
    let empty = run(&api, &["check", "-n", "kube-system"]).await;
    assert_eq!((text(&empty.stdout), exit(&empty)), ("no problems found in 0 objects\n", 0));
    let wrong = run(&api, &["check", "-n", "a/b"]).await;
    assert_eq!((text(&wrong.stderr), exit(&wrong)), ("error: \"a/b\" is not the name of a namespace\n", 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_once_it_is_reviewed_is_said_before() {
    let api = cluster().await;
    api.delete("pods", "shop", "web");
    api.apply(workload("Deployment", ["shop", "fine"], "webapp1"));
    api.apply(workload("Deployment", ["shop", "gone"], "gone"));
    configurations(&api, |webhook| {
        webhook["namespaceSelector"] = json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["shop"]}]});
    });
    let output = run(&api, &["check", "-n", "shop"]).await;
    let expected = "\
OBJECT                SLOT          CREDENTIAL SPEC  RESULT
Deployment shop/fine  pod template  webapp1          is not reviewed: gets no contents
Deployment shop/gone  pod template  gone             is not reviewed: gets no contents

warning[namespaces-excluded] Deployment shop/fine
  spec.template.spec: no webhook for GMSA reviews this pod: the selectors in its configuration leave out the namespace, or the pod
  so: the container starts without its identity

warning[namespaces-excluded] Deployment shop/gone
  spec.template.spec: no webhook for GMSA reviews this pod: the selectors in its configuration leave out the namespace, or the pod
  so: the container starts without its identity

warning[spec-missing] Deployment shop/gone
  spec.template.spec.securityContext.windowsOptions.gmsaCredentialSpecName: once the webhook reviews this pod: cred spec gone does not exist
  fix: `kubectl gmsa credspec new gone --account NAME --from-ad FILE | kubectl apply -f -`, or use the name of one that exists: `kubectl get gmsacredentialspecs`.

3 warnings in 2 objects
";
    assert_eq!((text(&output.stdout), exit(&output)), (expected, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_listed_could_not_be_checked() {
    let api = cluster().await;
    api.delete("pods", "shop", "web");
    api.apply(workload("Deployment", ["shop", "fine"], "webapp1"));
    for plural in ["statefulsets", "cronjobs"] {
        api.fault(Verb::List, plural, usize::MAX, Fault::forbidden());
    }
    let output = run(&api, &["check", "-A"]).await;
    let expected = "\
OBJECT                SLOT          CREDENTIAL SPEC  RESULT
Deployment shop/fine  pod template  webapp1          gets its contents

warning[not-checked] statefulsets, cronjobs
  could not be checked: the API server answered 403: not allowed here
  fix: Run the command as a user who may read it (`--as`, `--context`).

1 unreadable part in 2 objects
";
    assert_eq!((text(&output.stdout), exit(&output)), (expected, 2));
    let output = run(&api, &["check", "-n", "shop"]).await;
    assert!(text(&output.stdout).contains("\nwarning[not-checked] statefulsets, cronjobs in namespace shop\n"));
    assert_eq!(exit(&output), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_is_down_is_no_clean_report() {
    let mut api = cluster().await;
    api.stop().await;
    let output = run(&api, &["check", "-A", "-o", "json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let totals = &report["totals"];
    assert_eq!((&totals["objects"], &totals["unreadable"], exit(&output)), (&json!(0), &json!(1), 2));
    let finding = &report["findings"][0];
    assert_eq!(finding["object"], "deployments, statefulsets, daemonsets, replicasets, cronjobs and 3 more");
    assert_eq!(finding.get("fix"), None, "another user would not help");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_read_in_pages() {
    let api = cluster().await;
    let mut controlled = owned(pod("p", &json!({})), "apps/v1", "ReplicaSet");
    for number in 0..501 {
        controlled["metadata"]["name"] = json!(format!("p{number}"));
        api.apply(controlled.clone());
    }
    let output = run(&api, &["check", "-A"]).await;
    assert_eq!((text(&output.stdout).lines().last().unwrap(), exit(&output)), ("no problems found in 2 objects", 0));
    assert_eq!(api.count(Verb::List, "/api/v1/pods?limit=500"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_format_names_the_object_as_its_place() {
    let api = cluster().await;
    api.delete("pods", "shop", "web");
    api.apply(workload("Deployment", ["shop", "gone"], "gone"));
    let printed = async |format: &str| {
        let output = run(&api, &["check", "-A", "-o", format]).await;
        (text(&output.stdout).to_owned(), exit(&output))
    };
    let (text_of_log, code) = printed("github").await;
    let log = "::error file=shop/Deployment/gone,title=spec-missing::Deployment shop/gone: \
               spec.template.spec.securityContext.windowsOptions.gmsaCredentialSpecName: cred spec gone does not exist%0Afix: `kubectl gmsa credspec \
               new gone --account NAME --from-ad FILE | kubectl apply -f -`, or use the name of one that exists: `kubectl get gmsacredentialspecs`.\n1 error in 2 objects\n";
    assert_eq!((text_of_log.as_str(), code), (log, 1));
    let (sarif, _) = printed("sarif").await;
    let sarif: Value = serde_json::from_str(&sarif).unwrap();
    let location = &sarif["runs"][0]["results"][0]["locations"][0];
    assert_eq!(location["physicalLocation"]["artifactLocation"]["uri"], "shop/Deployment/gone");
    assert_eq!(location["logicalLocations"][0]["fullyQualifiedName"], "Deployment shop/gone");
    let (json, _) = printed("json").await;
    let json: Value = serde_json::from_str(&json).unwrap();
    let place = json!({
        "file": "shop/Deployment/gone", "object": "Deployment shop/gone", "slot": "pod template", "credentialSpec": "gone",
        "admitted": false, "result": "refused, 404: spec-missing",
    });
    assert_eq!(json["places"], json!([place]));
    assert_eq!((&json["findings"][0]["file"], json["findings"][0].get("line")), (&json!("shop/Deployment/gone"), None));
    let ignored = run(&api, &["check", "-A", "--ignore", "spec-missing"]).await;
    assert!(text(&ignored.stdout).ends_with("\nno problems found in 2 objects, and 1 ignored\n"));
    assert_eq!(exit(&ignored), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_gives_host_names_leaves_no_note_about_them() {
    let api = cluster().await;
    api.delete("pods", "shop", "web");
    let mut web = workload("Deployment", ["shop", "web"], "webapp1");
    web["spec"]["replicas"] = json!(3);
    api.apply(web);
    let output = run(&api, &["check", "-n", "shop"]).await;
    let expected = "\
OBJECT               SLOT          CREDENTIAL SPEC  RESULT
Deployment shop/web  pod template  webapp1          gets its contents

note[shared-hostname] Deployment shop/web
  spec.replicas: the host names of its pods have the same first 15 characters: pods that share these and an account can lose their trust
  fix:
    spec:
      template:
        metadata:
          annotations: {gmsa-webhook/random-hostname: \"true\"}

1 note in 1 object
";
    assert_eq!((text(&output.stdout), exit(&output)), (expected, 0));
    assert_eq!(exit(&run(&api, &["check", "-n", "shop", "--fail-on", "note"]).await), 1);
    for container in [
        json!({"name": "webhook", "env": [{"name": "RANDOM_HOSTNAME", "value": "true"}]}),
        json!({"name": "webhook", "args": ["serve", "--random-hostname"]}),
    ] {
        let mut replica = api.object("pods", "gmsa", "webhook-a").unwrap();
        replica["spec"]["containers"] = json!([container]);
        api.apply(replica);
        let output = run(&api, &["check", "-n", "shop"]).await;
        assert_eq!(text(&output.stdout).lines().last(), Some("no problems found in 1 object"), "{container}");
    }
    let mut off = api.object("pods", "gmsa", "webhook-a").unwrap();
    off["spec"]["containers"] = json!([{"name": "webhook", "args": ["--random-hostname=false"], "env": [{"name": "RANDOM_HOSTNAME", "value": "false"}]}]);
    api.apply(off);
    assert_eq!(text(&run(&api, &["check", "-n", "shop"]).await.stdout), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_files_it_must_be_said_what_is_checked() {
    let api = cluster().await;
    let mut runs = Vec::new();
    for words in ["check", "check --live", "check -n shop --state x", "check -n shop --patched"] {
        let arguments: Vec<&str> = words.split(' ').collect();
        runs.push((words, shown(&run(&api, &arguments).await)));
    }
    assert_printed("check-without-files", &runs);
    for others in [["-f", "x"], ["--state", "x"]] {
        let output = run(&api, &[&["check", "-A"][..], &others].concat()).await;
        assert!(
            text(&output.stderr).starts_with("error: the argument '--all-namespaces' cannot be used with "),
            "{}",
            text(&output.stderr)
        );
        assert_eq!(exit(&output), 2);
    }
    assert_eq!(api.count(Verb::List, ""), 0);
}
