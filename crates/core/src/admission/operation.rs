//! The operation of a review.

use serde::{Deserialize, Deserializer};

use crate::json::string;

word_enum! {
    /// The operation on the object.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum Operation {
        #[default]
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
