//! What `doctor` says of the two dry runs: one that `/mutate` must refuse, one that it passes and `/validate` must refuse.

use serde_json::json;

use super::{
    super::{
        cluster::{DRY_RUN, REFUSED, healthy, run, script, script_each},
        support::{Fault, Verb},
        text,
    },
    complaints, explained,
};

fn refuse(code: u16, message: &'static str) -> Fault {
    Fault::Refuse { code, reason: "Whatever", message, retry_after: Some(0) }
}

const MUTATE_DOWN: &str = "Internal error occurred: failed calling webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\": failed to call webhook: \
    Post \"https://webhook.gmsa.svc:443/mutate?timeout=10s\": connect: connection refused";
const VALIDATE_DOWN: &str = "Internal error occurred: failed calling webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\": failed to call webhook: \
    Post \"https://webhook.gmsa.svc:443/validate?timeout=10s\": x509: certificate signed by unknown authority";

#[tokio::test(flavor = "multi_thread")]
async fn each_webhook_that_cannot_be_called_is_found() {
    let found = complaints(|api| script_each(api, REFUSED, refuse(500, VALIDATE_DOWN), &[])).await;
    let down = |about: &str, message: &str| {
        format!("fail {about}: the API server answered 500: {message} [webhook-unreachable]")
    };
    assert_eq!(found, [down("call of /validate", VALIDATE_DOWN)]);

    let found = explained(|api| script(api, refuse(500, MUTATE_DOWN), &[])).await;
    let first = "skip call of /validate: could not be checked: /mutate is called first, and fails [not-checked]";
    let [mutate, validate] = &found[..] else { panic!("{found:?}") };
    assert_eq!(mutate.0, down("call of /mutate", MUTATE_DOWN));
    assert_eq!(
        mutate.1,
        "Check its Pods, its Service, the network between, and the `caBundle` against the certificate."
    );
    assert_eq!((validate.0.as_str(), validate.1.as_str()), (first, "Correct the call of /mutate first."));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_webhook_that_is_not_called_is_found() {
    let admitted = || Fault::Object(json!({"kind": "Pod"}));
    let found = complaints(|api| script(api, admitted(), &[])).await;
    let validate =
        "fail call of /validate: a pod with contents of its own would be created in default [webhook-not-called]";
    let mutate = "fail call of /mutate: a pod that names a credential spec that does not exist would be created in default [webhook-not-called]";
    assert_eq!(found, [mutate, validate]);
    let found = complaints(|api| script_each(api, REFUSED, admitted(), &[])).await;
    assert_eq!(found, [validate]);

    // What /validate says to a pod with a name alone: nobody filled it in.
    let unfilled = "admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: service account \"default\" is not authorized \
        to `use` GMSA cred spec \"gmsa-webhook-test-does-not-exist\"";
    let found = complaints(|api| script(api, refuse(403, unfilled), &[])).await;
    let past = "fail call of /mutate: /validate gets a pod in default that /mutate did not get [webhook-not-called]";
    assert_eq!(found, [past]);
    let found = complaints(|api| script_each(api, refuse(500, VALIDATE_DOWN), REFUSED, &[])).await;
    assert_eq!(found, [past]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_of_the_webhook_has_the_remedy_of_its_cause() {
    for (cause, remedy) in [
        (
            "the API server answered 401: Unauthorized",
            "The API server does not accept the token of the webhook's service account. `helm upgrade webhook CHART -n gmsa` creates the account again \
             if it was deleted; then `kubectl rollout restart deployment/webhook -n gmsa` replaces the Pods, whose tokens are dead.",
        ),
        (
            "the API server answered 403: gmsacredentialspecs.windows.k8s.io is forbidden",
            "The service account of the webhook has lost its permissions: `helm upgrade webhook CHART -n gmsa` creates its ClusterRole and the \
             binding again.",
        ),
        (
            "the API server does not know GMSACredentialSpec: its CustomResourceDefinition gmsacredentialspecs.windows.k8s.io, version v1, is not installed",
            "Install the custom resource again; the check of it in `kubectl gmsa doctor` says how.",
        ),
        ("no answer from the API server within 9.5 s", "Look at the log of its Pods, which names the call that fails."),
    ] {
        let message = format!(
            "admission webhook \"admission-webhook.windows-gmsa.sigs.k8s.io\" denied the request: unable to retrieve the contents of cred spec \
             gmsa-webhook-test-does-not-exist: {cause}"
        );
        let found = explained(|api| script_each(api, refuse(500, message.clone().leak()), REFUSED, &[])).await;
        let failing = format!("fail call of /mutate: the API server answered 500: {message} [webhook-failing]");
        assert_eq!(found, [(failing, remedy.to_owned())]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_webhook_does_is_not_blamed_on_this_one() {
    for (message, does) in [
        (
            "Internal error occurred: failed calling webhook \"mutate.example.com\": no endpoints available",
            "cannot be called",
        ),
        (
            "admission webhook \"mutate.example.com\" denied the request: no Windows here",
            "refuses the pod of the dry run",
        ),
    ] {
        let found = explained(|api| script(api, refuse(500, message), &[])).await;
        let fix = "The webhook \"mutate.example.com\" is not of this installation. Correct it, or choose a namespace whose pods it does not review: `--namespace`.";
        let skip = |about: &str| {
            let text = format!("could not be checked: another webhook {does}: the API server answered 500: {message}");
            (format!("skip {about}: {text} [not-checked]"), fix.to_owned())
        };
        assert_eq!(found, [skip("call of /mutate"), skip("call of /validate")]);
    }
}

/// A user who may not list webhook configurations sees whether pods are refused.
#[tokio::test(flavor = "multi_thread")]
async fn the_dry_runs_are_made_without_the_configurations_too() {
    let found = complaints(|api| {
        script(api, refuse(500, MUTATE_DOWN), &[]);
        api.fault(Verb::List, "webhookconfigurations", usize::MAX, Fault::forbidden());
    })
    .await;
    assert_eq!(
        found,
        [
            "skip configuration: could not be checked: the API server answered 403: not allowed here [not-checked]"
                .to_owned(),
            format!("fail call of /mutate: the API server answered 500: {MUTATE_DOWN} [webhook-unreachable]"),
            "skip call of /validate: could not be checked: /mutate is called first, and fails [not-checked]".to_owned(),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_refuses_the_dry_run_decides_what_to_do() {
    let no_namespace = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"namespaces \\\"gone\\\" not found\",\
        \"reason\":\"NotFound\",\"details\":{\"name\":\"gone\",\"kind\":\"namespaces\"},\"code\":404}";
    for (answer, remedy) in [
        (Fault::Text(404, no_namespace), "Choose a namespace that exists: `--namespace`."),
        (
            refuse(
                403,
                "pods is forbidden: User \"jo\" cannot create resource \"pods\" in API group \"\" in the namespace \"default\"",
            ),
            "Run the command as a user who may create Pods in the namespace, or choose another one: `--as`, `--context`, `--namespace`.",
        ),
        (
            refuse(403, "pods \"x\" is forbidden: exceeded quota"),
            "Something other than a webhook for GMSA refuses the Pod of the dry run. Choose a namespace in which Pods that use GMSA run: `--namespace`.",
        ),
        (Fault::too_many_requests(0), "Try again later: the API server, or its flow control, has too many requests."),
    ] {
        let found = explained(|api| script(api, answer, &[])).await;
        let remedies: Vec<_> = found.iter().map(|(complaint, remedy)| (&complaint[..5], remedy.as_str())).collect();
        assert_eq!(remedies, [("skip ", remedy); 2]);
    }
}

/// What the Pod Security Standard `restricted` asks of a Windows pod: it is enforced before validating webhooks are called.
#[tokio::test(flavor = "multi_thread")]
async fn the_dry_runs_are_for_a_restricted_namespace_too() {
    let api = healthy().await;
    let output = run(&api, &["doctor", "-n", "shop"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let sent = api.requests(Verb::Create, "/namespaces/shop/pods?dryRun=All");
    assert_eq!((sent.len(), api.count(Verb::Create, DRY_RUN)), (2, 2));
    let mut contents = Vec::new();
    for request in sent {
        let spec = &request.body["spec"];
        assert_eq!((&spec["os"]["name"], &spec["securityContext"]["runAsNonRoot"]), (&json!("windows"), &json!(true)));
        let options = &spec["securityContext"]["windowsOptions"];
        assert_eq!(options["gmsaCredentialSpecName"], "gmsa-webhook-test-does-not-exist");
        contents.push(options["gmsaCredentialSpec"].as_str().map(str::to_owned));
    }
    contents.sort();
    assert_eq!(contents, [None, Some("{}".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_guard_refuses_is_not_taken_for_the_answer_of_the_webhook() {
    let report = async |validate: Fault| {
        let api = healthy().await;
        script_each(&api, REFUSED, validate, &[]);
        let output = run(&api, &["doctor"]).await;
        let lines = text(&output.stdout).lines().filter(|line| line.contains("guard") || line.contains("call of"));
        (output.status.code(), lines.map(str::to_owned).collect::<Vec<_>>())
    };
    let mutate = "pass  call of /mutate   the API server reaches it and trusts its certificate (dry run in default)";
    let guard = |name: &str, from: &str| {
        format!(
            "pass  guard             {name}, from {from}, refuses a pod with contents of its own before /validate is asked (dry run in default)"
        )
    };
    let of_cluster = "pods \"gmsa-webhook-test-x\" is forbidden: ValidatingAdmissionPolicy 'gmsa-guard' with binding 'gmsa-guard' denied request: \
        service account \"default\" is not authorized to `use` GMSA cred spec \"gmsa-webhook-test-does-not-exist\"";
    assert_eq!(
        report(refuse(403, of_cluster)).await,
        (Some(0), vec![mutate.to_owned(), guard("gmsa-guard", "the cluster")])
    );
    let of_file = "pods \"gmsa-webhook-test-x\" is forbidden: ValidatingAdmissionPolicy 'gmsa-guard.static.k8s.io' with binding \
        'gmsa-guard.static.k8s.io' denied request: service account \"default\" is not authorized to `use` GMSA cred spec \
        \"gmsa-webhook-test-does-not-exist\"";
    assert_eq!(
        report(refuse(403, of_file)).await,
        (Some(0), vec![mutate.to_owned(), guard("gmsa-guard.static.k8s.io", "a file of the control plane")])
    );

    // Nobody has filled in the name.
    let unfilled = "Pod \"gmsa-webhook-test-x\" is invalid: : ValidatingAdmissionPolicy 'gmsa-guard' with binding 'gmsa-guard' denied request: a GMSA \
        cred spec name has no contents, so the container would start without its identity; the mutating webhook did not run, or another one added the \
        name after it";
    let found = complaints(|api| script_each(api, refuse(422, unfilled), refuse(403, of_cluster), &[])).await;
    let not_called = "fail call of /mutate: a pod that names a credential spec that does not exist would get no contents in default: the policy \
        gmsa-guard refuses it [webhook-not-called]";
    assert_eq!(found, [not_called]);
}
