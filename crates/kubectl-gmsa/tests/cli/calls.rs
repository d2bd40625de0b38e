//! How the commands call the API server: at the same time, in pages, and not again where nothing answers.

use serde_json::json;

use super::{
    cluster::{healthy, run},
    simulated::{cluster, folder},
    support::{Fault, Gate, SimulatedApi, Verb},
    text,
};

const NODES: &str = "/api/v1/nodes";

#[tokio::test(flavor = "multi_thread")]
async fn its_calls_are_made_at_the_same_time() {
    let api = healthy().await;
    let gates = [Gate::new(), Gate::new()];
    let [version, reviews] = &gates;
    api.heal();
    api.fault(Verb::Get, "/version", 1, Fault::Hold(version.clone()));
    api.fault(Verb::Create, "/subjectaccessreviews", usize::MAX, Fault::Hold(reviews.clone()));
    let doctor = run(&api, &["doctor"]);
    let watched = async {
        for (verb, path, count) in [
            (Verb::List, "/mutatingwebhookconfigurations", 1),
            (Verb::List, "/validatingwebhookconfigurations", 1),
            (Verb::List, "/api/v1/namespaces", 1),
            (Verb::List, "/gmsacredentialspecs", 1),
            (Verb::List, "/api/v1/pods", 1),
            (Verb::List, NODES, 1),
            (Verb::Create, "/pods?dryRun=All", 2),
            (Verb::Create, "/subjectaccessreviews", 11),
            (Verb::Get, "/namespaces/gmsa/secrets/webhook-tls", 1),
        ] {
            api.wait_for(verb, path, count).await;
        }
        gates.iter().for_each(Gate::open);
    };
    // The simulated API server has no version, so the command ends with an error.
    assert_eq!(tokio::join!(doctor, watched).0.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_answers_nothing_is_not_asked_again() {
    let api = healthy().await;
    api.heal();
    for verb in [Verb::Get, Verb::List, Verb::Create] {
        api.fault(verb, "", usize::MAX, Fault::Silence);
    }
    // Long enough for all first questions to arrive, beside a load too.
    let output = run(&api, &["doctor", "--request-timeout", "2s"]).await;
    let address = api.config().cluster_url.to_string();
    let address = address.trim_end_matches('/');
    let said = format!("error: {address} (context context): no answer from the API server within 2.0 s\n");
    assert_eq!((text(&output.stderr), output.status.code()), (&*said, Some(2)));
    // What follows from the first answers, such as the dry runs and the Services, is not asked for.
    let asked = |verb| api.count(verb, "");
    let again = [asked(Verb::Get), asked(Verb::List), asked(Verb::Create)];
    assert_eq!(again, [2, 13, 0]);
    // Nor are the kinds of workloads that are listed one after the other.
    let before = api.count(Verb::List, "");
    let output = run(&api, &["check", "-A", "--request-timeout", "2s"]).await;
    assert_eq!((api.count(Verb::List, "") - before, output.status.code()), (1, Some(2)));
    // A server that has answered something is asked for the rest.
    let api = healthy().await;
    api.fault(Verb::List, NODES, usize::MAX, Fault::Silence);
    run(&api, &["doctor", "--request-timeout", "2s"]).await;
    assert_eq!(api.count(Verb::Create, "/pods"), 2);
}

/// Adds pods that do not use GMSA, each with an annotation of this length.
fn add_pods(api: &SimulatedApi, count: usize, length: usize) {
    let mut pod = api.object("pods", "gmsa", "webhook-a").unwrap();
    pod["metadata"]["annotations"] = json!({"filler": "x".repeat(length)});
    for number in 0..count {
        pod["metadata"]["name"] = json!(format!("pod-{number}"));
        api.apply(pod.clone());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_pods_are_read_in_smaller_pages() {
    let api = cluster(&folder("outdated")).await;
    let before = run(&api, &["outdated", "-A"]).await;
    api.forget_requests();
    add_pods(&api, 400, 100_000);
    let output = run(&api, &["outdated", "-A", "--request-timeout", "2m"]).await;
    assert_eq!((text(&output.stdout), text(&output.stderr)), (text(&before.stdout), ""));
    let limits = |limit: &str| api.count(Verb::List, &format!("/api/v1/pods?limit={limit}"));
    assert_eq!((limits("500"), limits("125")), (1, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_whose_token_expired_starts_again() {
    let api = cluster(&folder("outdated")).await;
    let before = run(&api, &["outdated", "-A"]).await;
    api.forget_requests();
    add_pods(&api, 500, 0);
    api.fault(Verb::List, "&continue=", 1, Fault::gone());
    let output = run(&api, &["outdated", "-A"]).await;
    assert_eq!((text(&output.stdout), text(&output.stderr)), (text(&before.stdout), ""));
    assert_eq!(api.count(Verb::List, "/api/v1/pods"), 4);
    // Not for ever.
    api.fault(Verb::List, "&continue=", usize::MAX, Fault::gone());
    let output = run(&api, &["outdated", "-A"]).await;
    let said = "error: the API server answered 410: too old resource version: 1 (2)\n";
    assert_eq!((text(&output.stderr), output.status.code()), (said, Some(2)));
}
