//! The words of an AdmissionReview: the version of its API, and what is being done to the object.

use serde::{Deserialize, Deserializer};

use crate::json::string;

word_enum! {
    /// The version of the AdmissionReview API of the request, and so of the answer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ApiVersion {
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

word_enum! {
    /// What is being done to the object.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Operation {
        Create = "CREATE",
        /// The object, or a subresource of it, is changed.
        Update = "UPDATE",
        Delete = "DELETE",
        /// A connection to a subresource is opened (`pods/exec`).
        Connect = "CONNECT",
    }
}

impl<'de> Deserialize<'de> for Operation {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        string(input, "one of `CREATE`, `UPDATE`, `DELETE`, `CONNECT`", |word| {
            Self::ALL.into_iter().find(|operation| operation.as_str() == word)
        })
    }
}
