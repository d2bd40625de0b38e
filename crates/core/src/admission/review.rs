//! An AdmissionReview: the parts of the request that matter.
//!
//! Invariants: a [`Review`] has a uid, an operation and a kind, and holds only the objects that the webhook that was
//! called decides about. Unknown fields are skipped without being built, known fields of the wrong type and duplicate known
//! keys are errors, and no error quotes the body. The time that reading takes grows with the body and no faster, the
//! memory by [`most_bytes_to_parse`]; what is kept is never larger than what was read. The wire format is `k8s.io/api/admission/v1`; `v1beta1` has the same one.
//!
//! A new version of the AdmissionReview API is:
//! - a word of [`ApiVersion`], and its name in [`ParseError::Json`]; where its fields differ, also [`Review::parse`] and `answer.rs`;
//! - `admissionReviewVersions` of the webhook configurations in the chart;
//! - a folder in `tests/golden`, as `version-v1beta1`.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{
    Webhook,
    operation::Operation,
    pod::Pod,
    workload::{Kind, Workload},
};
use crate::{
    credspec::manifest::Manifest,
    json::{Flag, Object, Text, explain, string},
};

/// The longest uid that is given back, in bytes. The API server's are UUIDs of 36.
const MAX_UID: usize = 128;

/// The kind that `/mutate` and `/validate` decide on.
pub(super) const POD: &str = "Pod";

/// The kind that `/validate-credspec` decides on, with its group.
pub(super) const CREDENTIAL_SPEC: &str = "GMSACredentialSpec.windows.k8s.io";

/// The most memory that parsing a body of `body` bytes takes at any moment, beside the body: the parser's own copy of a string
/// with escapes, or the copies that are kept while their buffers still grow, and the buffers of bounded lists. What the parsed review
/// points to is less: at most as many bytes as the body has.
pub const fn most_bytes_to_parse(body: usize) -> usize {
    body + body / 2 + 256 * 1024
}

word_enum! {
    /// The version of the AdmissionReview API of the request, and so of the answer.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum ApiVersion {
        #[default]
        V1 = "admission.k8s.io/v1",
        V1Beta1 = "admission.k8s.io/v1beta1",
    }
}

impl<'de> Deserialize<'de> for ApiVersion {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        string(input, "`admission.k8s.io/v1` or `admission.k8s.io/v1beta1`", |word| {
            Self::ALL.into_iter().find(|version| version.as_str() == word)
        })
    }
}

#[derive(Debug, Default)]
pub struct Review {
    /// The API version to answer in.
    pub api_version: ApiVersion,
    /// The request's uid, to be given back.
    pub uid: String,
    pub operation: Operation,
    /// The object's kind; with its group (`Pod.metrics.k8s.io`) where that is not the core group.
    pub kind: String,
    /// The subresource; empty if the request has no subresource.
    pub sub_resource: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Whether nothing is stored, whatever the answer.
    pub dry_run: bool,
    /// The new object, where `/mutate` or `/validate` is called with a Pod and there is one.
    pub object: Option<Pod>,
    /// The object as it is stored, where `/mutate` or `/validate` is called with a Pod and there is one.
    pub old_object: Option<Pod>,
    /// The new object, where `/validate-workload` is called with a [`Kind`] and there is one.
    pub workload: Option<Workload>,
    /// The new object, where `/validate-credspec` is called with a credential spec and there is one.
    pub credential_spec: Option<Manifest>,
}

/// Why a request body is not a review.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// The body is not JSON of an AdmissionReview's shape: what is wrong and where, with nothing of the body in it.
    #[error("the body is not an AdmissionReview (admission.k8s.io/v1 or v1beta1): {0}")]
    Json(String),
    /// An answer is matched by its uid.
    #[error("the request.uid of the AdmissionReview is not of 1 to {MAX_UID} bytes")]
    Uid,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    api_version: ApiVersion,
    #[serde(rename = "kind", deserialize_with = "is_review")]
    _kind: (),
    #[serde(borrow)]
    request: Object<Request<'a>>,
}

fn is_review<'de, D: Deserializer<'de>>(input: D) -> Result<(), D::Error> {
    string(input, "`AdmissionReview`", |word| (word == "AdmissionReview").then_some(()))
}

/// The request. Its objects are skipped at first: the kind, which may come after them, decides how they are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    uid: Text,
    kind: Object<GroupVersionKind>,
    sub_resource: Option<Text>,
    namespace: Option<Text>,
    operation: Operation,
    dry_run: Option<Flag>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    old_object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct GroupVersionKind {
    group: Option<Text>,
    kind: Text,
}

impl Review {
    /// Reads what `webhook` needs of a request body.
    ///
    /// # Errors
    /// Where the body is not an AdmissionReview request, or is one of a Pod with a field of the wrong type.
    pub fn parse(body: &[u8], webhook: Webhook) -> Result<Self, ParseError> {
        // Checked once, as a whole: the parser checks no string that it skips.
        let body = std::str::from_utf8(body)
            .map_err(|error| ParseError::Json(format!("it is not UTF-8 from byte {} on", error.valid_up_to())))?;
        let wrong = |part: &str, error: &serde_json::Error| ParseError::Json(explain(error, part, body));
        let Object(Envelope { api_version, request: Object(request), .. }) =
            serde_json::from_str(body).map_err(|error| wrong(body, &error))?;
        if !(1..=MAX_UID).contains(&request.uid.len()) {
            return Err(ParseError::Uid);
        }
        let Object(GroupVersionKind { group, kind }) = request.kind;
        let kind = match group {
            Some(group) if !group.is_empty() => [&kind, ".", &group].concat(),
            _ => kind.into(),
        };
        let mut review = Self {
            api_version,
            uid: request.uid.into(),
            operation: request.operation,
            kind,
            sub_resource: request.sub_resource.unwrap_or_default().into(),
            namespace: request.namespace.unwrap_or_default().into(),
            dry_run: request.dry_run.is_some_and(|Flag(value)| value),
            ..Self::default()
        };
        let object = request.object.map(RawValue::get);
        match webhook {
            Webhook::Mutate | Webhook::Validate if review.is_pod() => {
                let read = |json: &RawValue| match serde_json::from_str(json.get()) {
                    Ok(Object(pod)) => Ok(pod),
                    Err(error) => Err(wrong(json.get(), &error)),
                };
                review.object = request.object.map(read).transpose()?;
                // A CREATE has no old object.
                let old = request.old_object.filter(|_| review.operation != Operation::Create);
                review.old_object = old.map(read).transpose()?;
            }
            // It only warns, and skips a workload that it cannot parse.
            Webhook::ValidateWorkload => {
                let kind = Kind::of_review(&review.kind);
                review.workload = kind.zip(object).and_then(|(kind, json)| Workload::from_json(kind, json).ok());
            }
            // An object that cannot be read is linted as an empty one.
            Webhook::ValidateCredspec if review.kind == CREDENTIAL_SPEC => {
                review.credential_spec = object.and_then(Manifest::read);
            }
            _ => {}
        }
        Ok(review)
    }

    /// The review of a pod that is created in `namespace`: of a request that no API server sent.
    ///
    /// # Errors
    /// Where a field of the pod has the wrong type.
    pub fn of_pod<'de, D: Deserializer<'de>>(namespace: &str, pod: D) -> Result<Self, D::Error> {
        let Object(pod) = Object::deserialize(pod)?;
        let (kind, namespace) = (POD.to_owned(), namespace.to_owned());
        Ok(Self { kind, namespace, object: Some(pod), ..Self::default() })
    }

    /// Whether the review is of a Pod of the core group.
    pub fn is_pod(&self) -> bool {
        self.kind == POD
    }
}

#[cfg(test)]
mod tests;
