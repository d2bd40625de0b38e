//! The server over real TLS: paths, bad input, limits, time and the drain.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]

#[path = "support/https.rs"]
mod https;

use std::{path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use gmsa_core::{
    admission::{Source, SpecFact},
    credspec::SpecName,
};
use gmsa_webhook::{
    config::{Limits, ReviewMemory},
    resolver::{Freshness, Resolved, Resolver},
};
use http::{Request, StatusCode};
use http_body_util::Full;
use https::{Answer, Setup, answer, review_request};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::Semaphore,
    task::JoinSet,
    time::Instant,
};

fn examples() -> Setup {
    Setup::standalone(Path::new("examples"))
}

/// A pod's CREATE review with this spec.
fn create(spec: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "default",
            "operation": "CREATE",
            "object": {"metadata": {"name": "p"}, "spec": spec},
            "oldObject": null
        }
    })
}

fn naming(name: &str) -> Value {
    json!({"gmsaCredentialSpecName": name})
}

fn windows(options: &Value) -> Value {
    json!({"windowsOptions": options})
}

/// The answer that denies `u-1`.
fn denied(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": "u-1",
            "allowed": false,
            "status": {"status": "Failure", "message": message, "reason": reason, "code": code}
        }
    })
}

fn refused(status: u16, line: &str) -> Answer {
    Answer { status: StatusCode::from_u16(status).unwrap(), body: Bytes::from(format!("{line}\n")) }
}

#[tokio::test]
async fn paths_methods_and_content_types() {
    let server = examples().start();
    assert_eq!(server.get("/health").await, Answer { status: StatusCode::NO_CONTENT, body: Bytes::new() });
    let info = server.get("/info").await;
    assert_eq!((info.status, info.json()), (StatusCode::OK, json!({"version": env!("CARGO_PKG_VERSION")})));
    assert_eq!(
        server.get("/nothing?x=y").await,
        refused(
            404,
            "there is no path \"/nothing\": this webhook serves /mutate, /validate, /validate-workload, /validate-credspec, /health and /info"
        )
    );
    assert_eq!(server.get("/mutate").await, refused(405, "/mutate does not take GET"));
    assert_eq!(server.post("/health", "").await, refused(405, "/health does not take POST"));
    for content_type in [Some("text/plain"), Some("application/jsonp"), None] {
        let mut request = Request::post("/validate").header("host", "localhost");
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let answer = server.send(request.body(Full::from("{}")).unwrap()).await;
        assert_eq!(answer, refused(415, "the content type must be application/json"), "{content_type:?}");
    }
    let body = serde_json::to_vec(&create(&json!({}))).unwrap();
    let request = Request::post("/mutate").header("host", "localhost");
    let request = request.header("content-type", "Application/JSON; charset=utf-8");
    assert_eq!(server.send(request.body(Full::from(body)).unwrap()).await.status, StatusCode::OK);
}

#[tokio::test]
async fn bodies_that_are_not_reviews_are_400() {
    const START: &str = "the body is not an AdmissionReview (admission.k8s.io/v1 or v1beta1): ";
    let server = examples().start();
    let whole = serde_json::to_string(&create(&json!({"containers": [{"name": "c"}]}))).unwrap();
    let with = |edit: fn(&mut Value)| {
        let mut review = create(&json!({"containers": [{"name": "c"}]}));
        edit(&mut review);
        serde_json::to_vec(&review).unwrap()
    };
    for (body, message) in [
        (Vec::new(), "EOF while parsing a value at line 1 column 0"),
        (b"[]".to_vec(), "expected an object at line 1 column 2"),
        (b"null".to_vec(), "expected an object at line 1 column 4"),
        (whole.as_bytes()[..whole.len() - 1].to_vec(), "EOF while parsing an object at line 1 column 321"),
        (format!("{whole}x").into_bytes(), "trailing characters at line 1 column 323"),
        (b"{\"apiVersion\":\"\xff\"}".to_vec(), "it is not UTF-8 from byte 15 on"),
        (
            whole.replace("admission.k8s.io/v1", "v2").into_bytes(),
            "expected `admission.k8s.io/v1` or `admission.k8s.io/v1beta1` at line 1 column 18",
        ),
        (with(|review| review["kind"] = json!("Pod")), "expected `AdmissionReview` at line 1 column 48"),
        (with(|review| review["request"] = json!(null)), "expected an object at line 1 column 75"),
        (with(|review| review["request"]["uid"] = json!(7)), "expected a string at line 1 column 316"),
        (
            with(|review| {
                review["request"].as_object_mut().unwrap().remove("uid");
            }),
            "missing field `uid` at line 1 column 309",
        ),
        (
            with(|review| review["request"]["operation"] = json!("EAT")),
            "expected one of `CREATE`, `UPDATE`, `DELETE`, `CONNECT` at line 1 column 248",
        ),
        (with(|review| review["request"]["object"] = json!("secret")), "expected an object at line 1 column 159"),
        (
            with(|review| review["request"]["object"]["spec"] = json!("secret")),
            "expected an object at line 1 column 191",
        ),
        (
            with(|review| review["request"]["object"]["spec"]["containers"] = json!({"a": "secret"})),
            "expected a sequence at line 1 column 198",
        ),
        (
            with(|review| review["request"]["object"]["spec"]["containers"][0] = json!("secret")),
            "expected an object at line 1 column 206",
        ),
        (
            with(|review| review["request"]["object"]["spec"]["containers"][0]["name"] = json!(["secret"])),
            "expected a string at line 1 column 207",
        ),
        (
            whole.replacen("{\"name\":\"c\"}", "{\"name\":\"c\",\"name\":\"d\"}", 1).into_bytes(),
            "duplicate field `name` at line 1 column 216",
        ),
    ] {
        let answer = server.post("/mutate", body).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST);
        assert_eq!(answer.text(), format!("{START}{message}\n"));
    }
    let mut review = create(&json!({}));
    review["request"]["uid"] = json!("");
    let answer = server.post("/mutate", serde_json::to_vec(&review).unwrap()).await;
    assert_eq!(answer, refused(400, "the request.uid of the AdmissionReview is not of 1 to 128 bytes"));
}

#[tokio::test]
async fn deep_nesting_ends_as_an_answer() {
    let server = examples().start();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let place = |spec: Value| serde_json::to_string(&create(&spec)).unwrap().replace("\"deep\"", &deep);
    // Where nobody looks it is stepped over, without a stack.
    let answer = server.post("/mutate", place(json!({"elsewhere": "deep"}))).await;
    assert_eq!(answer.json()["response"], json!({"uid": "u-1", "allowed": true}));
    let answer = server.post("/mutate", place(json!({"containers": "deep"}))).await;
    assert_eq!(
        answer,
        refused(
            400,
            "the body is not an AdmissionReview (admission.k8s.io/v1 or v1beta1): expected an object at line 1 column 199"
        )
    );
}

#[tokio::test]
async fn hostile_names_are_denied_before_anything_is_asked() {
    let server = Setup { resolver: Arc::new(Unasked), ..examples() }.start();
    for name in ["../../version", "x?watch=true", "", "gmsa-WebApp1", "a b", "a%2fb", "-a", "a-", "a..b", "ä"] {
        for path in ["/mutate", "/validate"] {
            let review = create(&json!({"securityContext": windows(&naming(name))}));
            let answer = server.post(path, serde_json::to_vec(&review).unwrap()).await;
            let message = format!("GMSA cred spec name {name:?} of pod \"p\" is not a lower-case DNS subdomain");
            assert_eq!(answer.json(), denied(422, "Invalid", &message), "{path}");
        }
    }
    let review = create(&json!({"securityContext": windows(&naming(&"a".repeat(1_000_000)))}));
    let answer = server.post("/mutate", serde_json::to_vec(&review).unwrap()).await;
    let message =
        format!("GMSA cred spec name \"{}\"… of pod \"p\" is not a lower-case DNS subdomain", "a".repeat(253));
    assert_eq!(answer.json(), denied(422, "Invalid", &message));
}

/// A resolver that must not be asked.
struct Unasked;

impl Resolver for Unasked {
    fn resolve<'a>(&'a self, name: &'a SpecName, _: Freshness, _: Instant) -> BoxFuture<'a, Resolved> {
        panic!("asked for {name}")
    }
}

#[tokio::test]
async fn more_names_than_an_honest_pod_has_are_denied_before_anything_is_asked() {
    let server = Setup { resolver: Arc::new(Unasked), ..examples() }.start();
    let containers: Vec<_> = (0..25)
        .map(|n| json!({"name": format!("c{n}"), "securityContext": windows(&naming(&format!("s{n}")))}))
        .collect();
    for path in ["/mutate", "/validate"] {
        let answer = server.post(path, serde_json::to_vec(&create(&json!({"containers": containers}))).unwrap()).await;
        assert_eq!(answer.json(), denied(422, "Invalid", "a pod may name at most 24 distinct GMSA cred specs"));
    }
}

/// A resolver whose every credential spec holds one text.
struct Holds(Arc<gmsa_core::credspec::Contents>);

impl Resolver for Holds {
    fn resolve<'a>(&'a self, _: &'a SpecName, _: Freshness, _: Instant) -> BoxFuture<'a, Resolved> {
        let fact = SpecFact::Contents(Arc::clone(&self.0));
        Box::pin(async { Resolved { fact, source: Source::Files } })
    }
}

#[tokio::test]
async fn many_containers_are_answered_and_too_many_or_a_huge_patch_are_refused() {
    let containers = |count: usize| {
        let containers: Vec<_> =
            (0..count).map(|n| json!({"name": format!("c{n}"), "securityContext": windows(&naming("s"))})).collect();
        serde_json::to_vec(&create(&json!({"containers": containers}))).unwrap()
    };
    let spec = |bytes: usize| {
        let credspec = json!({"k": "x".repeat(bytes)});
        Arc::new(Holds(Arc::new(gmsa_core::credspec::Contents::of(credspec.as_object().unwrap()))))
    };
    let too_large = "the GMSA cred spec contents of this pod would take more than 2097152 bytes: use fewer containers or name the GMSA cred spec on the pod";
    let server = Setup { resolver: spec(64 * 1024), ..examples() }.start();
    let answer = server.post("/mutate", containers(999)).await;
    assert_eq!(answer.json()["response"]["status"]["message"], too_large);
    assert_eq!(answer.json()["response"]["status"]["code"], 422);
    let too_many = "a pod may have at most 999 containers, init containers and ephemeral containers together";
    for path in ["/mutate", "/validate"] {
        assert_eq!(server.post(path, containers(1_000)).await.json(), denied(422, "Invalid", too_many));
    }

    // 31 texts of 64 KiB and their paths fit; 32 do not.
    for (count, allowed) in [(31, true), (32, false)] {
        let answer = server.post("/mutate", containers(count)).await;
        assert_eq!(answer.json()["response"]["allowed"], allowed, "{count}");
    }
    let small = Setup { resolver: spec(1), ..examples() }.start();
    let answer = small.post("/mutate", containers(999)).await.json();
    let patch: Vec<Value> = serde_json::from_slice(&decode(&answer["response"]["patch"])).unwrap();
    assert_eq!(patch.len(), 999);
    assert_eq!(
        patch[998],
        json!({"op": "add", "path": "/spec/containers/998/securityContext/windowsOptions/gmsaCredentialSpec", "value": "{\"k\":\"x\"}"})
    );
    let plain: Vec<_> = (0..999).map(|n| json!({"name": format!("c{n}")})).collect();
    let answer = small.post("/validate", serde_json::to_vec(&create(&json!({"containers": plain}))).unwrap()).await;
    assert_eq!(answer.json()["response"], json!({"uid": "u-1", "allowed": true}));
}

fn decode(base64: &Value) -> Vec<u8> {
    use base64::{Engine, prelude::BASE64_STANDARD};
    BASE64_STANDARD.decode(base64.as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn bodies_over_the_limit_are_413() {
    const LINE: &str = "the body is larger than 8388608 bytes";
    let server = examples().start();
    let mut stream = server.connect(&["http/1.1"]).await;
    let head = "POST /mutate HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\ncontent-length: 8388609\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_to_close(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.ends_with(&format!("\r\n\r\n{LINE}\n")), "{answer}");

    // Without a length, the limit is met while reading.
    let mut stream = server.connect(&["http/1.1"]).await;
    let head =
        "POST /mutate HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(0x10_0000));
    for _ in 0..8 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    stream.write_all(b"1\r\n \r\n").await.unwrap();
    let answer = read_to_close(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.ends_with(&format!("\r\n\r\n{LINE}\n")), "{answer}");

    // A client that writes all of it before it reads sees the answer too.
    for (head, body) in [
        ("content-length: 20971520", vec![b' '; 20 << 20]),
        ("transfer-encoding: chunked", chunk.repeat(20).into_bytes()),
    ] {
        let mut stream = server.connect(&["http/1.1"]).await;
        let head = format!("POST /mutate HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\n{head}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        let answer = read_to_close(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.ends_with(&format!("\r\n\r\n{LINE}\n")), "{answer}");
    }
}

async fn read_to_close(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut answer = Vec::new();
    // The server may close without a TLS goodbye once it has answered.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_slow_body_is_408() {
    let server = examples().start();
    let mut stream = server.connect(&["http/1.1"]).await;
    let head = "POST /mutate?timeout=200ms HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_to_close(&mut stream).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.ends_with("\r\n\r\nthe body did not arrive within the time limit\n"), "{answer}");
}

#[tokio::test]
async fn a_slow_head_is_cut_off_but_a_resting_connection_is_not() {
    let server = examples().start();
    let mut resting = server.connect(&["http/1.1"]).await;
    let mut slow = server.connect(&["http/1.1"]).await;
    slow.write_all(b"GET /health HT").await.unwrap();
    // Ends only when the server gives the head up.
    assert_eq!(read_to_close(&mut slow).await, "");
    resting.write_all(b"GET /health HTTP/1.1\r\nhost: l\r\nconnection: close\r\n\r\n").await.unwrap();
    assert!(read_to_close(&mut resting).await.starts_with("HTTP/1.1 204 "));
}

#[tokio::test]
async fn a_wrong_timeout_is_400() {
    let server = examples().start();
    let answer = server.post("/mutate?timeout=soon", "{}").await;
    let line = "the query parameter timeout must be a duration above 0 with units, such as 10s, 1m30s or 500ms";
    assert_eq!(answer, refused(400, line));
}

/// A resolver that answers only when it is let.
struct Gated {
    entered: Semaphore,
    gate: Semaphore,
}

impl Gated {
    fn new() -> Arc<Self> {
        Arc::new(Self { entered: Semaphore::new(0), gate: Semaphore::new(0) })
    }
}

impl Resolver for Gated {
    fn resolve<'a>(&'a self, _: &'a SpecName, _: Freshness, _: Instant) -> BoxFuture<'a, Resolved> {
        Box::pin(async {
            self.entered.add_permits(1);
            self.gate.acquire().await.unwrap().forget();
            Resolved { fact: SpecFact::Missing, source: Source::Api }
        })
    }
}

fn one_pod() -> Vec<u8> {
    serde_json::to_vec(&create(&json!({"securityContext": windows(&naming("s"))}))).unwrap()
}

#[tokio::test]
async fn a_review_is_answered_before_the_api_server_gives_up() {
    let server = Setup { resolver: Gated::new(), ..examples() }.start();
    let answer = server.post("/mutate?timeout=300ms", one_pod()).await.json();
    let message = "unable to retrieve the contents of cred spec s: the API server did not answer within the time limit of the review";
    assert_eq!(answer["response"]["status"], json!({"status": "Failure", "message": message, "code": 504}));
    assert_eq!(
        answer["response"]["auditAnnotations"],
        json!({"mutate-credential-specs": "s (contents: api)", "mutate-decision": "spec-unreadable"})
    );
}

#[tokio::test]
async fn over_its_limit_of_reviews_a_replica_says_503() {
    let gated = Gated::new();
    let limits = Limits { reviews: 2, ..Limits::default() };
    let server = Arc::new(Setup { resolver: gated.clone(), limits, ..examples() }.start());
    let first_two = [0, 1].map(|_| {
        let server = Arc::clone(&server);
        tokio::spawn(async move { server.post("/mutate", one_pod()).await })
    });
    gated.entered.acquire_many(2).await.unwrap().forget();
    let line = "this replica is reviewing as many requests as it may at once: try again";
    assert_eq!(server.post("/mutate", one_pod()).await, refused(503, line));
    gated.gate.add_permits(3);
    for answer in join_all(first_two).await {
        let status = answer.unwrap().json()["response"]["status"]["message"].clone();
        assert_eq!(status, "cred spec s does not exist");
    }
    assert_eq!(server.post("/mutate", one_pod()).await.status, StatusCode::OK);
}

/// What a server says on this connection to a request for `/health`; empty where the connection is closed.
async fn health(stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin)) -> String {
    let request = b"GET /health HTTP/1.1\r\nhost: l\r\n\r\n";
    if stream.write_all(request).await.is_err() {
        return String::new();
    }
    read_head(stream).await.lines().next().unwrap_or_default().to_owned()
}

/// The head of an answer; empty where the connection is closed.
async fn read_head(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return String::new() };
        head.push(byte);
    }
    String::from_utf8(head).unwrap()
}

#[tokio::test]
async fn over_its_limit_of_connections_a_replica_closes_the_one_that_is_idle_longest() {
    let gated = Gated::new();
    let limits = Limits { connections: 3, ..Limits::default() };
    let server = Arc::new(Setup { resolver: gated.clone(), limits, ..examples() }.start());
    let reviewed = Arc::clone(&server);
    let reviewed = tokio::spawn(async move { reviewed.post("/mutate", one_pod()).await });
    gated.entered.acquire().await.unwrap().forget();
    let mut first = server.connect(&["http/1.1"]).await;
    let mut second = server.connect(&["http/1.1"]).await;
    // A request that is answered makes a connection the youngest; half a request, or half a body, does not.
    first.write_all(b"POST /mutate HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\n").await.unwrap();
    assert_eq!(health(&mut second).await, "HTTP/1.1 204 No Content");
    first.write_all(b"content-length: 5\r\n\r\nabcd").await.unwrap();
    let mut third = server.connect(&["http/1.1"]).await;
    assert_eq!(read_to_close(&mut first).await, "");
    assert_eq!(health(&mut third).await, "HTTP/1.1 204 No Content");
    assert_eq!(health(&mut second).await, "HTTP/1.1 204 No Content");
    for _ in 0..10 {
        assert_eq!(server.get("/health").await.status, StatusCode::NO_CONTENT);
    }
    gated.gate.add_permits(1);
    assert_eq!(reviewed.await.unwrap().status, StatusCode::OK);
}

#[tokio::test]
async fn silent_connections_keep_nobody_out() {
    let limits = Limits { connections: 50, ..Limits::default() };
    let server = Setup { limits, ..examples() }.start();
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(tokio::net::TcpStream::connect(server.address).await.unwrap());
        if silent.len() % 20 == 0 {
            assert_eq!(server.get("/health").await.status, StatusCode::NO_CONTENT);
        }
    }
}

#[tokio::test]
async fn announced_lengths_take_nothing() {
    let server = examples().start();
    let mut announcing = Vec::new();
    for _ in 0..64 {
        let mut stream = server.connect(&["http/1.1"]).await;
        let head =
            "POST /mutate HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\ncontent-length: 8388608\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        announcing.push(stream);
    }
    for padding in [0, 3 << 20] {
        let review = [one_pod(), vec![b' '; padding]].concat();
        assert_eq!(server.post("/mutate", review).await.status, StatusCode::OK, "{padding}");
    }
}

#[tokio::test]
async fn bodies_that_do_not_arrive_make_room_for_those_that_do() {
    let review_memory = ReviewMemory { small: 1 << 20, large: 8 << 20 };
    let server = Setup { limits: Limits { review_memory, ..Limits::default() }, ..examples() }.start();
    let mut stalled = Vec::new();
    for (count, length) in [(40, 60 << 10), (6, 2 << 20)] {
        for _ in 0..count {
            let mut stream = server.connect(&["http/1.1"]).await;
            let head = format!(
                "POST /mutate HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                length + 1
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(&vec![b' '; length]).await.unwrap();
            stalled.push(stream);
        }
    }
    for padding in [0, 40 << 10, 3 << 20] {
        let review = [one_pod(), vec![b' '; padding]].concat();
        assert_eq!(server.post("/mutate", review).await.status, StatusCode::OK, "{padding}");
    }
    // The first one has lost its place.
    stalled[0].write_all(b" ").await.unwrap();
    let answer = read_head(&mut stalled[0]).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    // More than the replica may hold at all.
    let line = "this replica is reviewing as many requests as it may at once: try again";
    assert_eq!(server.post("/mutate", vec![b' '; 5 << 20]).await, refused(503, line));
}

#[tokio::test]
async fn large_reviews_that_wait_for_the_api_server_take_no_turn_from_others() {
    let gated = Gated::new();
    let server = Arc::new(Setup { resolver: gated.clone(), ..examples() }.start());
    let large = [one_pod(), vec![b' '; 300 << 10]].concat();
    let mut waiting = JoinSet::new();
    // More than are read at once; and more than fit into the memory for large reviews while their bodies are there.
    for _ in 0..80 {
        let (server, large) = (Arc::clone(&server), large.clone());
        waiting.spawn(async move { server.post("/mutate", large).await.status });
        gated.entered.acquire().await.unwrap().forget();
    }
    assert_eq!(server.get("/health").await.status, StatusCode::NO_CONTENT);
    let message = "unable to retrieve the contents of cred spec s: the API server did not answer within the time limit of the review";
    for body in [one_pod(), large] {
        let answer = server.post("/mutate?timeout=300ms", body).await.json();
        assert_eq!(answer["response"]["status"]["message"], message);
    }
    gated.gate.add_permits(80);
    while let Some(status) = waiting.join_next().await {
        assert_eq!(status.unwrap(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_large_review_whose_client_has_gone_is_dropped() {
    let gated = Gated::new();
    let limits = Limits { reviews: 1, ..Limits::default() };
    let server = Setup { resolver: gated.clone(), limits, ..examples() }.start();
    let large = [one_pod(), vec![b' '; 300 << 10]].concat();
    let stream = server.connect(&["http/1.1"]).await;
    let request = review_request("/mutate", large.clone());
    let client = tokio::spawn(async move {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::join!(sender.send_request(request), connection).0.map(drop)
    });
    gated.entered.acquire().await.unwrap().forget();
    assert_eq!(server.post("/mutate", large.clone()).await.status, StatusCode::SERVICE_UNAVAILABLE);
    client.abort();
    // Nothing opens the gate: another one has the only place because the first one is dropped.
    let dropped = async { while server.post("/mutate?timeout=300ms", large.clone()).await.status != StatusCode::OK {} };
    tokio::time::timeout(Duration::from_secs(10), dropped).await.unwrap();
}

#[tokio::test]
async fn reviews_that_wait_for_the_api_server_leave_memory_to_others() {
    let gated = Gated::new();
    let server = Arc::new(Setup { resolver: gated.clone(), ..examples() }.start());
    let containers: Vec<Value> = (0..24)
        .map(|n| json!({"name": format!("c{n}"), "securityContext": windows(&naming(&format!("unknown-{n}")))}))
        .collect();
    let mut body = serde_json::to_vec(&create(&json!({"containers": containers}))).unwrap();
    body.resize(64 << 10, b' ');
    let mut waiting = JoinSet::new();
    for _ in 0..124 {
        let (server, body) = (Arc::clone(&server), body.clone());
        waiting.spawn(async move { server.post("/mutate", body).await.status });
    }
    tokio::select! {
        entered = gated.entered.acquire_many(124 * 24) => entered.unwrap().forget(),
        Some(status) = waiting.join_next() => panic!("one does not wait: {status:?}"),
    }
    let answer = server.post("/mutate?timeout=300ms", body).await;
    assert_eq!(answer.status, StatusCode::OK);
    gated.gate.add_permits(124 * 24);
    while let Some(status) = waiting.join_next().await {
        assert_eq!(status.unwrap(), StatusCode::OK);
    }
}

#[tokio::test]
async fn a_request_that_begins_behind_another_one_occupies_no_place() {
    let limits = Limits { connections: 1, ..Limits::default() };
    let server = Setup { limits, ..examples() }.start();
    let mut first = server.connect(&["http/1.1"]).await;
    let requests = "GET /health HTTP/1.1\r\nhost: l\r\n\r\n\
                    POST /mutate HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\nab";
    first.write_all(requests.as_bytes()).await.unwrap();
    assert!(read_head(&mut first).await.starts_with("HTTP/1.1 204 "));
    let mut second = server.connect(&["http/1.1"]).await;
    assert_eq!(read_to_close(&mut first).await, "");
    assert_eq!(health(&mut second).await, "HTTP/1.1 204 No Content");
}

#[tokio::test]
async fn an_answer_is_whole_however_slowly_it_is_read() {
    let contents = json!({"k": "x".repeat(60 * 1024)});
    let contents = Arc::new(gmsa_core::credspec::Contents::of(contents.as_object().unwrap()));
    let server = Setup { resolver: Arc::new(Holds(contents)), ..examples() }.start();
    let containers: Vec<_> =
        (0..30).map(|n| json!({"name": format!("c{n}"), "securityContext": windows(&naming("s"))})).collect();
    let body = serde_json::to_vec(&create(&json!({"containers": containers}))).unwrap();
    let mut stream = server.connect(&["http/1.1"]).await;
    for close in [false, true] {
        let head = format!(
            "POST /mutate HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
        if close {
            // The server's own end of the connection comes with the answer.
            server.closing.cancel();
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let head = read_head(&mut stream).await;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).await.unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["response"]["allowed"], true);
        let patch: Vec<Value> = serde_json::from_slice(&decode(&answer["response"]["patch"])).unwrap();
        assert_eq!(patch.len(), 30);
        assert_eq!(head.contains("\r\nconnection: close\r\n"), close, "{head}");
    }
}

#[tokio::test]
async fn requests_that_come_close_together_are_answered_in_order() {
    let server = examples().start();
    let mut stream = server.connect(&["http/1.1"]).await;
    let get = "GET /info HTTP/1.1\r\nhost: l\r\n\r\n";
    let missing = "GET /missing HTTP/1.1\r\nhost: l\r\n\r\n";
    let requests = [get, missing, get].concat();
    let (first, rest) = requests.split_at(get.len() + 20);
    stream.write_all(first.as_bytes()).await.unwrap();
    let mut answers = String::new();
    while !answers.contains("version") {
        answers.push(char::from(stream.read_u8().await.unwrap()));
    }
    stream.write_all(rest.as_bytes()).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nhost: l\r\nconnection: close\r\n\r\n").await.unwrap();
    answers += &read_to_close(&mut stream).await;
    let statuses: Vec<&str> = answers.split("HTTP/1.1 ").skip(1).filter_map(|answer| answer.get(..3)).collect();
    assert_eq!(statuses, ["200", "404", "200", "204"]);
}

#[tokio::test]
async fn a_body_that_is_not_read_is_never_taken_for_a_request() {
    let server = examples().start();
    let hidden = "GET /info HTTP/1.1\r\nhost: l\r\n\r\n";
    for path in ["/missing", "/health", "/info"] {
        let mut stream = server.connect(&["http/1.1"]).await;
        let request = format!("GET {path} HTTP/1.1\r\nhost: l\r\ncontent-length: {}\r\n\r\n{hidden}", hidden.len());
        stream.write_all(request.as_bytes()).await.unwrap();
        let answers = read_to_close(&mut stream).await;
        assert_eq!(answers.matches("HTTP/1.1 ").count(), 1, "{answers}");
        assert!(answers.contains("connection: close\r\n"), "{answers}");
    }
}

#[tokio::test]
async fn only_http_1_is_offered() {
    let server = examples().start();
    let stream = server.connect(&["h2", "http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let mut stream = server.connect(&[]).await;
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let answer = read_to_close(&mut stream).await;
    assert_eq!(answer, "");
}

#[tokio::test]
async fn a_drain_answers_what_is_in_flight_and_closes_what_rests() {
    let gated = Gated::new();
    let server = Setup { resolver: gated.clone(), ..examples() }.start();
    let mut resting = server.connect(&["http/1.1"]).await;
    resting.write_all(b"GET /health HTTP/1.1\r\nhost: l\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    resting.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 204");
    let stream = server.connect(&["http/1.1"]).await;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let in_flight =
        tokio::spawn(
            async move { answer(sender.send_request(review_request("/mutate", one_pod())).await.unwrap()).await },
        );
    gated.entered.acquire().await.unwrap().forget();

    server.closing.cancel();
    read_to_close(&mut resting).await;
    assert!(!server.task.is_finished());
    gated.gate.add_permits(1);
    let message = in_flight.await.unwrap().json()["response"]["status"]["message"].clone();
    assert_eq!(message, "cred spec s does not exist");
    connection.await.unwrap().unwrap();
    assert_eq!(server.task.await.unwrap(), 0, "connections dropped");
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn a_drain_drops_what_does_not_finish_in_time() {
    let gated = Gated::new();
    let server = Setup { resolver: gated.clone(), drain: Duration::from_millis(100), ..examples() }.start();
    let mut stream = server.connect(&["http/1.1"]).await;
    let body = one_pod();
    let head = format!(
        "POST /mutate HTTP/1.1\r\nhost: l\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&body).await.unwrap();
    gated.entered.acquire().await.unwrap().forget();
    server.closing.cancel();
    assert_eq!(server.task.await.unwrap(), 1, "connections dropped");
    assert_eq!(read_to_close(&mut stream).await, "");
}
