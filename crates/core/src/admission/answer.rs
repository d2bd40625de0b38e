//! The answer to a review: the body of the HTTP response.

use std::collections::BTreeMap;

use base64::{display::Base64Display, prelude::BASE64_STANDARD};
use serde::{Serialize, Serializer};

use super::{Decision, Denial, Review, Verdict};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionReview<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<Base64<'a>>,
}

/// Encoded while the answer is written, so that no second copy of a 2 MiB patch is held in base64.
struct Base64<'a>(&'a [u8]);

impl Serialize for Base64<'_> {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.collect_str(&Base64Display::new(self.0, &BASE64_STANDARD))
    }
}

/// A `meta/v1.Status`.
#[derive(Serialize)]
struct Status {
    #[serde(rename = "status")]
    outcome: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    code: u16,
}

impl From<&Denial> for Status {
    fn from(denial: &Denial) -> Self {
        let (reason, code) = (denial.status_reason(), denial.code());
        Self { outcome: "Failure", message: denial.to_string(), reason, code }
    }
}

impl Review {
    /// Writes the answer to this review: the body of the HTTP response.
    pub fn answer(&self, decision: &Decision) -> Vec<u8> {
        let patch = decision.patch.as_deref().filter(|_| decision.is_allowed());
        let mut body = Vec::with_capacity(1024 + patch.map_or(0, <[u8]>::len).div_ceil(3) * 4);
        let answer = AdmissionReview {
            api_version: self.api_version.as_str(),
            kind: "AdmissionReview",
            response: Response {
                uid: &self.uid,
                allowed: decision.is_allowed(),
                status: match &decision.verdict {
                    Verdict::Denied(denial) => Some(denial.into()),
                    Verdict::Allowed | Verdict::WouldDeny(_) => None,
                },
                audit_annotations: decision.audit.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect(),
                warnings: &decision.warnings,
                patch_type: patch.is_some().then_some("JSONPatch"),
                patch: patch.map(Base64),
            },
        };
        // Writing strings and numbers into memory has no error to report. If there were one, the rest would be missing, and the
        // API server would deny the request.
        let _ = serde_json::to_writer(&mut body, &answer);
        body
    }
}

#[cfg(test)]
mod tests;
