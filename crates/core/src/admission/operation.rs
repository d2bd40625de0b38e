//! The words of an AdmissionReview: the version of its API, and what is being done to the object.

use serde::{Deserialize, Deserializer};

use crate::json::string;

/// The version of the AdmissionReview API of the request, and so of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiVersion {
    V1,
    V1Beta1,
}

impl ApiVersion {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

impl<'de> Deserialize<'de> for ApiVersion {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        string(input, "`admission.k8s.io/v1` or `admission.k8s.io/v1beta1`", |word| {
            [Self::V1, Self::V1Beta1].into_iter().find(|version| version.as_str() == word)
        })
    }
}

/// What is being done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Create,
    /// The object, or a subresource of it, is changed.
    Update,
    Delete,
    /// A connection to a subresource is opened (`pods/exec`).
    Connect,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
        }
    }
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        string(input, "one of `CREATE`, `UPDATE`, `DELETE`, `CONNECT`", |word| {
            let all = [Self::Create, Self::Update, Self::Delete, Self::Connect];
            all.into_iter().find(|operation| operation.as_str() == word)
        })
    }
}
