//! Why a request is no review that could be decided: the code and the line of text that it is answered with.

use axum::http::{Method, StatusCode};
use gmsa_cluster::body::BodyError;
use gmsa_core::{
    admission::{Webhook, review::ParseError},
    quote,
};

use crate::limits::MAX_BODY;

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

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Cut(cause) => Self::BadRequest(format!("the body could not be read: {cause}")),
            BodyError::TooLarge => Self::TooLarge,
            BodyError::NoMemory => Self::Busy,
        }
    }
}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Self {
        Self::BadRequest(error.to_string())
    }
}

impl Refusal {
    /// The code and the line of an answer.
    pub(super) fn answer(&self) -> (StatusCode, String) {
        match self {
            Self::NoSuchPath(path) => (
                StatusCode::NOT_FOUND,
                format!(
                    "there is no path {:?}: this webhook serves {}, /health and /info",
                    shorten(path),
                    Webhook::ALL.map(Webhook::path).join(", ")
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
    quote::cut(text, quote::NAME).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Metrics, scrape};

    /// `rate` does not see that a series begins with 1.
    #[test]
    fn every_code_is_counted_from_the_start() {
        let refusals = [
            Refusal::NoSuchPath(String::new()),
            Refusal::WrongMethod { method: Method::GET, path: String::new() },
            Refusal::NotJson,
            Refusal::TooLarge,
            Refusal::SlowBody,
            Refusal::BadRequest(String::new()),
            Refusal::Busy,
        ];
        let shown = scrape(&Metrics::new("test").1).unwrap();
        for refusal in refusals {
            let line = format!("gmsa_webhook_requests_refused_total{{code=\"{}\"}} 0\n", refusal.answer().0.as_u16());
            assert!(shown.contains(&line), "{refusal:?}");
        }
    }
}
