//! Errors of calls to the API server, in words for the person who reads the denial.

use std::{error::Error as _, iter, time::Duration};

use gmsa_core::{
    admission::{Failure, FailureKind},
    causes,
    quote::remark,
};
use http::StatusCode;
use hyper_util::client::legacy::Error as ClientError;
use kube::core::Status;
use tower::BoxError;

use super::kind::{CallKind, Limit};

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
    #[error("the request cannot be made")]
    Request(#[from] http::Error),
    /// No permit was free until the deadline: other calls had them.
    #[error("{} other calls to the API server{} were under way for {:.1} s", .0.calls(), .0.whose(), .1.as_secs_f64())]
    NoPermit(Limit, Duration),
    /// The queue is full, so the call is not made.
    #[error("too many other calls to the API server{} are waiting, and {} are made at once: try again", .0.whose(), .0.calls())]
    QueueFull(Limit),
    #[error("no answer from the API server within {:.1} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The API server refused, or a proxy in front of it.
    #[error("the API server answered {}", refusal(*.code, .status.as_deref()))]
    Refused {
        code: StatusCode,
        /// The body of the answer, if the API server sent it.
        status: Option<Box<Status>>,
        /// How long it asks to wait before the next call.
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
    /// The memory for large answers is used up.
    #[error(
        "the API server's answer is large, and this replica holds as many large objects as it may at once: try again"
    )]
    NoMemory,
    /// The answer is something else.
    #[error("the API server's answer is not {0}")]
    Unreadable(&'static str),
}

impl CallError {
    /// The HTTP status code, where there was an answer.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { code, .. } => Some(code.as_u16()),
            _ => None,
        }
    }

    /// Whether the request may have had its effect although it failed: the answer is missing or incomplete, or is a server error.
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Refused { code, .. } => code.is_server_error(),
            Self::Unreachable(error) => !is_of_connecting(error),
            Self::TimedOut(_) | Self::Cut | Self::TooLarge(_) | Self::NoMemory | Self::Unreadable(_) => true,
            Self::Request(_) | Self::NoPermit(..) | Self::QueueFull(_) => false,
        }
    }

    /// The `Status` of the answer, if there is one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused { status, .. } => status.as_deref(),
            _ => None,
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let kind = match &error {
            CallError::NoPermit(limit, _) | CallError::QueueFull(limit) if limit.kind == CallKind::Advice => {
                FailureKind::NotAsked
            }
            CallError::NoPermit(..) | CallError::TimedOut(_) => FailureKind::TimedOut,
            _ => FailureKind::Failed,
        };
        Self { kind, refused: error.code(), cause: error.to_string() }
    }
}

fn refusal(code: StatusCode, status: Option<&Status>) -> String {
    match status.map(|status| status.message.as_str()).filter(|message| !message.is_empty()) {
        Some(message) => format!("{}: {}", code.as_u16(), remark(message)),
        None => code.to_string(),
    }
}

/// Whether there was no connection to send the request over.
fn is_of_connecting(error: &kube::Error) -> bool {
    let mut causes = iter::successors(error.source(), |&cause| cause.source());
    causes.any(|cause| cause.downcast_ref::<ClientError>().is_some_and(ClientError::is_connect))
}

/// The causes of kube's error, down to the operating system's. The outermost text is left out: it names a layer of the
/// client.
fn chain(error: &kube::Error) -> String {
    error.source().map_or_else(|| error.to_string(), causes::chain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_without_a_status_is_named_by_its_code() {
        let error = CallError::Refused { code: StatusCode::BAD_GATEWAY, status: None, retry_after: None };
        assert_eq!(
            Failure::from(error),
            Failure { refused: Some(502), ..Failure::new("the API server answered 502 Bad Gateway") }
        );
    }
}
