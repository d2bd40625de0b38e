//! The paths on the TLS port, and the errors of HTTP itself: wrong path, method, content type, size, time, load.
//!
//! Invariants: a review that is decided is answered with 200 and an AdmissionReview; any other request to a webhook's path, and an answer for which
//! there is no memory, with an error code and a line of text, never with an empty 200. The API server takes each of those errors as
//! a denial where `failurePolicy` is `Fail`.

use std::{
    net::{IpAddr, Ipv4Addr},
    panic::AssertUnwindSafe,
    sync::Arc,
};

use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::FutureExt as _;
use gmsa_cluster::{
    body::{self, Held},
    large_memory::{LargeMemory, MemoryUser},
};
use gmsa_core::admission::{Review, Webhook};
use gmsa_edge::{
    metrics::Counted,
    server::{Place, linger, serving_threads},
    telemetry::{LogLimit, cut_message, otlp},
};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};
use tracing::{Instrument as _, Span, field::Empty};

use super::{deadline::time_allowed, refusal::HttpRefusal, reviewer::Reviewer, thread::Thread};
use crate::{
    PROGRAM,
    limits::{BODY_TIMEOUT, Limits, MAX_BODY},
    metrics::CodeLabel,
};

/// The log lines about refused requests.
static REFUSED: LogLimit = LogLimit::new("request refused");

/// The lines about clients, which [`summarize_log`](gmsa_edge::server::summarize_log) counts.
pub static LOG_LIMITS: &[&LogLimit] = &[&REFUSED];

/// The state that the routes share, behind one count of references: axum clones the state of its routes for every request.
struct Shared {
    reviewer: Reviewer,
    /// Memory for all large bodies and answers. No review waits for it, and none makes room for another one.
    large_memory: Arc<LargeMemory>,
    /// Reviews in flight.
    reviews: Semaphore,
    /// For the threads of large reviews.
    blocking: Arc<Semaphore>,
}

/// The routes of the TLS port.
pub fn router(reviewer: Reviewer, limits: &Limits, large_memory: Arc<LargeMemory>) -> Router {
    let shared = Shared {
        large_memory,
        reviews: Semaphore::new(limits.reviews),
        // The other half of the cores is for small reviews.
        blocking: Arc::new(Semaphore::new(serving_threads().div_ceil(2))),
        reviewer,
    };
    let reviews = Webhook::ALL.into_iter().fold(Router::new(), |router, webhook| {
        let review = move |State(shared): State<Arc<Shared>>, request: Request| shared.review(webhook, request);
        router.route(&webhook.path(), post(review))
    });
    reviews
        .route("/health", get(async || StatusCode::NO_CONTENT))
        .route("/info", get(async || Json(serde_json::json!({ "version": env!("CARGO_PKG_VERSION") }))))
        .fallback(async |State(shared): State<Arc<Shared>>, uri: Uri, body: Body| {
            linger(body).await;
            shared.refuse(HttpRefusal::no_such_path(uri.path()))
        })
        .method_not_allowed_fallback(async |State(shared): State<Arc<Shared>>, method: Method, uri: Uri, body: Body| {
            linger(body).await;
            shared.refuse(HttpRefusal::wrong_method(&method, uri.path()))
        })
        .with_state(Arc::new(shared))
}

impl Shared {
    async fn review(self: Arc<Self>, webhook: Webhook, request: Request) -> Response {
        let started = Instant::now();
        let span = tracing::info_span!(
            target: PROGRAM.spans, "review", otel.kind = "server", path = request.uri().path(), uid = Empty,
            namespace = Empty, outcome = Empty, reason = Empty, code = Empty
        );
        otlp::continue_trace(&span, request.headers());
        let (request, mut body) = request.into_parts();
        let place = request.extensions.get::<Arc<Place>>();
        // Without a place, as in a test, it counts as one more address.
        let address = place.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |place| place.source());
        let memory = self.large_memory.share_of(MemoryUser::Address(address));
        let answered = async {
            let deadline = started + time_allowed(request.uri.query())?;
            let content_type = request.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
            let media_type = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
            if !media_type.trim().eq_ignore_ascii_case("application/json") {
                return Err(HttpRefusal::NOT_JSON);
            }
            let read = timeout_at(deadline.min(started + BODY_TIMEOUT), body::read(&mut body, MAX_BODY, Some(&memory)));
            let Held { bytes, taken } = read.await.map_err(|_| HttpRefusal::SLOW_BODY)??;
            // A review is in flight when it is complete: clients that are slow to send one do not exclude others. From here on its
            // connection does not make room for another one.
            let _busy = place.map(Place::busy);
            let permit = timeout_at(deadline, self.reviews.acquire()).await;
            let _permit = permit.ok().and_then(Result::ok).ok_or(HttpRefusal::BUSY)?;
            let _in_flight = Counted::new(&self.reviewer.metrics.in_flight);
            // A parsed review takes at most as much as its body did.
            let thread = match taken {
                Some(taken) => Thread::Blocking { permits: Arc::clone(&self.blocking), memory: Arc::new(taken) },
                None => Thread::Serving,
            };
            let parsed = thread.run(deadline, move || Review::parse(&bytes, webhook)).await;
            let review = Arc::new(parsed.ok_or(HttpRefusal::BUSY)??);
            let answer = self.reviewer.decide(webhook, &review, &thread, started, deadline).await;
            let answer = answer.ok_or(HttpRefusal::LATE)?;
            drop((review, thread));
            Ok(Bytes::from_owner(Held::new(answer, &memory)?))
        };
        let answered = AssertUnwindSafe(answered.instrument(span.clone())).catch_unwind().await;
        let refusal = match answered.unwrap_or(Err(HttpRefusal::FAULT)) {
            Ok(answer) => {
                let json = HeaderValue::from_static("application/json");
                return ([(header::CONTENT_TYPE, json)], Body::from(answer)).into_response();
            }
            Err(refusal) => refusal,
        };
        // A body that has just timed out is not waited for.
        if refusal != HttpRefusal::SLOW_BODY {
            linger(body).await;
        }
        span.in_scope(|| self.refuse(refusal))
    }

    fn refuse(&self, HttpRefusal(status, message): HttpRefusal) -> Response {
        if REFUSED.admit() {
            tracing::info!(code = status.as_u16(), cause = cut_message(&message), "request refused");
        }
        self.reviewer.metrics.refused.get_or_create(&CodeLabel { code: status.as_u16() }).inc();
        let span = Span::current();
        span.record("outcome", "refused").record("code", i64::from(status.as_u16()));
        if status.is_server_error() {
            otlp::fail(&span, "refused");
        }
        (status, format!("{message}\n")).into_response()
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::to_bytes, http::Request};
    use futures::future::{BoxFuture, ready};
    use gmsa_cluster::{
        authorizer::{Authorization, Authorizer},
        resolver::{Freshness, Resolved, Resolver},
    };
    use gmsa_core::{
        admission::{Enforcement, ServiceAccount, Source, SpecFact, TicketSettings, UseFact},
        credspec::{SpecName, Verb},
    };
    use tokio::sync::watch;

    use super::*;
    use crate::{metrics::Metrics, server::LookUpSources};

    /// Answers, and does not wait for the rest of a large review.
    struct Greedy(Arc<Semaphore>);

    impl Resolver for Greedy {
        fn resolve<'a>(&'a self, _: &'a SpecName, _: Freshness, _: Instant) -> BoxFuture<'a, Resolved> {
            self.0.forget_permits(1);
            ready(Resolved { fact: SpecFact::Missing, source: Source::Api }).boxed()
        }
    }

    impl Authorizer for Greedy {
        fn may<'a>(
            &'a self,
            _: &'a ServiceAccount,
            _: Verb,
            _: &'a SpecName,
            _: Instant,
        ) -> BoxFuture<'a, Authorization> {
            ready(Authorization { fact: UseFact::Allowed, source: Source::Api }).boxed()
        }
    }

    fn shared(sources: LookUpSources, blocking: Arc<Semaphore>) -> Arc<Shared> {
        let reviewer = Reviewer {
            for_decisions: sources.clone(),
            for_advice: sources,
            random_hostname: false,
            strict_credential_specs: false,
            enforcement: Enforcement::Enforce,
            warn_namespaces: Arc::default(),
            tickets: watch::channel(TicketSettings::Off).1,
            metrics: Metrics::new().1,
        };
        let (large_memory, reviews) = (LargeMemory::new(4 << 20), Semaphore::new(1));
        Arc::new(Shared { reviewer, large_memory, reviews, blocking })
    }

    /// A review of a pod that uses GMSA, of at least so many bytes.
    fn request(size: usize) -> Request<Body> {
        let mut review = include_bytes!("../../examples/review-mutate.json").to_vec();
        review.resize(size.max(review.len()), b' ');
        let request = Request::post("/mutate?timeout=2s").header("content-type", "application/json");
        request.body(Body::from(review)).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_review_that_was_begun_and_not_ended_in_time_is_504_and_one_that_was_not_begun_503() {
        let blocking = Arc::new(Semaphore::new(1));
        let greedy = Arc::new(Greedy(Arc::clone(&blocking)));
        let sources = LookUpSources { resolver: Arc::clone(&greedy) as _, authorizer: greedy };
        let shared = shared(sources, blocking);
        for code in [504, 503] {
            assert_eq!(Arc::clone(&shared).review(Webhook::Mutate, request(1 << 20)).await.status(), code);
        }
    }

    /// Has a fault.
    struct Faulty;

    impl Resolver for Faulty {
        fn resolve<'a>(&'a self, _: &'a SpecName, _: Freshness, _: Instant) -> BoxFuture<'a, Resolved> {
            panic!("a fault")
        }
    }

    #[tokio::test]
    async fn a_panic_of_a_review_of_any_size_is_answered_and_counted() {
        let greedy = Arc::new(Greedy(Arc::new(Semaphore::new(1))));
        let shared =
            shared(LookUpSources { resolver: Arc::new(Faulty), authorizer: greedy }, Arc::new(Semaphore::new(1)));
        for size in [0, 1 << 20] {
            let answer = Arc::clone(&shared).review(Webhook::Mutate, request(size)).await;
            assert_eq!(answer.status(), 500);
            let line = to_bytes(answer.into_body(), 1000).await.unwrap();
            assert_eq!(line, "this replica has a fault, which its log shows: please report it\n");
        }
        assert_eq!((shared.reviews.available_permits(), shared.large_memory.free()), (1, 4 << 20));
    }
}
