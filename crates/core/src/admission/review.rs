//! An AdmissionReview: the parts of the request that matter, borrowed from the request's bytes, and the answer.
//!
//! What always holds: a [`Review`] has a uid, an operation and a kind, and its objects are Pods wherever its kind is Pod.
//! Unknown fields are skipped without being built, known fields of the wrong type and known keys that stand twice are
//! errors, and no error quotes the body. The wire format is `k8s.io/api/admission/v1`; `v1beta1` has the same one.

use std::{borrow::Cow, fmt, marker::PhantomData, ops::Deref};

use base64::Engine;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::{
    Decision, Denial, Patch, Verdict, credspec_review,
    pod::Pod,
    workload::{self, Workload},
};

/// A JSON string: borrowed where it has no escapes. (A bare `Option<Cow<str>>` would always be copied.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text<'a>(pub Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);
        Borrowed::deserialize(input).map(|Borrowed(text)| Self(text))
    }
}

/// A JSON object. (A bare struct would also be read from an array, its items taken as the fields in their order.)
#[derive(Debug, Default)]
pub(super) struct Object<T>(T);

impl<T> Deref for Object<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(entries))
    }
}

/// Reads JSON null like an absent field.
pub(super) fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    input: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(input).map(Option::unwrap_or_default)
}

/// The version of the AdmissionReview API that the request speaks, and so the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum ApiVersion {
    /// `admission.k8s.io/v1`
    #[serde(rename = "admission.k8s.io/v1")]
    V1,
    /// `admission.k8s.io/v1beta1`
    #[serde(rename = "admission.k8s.io/v1beta1")]
    V1Beta1,
}

impl ApiVersion {
    fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

#[derive(Deserialize)]
enum ReviewKind {
    AdmissionReview,
}

/// What is being done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object, or a subresource of it, is changed.
    Update,
    /// The object is deleted.
    Delete,
    /// A connection to a subresource is opened (`pods/exec`).
    Connect,
}

impl Operation {
    /// The word that stands in the review.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

#[derive(Deserialize)]
struct GroupVersionKind<'a> {
    #[serde(borrow)]
    group: Option<Text<'a>>,
    #[serde(borrow)]
    kind: Text<'a>,
}

/// The whole request body. `P` is what its objects are read as.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "P: Deserialize<'de>"))]
struct Envelope<'a, P> {
    api_version: ApiVersion,
    #[serde(rename = "kind")]
    _kind: ReviewKind,
    #[serde(borrow)]
    request: Object<Request<'a, P>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "P: Deserialize<'de>"))]
struct Request<'a, P> {
    #[serde(borrow)]
    uid: Text<'a>,
    #[serde(borrow)]
    kind: Object<GroupVersionKind<'a>>,
    #[serde(borrow)]
    sub_resource: Option<Text<'a>>,
    #[serde(borrow)]
    namespace: Option<Text<'a>>,
    operation: Operation,
    object: Option<P>,
    old_object: Option<P>,
}

/// One request to review, with the parts of its Pods that matter.
#[derive(Debug)]
pub struct Review<'a> {
    /// The API version to answer in.
    pub api_version: ApiVersion,
    /// The request's uid, to be given back.
    pub uid: Cow<'a, str>,
    /// What is being done.
    pub operation: Operation,
    /// The object's kind; with its group (`Pod.metrics.k8s.io`) where that is not the core group.
    pub kind: Cow<'a, str>,
    /// The subresource, empty where there is none.
    pub sub_resource: Cow<'a, str>,
    /// The namespace, empty where there is none.
    pub namespace: Cow<'a, str>,
    /// The new object, where the kind is Pod and there is one.
    pub object: Option<Box<Pod<'a>>>,
    /// The object as it is stored, where the kind is Pod and there is one.
    pub old_object: Option<Box<Pod<'a>>>,
    /// The new object, where its kind is one of [`workload::KINDS`] and there is one.
    pub workload: Option<Workload<'a>>,
    /// The new object, where the kind is `GMSACredentialSpec` and there is one.
    pub credential_spec: Option<serde_json::Value>,
}

/// The longest uid that is given back, in bytes. The API server's are UUIDs of 36.
const MAX_UID: usize = 128;

/// The kind that `/mutate` and `/validate` decide on.
pub(super) const POD: &str = "Pod";

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

impl<'a> Review<'a> {
    /// Reads a request body.
    ///
    /// # Errors
    /// Where the body is not an AdmissionReview request, or is one of a Pod with a field of the wrong type.
    pub fn parse(body: &'a [u8]) -> Result<Self, ParseError> {
        // Checked once, as a whole: the parser would check every string on its own, and those that it skips not at all.
        let body = std::str::from_utf8(body)
            .map_err(|error| ParseError::Json(format!("it is not UTF-8 from byte {} on", error.valid_up_to())))?;
        // One pass for Pods, which are nearly all that comes. An object of another kind may have other types in a Pod's
        // places: it must still be named in the answer, so it is read again without its objects.
        let mut review = match read::<Object<Box<Pod<'a>>>>(body) {
            Ok(envelope) => Self::from_envelope(envelope, |Object(pod)| Some(pod))?,
            Err(pod_error) => {
                let review = Self::from_envelope(read::<IgnoredAny>(body)?, |_| None)?;
                if review.is_pod() {
                    return Err(pod_error);
                }
                review
            }
        };
        if workload::KINDS.contains(&&*review.kind) {
            review.workload = object(body);
        } else if review.kind == credspec_review::KIND {
            review.credential_spec = object(body);
        }
        Ok(review)
    }

    fn from_envelope<P>(
        envelope: Envelope<'a, P>,
        pod: impl Fn(P) -> Option<Box<Pod<'a>>>,
    ) -> Result<Self, ParseError> {
        let Object(request) = envelope.request;
        let or_empty = |text: Option<Text<'a>>| text.map_or(Cow::Borrowed(""), |text| text.0);
        if !(1..=MAX_UID).contains(&request.uid.0.len()) {
            return Err(ParseError::Uid);
        }
        let Object(GroupVersionKind { group, kind }) = request.kind;
        let kind = match group {
            Some(group) if !group.0.is_empty() => Cow::Owned(format!("{}.{}", kind.0, group.0)),
            _ => kind.0,
        };
        let is_pod = kind == POD;
        Ok(Self {
            api_version: envelope.api_version,
            uid: request.uid.0,
            operation: request.operation,
            kind,
            sub_resource: or_empty(request.sub_resource),
            namespace: or_empty(request.namespace),
            object: request.object.filter(|_| is_pod).and_then(&pod),
            old_object: request.old_object.filter(|_| is_pod).and_then(&pod),
            workload: None,
            credential_spec: None,
        })
    }

    /// Whether the review is of a Pod of the core group.
    #[must_use]
    pub fn is_pod(&self) -> bool {
        self.kind == POD
    }

    /// Writes the answer to this review: the body of the HTTP response.
    #[must_use]
    pub fn answer(&self, decision: &Decision) -> Vec<u8> {
        answer(self.api_version, &self.uid, decision)
    }
}

/// Reads the new object alone, as what its kind says. `None` where it is something else: the webhooks for these kinds give
/// advice, and have none then.
fn object<'a, T: Deserialize<'a>>(body: &'a str) -> Option<T> {
    let Object(request) = read::<Object<T>>(body).ok()?.request;
    request.object.map(|Object(object)| object)
}

fn read<'a, P: Deserialize<'a>>(body: &'a str) -> Result<Envelope<'a, P>, ParseError> {
    match serde_json::from_str(body) {
        Ok(Object(envelope)) => Ok(envelope),
        Err(error) => Err(ParseError::Json(explain(&error))),
    }
}

/// Says what is wrong with a body and where, without the value that serde quotes: it may be anything, a password too.
fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let quotes_a_value =
        ["invalid type", "invalid value", "unknown variant"].iter().any(|start| text.starts_with(start));
    match text.rfind(", expected ").filter(|_| quotes_a_value).and_then(|at| text.get(at + 2..)) {
        Some(expected) => expected.to_owned(),
        None => text,
    }
}

/// Writes an answer field by field: most of it is the same in all of them, and needs no look at each character.
fn answer(api_version: ApiVersion, uid: &str, decision: &Decision) -> Vec<u8> {
    let patch = decision.verdict.patch().map_or(&[][..], Patch::as_bytes);
    let mut answer = Answer(Vec::with_capacity(512 + base64_len(patch)));
    answer.raw(r#"{"apiVersion":""#);
    answer.raw(api_version.as_str());
    answer.raw(r#"","kind":"AdmissionReview","response":{"uid":"#);
    answer.string(uid);
    answer.raw(if decision.is_allowed() { r#","allowed":true"# } else { r#","allowed":false"# });
    if let Verdict::Denied(denial) = &decision.verdict {
        answer.status(denial);
    }
    answer.list(r#","auditAnnotations":{"#, &decision.audit, "}", |answer, (key, value)| {
        answer.string(key);
        answer.raw(":");
        answer.string(value);
    });
    answer.list(r#","warnings":["#, &decision.warnings, "]", |answer, line| answer.string(line));
    if !patch.is_empty() {
        answer.raw(r#","patchType":"JSONPatch","patch":""#);
        answer.base64(patch);
        answer.raw("\"");
    }
    answer.raw("}}");
    answer.0
}

/// The JSON of an answer, as far as it is written.
struct Answer(Vec<u8>);

impl Answer {
    fn raw(&mut self, json: &str) {
        self.0.extend_from_slice(json.as_bytes());
    }

    fn string(&mut self, text: &str) {
        // Writing a string into memory has no error to report. Were there one, what is left would be no JSON: the API server
        // refuses it, and denies.
        let _ = serde_json::to_writer(&mut self.0, text);
    }

    /// A list with its beginning and its end; nothing where there are no items.
    fn list<T>(&mut self, head: &str, items: &[T], end: &str, mut write: impl FnMut(&mut Self, &T)) {
        for (position, item) in items.iter().enumerate() {
            self.raw(if position == 0 { head } else { "," });
            write(self, item);
        }
        self.raw(if items.is_empty() { "" } else { end });
    }

    /// A `meta/v1.Status`.
    fn status(&mut self, denial: &Denial) {
        self.raw(r#","status":{"status":"Failure","message":"#);
        self.string(&denial.to_string());
        if let Some(reason) = denial.status_reason() {
            self.raw(r#","reason":"#);
            self.string(reason);
        }
        self.raw(r#","code":"#);
        self.raw(&denial.code().to_string());
        self.raw("}");
    }

    /// Base64 has no character that JSON escapes.
    fn base64(&mut self, bytes: &[u8]) {
        let start = self.0.len();
        self.0.resize(start + base64_len(bytes), 0);
        // There is room for it. Were there none, what stands there instead would be no JSON either.
        let _ = base64().encode_slice(bytes, self.0.get_mut(start..).unwrap_or_default());
    }
}

fn base64_len(bytes: &[u8]) -> usize {
    bytes.len().div_ceil(3) * 4
}

/// Base64 as JSON has it for bytes: of the standard alphabet, padded; by vector instructions where there are some.
fn base64() -> impl Engine {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    return base64::engine::simd::Simd::standard(base64::engine::general_purpose::PAD);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return base64::engine::general_purpose::STANDARD;
}

#[cfg(test)]
mod tests;
