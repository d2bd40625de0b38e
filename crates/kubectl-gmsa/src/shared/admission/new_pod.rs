//! A new pod, from a manifest or from the template of a workload, parsed once by the webhooks' parser.

use std::sync::Arc;

use gmsa_core::admission::{Review, pod::Pod};
use serde_json::Value;
use serde_path_to_error::{Deserializer, Segment, Track};

/// A field of a pod has the wrong type.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the API server would refuse the pod: {expected}")]
pub struct WrongType {
    /// The field, as a JSON Pointer in the pod.
    pub pointer: String,
    /// Such as `expected a string`.
    expected: String,
}

/// A new pod: its JSON, and its review or the parse error.
pub struct NewPod {
    pub json: Value,
    review: Result<Arc<Review>, WrongType>,
}

impl NewPod {
    pub fn new(namespace: &str, json: Value) -> Self {
        Self { review: review_of(namespace, &json), json }
    }

    /// The review of its creation.
    pub fn review(&self) -> Result<&Arc<Review>, WrongType> {
        self.review.as_ref().map_err(WrongType::clone)
    }

    /// The pod as the webhooks parse it; `None` if it cannot be parsed.
    pub fn pod(&self) -> Option<&Pod> {
        self.review.as_ref().ok()?.object.as_ref()
    }
}

/// The review of a pod that is created in `namespace`.
pub fn review_of(namespace: &str, pod: &Value) -> Result<Arc<Review>, WrongType> {
    let mut track = Track::new();
    Review::of_pod(namespace, Deserializer::new(pod, &mut track)).map(Arc::new).map_err(|error| {
        let text = error.to_string();
        // serde's message quotes the value, which may be a password.
        let expected = text.rfind("expected ").and_then(|at| text.get(at..)).unwrap_or("expected another type");
        let expected = expected.replace("a sequence", "a list");
        let mut pointer = String::new();
        for segment in &track.path() {
            match segment {
                Segment::Map { key } => pointer.extend(["/", &key.replace('~', "~0").replace('/', "~1")]),
                Segment::Seq { index } => pointer.extend(["/", &index.to_string()]),
                Segment::Enum { .. } | Segment::Unknown => {}
            }
        }
        WrongType { pointer, expected }
    })
}
