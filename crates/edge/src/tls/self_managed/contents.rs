//! The Secret's contents: the CAs and the serving certificate.
//!
//! Pure. Invariants: [`Cas`] and [`Leaf`] are consistent (every key belongs to its certificate, and the CA that signs
//! has signed the serving certificate), and are read back as they were written; unknown members of `authorities.json` are
//! skipped, so that what a newer version wrote can be read. Must not: quote what it reads, because there are keys in it.

use std::{collections::BTreeMap, time::SystemTime};

use k8s_openapi::ByteString;
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use time::{OffsetDateTime, serde::rfc3339};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::Program;
use crate::tls::{
    CLOCK_SKEW, CaBundle, CaPolicy, KeyPair, KeyPairError,
    issue::{Ca, IssueError, Issued, UNREADABLE},
};

/// The serving certificate.
pub const TLS_CERT: &str = "tls.crt";
/// The key of the serving certificate.
pub const TLS_KEY: &str = "tls.key";
/// Every CA that must be trusted: a copy, for people and tools.
pub const CA_CERT: &str = "ca.crt";
/// The CAs, with the key of each that signs or will sign.
pub const AUTHORITIES: &str = "authorities.json";

/// The most CAs that are taken from the Secret: who may update it may have any CA trusted, but not fill the `caBundle`s.
pub const MAX_CAS: usize = 16;
/// The largest [`AUTHORITIES`], in bytes. One CA with its key takes about 1 KiB.
pub const MAX_AUTHORITIES: usize = 64 * 1024;

/// The data of a Secret, by key.
pub type Data = BTreeMap<String, ByteString>;

/// The usable parts of the Secret. A Secret that was just installed, or emptied, has no parts.
#[derive(Default)]
pub struct SecretContents {
    pub cas: Option<Cas>,
    pub leaf: Option<Leaf>,
    /// Why not all of it can be used.
    pub damage: Option<Damage>,
}

/// It never quotes the Secret's contents.
#[derive(Debug, Error)]
pub enum Damage {
    #[error("{0}")]
    Wrong(String),
    #[error("a certificate authority in {AUTHORITIES} cannot be used")]
    Ca(#[source] IssueError),
    #[error("{TLS_CERT} and {TLS_KEY} are not a key pair")]
    Leaf(#[source] KeyPairError),
}

impl Damage {
    /// Without the parser's error, which may quote a key.
    fn json(noun: &str) -> Self {
        Self::Wrong(format!("{AUTHORITIES} is not the JSON that this {noun} writes"))
    }

    fn too_large() -> Self {
        Self::Wrong(format!(
            "{AUTHORITIES} holds more than {MAX_CAS} certificate authorities, or more than {MAX_AUTHORITIES} bytes"
        ))
    }
}

pub struct Cas {
    /// Signs serving certificates.
    pub signing: Ca,
    /// Will sign when every API server trusts it.
    pub next: Option<Ca>,
    /// Sign no longer, but certificates that they signed may still be served.
    pub retired: Vec<RetiredCa>,
    /// The last request for a rotation that was carried out.
    pub last_rotation: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetiredCa {
    pub cert: CertificateDer<'static>,
    /// When the last certificate that it signed expires.
    pub leaves_until: SystemTime,
}

/// The serving certificate, as it is served and as it is stored.
pub struct Leaf {
    pub pair: KeyPair,
    pub pem: Issued,
}

impl Cas {
    /// The CAs that belong in the `caBundle`s at `now`.
    pub fn policy(&self, now: SystemTime) -> CaPolicy {
        let mut policy = CaPolicy { desired: self.able_to_sign().collect(), ..CaPolicy::default() };
        for RetiredCa { cert, leaves_until } in &self.retired {
            // The clocks of replicas differ: while one may still need a CA, no other removes it.
            let bundle = if *leaves_until > now {
                &mut policy.desired
            } else if *leaves_until + CLOCK_SKEW > now {
                &mut policy.tolerated
            } else {
                &mut policy.revoked
            };
            bundle.push(cert.clone());
        }
        policy
    }

    fn able_to_sign(&self) -> impl Iterator<Item = CertificateDer<'static>> {
        [Some(&self.signing), self.next.as_ref()].into_iter().flatten().map(|ca| ca.der.clone())
    }

    /// All CAs; the first one signs.
    fn bundle(&self) -> CaBundle {
        self.able_to_sign().chain(self.retired.iter().map(|retired| retired.cert.clone())).collect()
    }
}

/// Writes certificates into the data of the Secret. Other keys are left alone.
///
/// # Errors
/// Where a time cannot be written. `data` is then as it was.
pub fn write(cas: &Cas, leaf: &Leaf, data: &mut Data) -> Result<(), serde_json::Error> {
    let authorities = serde_json::to_vec(&Authorities::from(cas))?;
    let mut insert = |key: &str, value: Vec<u8>| data.insert(key.to_owned(), ByteString(value));
    insert(TLS_CERT, leaf.pem.cert.clone().into_bytes());
    insert(TLS_KEY, leaf.pem.key.clone().into_bytes());
    insert(CA_CERT, cas.bundle().to_pem().into_bytes());
    insert(AUTHORITIES, authorities);
    Ok(())
}

/// Reads the data of the Secret of a program.
pub fn read(data: &Data, program: &Program) -> SecretContents {
    if [TLS_CERT, TLS_KEY, CA_CERT, AUTHORITIES].iter().all(|key| !data.contains_key(*key)) {
        return SecretContents::default();
    }
    let mut contents = SecretContents::default();
    contents.damage = contents.fill(data, program.noun).err();
    contents
}

impl SecretContents {
    fn fill(&mut self, data: &Data, noun: &'static str) -> Result<(), Damage> {
        let cas = self.cas.insert(read_cas(data, noun)?);
        self.leaf = Some(read_leaf(data, cas)?);
        let copy = CaBundle::salvage(value(data, CA_CERT)?);
        if copy == cas.bundle() { Ok(()) } else { Err(Damage::Wrong(format!("{CA_CERT} differs from {AUTHORITIES}"))) }
    }
}

fn value<'a>(data: &'a Data, key: &'static str) -> Result<&'a [u8], Damage> {
    data.get(key).map(|value| value.0.as_slice()).ok_or_else(|| Damage::Wrong(format!("the Secret has no key {key}")))
}

fn read_cas(data: &Data, noun: &'static str) -> Result<Cas, Damage> {
    let text = value(data, AUTHORITIES)?;
    if text.len() > MAX_AUTHORITIES {
        return Err(Damage::too_large());
    }
    let document: Authorities = serde_json::from_slice(text).map_err(|_| Damage::json(noun))?;
    let cas = Cas {
        signing: document.signing.signing(noun)?,
        next: document.next.map(|next| next.signing(noun)).transpose()?,
        retired: document.retired.into_iter().map(|retired| retired.retired(noun)).collect::<Result<_, _>>()?,
        last_rotation: document.heeded_rotation,
    };
    if cas.bundle().len() > MAX_CAS { Err(Damage::too_large()) } else { Ok(cas) }
}

fn read_leaf(data: &Data, cas: &Cas) -> Result<Leaf, Damage> {
    let text = |key| Ok(String::from_utf8_lossy(value(data, key)?).into_owned());
    let pem = Issued { cert: text(TLS_CERT)?, key: text(TLS_KEY)? };
    let pair = KeyPair::at_any_time(pem.cert.as_bytes(), pem.key.as_bytes()).map_err(Damage::Leaf)?;
    let signed = pair.certified.cert.first().is_some_and(|leaf| is_signed_by(leaf, &cas.signing.der));
    let other = || Damage::Wrong(format!("{TLS_CERT} is not signed by the certificate authority in {AUTHORITIES}"));
    if signed { Ok(Leaf { pair, pem }) } else { Err(other()) }
}

fn is_signed_by(leaf: &CertificateDer<'_>, ca: &CertificateDer<'_>) -> bool {
    match (X509Certificate::from_der(leaf), X509Certificate::from_der(ca)) {
        (Ok((_, leaf)), Ok((_, ca))) => leaf.verify_signature(Some(ca.public_key())).is_ok(),
        _ => false,
    }
}

/// [`AUTHORITIES`]: certificates and keys are PEM, times are RFC 3339.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Authorities {
    signing: Authority,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Authority>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    retired: Vec<Authority>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    heeded_rotation: String,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Authority {
    certificate: String,
    /// `None` for a retired CA: it must not sign again.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "rfc3339::option")]
    leaves_until: Option<OffsetDateTime>,
}

impl From<&Cas> for Authorities {
    fn from(cas: &Cas) -> Self {
        let signing = |ca: &Ca| Authority {
            certificate: ca.cert_pem().to_owned(),
            key: Some(ca.key_pem()),
            leaves_until: ca.leaves_until.map(OffsetDateTime::from),
        };
        let retired = |RetiredCa { cert, leaves_until }: &RetiredCa| Authority {
            certificate: CaBundle::from_iter([cert.clone()]).to_pem(),
            key: None,
            leaves_until: Some((*leaves_until).into()),
        };
        Self {
            signing: signing(&cas.signing),
            next: cas.next.as_ref().map(signing),
            retired: cas.retired.iter().map(retired).collect(),
            heeded_rotation: cas.last_rotation.clone(),
        }
    }
}

impl Authority {
    fn signing(self, noun: &'static str) -> Result<Ca, Damage> {
        let key = self.key.as_deref().ok_or_else(|| Damage::json(noun))?;
        let mut ca = Ca::from_pem(&self.certificate, key).map_err(Damage::Ca)?;
        ca.leaves_until = self.leaves_until.map(SystemTime::from);
        Ok(ca)
    }

    fn retired(self, noun: &'static str) -> Result<RetiredCa, Damage> {
        let leaves_until = self.leaves_until.ok_or_else(|| Damage::json(noun))?.into();
        let certs = CaBundle::from_pem(self.certificate.as_bytes()).unwrap_or_default();
        let cert = certs.first().cloned().ok_or(Damage::Ca(UNREADABLE))?;
        Ok(RetiredCa { cert, leaves_until })
    }
}
