//! `gmsa-webhook test`: what it makes of each answer that an API server gives to its pods.

use serde_json::{Value, json};

use super::server_program;
use crate::support::{Fault, SimulatedApi, Verb};

const PODS: &str = "/api/v1/namespaces/apps/pods?dryRun=All";

/// What one of the answers in `dry_run.yaml` is to a pod.
fn answer(answer: &Value) -> Fault {
    let Some(message) = answer["message"].as_str() else {
        return Fault::Object(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "gmsa-webhook-test-x"}}));
    };
    let code = answer["code"].as_u64().unwrap().try_into().unwrap();
    Fault::Refuse { code, reason: "Whatever", message: message.to_owned().leak(), retry_after: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_validating_webhook_is_tested_by_itself() {
    let file: Value = serde_saphyr::from_str(include_str!("dry_run.yaml")).unwrap();
    for run in file["runs"].as_array().unwrap() {
        let api = SimulatedApi::start().await;
        for name in run["answers"].as_array().unwrap() {
            api.fault(Verb::Create, PODS, 1, answer(&file["answers"][name.as_str().unwrap()]));
        }
        let enforcement = run["enforcement"].as_str().unwrap_or("Enforce");
        let test = ["test", "--namespace", "apps", "--enforcement", enforcement];
        let (code, stdout, stderr) = server_program(Some(&api), &test).await;
        let expected = ["stdout", "stderr"].map(|stream| run[stream].as_str().unwrap_or_default());
        assert_eq!((json!(code), [&*stdout, &stderr]), (run["code"].clone(), expected));
        assert_slots(&api);
    }
}

/// Each pod names the credential spec in one slot; the last one is for /validate, which /mutate passes; in a slot that the Go webhook
/// beside this one would pass over.
fn assert_slots(api: &SimulatedApi) {
    let pods: Vec<Value> =
        api.requests(Verb::Create, "").into_iter().map(|request| request.body["spec"].clone()).collect();
    let name = json!({"gmsaCredentialSpecName": "gmsa-webhook-test-does-not-exist"});
    let mut whole = name.clone();
    whole["gmsaCredentialSpec"] = json!("{}");
    let asked = pods.iter().map(|spec| {
        ["", "/containers/0", "/initContainers/0"]
            .map(|place| spec.pointer(&format!("{place}/securityContext/windowsOptions")))
    });
    let (name, whole) = (Some(&name), Some(&whole));
    let expected = [[None; 3], [name, None, None], [None, name, None], [None, None, name], [None, None, whole]];
    assert_eq!(asked.collect::<Vec<_>>(), expected[..pods.len()]);
}
