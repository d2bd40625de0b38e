//! Why a request cannot be decided as a review: the status code and the line of text of its answer.

use std::borrow::Cow;

use axum::http::{Method, StatusCode};
use gmsa_cluster::body::BodyError;
use gmsa_core::{
    admission::{Webhook, review::ParseError},
    quote,
};

use crate::limits::MAX_BODY;

/// The status code and the line of text of an answer that is not an AdmissionReview.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HttpRefusal(pub StatusCode, pub Cow<'static, str>);

impl HttpRefusal {
    pub const NOT_JSON: Self =
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the content type must be application/json");
    pub const SLOW_BODY: Self = Self::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive within the time limit");
    /// Also where no memory, or no thread in time, is left for a review.
    pub const BUSY: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "this replica is reviewing as many requests as it may at once: try again",
    );
    /// Where a review was begun and its time ended before there was an answer.
    pub const LATE: Self = Self::new(
        StatusCode::GATEWAY_TIMEOUT,
        "the review did not end within its time: try again, and see whether its timeout is long enough for its size",
    );
    /// Where a review panics. The panic is on standard error.
    pub const FAULT: Self =
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "this replica has a fault, which its log shows: please report it");
    pub const INVALID_TIMEOUT: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "the query parameter timeout must be a duration above 0 with units, such as 10s, 1m30s or 500ms",
    );

    const fn new(code: StatusCode, line: &'static str) -> Self {
        Self(code, Cow::Borrowed(line))
    }

    pub fn no_such_path(path: &str) -> Self {
        let (path, known) = (quote::cut(path, quote::NAME), Webhook::ALL.map(Webhook::path).join(", "));
        let line = format!("there is no path {path:?}: this webhook serves {known}, /health and /info");
        Self(StatusCode::NOT_FOUND, line.into())
    }

    pub fn wrong_method(method: &Method, path: &str) -> Self {
        let line = format!("{path} does not take {}", quote::cut(method.as_str(), quote::NAME));
        Self(StatusCode::METHOD_NOT_ALLOWED, line.into())
    }
}

impl From<BodyError> for HttpRefusal {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Cut(cause) => {
                Self(StatusCode::BAD_REQUEST, format!("the body could not be read: {cause}").into())
            }
            BodyError::TooLarge => {
                Self(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than {MAX_BODY} bytes").into())
            }
            BodyError::NoMemory => Self::BUSY,
        }
    }
}

impl From<ParseError> for HttpRefusal {
    fn from(error: ParseError) -> Self {
        Self(StatusCode::BAD_REQUEST, error.to_string().into())
    }
}

#[cfg(test)]
mod tests {
    use gmsa_edge::metrics::scrape;

    use super::*;
    use crate::metrics::Metrics;

    /// `rate` does not see that a series begins with 1.
    #[test]
    fn every_code_is_counted_from_the_start() {
        let refusals = [
            HttpRefusal::no_such_path(""),
            HttpRefusal::wrong_method(&Method::GET, ""),
            HttpRefusal::NOT_JSON,
            BodyError::TooLarge.into(),
            HttpRefusal::SLOW_BODY,
            ParseError::Uid.into(),
            HttpRefusal::BUSY,
            HttpRefusal::LATE,
            HttpRefusal::FAULT,
        ];
        let shown = scrape(&Metrics::new().2).unwrap();
        for refusal in refusals {
            let line = format!("gmsa_webhook_requests_refused_total{{code=\"{}\"}} 0\n", refusal.0.as_u16());
            assert!(shown.contains(&line), "{refusal:?}");
        }
    }
}
