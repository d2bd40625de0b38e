//! A `GMSACredentialSpec`: its name, its `credspec` field, its contents text.
//!
//! Pure: no runtime, no client, no files, no clock. Invariants: a [`SpecName`] is a DNS-1123 subdomain, so it may
//! be part of a URL, a log line or a cache key; a [`Contents`] is the text that Go's `encoding/json` would print.
//!
//! | module | what it decides or holds |
//! |---|---|
//! | [`text`] | the contents text, as Go prints it |
//! | [`compare`] | whether a pod's contents are a credential spec's |
//! | [`manifest`] | an object that a user sends, read within bounds |
//! | [`domain_join`] | the domain and the accounts that contents name |
//! | [`lint`] | what is wrong with a credential spec |
//! | [`placeholder`] | values that are still to be filled in |
//! | [`services`] | what Linux pods get tickets for |
//! | [`ccg_plugin`] | the Container Credential Guard plugins whose input format is known |
//! | [`generate`] | a credential spec from facts about the domain |

use std::{
    any::Any,
    borrow::Borrow,
    fmt,
    sync::{Arc, LazyLock},
};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::json::null_is_default;

pub mod ccg_plugin;
pub mod compare;
pub mod domain_join;
pub mod generate;
pub mod lint;
pub mod manifest;
pub mod placeholder;
pub mod services;
pub mod text;

pub const GROUP: &str = "windows.k8s.io";
/// The version that is stored; `v1alpha1` is served as well, with the same structure.
pub const VERSION: &str = "v1";
pub const KIND: &str = "GMSACredentialSpec";
/// The plural, as URLs and RBAC rules write it.
pub const PLURAL: &str = "gmsacredentialspecs";
word_enum! {
    /// What a service account may do with a credential spec: the verb of RBAC.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Verb {
        /// To be its account: by contents in Windows pods, by tickets in Linux pods.
        Use = "use",
        /// To have a keytab of its account, which [`Verb::Use`] does not give.
        Export = "export",
    }
}

/// The longest contents text that the API server takes in `gmsaCredentialSpec`, in bytes.
pub const MAX_CONTENTS_BYTES: usize = 64 * 1024;

/// The longest DNS-1123 subdomain, in bytes (RFC 1123; Kubernetes' `IsDNS1123Subdomain`).
const MAX_SUBDOMAIN: usize = 253;
/// The longest DNS-1123 label, in bytes. Kubernetes does not apply it to the parts of a subdomain.
const MAX_LABEL: usize = 63;

/// The name of a credential spec: a lower-case DNS-1123 subdomain, checked once, where it enters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpecName(Arc<str>);

impl SpecName {
    /// Checks a name from a pod, which is hostile input, before it is used in a URL or a cache key; `None` where it is
    /// not a lower-case DNS subdomain.
    pub fn parse(name: &str) -> Option<Self> {
        is_dns_subdomain(name).then(|| Self(Arc::from(name)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for SpecName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SpecName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether `name` is a DNS-1123 subdomain: labels of `[a-z0-9-]`, each beginning and ending with a letter or a digit,
/// joined by dots, 253 bytes at most. Kubernetes requires it of names of credential specs and of service accounts.
pub fn is_dns_subdomain(name: &str) -> bool {
    name.len() <= MAX_SUBDOMAIN && name.split('.').all(is_dns_part)
}

/// Whether `name` is a DNS-1123 label of at most 63 bytes, as Kubernetes requires of names of namespaces.
pub fn is_dns_label(name: &str) -> bool {
    name.len() <= MAX_LABEL && is_dns_part(name)
}

/// Reads an argument that is a DNS name in lower case.
///
/// # Errors
/// What was expected, where it is not a DNS-1123 subdomain.
pub fn dns_name(text: &str) -> Result<String, &'static str> {
    if is_dns_subdomain(text) { Ok(text.to_owned()) } else { Err("expected a lower-case DNS name") }
}

fn is_dns_part(part: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = part.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}

/// The nearest valid name: the generator names a credential spec after its account. As Docker and Windows write it, a name has more
/// around it: `file://webapp1.json`, `CONTOSO\WebApp1$`, `WebApp1@contoso.com`.
pub fn suggest_name(name: &str) -> String {
    let name = name.strip_prefix("file://").map_or(name, |file| file.strip_suffix(".json").unwrap_or(file));
    let name = name.rsplit_once('\\').map(|(_, name)| name).filter(|name| !name.is_empty()).unwrap_or(name);
    let name = name.split_once('@').map(|(name, _)| name).filter(|name| !name.is_empty()).unwrap_or(name);
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c.to_ascii_lowercase() } else { '-' };
    let lower: String = name.chars().take(253).map(fit).collect();
    let edge = |c: char| !c.is_ascii_alphanumeric();
    let labels: Vec<_> = lower.split('.').map(|label| label.trim_matches(edge)).filter(|l| !l.is_empty()).collect();
    if labels.is_empty() { "gmsa".to_owned() } else { labels.join(".") }
}

/// The metadata of a `GMSACredentialSpec` that the webhook reads.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpecMetadata {
    /// The object's name, as the API server gave it.
    #[serde(default, deserialize_with = "null_is_default")]
    pub name: String,
    /// The API server's opaque version of the object.
    #[serde(default, deserialize_with = "null_is_default")]
    pub resource_version: String,
}

/// The contents text of a credential spec.
#[derive(Debug)]
pub struct Contents {
    text: Box<str>,
    /// Released together with the text.
    _permit: Option<Box<dyn Any + Send + Sync>>,
}

impl PartialEq for Contents {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Contents {}

impl Contents {
    /// The contents of a whole credential spec, or `None` where `credspec` is missing or is not a JSON object (`{}` is one).
    pub fn of_spec(spec: &Value) -> Option<Self> {
        spec.get("credspec")?.as_object().map(Self::of)
    }

    pub fn of(credspec: &Map<String, Value>) -> Self {
        Self { text: text::print(credspec).into(), _permit: None }
    }

    /// The replacement for a text that no pod can carry: one byte more than [`MAX_CONTENTS_BYTES`], so that the API server refuses
    /// the pod, and no pod's text is equal. It is shared: that a credential spec is too long takes no memory.
    pub fn too_long() -> Arc<Self> {
        static TEXT: LazyLock<Arc<Contents>> = LazyLock::new(|| {
            let text = "the contents of the credential spec are longer than the 64 KiB that a pod can carry";
            let text = [text, &" ".repeat(MAX_CONTENTS_BYTES + 1 - text.len())].concat().into();
            Arc::new(Contents { text, _permit: None })
        });
        Arc::clone(&TEXT)
    }

    /// Whether it is too long for any pod.
    pub fn is_too_long(&self) -> bool {
        self.text.len() > MAX_CONTENTS_BYTES
    }

    /// Adds a permit for the memory of the text, which is released when the text is dropped.
    #[must_use]
    pub fn with_permit(self, permit: impl Any + Send + Sync) -> Self {
        Self { _permit: Some(Box::new(permit)), ..self }
    }

    /// The text that a pod carries in `gmsaCredentialSpec`.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests;
