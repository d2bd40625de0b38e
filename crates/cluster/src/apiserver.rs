//! Calls to the API server: one connection for them and one for watches, limits on the calls in flight, one retry.
//!
//! Invariants: a call ends by its deadline, whatever the API server does; no more calls are in flight or wait than
//! their [`CallKind`] allows, and waiting counts against the deadline; a call that was sent ends with its answer or at its deadline,
//! also where nobody waits for it any more; a call is retried once, and only after a transient failure; messages contain what the
//! API server says in a `Status`, cut to a bound, and never another body.

use std::{error::Error as _, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header::RETRY_AFTER};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::core::Status;
use tokio::time::{Instant, sleep, timeout_at};
use tower::BoxError;

use gmsa_core::{admission::Failure, causes, quote::remark};

pub mod backoff;
mod client;
mod limits;
pub mod proxy;

use backoff::jittered;
use client::Http;
use limits::Limits;
pub use limits::{CallKind, PER_ACCOUNT};

/// The pause before the retry where the API server does not ask for another.
const PAUSE: Duration = Duration::from_millis(100);

pub struct ApiServer {
    calls: kube::Client,
    watches: kube::Client,
    access_reviews: Limits,
    known_specs: Limits,
    unknown_specs: Limits,
    background: Limits,
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither in-cluster credentials nor a kubeconfig could be read.
    #[error("no credentials for a cluster: not in a pod ({in_cluster}), and no kubeconfig ({kubeconfig})")]
    NoCredentials { in_cluster: kube::config::InClusterError, kubeconfig: kube::config::KubeconfigError },
    /// The credentials do not make a client.
    #[error("the credentials for the cluster cannot be used")]
    Unusable(#[source] BoxError),
}

#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No permit by the deadline: other calls were in flight.
    #[error("{} other calls to the API server were under way for {:.1} s", .0.limit(), .1.as_secs_f64())]
    NoPermit(CallKind, Duration),
    /// The queue is full, so the call is not made.
    #[error("too many other calls to the API server are waiting, of which {} are made at once: try again", .0.limit())]
    QueueFull(CallKind),
    #[error("no answer from the API server within {:.1} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The API server refused, or a proxy before it did.
    #[error("the API server answered {}", refusal(*.code, .status.as_deref()))]
    Refused {
        code: StatusCode,
        /// What the API server said, where it was the API server.
        status: Option<Box<Status>>,
        /// When it asks to be called again.
        retry_after: Option<Duration>,
    },
    /// The connection could not be made, or broke.
    #[error("the API server cannot be reached: {}", remark(&chain(.0)))]
    Unreachable(kube::Error),
    /// The connection broke in the middle of the answer.
    #[error("the API server's answer broke off")]
    Cut,
    #[error("the API server's answer is larger than {} MiB", .0 >> 20)]
    TooLarge(usize),
}

impl CallError {
    /// The HTTP status code, where there was an answer.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(code.as_u16()),
            _ => None,
        }
    }

    /// What the API server said, where it said something.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused { status, .. } => status.as_deref(),
            _ => None,
        }
    }

    /// How long to wait before a retry; `None` where it would fail again.
    fn pause(&self) -> Option<Duration> {
        match self {
            Self::Refused { code, retry_after, .. }
                if *code == StatusCode::TOO_MANY_REQUESTS || code.is_server_error() =>
            {
                Some(retry_after.unwrap_or_else(|| jittered(PAUSE)))
            }
            Self::Unreachable(kube::Error::Service(_) | kube::Error::HyperError(_)) | Self::Cut => {
                Some(jittered(PAUSE))
            }
            _ => None,
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let timed_out = matches!(error, CallError::NoPermit(..) | CallError::TimedOut(_));
        Self { timed_out, cause: error.to_string() }
    }
}

impl ApiServer {
    /// A client with the credentials of the pod that this process runs in, or else those of a kubeconfig (`KUBECONFIG`, or
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
            access_reviews: Limits::new(CallKind::AccessReview),
            known_specs: Limits::new(CallKind::KnownSpec),
            unknown_specs: Limits::new(CallKind::UnknownSpec),
            background: Limits::new(CallKind::Background),
        })
    }

    /// A client that speaks HTTP/1.1 alone, whose connections can become web sockets. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Where the credentials cannot be used.
    pub fn http1_client(config: kube::Config) -> Result<kube::Client, ConnectError> {
        let [client] = client::connect(config, Http::One).map_err(ConnectError::Unusable)?;
        Ok(client)
    }

    /// A client for what is not a call with an end: watches, and the lists that they begin with. It has a connection of its
    /// own, which no call can break.
    pub fn client(&self) -> &kube::Client {
        &self.watches
    }

    /// Calls without a review, and returns the body of the answer: [`Self::exchange`] without its head.
    ///
    /// # Errors
    /// Where there is no answer with a 2xx code by the deadline.
    pub async fn call(&self, request: Request<Vec<u8>>, deadline: Instant) -> Result<Bytes, CallError> {
        self.exchange(CallKind::Background, None, request, deadline).await.map(Response::into_body)
    }

    /// Calls within the limits of `kind`, and of those of the service account that it is made for, if any. On an error of the
    /// connection, on 429 and on 5xx it retries once, after the time that the API server asks for; if that is after
    /// the deadline, it fails at once.
    ///
    /// # Errors
    /// Where there is no answer with a 2xx code by the deadline.
    pub async fn exchange(
        &self,
        kind: CallKind,
        account: Option<&str>,
        request: Request<Vec<u8>>,
        deadline: Instant,
    ) -> Result<Response<Bytes>, CallError> {
        let asked = Instant::now();
        let attempt = |request| async {
            let permit = timeout_at(deadline, self.limits(kind).permit(account)).await;
            let permit = permit.map_err(|_| CallError::NoPermit(kind, deadline - asked))?;
            let permit = permit.ok_or(CallError::QueueFull(kind))?;
            let sent = send(self.calls.clone(), kind, request);
            // A task of its own: dropping a request resets its stream, but the API server works on it for a while. Clients that
            // come and go would have it work on more than the limit.
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
        let Some(pause) = error.pause().filter(|pause| Instant::now() + *pause < deadline) else { return Err(error) };
        sleep(pause).await;
        attempt(request).await
    }

    fn limits(&self, kind: CallKind) -> &Limits {
        match kind {
            CallKind::AccessReview => &self.access_reviews,
            CallKind::KnownSpec => &self.known_specs,
            CallKind::UnknownSpec => &self.unknown_specs,
            CallKind::Background => &self.background,
        }
    }
}

async fn send(client: kube::Client, kind: CallKind, request: Request<Vec<u8>>) -> Result<Response<Bytes>, CallError> {
    let answer = client.send(request.map(Into::into)).await.map_err(CallError::Unreachable)?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, kind.largest_answer()).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() { CallError::TooLarge(kind.largest_answer()) } else { CallError::Cut }
    })?;
    let body = body.to_bytes();
    if head.status.is_success() {
        return Ok(Response::from_parts(head, body));
    }
    Err(CallError::Refused {
        code: head.status,
        status: serde_json::from_slice(&body).ok().map(Box::new),
        retry_after: retry_after(&head.headers),
    })
}

/// The header's form in seconds, which is the one that the API server uses.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

fn refusal(code: StatusCode, status: Option<&Status>) -> String {
    match status.map(|status| status.message.as_str()).filter(|message| !message.is_empty()) {
        Some(message) => format!("{}: {}", code.as_u16(), remark(message)),
        None => code.to_string(),
    }
}

/// The causes of kube's error, down to that of the operating system; the outermost text, which names a layer of the client, is left out.
fn chain(error: &kube::Error) -> String {
    error.source().map_or_else(|| error.to_string(), causes::chain)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

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
    fn a_refusal_without_a_status_is_named_by_its_code() {
        let error = CallError::Refused { code: StatusCode::BAD_GATEWAY, status: None, retry_after: None };
        assert_eq!(
            Failure::from(error),
            Failure { timed_out: false, cause: "the API server answered 502 Bad Gateway".to_owned() }
        );
    }

    #[test]
    fn only_a_failure_by_chance_is_tried_again() {
        let refused = |code| CallError::Refused { code, status: None, retry_after: Some(Duration::from_secs(7)) };
        assert_eq!(refused(StatusCode::TOO_MANY_REQUESTS).pause(), Some(Duration::from_secs(7)));
        assert_eq!(refused(StatusCode::SERVICE_UNAVAILABLE).pause(), Some(Duration::from_secs(7)));
        assert_eq!(refused(StatusCode::FORBIDDEN).pause(), None);
        assert_eq!(refused(StatusCode::NOT_FOUND).pause(), None);
        assert!(CallError::Cut.pause().is_some_and(|pause| pause <= PAUSE));
        assert_eq!(CallError::TooLarge(1).pause(), None);
        assert_eq!(CallError::TimedOut(PAUSE).pause(), None);
    }
}
