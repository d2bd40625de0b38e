//! Counted calls: how many questions to the API server each review costs, from the review to the decision.

use std::{convert::Infallible, path::Path, sync::Arc};

use gmsa_webhook::{
    admission::{Decision, Review, Verdict, Webhook},
    authorizer::{access_review::AccessReviews, remembered::Remembered},
    metrics::Metrics,
    resolver::cache::Cache,
    server::Reviewer,
    standalone::Standalone,
};
use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{self, Instant},
};

use super::{
    Duration, REVIEWS, SOON, SPECS, connect,
    support::{Fault, Gate, PATIENCE, SimulatedApi, Table, Verb, credential_spec},
};

const TTL: Duration = Duration::from_secs(10);
const MUTATE: Webhook = Webhook::Mutate { random_hostname: false };

/// The webhook as it runs in a cluster, without its port.
struct Scene {
    api: SimulatedApi,
    reviewer: Reviewer,
    _watch: JoinSet<Infallible>,
}

impl Scene {
    /// With the credential specs `web` and `db`, which `till` and `clerk` may use in `shop`, and a warm cache.
    async fn start() -> Self {
        let api = SimulatedApi::start().await;
        for name in ["web", "db"] {
            api.apply(credential_spec(name, json!({"is": name})));
        }
        api.authorize_by(Table::of(&[
            ("shop", "till", "web"),
            ("shop", "till", "db"),
            ("shop", "clerk", "web"),
            ("mall", "till", "web"),
        ]));
        Self::on(api).await
    }

    async fn on(api: SimulatedApi) -> Self {
        let (metrics, _) = Metrics::new("test");
        let server = connect(&api);
        let (cache, watch) = Cache::new(Arc::clone(&server), metrics.clone());
        let mut owner = JoinSet::new();
        owner.spawn(watch);
        let mut ready = cache.ready();
        time::timeout(PATIENCE, ready.wait_for(|ready| *ready)).await.unwrap().unwrap();
        let authorizer = Remembered::new(AccessReviews::new(server), TTL);
        let reviewer = Reviewer::new(Arc::new(cache), Arc::new(authorizer), false, metrics);
        api.forget_requests();
        Self { api, reviewer, _watch: owner }
    }

    async fn decide(&self, webhook: Webhook, review: &Value) -> Decision {
        decide(&self.reviewer, webhook, review).await
    }

    async fn allows(&self, webhook: Webhook, review: &Value) {
        let decision = self.decide(webhook, review).await;
        assert!(decision.is_allowed(), "{decision:?}");
    }

    async fn denies(&self, webhook: Webhook, review: &Value, code: u16, message: &str) {
        match self.decide(webhook, review).await.verdict {
            Verdict::Denied(denial) => assert_eq!((denial.code(), denial.to_string()), (code, message.to_owned())),
            Verdict::Allowed(_) => panic!("allowed, where this should be the denial: {message}"),
        }
    }

    /// Waits until memory is believed; forgets the requests until then.
    async fn is_warm(&self) {
        loop {
            self.api.forget_requests();
            self.allows(MUTATE, &pod("shop", "till", false)).await;
            if self.calls() == (0, 0) {
                return;
            }
            time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Reads and access reviews so far.
    fn calls(&self) -> (usize, usize) {
        (self.api.count(Verb::Get, SPECS), self.api.count(Verb::Create, REVIEWS))
    }
}

async fn decide(reviewer: &Reviewer, webhook: Webhook, review: &Value) -> Decision {
    let body = review.to_string();
    let review = Review::parse(body.as_bytes()).unwrap();
    let now = Instant::now();
    reviewer.decide(webhook, &review, now, now + SOON).await
}

fn create(namespace: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "namespace": namespace,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "object": {"metadata": {"name": "pod"}, "spec": spec},
        },
    })
}

fn options(name: &str, contents: Option<&str>) -> Value {
    match contents {
        None => json!({"windowsOptions": {"gmsaCredentialSpecName": name}}),
        Some(text) => json!({"windowsOptions": {"gmsaCredentialSpecName": name, "gmsaCredentialSpec": text}}),
    }
}

/// A pod whose own slot and first container name `web`, and whose second container names `db`.
fn pod(namespace: &str, account: &str, expanded: bool) -> Value {
    let slot = |name: &str| options(name, expanded.then(|| format!(r#"{{"is":"{name}"}}"#)).as_deref());
    create(
        namespace,
        &json!({
            "serviceAccountName": account,
            "securityContext": slot("web"),
            "containers": [{"name": "a", "securityContext": slot("web")}, {"name": "b", "securityContext": slot("db")}],
        }),
    )
}

/// A pod that names only `web`, with this text.
fn simple(namespace: &str, account: &str, text: &str) -> Value {
    let slot = options("web", Some(text));
    create(namespace, &json!({"serviceAccountName": account, "securityContext": slot, "containers": []}))
}

const WEB: &str = r#"{"is":"web"}"#;

#[tokio::test]
async fn mutating_with_a_warm_cache_costs_nothing() {
    let scene = Scene::start().await;
    for _ in 0..50 {
        scene.allows(MUTATE, &pod("shop", "till", false)).await;
    }
    assert_eq!(scene.calls(), (0, 0));
}

#[tokio::test]
async fn validating_costs_one_access_review_for_each_namespace_account_and_spec() {
    let scene = Scene::start().await;
    for _ in 0..50 {
        scene.allows(Webhook::Validate, &pod("shop", "till", true)).await;
        scene.allows(Webhook::Validate, &simple("shop", "clerk", WEB)).await;
        scene.allows(Webhook::Validate, &simple("mall", "till", WEB)).await;
    }
    let mut asked: Vec<(Value, Value)> = Vec::new();
    for request in scene.api.requests(Verb::Create, REVIEWS) {
        let spec = &request.body["spec"];
        asked.push((spec["user"].clone(), spec["resourceAttributes"]["name"].clone()));
    }
    asked.sort_by_key(|(user, name)| format!("{user} {name}"));
    let expected = [
        ("system:serviceaccount:mall:till", "web"),
        ("system:serviceaccount:shop:clerk", "web"),
        ("system:serviceaccount:shop:till", "db"),
        ("system:serviceaccount:shop:till", "web"),
    ];
    assert_eq!(asked, expected.map(|(user, name)| (json!(user), json!(name))));
    assert_eq!(scene.calls(), (0, 4));
}

#[tokio::test]
async fn an_approval_is_asked_for_again_after_its_time() {
    let scene = Scene::start().await;
    scene.allows(Webhook::Validate, &simple("shop", "till", WEB)).await;
    scene.api.authorize_by(Table::default());
    scene.allows(Webhook::Validate, &simple("shop", "till", WEB)).await;
    assert_eq!(scene.calls(), (0, 1));
    time::pause();
    time::advance(TTL).await;
    time::resume();
    let message = r#"service account "till" is not authorized to `use` GMSA cred spec "web""#;
    scene.denies(Webhook::Validate, &simple("shop", "till", WEB), 403, message).await;
    assert_eq!(scene.calls(), (0, 2));
}

#[tokio::test]
async fn a_right_that_was_granted_a_moment_ago_counts() {
    let scene = Scene::start().await;
    let message = r#"service account "thief" is not authorized to `use` GMSA cred spec "web""#;
    scene.denies(Webhook::Validate, &simple("shop", "thief", WEB), 403, message).await;
    scene.api.authorize_by(Table::of(&[("shop", "thief", "web")]));
    scene.allows(Webhook::Validate, &simple("shop", "thief", WEB)).await;
    assert_eq!(scene.calls(), (0, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_hundred_reviews_of_one_pod_template_at_once_cost_one_access_review() {
    let scene = Scene::start().await;
    let mut deciding = JoinSet::new();
    for _ in 0..200 {
        let reviewer = scene.reviewer.clone();
        let review = simple("shop", "till", WEB);
        deciding.spawn(async move { decide(&reviewer, Webhook::Validate, &review).await.is_allowed() });
    }
    assert_eq!(deciding.join_all().await, vec![true; 200]);
    assert_eq!(scene.calls(), (0, 1));
}

#[tokio::test]
async fn two_hundred_reviews_that_wait_for_the_same_answer_cost_one_access_review() {
    let scene = Scene::start().await;
    let gate = Gate::new();
    scene.api.fault(Verb::Create, REVIEWS, usize::MAX, Fault::Hold(gate.clone()));
    let mut deciding = JoinSet::new();
    for _ in 0..200 {
        let reviewer = scene.reviewer.clone();
        let review = simple("shop", "till", WEB);
        deciding.spawn(async move { decide(&reviewer, Webhook::Validate, &review).await.is_allowed() });
    }
    scene.api.wait_for(Verb::Create, REVIEWS, 1).await;
    gate.open();
    assert_eq!(deciding.join_all().await, vec![true; 200]);
    assert_eq!(scene.calls(), (0, 1));
}

#[tokio::test]
async fn a_review_that_is_aborted_does_not_fail_those_that_joined_it() {
    let scene = Scene::start().await;
    let gate = Gate::new();
    scene.api.fault(Verb::Create, REVIEWS, usize::MAX, Fault::Hold(gate.clone()));
    let ask = || {
        let reviewer = scene.reviewer.clone();
        tokio::spawn(async move { decide(&reviewer, Webhook::Validate, &simple("shop", "till", WEB)).await })
    };
    let first = ask();
    scene.api.wait_for(Verb::Create, REVIEWS, 1).await;
    let second = ask();
    tokio::task::yield_now().await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    gate.open();
    assert!(second.await.unwrap().is_allowed());
    assert_eq!(scene.calls(), (0, 1));
}

#[tokio::test]
async fn what_needs_no_answer_costs_nothing() {
    let scene = Scene::start().await;
    let plain = create("shop", &json!({"containers": [{"name": "a"}]}));
    let linux = create("shop", &json!({"os": {"name": "linux"}, "containers": [{"name": "a"}]}));
    for webhook in [MUTATE, Webhook::Validate] {
        scene.allows(webhook, &plain).await;
        scene.allows(webhook, &linux).await;
    }
    scene.allows(MUTATE, &pod("shop", "till", true)).await;
    let mut update = pod("shop", "till", true);
    update["request"]["operation"] = json!("UPDATE");
    update["request"]["oldObject"] = update["request"]["object"].clone();
    for webhook in [MUTATE, Webhook::Validate] {
        scene.allows(webhook, &update).await;
    }
    assert_eq!(scene.calls(), (0, 0));
}

#[tokio::test]
async fn a_hostile_name_reaches_nothing() {
    let scene = Scene::start().await;
    for name in ["../../version", "x?watch=true", "x#", "web/status", "", "Web", "%2e%2e", "web\n"] {
        let review = create("shop", &json!({"securityContext": options(name, None), "containers": []}));
        let message = format!("GMSA cred spec name {name:?} of pod \"pod\" is not a lower-case DNS subdomain");
        for webhook in [MUTATE, Webhook::Validate] {
            scene.denies(webhook, &review, 422, &message).await;
        }
    }
    assert_eq!(scene.calls(), (0, 0));
}

#[tokio::test]
async fn contents_that_differ_cost_one_read_before_they_are_refused() {
    let scene = Scene::start().await;
    let message = "the GMSA cred spec contents for pod \"pod\" does not match the contents of GMSA resource \"web\"";
    let differ = format!("{message}: they hold other values");
    scene.denies(Webhook::Validate, &simple("shop", "till", r#"{"is": "other"}"#), 422, &differ).await;
    assert_eq!(scene.calls(), (1, 1));
}

#[tokio::test]
async fn contents_that_memory_does_not_know_yet_are_allowed_after_one_read() {
    let scene = Scene::start().await;
    // The watch is connected, and silent; another replica has expanded the new contents.
    scene.api.fault(Verb::Watch, SPECS, usize::MAX, Fault::Silence);
    scene.api.cut_watches();
    scene.api.wait_for(Verb::Watch, SPECS, 1).await;
    scene.is_warm().await;
    scene.api.apply(credential_spec("web", json!({"is": "new"})));
    scene.allows(Webhook::Validate, &simple("shop", "till", r#"{"is":"new"}"#)).await;
    assert_eq!(scene.calls(), (1, 1));
}

#[tokio::test]
async fn a_check_that_cannot_be_made_is_no_approval_and_is_tried_once_more() {
    let scene = Scene::start().await;
    scene.api.fault(Verb::Create, REVIEWS, 2, Fault::internal_error());
    let decision = scene.decide(Webhook::Validate, &simple("shop", "till", WEB)).await;
    let Verdict::Denied(denial) = decision.verdict else { panic!("allowed") };
    assert_eq!((denial.code(), denial.label()), (500, "authorization-failed"));
    assert!(denial.to_string().contains("the API server answered 500: etcdserver: no leader"), "{denial}");
    assert_eq!(scene.calls(), (0, 2));
    // A failure is not remembered.
    scene.allows(Webhook::Validate, &simple("shop", "till", WEB)).await;
}

#[tokio::test]
async fn the_minimal_rights_of_the_go_chart_suffice() {
    let api = SimulatedApi::start().await;
    api.apply(credential_spec("web", json!({"is": "web"})));
    api.apply(credential_spec("db", json!({"is": "db"})));
    api.authorize_by(Table::of(&[("shop", "till", "web"), ("shop", "till", "db")]));
    api.fault(Verb::List, SPECS, usize::MAX, Fault::forbidden());
    let scene = Scene::on(api).await;
    scene.allows(MUTATE, &pod("shop", "till", false)).await;
    scene.allows(Webhook::Validate, &pod("shop", "till", true)).await;
    assert_eq!(scene.calls(), (4, 2));
}

#[tokio::test]
async fn the_examples_work_as_they_are_told_to() {
    let examples = Path::new("examples");
    let api = SimulatedApi::start().await;
    let Standalone { rbac, .. } = Standalone::load(examples).unwrap();
    api.authorize_by(rbac);
    for document in gmsa_webhook::manifests::load(examples).unwrap() {
        if document.kind() == "GMSACredentialSpec" {
            api.apply(document.value().clone());
        }
    }
    let scene = Scene::on(api).await;
    for (file, webhook) in [("review-mutate.json", MUTATE), ("review-validate.json", Webhook::Validate)] {
        let review: Value = serde_json::from_slice(&std::fs::read(examples.join(file)).unwrap()).unwrap();
        scene.allows(webhook, &review).await;
    }
    assert_eq!(scene.calls(), (0, 1));
}
