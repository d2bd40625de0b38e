//! What the Secret holds: who signs, who will sign next, who has signed, and the serving certificate.
//!
//! Pure. What always holds: a [`Stored`] fits together (every key belongs to its certificate, the serving certificate is
//! signed by the authority that signs), and it is read back as it was written.
//!
//! | key | |
//! |---|---|
//! | `tls.crt`, `tls.key` | the serving certificate and its key |
//! | `ca.crt` | every authority that must be trusted: a copy, for people and tools |
//! | `authorities.json` | the authorities, with the keys of those that sign now or will |

mod document;

use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use rustls::pki_types::CertificateDer;
use thiserror::Error;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::tls::{
    CaBundle, KeyPair, KeyPairError, Wishes,
    issue::{Ca, Issued},
    key_pair::CLOCK_SKEW,
};
use document::Document;
pub use document::Illegible;

/// The serving certificate, in the Secret.
pub const TLS_CERT: &str = "tls.crt";
/// Its key, in the Secret.
pub const TLS_KEY: &str = "tls.key";
/// Every authority that must be trusted, in the Secret.
pub const CA_CERT: &str = "ca.crt";
/// The authorities and their keys, in the Secret.
pub const AUTHORITIES: &str = "authorities.json";

/// The values of a Secret, by key.
pub type Values = BTreeMap<String, Vec<u8>>;

/// What a Secret was found to hold.
#[derive(Debug)]
pub enum Content {
    /// Nothing of ours: it has just been installed, or somebody has emptied it.
    Empty,
    /// Something that does not fit together, and what of it still does.
    Damaged {
        /// What is wrong.
        damage: Damage,
        /// The authorities, where they are whole.
        authorities: Option<Authorities>,
        /// The serving certificate, where it is whole and signed by one of them.
        leaf: Option<Leaf>,
    },
    /// Everything.
    Whole(Stored),
}

/// What is wrong with a Secret.
#[derive(Debug, Error)]
pub enum Damage {
    /// A key is not there.
    #[error("the Secret has no key {0}")]
    Missing(&'static str),
    /// The list of authorities is not one.
    #[error("{AUTHORITIES} is not a list of authorities")]
    Authorities(#[source] Illegible),
    /// The serving certificate is not one.
    #[error("{TLS_CERT} and {TLS_KEY} are not a key pair")]
    Leaf(#[source] KeyPairError),
    /// The serving certificate comes from elsewhere.
    #[error("{TLS_CERT} is not signed by the certificate authority in {AUTHORITIES}")]
    Stranger,
    /// The copy is not one.
    #[error("{CA_CERT} is not what {AUTHORITIES} says")]
    Copy,
}

/// Everything that is in the Secret.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Who signs, will sign and has signed.
    pub authorities: Authorities,
    /// The serving certificate.
    pub leaf: Leaf,
}

/// Who signs, will sign and has signed.
#[derive(Clone, Debug)]
pub struct Authorities {
    /// Signs serving certificates.
    pub signing: Authority,
    /// Will sign, once everybody trusts it.
    pub next: Option<Authority>,
    /// Sign no more, but certificates that they signed may still be served.
    pub retired: Vec<Retired>,
    /// The last request for a rotation that was heeded.
    pub heeded: String,
}

/// An authority that can sign.
#[derive(Clone, Debug)]
pub struct Authority {
    /// The authority.
    pub ca: Arc<Ca>,
    /// When the last of the certificates that it signed expires, if it signed any.
    pub leaves_until: Option<SystemTime>,
}

/// An authority that signs no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retired {
    /// Its certificate.
    pub cert: CertificateDer<'static>,
    /// When the last of the certificates that it signed expires.
    pub leaves_until: SystemTime,
}

/// The serving certificate.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// As it is served.
    pub pair: KeyPair,
    /// As it is stored.
    issued: Issued,
}

impl Leaf {
    /// Takes a certificate that was just issued.
    ///
    /// # Errors
    /// Where it cannot be served.
    pub fn of(issued: Issued) -> Result<Self, KeyPairError> {
        let pair = KeyPair::at_any_time(issued.cert.as_bytes(), issued.key.as_bytes())?;
        Ok(Self { pair, issued })
    }
}

impl Authorities {
    /// What the configurations should carry at `now`.
    #[must_use]
    pub fn wishes(&self, now: SystemTime) -> Wishes {
        let mut wishes = Wishes::default();
        wishes.needed.push(self.signing.ca.cert_der().clone());
        if let Some(next) = &self.next {
            wishes.needed.push(next.ca.cert_der().clone());
        }
        for retired in &self.retired {
            // Replicas' clocks differ: between those that still need it and those that do not, nobody touches it.
            let list = if retired.leaves_until > now {
                &mut wishes.needed
            } else if retired.leaves_until + CLOCK_SKEW > now {
                &mut wishes.spare
            } else {
                &mut wishes.gone
            };
            list.push(retired.cert.clone());
        }
        wishes
    }

    /// Every authority, the one that signs first.
    fn bundle(&self) -> CaBundle {
        let able = [Some(&self.signing), self.next.as_ref()].into_iter().flatten();
        able.map(|authority| authority.ca.cert_der())
            .chain(self.retired.iter().map(|retired| &retired.cert))
            .cloned()
            .collect()
    }
}

impl Stored {
    /// Writes everything into the Secret's values; other keys are left alone.
    pub fn write(&self, values: &mut Values) {
        values.insert(TLS_CERT.to_owned(), self.leaf.issued.cert.clone().into_bytes());
        values.insert(TLS_KEY.to_owned(), self.leaf.issued.key.clone().into_bytes());
        values.insert(CA_CERT.to_owned(), self.authorities.bundle().to_pem().into_bytes());
        values.insert(AUTHORITIES.to_owned(), Document::of(&self.authorities).to_json());
    }
}

/// Reads a Secret's values.
#[must_use]
pub fn read(values: &Values) -> Content {
    let ours = [TLS_CERT, TLS_KEY, CA_CERT, AUTHORITIES];
    if ours.iter().all(|key| !values.contains_key(*key)) {
        return Content::Empty;
    }
    let authorities = match read_authorities(values) {
        Ok(authorities) => authorities,
        Err(damage) => return Content::Damaged { damage, authorities: None, leaf: None },
    };
    let leaf = match read_leaf(values, &authorities) {
        Ok(leaf) => leaf,
        Err(damage) => return Content::Damaged { damage, authorities: Some(authorities), leaf: None },
    };
    let copy = values.get(CA_CERT).map(|pem| CaBundle::salvage(pem));
    if copy.as_ref() == Some(&authorities.bundle()) {
        return Content::Whole(Stored { authorities, leaf });
    }
    let damage = copy.map_or(Damage::Missing(CA_CERT), |_| Damage::Copy);
    Content::Damaged { damage, authorities: Some(authorities), leaf: Some(leaf) }
}

fn value<'a>(values: &'a Values, key: &'static str) -> Result<&'a [u8], Damage> {
    values.get(key).map(Vec::as_slice).ok_or(Damage::Missing(key))
}

fn read_authorities(values: &Values) -> Result<Authorities, Damage> {
    let document: Document =
        serde_json::from_slice(value(values, AUTHORITIES)?).map_err(|_| Damage::Authorities(Illegible::Json))?;
    document.read().map_err(Damage::Authorities)
}

fn read_leaf(values: &Values, authorities: &Authorities) -> Result<Leaf, Damage> {
    let text = |key| Ok(String::from_utf8_lossy(value(values, key)?).into_owned());
    let issued = Issued { cert: text(TLS_CERT)?, key: text(TLS_KEY)? };
    let leaf = Leaf::of(issued).map_err(Damage::Leaf)?;
    let signed = leaf.pair.chain().first().is_some_and(|leaf| is_signed_by(leaf, authorities.signing.ca.cert_der()));
    if signed { Ok(leaf) } else { Err(Damage::Stranger) }
}

fn is_signed_by(leaf: &CertificateDer<'_>, authority: &CertificateDer<'_>) -> bool {
    match (X509Certificate::from_der(leaf), X509Certificate::from_der(authority)) {
        (Ok((_, leaf)), Ok((_, authority))) => leaf.verify_signature(Some(authority.public_key())).is_ok(),
        _ => false,
    }
}
