//! What `doctor` makes of what it cannot read: neither a pass nor a fault, exit code 2, and the remedy of the cause.

use serde_json::json;

use super::{
    super::{
        assert_printed,
        cluster::{DRY_RUN, healthy, run},
        support::{Fault, Gate, Verb},
        text,
    },
    explained,
};

const NODES: &str = "/api/v1/nodes";

fn refuse(code: u16) -> Fault {
    Fault::Refuse { code, reason: "Whatever", message: "no", retry_after: Some(0) }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_checked_has_the_remedy_of_its_cause() {
    let mut runs = Vec::new();
    for (title, answer) in [
        ("401", refuse(401)),
        ("403", refuse(403)),
        ("404", refuse(404)),
        ("429", refuse(429)),
        ("500", refuse(500)),
        ("502", Fault::Text(502, "bad gateway")),
        ("503", refuse(503)),
        ("the connection is cut", Fault::Cut),
        ("no list", Fault::Object(json!({"items": "none"}))),
    ] {
        let found = explained(|api| api.fault(Verb::List, NODES, usize::MAX, answer)).await;
        let [(complaint, fix)] = &found[..] else { panic!("{found:?}") };
        assert!(complaint.starts_with("skip Windows nodes: could not be checked: "), "{complaint}");
        runs.push((title, format!("{fix}\n")));
    }
    assert_printed("doctor-not-checked", &runs);
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_is_no_pass_of_what_could_not_be_checked() {
    let api = healthy().await;
    api.fault(Verb::List, NODES, usize::MAX, Fault::forbidden());
    let output = run(&api, &["doctor", "--wait", "60"]).await;
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(2)));
    assert_eq!(api.count(Verb::List, NODES), 1, "rights do not come by waiting");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_goes_on_while_the_api_server_is_busy() {
    let api = healthy().await;
    // A call and its retry.
    api.fault(Verb::List, NODES, 2, Fault::too_many_requests(0));
    let output = run(&api, &["doctor", "--wait", "60"]).await;
    let waiting = "waiting: Windows nodes: could not be checked: the API server answered 429: Too many requests, please try again later.\n";
    assert_eq!((text(&output.stderr), output.status.code()), (waiting, Some(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_waited_for_that_is_ignored() {
    let api = healthy().await;
    api.delete("endpointslices", "gmsa", "webhook-1");
    let output = run(&api, &["doctor", "--wait", "60", "--ignore", "endpoints"]).await;
    assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)));
    assert_eq!(api.count(Verb::List, "/endpointslices"), 1);
}

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
            (Verb::Create, DRY_RUN, 2),
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
    let said = "error: no answer from the API server within 2.0 s\n";
    assert_eq!((text(&output.stderr), output.status.code()), (said, Some(2)));
    // What follows from the first answers, such as the dry runs and the Services, is not asked for.
    let asked = |verb| api.count(verb, "");
    let again = [asked(Verb::Get), asked(Verb::List), asked(Verb::Create)];
    assert_eq!(again, [2, 12, 0]);
    // Nor are the kinds of workloads that are listed one after the other.
    let before = api.count(Verb::List, "");
    let output = run(&api, &["check", "-A", "--request-timeout", "2s"]).await;
    assert_eq!((api.count(Verb::List, "") - before, output.status.code()), (1, Some(2)));
    // One that has answered something is asked for the rest.
    let api = healthy().await;
    api.fault(Verb::List, NODES, usize::MAX, Fault::Silence);
    run(&api, &["doctor", "--request-timeout", "2s"]).await;
    assert_eq!(api.count(Verb::Create, "/pods"), 2);
}
