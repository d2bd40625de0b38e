//! Every kind of workload: how many pods it wants, and whose they are.

use super::*;

/// What the walk through a workload says of its admission, and the exit code.
async fn admission(api: &SimulatedApi, named: &str) -> (String, Option<i32>) {
    let output = run(api, &["doctor", "--workload", named]).await;
    let said = text(&output.stdout);
    let line = said.lines().find(|line| line.contains("  admission  ")).unwrap_or_else(|| panic!("{output:?}"));
    let (status, said) = line.split_once("  admission ").unwrap();
    (format!("{status}:{}", said.trim_start()), output.status.code())
}

/// A pod of an object, which runs.
fn pod_of(api: &SimulatedApi, kind: &str, owner: &str, name: &str) {
    let mut web = api.object("pods", "shop", "web").unwrap();
    web["metadata"] = json!({"name": name, "namespace": "shop", "ownerReferences": controller(api, kind, owner)});
    api.apply(web);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_says_what_it_wants() {
    let api = healthy().await;
    api.apply(workload("apps/v1", "StatefulSet", "db", &json!({"replicas": 2})));
    api.apply(workload("apps/v1", "ReplicaSet", "lone", &json!({"replicas": 0})));
    let mut agent = workload("apps/v1", "DaemonSet", "agent", &json!({}));
    agent["status"] = json!({"desiredNumberScheduled": 1});
    api.apply(agent);
    let mut sum = workload("batch/v1", "Job", "sum", &json!({"completions": 3, "parallelism": 2}));
    sum["status"] = json!({"succeeded": 2});
    api.apply(sum);
    let mut over = workload("batch/v1", "Job", "over", &json!({}));
    over["status"] = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    api.apply(over);
    let mut failed = workload("batch/v1", "Job", "failed", &json!({}));
    let message = "Job has reached the specified backoff limit";
    failed["status"] = json!({"conditions": [{"type": "Failed", "status": "True", "message": message}]});
    api.apply(failed);
    let template = workload("batch/v1", "Job", "night", &json!({}))["spec"].clone();
    let night =
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "night", "namespace": "shop"}});
    let mut night = night.clone();
    night["spec"] = json!({"schedule": "0 3 * * *", "jobTemplate": {"spec": template}});
    api.apply(night);
    pod_of(&api, "DaemonSet", "agent", "agent-x");
    pod_of(&api, "StatefulSet", "db", "db-0");
    for (named, said, code) in [
        ("shop/sts/db", "fail:1 of 2 pods, and no event says why [pods-missing]", 1),
        ("shop/rs/lone", "pass:no pod is wanted: replicas is 0", 0),
        ("shop/ds/agent", "pass:1 of 1 pods were created; what follows is of agent-x", 0),
        ("shop/job/sum", "fail:0 of 1 pods, and no event says why [pods-missing]", 1),
        ("shop/job/over", "pass:no pod is wanted: it is complete", 0),
        ("shop/job/failed", "fail:it has failed: Job has reached the specified backoff limit [pods-missing]", 1),
        ("shop/cronjob/night", "pass:no pod is wanted: it has started no Job yet", 0),
    ] {
        assert_eq!(admission(&api, named).await, (said.to_owned(), Some(code)), "{named}");
    }
    let output = run(&api, &["doctor"]).await;
    let lines: Vec<&str> = text(&output.stdout).lines().filter(|line| line.contains("  workloads  ")).collect();
    let expected = [
        "fail  workloads          StatefulSet shop/db: 1 of 2 pods, and no event says why [pods-missing]",
        "fail  workloads          Job shop/failed: it has failed: Job has reached the specified backoff limit [pods-missing]",
        "fail  workloads          Job shop/sum: 0 of 1 pods, and no event says why [pods-missing]",
    ];
    assert_eq!(lines, expected, "{}", text(&output.stdout));
}

/// A StatefulSet creates the next pod when the one before runs.
#[tokio::test(flavor = "multi_thread")]
async fn the_pod_that_is_there_is_why_others_are_not() {
    let api = healthy().await;
    api.apply(workload("apps/v1", "StatefulSet", "db", &json!({"replicas": 3})));
    pod_of(&api, "StatefulSet", "db", "db-0");
    let mut first = api.object("pods", "shop", "db-0").unwrap();
    first["status"] = json!({"phase": "Running", "containerStatuses": [
        {"name": "iis", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}},
    ]});
    api.apply(first);
    let output = run(&api, &["doctor", "--workload", "shop/sts/db"]).await;
    let said = "\
pass  admission        1 of 3 pods were created; what follows is of db-0
pass  scheduling       on win1, which is of 10.0.20348
pass  sandbox          was created
pass  init containers  there are none
fail  containers       Running on win1, container \"iis\" ended with exit code 2, Error [not-started]
                       -> `kubectl logs db-0 --namespace shop --container iis` says why: correct the container, or what it needs.
skip  in the pod       not reached [not-checked]
";
    assert!(text(&output.stdout).ends_with(said), "{}", text(&output.stdout));
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_that_may_not_be_listed_are_one_line() {
    let found = listed(|api| {
        deployment(api);
        for path in ["/apis/batch/v1/jobs", "/apis/batch/v1/cronjobs", "/apis/apps/v1/daemonsets"] {
            api.fault(Verb::List, path, usize::MAX, Fault::forbidden());
        }
    })
    .await;
    let lines: Vec<&str> = found.iter().map(|(line, _)| line.as_str()).collect();
    let expected = [
        "skip workloads: DaemonSet, Job, CronJob: could not be checked: the API server answered 403: not allowed here [not-checked]",
        "fail workloads: Deployment shop/web: 0 of 1 pods, and no event says why [pods-missing]",
    ];
    assert_eq!(lines, expected);
}

/// Whoever may create pods may write any owner into them.
#[tokio::test(flavor = "multi_thread")]
async fn a_pod_of_another_namespace_is_not_counted() {
    let (said, code) = walked(|api| {
        deployment(api);
        let mut stolen = pod_of_it(api, "web-1-a", Some("win1"), &json!({"phase": "Running"}));
        stolen["metadata"]["namespace"] = json!("default");
        api.apply(stolen);
    })
    .await;
    assert!(said.contains("fail  admission        0 of 1 pods, and no event says why [pods-missing]\n"), "{said}");
    assert_eq!(code, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_read_in_pages() {
    let api = healthy().await;
    for index in 0..501 {
        let mut set = workload("apps/v1", "StatefulSet", &format!("s{index}"), &json!({"replicas": 0}));
        set["spec"]["template"]["spec"]["securityContext"] = json!({});
        api.apply(set);
    }
    let output = run(&api, &["doctor"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let pages: Vec<String> =
        api.requests(Verb::List, "/statefulsets").into_iter().map(|request| request.path).collect();
    assert_eq!(pages.len(), 2, "{pages:?}");
    assert!(pages[0].ends_with("?limit=500") && pages[1].contains("&continue="), "{pages:?}");
}
