//! Calls to the API server: one connection for them and one for watches, limits on the calls in flight, one retry.
//!
//! Invariants: a call always ends by its deadline; no more calls are in flight or wait than their [`CallKind`] allows,
//! and waiting counts against the deadline; a call that was sent ends with its answer or at its deadline, even when no
//! caller waits for it any more; a call is retried once, and only after a transient failure; a write that may have been
//! carried out is not retried: the caller looks the object up; a large answer is held within a share of memory, where there
//! is one; messages contain what the API server says in a `Status`, cut to a bound, and never another body.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, Method, Request, Response, StatusCode,
    header::{CONTENT_TYPE, RETRY_AFTER},
    request,
};
use kube::client::Body;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout_at};

mod client;
mod error;
mod kind;
mod limits;
pub mod list;
pub mod proxy;

pub use client::HTTP2_WINDOW;
use client::Http;
pub use error::{CallError, ConnectError};
pub use kind::{CallKind, Limit};
use limits::CallLimits;
use list::OBJECTS;

use crate::{
    body::{self, BodyError},
    large_memory::Share,
};

/// The longest pause before the retry, unless the API server asks for another pause.
const PAUSE: Duration = Duration::from_millis(100);

/// How often a process whose token is refused asks whether it still is.
const TOKEN_INTERVAL: Duration = Duration::from_secs(10);

pub struct ApiServer {
    calls: kube::Client,
    watches: kube::Client,
    /// Those of each kind, in their order.
    limits: [CallLimits; CallKind::ALL.len()],
    memory: Option<Share>,
    refuses_token: Arc<AtomicBool>,
}

impl ApiServer {
    /// A client with the credentials of the pod that this process runs in, or else with a kubeconfig (`KUBECONFIG`, or
    /// `~/.kube/config`).
    ///
    /// # Errors
    /// Where there are no credentials, or none that can be used.
    pub async fn from_environment() -> Result<Self, ConnectError> {
        let config = match kube::Config::incluster() {
            Ok(config) => config,
            Err(in_cluster) => kube::Config::from_kubeconfig(&kube::config::KubeConfigOptions::default())
                .await
                .map_err(|kubeconfig| ConnectError::NoCredentials { in_cluster, kubeconfig })?,
        };
        Self::new(config)
    }

    /// A client with these credentials. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Where the credentials cannot be used.
    pub fn new(config: kube::Config) -> Result<Self, ConnectError> {
        let [calls, watches] = client::connect(config, Http::Negotiated).map_err(ConnectError::Unusable)?;
        Ok(Self {
            calls,
            watches,
            limits: CallKind::ALL.map(CallLimits::new),
            memory: None,
            refuses_token: Arc::default(),
        })
    }

    /// Limits the memory of large answers: an answer that needs more is a failure.
    #[must_use]
    pub fn with_memory(self, memory: Share) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// A client that speaks HTTP/1.1 alone, whose connections can become web sockets. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Where the credentials cannot be used.
    pub fn http1_client(config: kube::Config) -> Result<kube::Client, ConnectError> {
        let [client] = client::connect(config, Http::One).map_err(ConnectError::Unusable)?;
        Ok(client)
    }

    /// A client for watches, and for the lists that they begin with. It has its own connection, which no call can break.
    pub fn watch_client(&self) -> &kube::Client {
        &self.watches
    }

    /// Whether the last answer was 401: the token of this process is void, as it is after its pod was deleted by force.
    pub fn refuses_token(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.refuses_token)
    }

    /// While the API server refuses the token, asks it from time to time whether it still does: a process that is out of service for that gets
    /// no reviews that would.
    pub async fn ask_while_token_is_refused(&self) -> Infallible {
        loop {
            sleep(TOKEN_INTERVAL).await;
            if self.refuses_token.load(Ordering::Acquire) {
                let _ = self.call(Request::get("/version").body(Vec::new()), Instant::now() + TOKEN_INTERVAL).await;
            }
        }
    }

    /// Makes a call that no admission review waits for, and returns the body of the answer: [`Self::exchange`] without the head.
    ///
    /// # Errors
    /// Where there is no answer with a 2xx code by the deadline.
    pub async fn call(&self, request: CallRequest, deadline: Instant) -> Result<Bytes, CallError> {
        self.exchange(CallKind::Background, None, request, deadline).await.map(Response::into_body)
    }

    /// Makes such a call, and reads the object in the answer: `what`, in messages.
    ///
    /// # Errors
    /// Where there is no such answer by the deadline.
    pub async fn read<T: DeserializeOwned>(
        &self,
        request: CallRequest,
        deadline: Instant,
        what: &'static str,
    ) -> Result<T, CallError> {
        object_in(&self.call(request, deadline).await?, what)
    }

    /// Calls within the limits of `kind`, and of those of the service account that it is made for, if any. On an error of the
    /// connection, on 429 and on 5xx, and where there is no memory for the answer, it retries once, after the time that the API server asks for; if that is after
    /// the deadline, it fails at once. A write is retried only where the first one was not carried out, or where a second one
    /// changes nothing more.
    ///
    /// # Errors
    /// Where there is no answer with a 2xx code by the deadline.
    pub async fn exchange(
        &self,
        kind: CallKind,
        account: Option<&str>,
        request: CallRequest,
        deadline: Instant,
    ) -> Result<Response<Bytes>, CallError> {
        let (asked, request) = (Instant::now(), request?);
        #[expect(clippy::indexing_slicing, reason = "there are those of each kind")]
        let limits = &self.limits[kind as usize];
        let attempt = |request| async {
            let permit = limits.permit(account, deadline).await?;
            let refuses_token = Arc::clone(&self.refuses_token);
            let sent = send(self.calls.clone(), kind, self.memory.clone(), request, refuses_token);
            // A separate task: when a request is dropped, the API server still works on it for a while. Otherwise clients that disconnect could make
            // it work on more requests than the limit.
            let call = tokio::spawn(async move {
                let answer = timeout_at(deadline, sent).await;
                drop(permit);
                answer
            });
            // It is not aborted, and does not panic.
            let answer = call.await.map_err(|_| CallError::Cut)?;
            answer.unwrap_or_else(|_| Err(CallError::TimedOut(deadline - asked)))
        };
        let error = match attempt(request.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let may_repeat = is_repeatable(&request) || !error.is_outcome_unknown();
        let pause = pause(&error).filter(|pause| may_repeat && Instant::now() + *pause < deadline);
        let Some(pause) = pause else { return Err(error) };
        sleep(pause).await;
        attempt(request).await
    }
}

/// A request, or why there is none.
pub type CallRequest = http::Result<Request<Vec<u8>>>;

/// A request with an object in its body.
///
/// # Errors
/// Where its URL is not one.
pub fn with_object(request: request::Builder, object: &Value) -> CallRequest {
    request.header(CONTENT_TYPE, OBJECTS).body(object.to_string().into_bytes())
}

/// The object in an answer: `what`, in messages.
///
/// # Errors
/// If it is something else.
pub fn object_in<'a, T: Deserialize<'a>>(answer: &'a [u8], what: &'static str) -> Result<T, CallError> {
    serde_json::from_slice(answer).map_err(|_| CallError::Unreadable(what))
}

async fn send(
    client: kube::Client,
    kind: CallKind,
    memory: Option<Share>,
    request: Request<Vec<u8>>,
    refuses_token: Arc<AtomicBool>,
) -> Result<Response<Bytes>, CallError> {
    let answer = client.send(request.map(Into::into)).await.map_err(CallError::Unreachable)?;
    let (head, body) = answer.into_parts();
    refuses_token.store(head.status == StatusCode::UNAUTHORIZED, Ordering::Release);
    let body = read_answer(body, kind.largest_answer(), memory.as_ref()).await?;
    if head.status.is_success() {
        return Ok(Response::from_parts(head, body));
    }
    Err(CallError::Refused {
        code: head.status,
        status: serde_json::from_slice(&body).ok().map(Box::new),
        retry_after: retry_after(&head.headers),
    })
}

/// The body of an answer, of at most `most` bytes. A large one takes its bytes of `memory`.
///
/// # Errors
/// [`CallError::Cut`], [`CallError::TooLarge`] and [`CallError::NoMemory`].
pub async fn read_answer(body: Body, most: usize, memory: Option<&Share>) -> Result<Bytes, CallError> {
    let read = body::read(body, most, memory).await;
    read.map(Bytes::from_owner).map_err(|error| match error {
        BodyError::Cut(_) => CallError::Cut,
        BodyError::TooLarge => CallError::TooLarge(most),
        BodyError::NoMemory => CallError::NoMemory,
    })
}

/// Whether a repeated request changes nothing more: a read, a review of access or of a token, a dry run that the query names, and a patch that
/// sets fields to given values.
fn is_repeatable<B>(request: &Request<B>) -> bool {
    const REVIEWS: [&str; 2] = ["/apis/authorization.k8s.io/", "/apis/authentication.k8s.io/"];
    const PATCHES: [&str; 2] = ["application/apply-patch+yaml", "application/merge-patch+json"];
    let (method, uri) = (request.method(), request.uri());
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    *method == Method::GET
        || uri.query().is_some_and(|query| query.split('&').any(|parameter| parameter == "dryRun=All"))
        || (*method == Method::POST && REVIEWS.iter().any(|group| uri.path().starts_with(group)))
        || (*method == Method::PATCH && PATCHES.contains(&content_type))
}

/// How long to wait before a retry; `None` where it would fail again.
fn pause(error: &CallError) -> Option<Duration> {
    match error {
        CallError::Refused { code, retry_after, .. }
            if *code == StatusCode::TOO_MANY_REQUESTS || code.is_server_error() =>
        {
            Some(retry_after.unwrap_or_else(|| jittered(PAUSE)))
        }
        CallError::Unreachable(kube::Error::Service(_) | kube::Error::HyperError(_)) | CallError::Cut => {
            Some(jittered(PAUSE))
        }
        // It holds nothing meanwhile, so no two calls wait for each other.
        CallError::NoMemory => Some(jittered(PAUSE)),
        _ => None,
    }
}

/// A duration between half of `longest` and `longest`, so that replicas do not call together.
pub fn jittered(longest: Duration) -> Duration {
    // Without random numbers all replicas wait equally long, which is acceptable.
    let random = getrandom::u32().unwrap_or(u32::MAX);
    longest.mul_f64(0.5 + f64::from(random) / (2.0 * f64::from(u32::MAX)))
}

/// The header's form in seconds, which the API server uses.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use http::HeaderValue;

    use super::*;

    #[test]
    fn pauses_differ_and_are_no_longer_than_asked_for() {
        let longest = Duration::from_secs(10);
        let pauses: HashSet<Duration> = std::iter::repeat_with(|| jittered(longest)).take(16).collect();
        assert!(pauses.len() > 1);
        assert!(pauses.iter().all(|pause| (longest / 2..=longest).contains(pause)), "{pauses:?}");
    }

    #[test]
    fn retry_after_is_read_in_seconds_only() {
        let read =
            |value: &'static str| retry_after(&HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]));
        assert_eq!(read("3"), Some(Duration::from_secs(3)));
        assert_eq!(read("Fri, 31 Dec 1999 23:59:59 GMT"), None);
        assert_eq!(read("-1"), None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn a_write_is_repeated_only_where_that_changes_nothing_more() {
        let shop = "/api/v1/namespaces/shop/pods";
        for (method, uri, content_type, repeatable) in [
            ("GET", shop.to_owned(), "", true),
            ("POST", shop.to_owned(), "application/json", false),
            ("POST", format!("{shop}?dryRun=All"), "application/json", true),
            ("POST", format!("{shop}?fieldManager=a&dryRun=All"), "application/json", true),
            ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews".to_owned(), "application/json", true),
            ("POST", "/apis/authentication.k8s.io/v1/tokenreviews".to_owned(), "application/json", true),
            ("PUT", format!("{shop}/web"), "application/json", false),
            ("PATCH", format!("{shop}/web"), "application/json-patch+json", false),
            ("PATCH", format!("{shop}/web"), "application/merge-patch+json", true),
            ("PATCH", format!("{shop}/web?force=true"), "application/apply-patch+yaml", true),
            ("DELETE", format!("{shop}/web"), "", false),
        ] {
            let request =
                Request::builder().method(method).uri(&uri).header(CONTENT_TYPE, content_type).body(()).unwrap();
            assert_eq!(is_repeatable(&request), repeatable, "{method} {uri} {content_type}");
        }
    }

    #[test]
    fn only_a_failure_by_chance_is_tried_again() {
        let refused = |code| CallError::Refused { code, status: None, retry_after: Some(Duration::from_secs(7)) };
        assert_eq!(pause(&refused(StatusCode::TOO_MANY_REQUESTS)), Some(Duration::from_secs(7)));
        assert_eq!(pause(&refused(StatusCode::SERVICE_UNAVAILABLE)), Some(Duration::from_secs(7)));
        assert_eq!(pause(&refused(StatusCode::FORBIDDEN)), None);
        assert_eq!(pause(&refused(StatusCode::NOT_FOUND)), None);
        assert!(pause(&CallError::Cut).is_some_and(|pause| pause <= PAUSE));
        assert_eq!(pause(&CallError::TooLarge(1)), None);
        assert!(pause(&CallError::NoMemory).is_some_and(|pause| pause <= PAUSE));
        assert_eq!(pause(&CallError::TimedOut(PAUSE)), None);
    }
}
