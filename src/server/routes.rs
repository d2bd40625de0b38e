//! The paths on the TLS port, and the errors of HTTP itself: wrong path, method, content type, size, time, load.
//!
//! Invariants: a review that is parsed is answered with 200 and an AdmissionReview; anything else with an error
//! code and a line of text, never with an empty 200. The API server takes each of those errors as a denial.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::{Body, HttpBody as _},
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::TryFutureExt as _;
use tokio::{sync::Semaphore, time::Instant};
use tracing::{Instrument as _, Span, field::Empty};

use super::{
    bodies::{Bodies, Complete, Full},
    job::Job,
    limits::{BODY_TIMEOUT, INVALID_TIMEOUT, LARGE_BODY, MAX_BODY, before, threads, time_allowed},
    reviewer::Reviewer,
};
use crate::{
    config::Limits,
    telemetry::{LogLimit, cut_message, otlp},
};
use gmsa_core::admission::{Webhook, review::ParseError};
use http_body_util::BodyExt as _;

/// What the routes share, behind one count of references: axum clones the state of its routes for every request.
struct Shared {
    reviewer: Reviewer,
    bodies: Bodies,
    /// Reviews in flight.
    reviews: Arc<Semaphore>,
    /// Large reviews that are read and decided.
    large: Arc<Semaphore>,
    log_limit: Arc<LogLimit>,
}

/// The routes of the TLS port.
pub fn router(reviewer: Reviewer, limits: &Limits, log_limit: Arc<LogLimit>) -> Router {
    let (mutate, validate_credspec) = (reviewer.mutating_webhook(), reviewer.credspec_webhook());
    let shared = Shared {
        bodies: Bodies::new(limits.small_review_memory, limits.large_review_memory),
        reviews: Arc::new(Semaphore::new(limits.reviews)),
        large: Arc::new(Semaphore::new(threads())),
        reviewer,
        log_limit,
    };
    let review = |webhook: Webhook| {
        post(move |State(shared): State<Arc<Shared>>, request: Request| shared.review(webhook, request))
    };
    Router::new()
        .route("/mutate", review(mutate))
        .route("/validate", review(Webhook::Validate))
        .route("/validate-workload", review(Webhook::ValidateWorkload))
        .route("/validate-credspec", review(validate_credspec))
        .route("/health", get(async || StatusCode::NO_CONTENT))
        .route("/info", get(async || Json(serde_json::json!({ "version": env!("CARGO_PKG_VERSION") }))))
        .fallback(async |State(shared): State<Arc<Shared>>, uri: Uri| {
            shared.refuse(&Refusal::NoSuchPath(uri.path().to_owned()))
        })
        .method_not_allowed_fallback(async |State(shared): State<Arc<Shared>>, method: Method, uri: Uri| {
            shared.refuse(&Refusal::WrongMethod { method, path: uri.path().to_owned() })
        })
        .with_state(Arc::new(shared))
}

impl Shared {
    async fn review(self: Arc<Self>, webhook: Webhook, request: Request) -> Response {
        let span = tracing::info_span!(
            target: otlp::TARGET, "review", otel.kind = "server", path = request.uri().path(), uid = Empty,
            namespace = Empty, outcome = Empty, reason = Empty, code = Empty
        );
        otlp::continue_trace(&span, request.headers());
        let shared = Arc::clone(&self);
        let answered = self.answer(webhook, request).unwrap_or_else(move |refusal| shared.refuse(&refusal));
        answered.instrument(span).await
    }

    async fn answer(self: Arc<Self>, webhook: Webhook, request: Request) -> Result<Response, Refusal> {
        let started = Instant::now();
        let allowed = time_allowed(request.uri().query());
        let deadline = started + allowed.ok_or_else(|| Refusal::BadRequest(INVALID_TIMEOUT.to_owned()))?;
        expect_json(request.headers())?;
        let body = self.read(request.into_body(), deadline.min(started + BODY_TIMEOUT)).await?;
        // A review takes its place when it is complete: clients that are slow to send one do not exclude others.
        let place = Arc::clone(&self.reviews).try_acquire_owned().map_err(|_| Refusal::Busy)?;
        let is_large = body.as_ref().len() > LARGE_BODY;
        let job = Job {
            reviewer: self.reviewer.clone(),
            webhook,
            body,
            started,
            deadline,
            _place: place,
            _in_flight: self.reviewer.metrics.review_in_flight(),
        };
        let answer = if is_large { job.run_apart(&self.large).await? } else { job.run().await? };
        let mut response = Response::new(Body::from(answer));
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Ok(response)
    }

    async fn read(&self, mut body: Body, deadline: Instant) -> Result<Complete, Refusal> {
        // The length that the client announces. One over the limit is refused before the body is read.
        let announced = body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        if announced > Some(MAX_BODY) {
            return Err(Refusal::TooLarge);
        }
        let read = async {
            let (mut arriving, mut length) = (self.bodies.begin(announced)?, 0);
            while let Some(frame) = body.frame().await {
                let frame =
                    frame.map_err(|error| Refusal::BadRequest(format!("the body could not be read: {error}")))?;
                let Some(bytes) = frame.data_ref() else { continue };
                length += bytes.len();
                if length > MAX_BODY {
                    return Err(Refusal::TooLarge);
                }
                arriving.add(bytes)?;
            }
            Ok(arriving.complete()?)
        };
        before(deadline, read).await.ok_or(Refusal::SlowBody)?
    }

    fn refuse(&self, refusal: &Refusal) -> Response {
        let (status, message) = refusal.answer();
        if self.log_limit.admit() {
            tracing::info!(code = status.as_u16(), cause = cut_message(&message), "request refused");
        }
        self.reviewer.metrics.request_refused(status.as_u16());
        Span::current().record("outcome", "refused").record("code", i64::from(status.as_u16()));
        (status, format!("{message}\n")).into_response()
    }
}

fn expect_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = given.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/json") { Ok(()) } else { Err(Refusal::NotJson) }
}

/// Why a request is not a review that could be decided.
#[derive(Debug)]
pub(super) enum Refusal {
    NoSuchPath(String),
    WrongMethod { method: Method, path: String },
    NotJson,
    TooLarge,
    SlowBody,
    BadRequest(String),
    Busy,
}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Self {
        Self::BadRequest(error.to_string())
    }
}

impl From<Full> for Refusal {
    fn from(Full: Full) -> Self {
        Self::Busy
    }
}

impl Refusal {
    /// The code and the line of an answer.
    fn answer(&self) -> (StatusCode, String) {
        match self {
            Self::NoSuchPath(path) => (
                StatusCode::NOT_FOUND,
                format!(
                    "there is no path {:?}: this webhook serves /mutate, /validate, /validate-workload, /validate-credspec, /health and /info",
                    shorten(path)
                ),
            ),
            Self::WrongMethod { method, path } => {
                (StatusCode::METHOD_NOT_ALLOWED, format!("{path} does not take {}", shorten(method.as_str())))
            }
            Self::NotJson => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type must be application/json".to_owned())
            }
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {MAX_BODY} bytes")),
            Self::SlowBody => (StatusCode::REQUEST_TIMEOUT, "the body did not arrive within the time limit".to_owned()),
            Self::BadRequest(message) => (StatusCode::BAD_REQUEST, message.clone()),
            Self::Busy => (
                StatusCode::SERVICE_UNAVAILABLE,
                "this replica is reviewing as many requests as it may at once: try again".to_owned(),
            ),
        }
    }
}

/// A text from a client, cut to what a line can hold.
fn shorten(text: &str) -> String {
    gmsa_core::quote::cut(text, gmsa_core::quote::NAME).to_owned()
}
