//! The list of authorities as the Secret holds it: JSON, with certificates and keys as PEM and times as RFC 3339.
//!
//! Pure. What always holds: what is printed is read back as it was; unknown members are skipped, so that a newer version's
//! list can be read. Must not: quote what it reads, because there are keys in it.

use std::{sync::Arc, time::SystemTime};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{Authorities, Authority, Retired};
use crate::tls::{
    CaBundle, Timestamp,
    issue::{Ca, IssueError},
};

/// Why the list of authorities cannot be read. It never quotes it: there are keys in it.
#[derive(Debug, Error)]
pub enum Illegible {
    /// Not JSON, or other JSON. The parser's own words may quote the text.
    #[error("it is not the JSON that this webhook writes")]
    Json,
    /// An authority's certificate and key.
    #[error("an authority in it cannot be used")]
    Authority(#[source] IssueError),
    /// A time.
    #[error("a time in it is not one")]
    Time,
}

/// The authorities as they are written.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Document {
    signing: DocumentAuthority,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<DocumentAuthority>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    retired: Vec<DocumentRetired>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    heeded_rotation: String,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct DocumentAuthority {
    certificate: String,
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    leaves_until: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct DocumentRetired {
    certificate: String,
    leaves_until: String,
}

impl Document {
    pub fn of(authorities: &Authorities) -> Self {
        let authority = |authority: &Authority| DocumentAuthority {
            certificate: authority.ca.cert_pem().to_owned(),
            key: authority.ca.key_pem(),
            leaves_until: authority.leaves_until.map(|until| Timestamp(until).to_string()),
        };
        let retired = |retired: &Retired| DocumentRetired {
            certificate: CaBundle::from_iter([retired.cert.clone()]).to_pem(),
            leaves_until: Timestamp(retired.leaves_until).to_string(),
        };
        Self {
            signing: authority(&authorities.signing),
            next: authorities.next.as_ref().map(authority),
            retired: authorities.retired.iter().map(retired).collect(),
            heeded_rotation: authorities.heeded.clone(),
        }
    }

    pub fn to_json(&self) -> Vec<u8> {
        // Strings, lists and options always make JSON.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub fn read(self) -> Result<Authorities, Illegible> {
        let authority = |authority: DocumentAuthority| {
            let ca = Ca::from_pem(&authority.certificate, &authority.key).map_err(Illegible::Authority)?;
            let leaves_until = authority.leaves_until.as_deref().map(time).transpose()?;
            Ok(Authority { ca: Arc::new(ca), leaves_until })
        };
        let retired = |retired: DocumentRetired| {
            let bundle = CaBundle::from_pem(retired.certificate.as_bytes());
            let cert = bundle.ok().and_then(|bundle| bundle.iter().next().cloned());
            let cert = cert.ok_or(Illegible::Authority(IssueError::CaCertificate))?;
            Ok(Retired { cert, leaves_until: time(&retired.leaves_until)? })
        };
        Ok(Authorities {
            signing: authority(self.signing)?,
            next: self.next.map(authority).transpose()?,
            retired: self.retired.into_iter().map(retired).collect::<Result<_, Illegible>>()?,
            heeded: self.heeded_rotation,
        })
    }
}

fn time(text: &str) -> Result<SystemTime, Illegible> {
    OffsetDateTime::parse(text, &Rfc3339).map(SystemTime::from).map_err(|_| Illegible::Time)
}
