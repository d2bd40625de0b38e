//! A walk that fails nowhere, what may not be read, what is stale by then, and `--watch`.

use super::*;

/// What runs on `win1`.
fn running() -> Value {
    json!({"phase": "Running", "containerStatuses": [{"name": "iis", "state": {"running": {}}}]})
}

fn healthy_deployment(api: &SimulatedApi) {
    deployment(api);
    api.apply(pod_of_it(api, "web-1-a", Some("win1"), &running()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_runs_passes_every_step() {
    let said = "\
pass  template         names webapp1
pass  permission       shop:web may use webapp1
pass  admission        1 of 1 pods were created; what follows is of web-1-a
pass  scheduling       on win1, which is of 10.0.20348
pass  sandbox          was created
pass  init containers  there are none
pass  containers       Running on win1
pass  in the pod       run: kubectl gmsa verify shop/web-1-a
";
    assert_eq!(walked(healthy_deployment).await, (said.to_owned(), Some(0)));
    assert_eq!(listed(healthy_deployment).await, []);
    let api = healthy().await;
    healthy_deployment(&api);
    let output = run(&api, &["doctor"]).await;
    assert!(text(&output.stdout).contains("\npass  workloads          1 uses GMSA, and has its pods\n"), "{output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_has_the_same_steps() {
    let api = healthy().await;
    deployment(&api);
    api.authorize_by(Table::default());
    let output = run(&api, &["doctor", "--workload", "shop/deployments/web", "-o", "json"]).await;
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        printed["totals"],
        json!({"passed": 1, "noted": 0, "warned": 0, "failed": 1, "notChecked": 6, "ignored": 0})
    );
    let last = json!({"status": "skip", "about": "in the pod", "text": "not reached", "rule": "not-checked"});
    assert_eq!(printed["checks"][7], last);
    assert_eq!(output.status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_is_skipped_and_the_walk_goes_on() {
    let (said, code) = walked(|api| {
        healthy_deployment(api);
        for path in ["/serviceaccounts/web", "/nodes/win1", "/gmsacredentialspecs/webapp1"] {
            api.fault(Verb::Get, path, usize::MAX, Fault::forbidden());
        }
        api.fault(Verb::List, "/events", usize::MAX, Fault::forbidden());
    })
    .await;
    let unread = "could not be checked: the API server answered 403: not allowed here [not-checked]\n                       \
        -> Run the command as a user who may read it (`--as`, `--context`).\n";
    let expected = format!(
        "\
skip  template         could not be checked: the API server answered 403: not allowed here [not-checked]
                       -> Run the command as a user of whom `kubectl auth can-i get gmsacredentialspecs.windows.k8s.io/webapp1` says yes (`--as`, `--context`).
skip  service account  {unread}pass  permission       shop:web may use webapp1
pass  admission        1 of 1 pods were created; what follows is of web-1-a
skip  admission        {unread}skip  scheduling       {unread}pass  sandbox          was created
pass  init containers  there are none
pass  containers       Running on win1
pass  in the pod       run: kubectl gmsa verify shop/web-1-a
"
    );
    assert_eq!((said, code), (expected, Some(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_events_the_condition_of_the_workload_says_why() {
    let fault = |api: &SimulatedApi| {
        deployment(api);
        let mut replica_set = api.object("replicasets", "shop", "web-1").unwrap();
        let message =
            "pods \"web-1-\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1";
        replica_set["status"]["conditions"] =
            json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": message}]);
        api.apply(replica_set);
        api.fault(Verb::List, "/events", usize::MAX, Fault::forbidden());
    };
    let (said, code) = walked(fault).await;
    let expected = "\
pass  template         names webapp1
pass  permission       shop:web may use webapp1
skip  events           could not be checked: the API server answered 403: not allowed here [not-checked]
                       -> Run the command as a user who may read it (`--as`, `--context`).
fail  admission        0 of 1 pods: pods \"web-1-\" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1 [pod-refused]
                       -> Do what the message says: it is that of a quota, of the Pod Security level of the namespace, of a policy, or of another webhook.
skip  scheduling       not reached [not-checked]
skip  sandbox          not reached [not-checked]
skip  init containers  not reached [not-checked]
skip  containers       not reached [not-checked]
skip  in the pod       not reached [not-checked]
";
    assert_eq!((said.as_str(), code), (expected, Some(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_whose_cause_is_gone_is_waited_for() {
    let (said, code) = walked(|api| {
        deployment(api);
        let message = "Error creating: admission webhook \"x\" denied the request: cred spec webapp1 does not exist";
        event(api, "replicasets", "web-1", "FailedCreate", message);
    })
    .await;
    let line = "\
fail  admission        0 of 1 pods: admission webhook \"x\" denied the request: cred spec webapp1 does not exist [spec-missing]
                       -> A pod would be admitted now. Its controller tries again by itself within 17 minutes, or at once after \
                       `kubectl rollout restart deployment web --namespace shop`.
";
    let line = line.replace("at once after                        `", "at once after `");
    assert!(said.contains(&line) && code == Some(1), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn watching_ends_when_the_workload_runs_or_the_time_is_over() {
    let api = healthy().await;
    deployment(&api);
    let mut one = pod_of_it(&api, "web-1-a", Some("win1"), &json!({"phase": "Pending"}));
    api.apply(one.clone());
    let over = run(&api, &["doctor", "--workload", "shop/deploy/web", "--watch", "--timeout", "1ms"]).await;
    assert_eq!(over.status.code(), Some(1), "{}", text(&over.stderr));

    one["status"] = running();
    let list = json!({"items": [api.object("pods", "shop", "web-1-a").unwrap()]});
    api.apply(one);
    // The first look is at the pod that is not started yet.
    api.fault(Verb::List, "/namespaces/shop/pods", 1, Fault::Object(list));
    let watched = run(&api, &["doctor", "--workload", "shop/deploy/web", "--watch", "--timeout", "1m"]).await;
    let waiting = "waiting: sandbox: Pending on win1: its kubelet has created no sandbox yet\n";
    assert_eq!((text(&watched.stderr), watched.status.code()), (waiting, Some(0)), "{}", text(&watched.stdout));
    assert!(text(&watched.stdout).ends_with("pass  in the pod       run: kubectl gmsa verify shop/web-1-a\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_words_are_refused() {
    let api = healthy().await;
    for (arguments, said) in [
        (
            &["--workload", "shop/web/a/b"][..],
            "error: invalid value 'shop/web/a/b' for '--workload <NAMESPACE/KIND/NAME>': expected NAMESPACE/KIND/NAME\n",
        ),
        (
            &["--workload", "shop/po/web"],
            "error: invalid value 'shop/po/web' for '--workload <NAMESPACE/KIND/NAME>': \"po\" is none of deploy, sts, ds, rs, job and cronjob; for a pod there is --pod\n",
        ),
        (&["--watch"], "error: the following required arguments were not provided:\n"),
        (&["--workload", "deploy/web", "--namespace", "a?b"], "error: \"a?b\" is not the name of a namespace\n"),
        (&["--workload", "shop/deploy/none"], "error: there is no Deployment shop/none\n"),
    ] {
        let output = run(&api, &[&["doctor"], arguments].concat()).await;
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).starts_with(said), "{}", text(&output.stderr));
    }
}
