//! What requests and answers are made of: parameters of the query, JSON, a `Status`.

use axum::body::Body;
use http::{Response, Uri, header};
use serde_json::{Value, json};

/// A parameter of the query. Tokens and numbers need no decoding.
pub(super) fn parameter<'u>(uri: &'u Uri, name: &str) -> Option<&'u str> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find_map(|(key, value)| (key == name).then_some(value))
}

pub(super) fn json_answer(code: u16, object: &Value) -> Response<Body> {
    Response::builder()
        .status(code)
        .header(header::CONTENT_TYPE, "application/json")
        .body(object.to_string().into())
        .unwrap()
}

pub(super) fn status_object(code: u16, reason: &str, message: &str, details: Value) -> Value {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    if !details.is_null() {
        status["details"] = details;
    }
    status
}
