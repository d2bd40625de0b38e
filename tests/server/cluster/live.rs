//! Live reads and access reviews: what is asked, what the API server says, and the ways in which it may say nothing.

use std::{fs, net::Ipv4Addr, sync::Arc};

use gmsa_cluster::{
    apiserver::ApiServer,
    authorizer::{Authorization, Authorizer as _},
    large_memory::{LargeMemory, MemoryUser},
    resolver::{Freshness, Resolved, Resolver as _},
};
use gmsa_core::{
    admission::{Source, SpecFact, UseFact},
    credspec::{self, Contents},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Duration, NO_DEFINITION, NO_MEMORY, REVIEWS, SOON, SPECS, connect, failed, refused, service_account, spec,
    spec_name, timed_out, within,
};
use crate::support::{Fault, PATIENCE, SimulatedApi, Verb, credential_spec};

async fn read(api: &SimulatedApi, time: Duration) -> SpecFact {
    let Resolved { fact, source } = connect(api).resolve(&spec_name("web"), Freshness::Any, within(time)).await;
    assert_eq!(source, Source::Api);
    fact
}

/// The result of a read of an existing credential spec whose first `times` tries meet `fault`, and the number of tries.
async fn read_despite(fault: Fault, times: usize, time: Duration) -> (SpecFact, usize) {
    let api = SimulatedApi::start().await;
    api.apply(credential_spec("web", json!({})));
    api.fault(Verb::Get, SPECS, times, fault);
    let fact = read(&api, time).await;
    (fact, api.count(Verb::Get, SPECS))
}

fn contents(credspec: &Value) -> SpecFact {
    SpecFact::Contents(Arc::new(Contents::of(credspec.as_object().unwrap())))
}

#[tokio::test]
async fn a_credential_spec_is_read_by_one_get_of_its_name() {
    let api = SimulatedApi::start().await;
    assert_eq!(read(&api, SOON).await, SpecFact::Missing);
    let asked: Vec<_> = api.requests(Verb::Get, "").into_iter().map(|request| request.path).collect();
    assert_eq!(asked, ["/apis/windows.k8s.io/v1/gmsacredentialspecs/web"]);
    let credspec = json!({"b": "<", "a": 1});
    api.apply(credential_spec("web", credspec.clone()));
    assert_eq!(read(&api, SOON).await, contents(&credspec));
    for unusable in [json!(null), json!("text"), json!([{}]), json!(1)] {
        api.apply(credential_spec("web", unusable.clone()));
        assert_eq!(read(&api, SOON).await, SpecFact::Unusable, "{unusable}");
    }
    let mut without = credential_spec("web", json!({}));
    without.as_object_mut().unwrap().remove("credspec");
    api.apply(without);
    assert_eq!(read(&api, SOON).await, SpecFact::Unusable);
    api.apply(spec("web", &"x".repeat(2 << 20)));
    assert_eq!(read(&api, SOON).await, SpecFact::Failed(failed("the API server's answer is larger than 2 MiB")));
    api.undefine("gmsacredentialspecs");
    assert_eq!(read(&api, SOON).await, SpecFact::Failed(failed(NO_DEFINITION)));
}

/// The kubelet replaces the file, and a token can end before its time: the next call has what the file holds then.
#[tokio::test]
async fn a_new_token_in_its_file_is_that_of_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "one").unwrap();
    let api = SimulatedApi::start().await;
    let mut config = api.config();
    config.auth_info.token_file = Some(file.to_str().unwrap().to_owned());
    let cluster = ApiServer::new(config).unwrap();
    for token in ["one", "two"] {
        fs::write(&file, token).unwrap();
        cluster.resolve(&spec_name("web"), Freshness::Any, within(SOON)).await;
    }
    let tokens: Vec<_> = api.requests(Verb::Get, SPECS).into_iter().map(|asked| asked.authorization.unwrap()).collect();
    assert_eq!(tokens, ["Bearer one", "Bearer two"]);
}

/// An answer over 32 KiB takes its bytes of the memory that others share, and gives them back.
#[tokio::test]
async fn a_large_answer_takes_its_bytes_of_memory_of_which_one_client_leaves_it_enough() {
    let api = SimulatedApi::start().await;
    api.apply(spec("small", &"x".repeat(30 << 10)));
    api.apply(spec("large", &"x".repeat(1 << 20)));
    let memory = LargeMemory::new(5 << 20);
    let client = ApiServer::new(api.config()).unwrap().with_memory(memory.share_of(MemoryUser::ApiServer));
    let read = async |name: &str| client.resolve(&spec_name(name), Freshness::Any, within(SOON)).await.fact;
    for _ in 0..3 {
        assert_eq!(read("large").await, SpecFact::Contents(Contents::too_long()));
    }
    assert_eq!(memory.free(), 5 << 20);
    let take_all = |host| {
        let share = memory.share_of(MemoryUser::Address(Ipv4Addr::new(192, 0, 2, host).into()));
        std::iter::from_fn(|| share.take(1 << 16)).collect::<Vec<_>>()
    };
    let first = take_all(1);
    assert_eq!(memory.free(), 5 << 19);
    assert_eq!(read("large").await, SpecFact::Contents(Contents::too_long()));
    let others: Vec<_> = (2..9).flat_map(take_all).collect();
    let free = memory.free();
    assert_eq!(read("large").await, SpecFact::Failed(failed(NO_MEMORY)));
    assert_eq!(memory.free(), free);
    assert!(matches!(read("small").await, SpecFact::Contents(_)));
    drop((first, others));
    assert_eq!(read("large").await, SpecFact::Contents(Contents::too_long()));
    // What found no memory was tried again, once.
    assert_eq!(api.count(Verb::Get, SPECS), 8);
}

/// What is answered to a read of a credential spec that exists, what is made of it, and how often it is asked for.
#[tokio::test]
async fn what_is_no_answer_is_a_failure_that_does_not_quote_it_and_a_server_error_is_tried_again_once() {
    let message = "the server could not find the requested resource";
    let not_found = Fault::Refuse { code: 404, reason: "NotFound", message, retry_after: None };
    let other = "the API server's answer is about another object than the one that was asked for";
    let later = "the API server answered 429: Too many requests, please try again later.";
    for (fault, failure, tries) in [
        // It names no object, so none is missing.
        (not_found, failed(NO_DEFINITION), 1),
        (Fault::Object(credential_spec("other", json!({"a": 1}))), failed(other), 1),
        (Fault::Text(200, "<html>secret</html>"), failed("the API server's answer is not a GMSACredentialSpec"), 1),
        (Fault::forbidden(), refused(403, "the API server answered 403: not allowed here"), 1),
        (Fault::internal_error(), refused(500, "the API server answered 500: etcdserver: no leader"), 2),
        (Fault::Text(502, "<html>secret</html>"), refused(502, "the API server answered 502 Bad Gateway"), 2),
        (Fault::Cut, failed("the API server's answer broke off"), 2),
        // A retry would come too late.
        (Fault::too_many_requests(120), refused(429, later), 1),
    ] {
        assert_eq!(read_despite(fault, usize::MAX, SOON).await, (SpecFact::Failed(failure), tries));
    }
    let silent = timed_out("no answer from the API server within 0.2 s");
    let read = read_despite(Fault::Silence, usize::MAX, Duration::from_millis(200)).await;
    assert_eq!(read, (SpecFact::Failed(silent), 1));
}

#[tokio::test]
async fn the_second_try_counts_and_waits_as_long_as_the_api_server_asks() {
    for (fault, pause) in [(Fault::internal_error(), 0), (Fault::Cut, 0), (Fault::too_many_requests(1), 1)] {
        let asked = Instant::now();
        assert_eq!(read_despite(fault.clone(), 1, PATIENCE).await, (contents(&json!({})), 2), "{fault:?}");
        assert!(asked.elapsed() >= Duration::from_secs(pause), "after {:?}", asked.elapsed());
    }
}

/// Asks whether `till` in the namespace `shop` may use `web`, which is so, or export it.
async fn ask_for(verb: credspec::Verb, api: &SimulatedApi) -> UseFact {
    api.grant_only(&[("shop", "till", "web")]);
    let Authorization { fact, source } =
        connect(api).may(&service_account("shop", "till"), verb, &spec_name("web"), within(SOON)).await;
    assert_eq!(source, Source::Api);
    fact
}

async fn ask(api: &SimulatedApi) -> UseFact {
    ask_for(credspec::Verb::Use, api).await
}

#[tokio::test]
async fn who_may_use_may_not_export() {
    let api = SimulatedApi::start().await;
    assert_eq!(ask_for(credspec::Verb::Export, &api).await, UseFact::Denied { reason: None });
    let mut review: Value = serde_json::from_str(include_str!("access_review.json")).unwrap();
    review["spec"]["resourceAttributes"]["verb"] = json!("export");
    assert_eq!(api.requests(Verb::Create, "").iter().map(|asked| &asked.body).collect::<Vec<_>>(), [&review]);
}

#[tokio::test]
async fn the_review_is_made_in_the_pods_namespace_for_its_account_and_exactly_two_groups() {
    let api = SimulatedApi::start().await;
    assert_eq!(ask(&api).await, UseFact::Allowed);
    let requests = api.requests(Verb::Create, "");
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].path, "/apis/authorization.k8s.io/v1/namespaces/shop/localsubjectaccessreviews");
    let review: Value = serde_json::from_str(include_str!("access_review.json")).unwrap();
    assert_eq!(requests[0].body, review);
}

/// What is answered, what is made of it, and how often it is asked.
#[tokio::test]
async fn an_access_review_without_an_answer_is_a_failure_and_not_a_denial() {
    let without = |status| Fault::Object(json!({"kind": "LocalSubjectAccessReview", "status": status}));
    let no_status = failed("the API server's answer is not a LocalSubjectAccessReview with a status");
    for (fault, failure, tries) in [
        (without(json!(null)), no_status.clone(), 1),
        (without(json!({})), no_status.clone(), 1),
        (without(json!({"allowed": "true"})), no_status, 1),
        (Fault::forbidden(), refused(403, "the API server answered 403: not allowed here"), 1),
        (Fault::internal_error(), refused(500, "the API server answered 500: etcdserver: no leader"), 2),
    ] {
        let api = SimulatedApi::start().await;
        api.fault(Verb::Create, REVIEWS, usize::MAX, fault);
        assert_eq!(ask(&api).await, UseFact::Failed(failure));
        assert_eq!(api.count(Verb::Create, REVIEWS), tries);
    }
}
