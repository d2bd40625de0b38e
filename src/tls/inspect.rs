//! Checks a serving certificate as an API server would: names, dates, key, CA, and every webhook configuration.
//!
//! What always holds: the result never contains key material. A certificate is accepted here exactly where the verifier of
//! API servers (Go's) accepts it: also where the bundle holds the certificate itself.

use std::{fmt, time::SystemTime};

use rustls::{
    client::{verify_server_cert_signed_by_trust_anchor, verify_server_name},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{
    CaBundle, KeyPair, Summary, Timestamp,
    configurations::{Configuration, Found},
    crypto_provider,
};

/// A certificate with less than this part of its lifetime left expires soon.
const EXPIRES_SOON: u32 = 5;

/// What is inspected. The private key is never printed.
#[derive(Clone, Default)]
pub struct Input {
    /// The serving chain, as PEM.
    pub cert: Vec<u8>,
    /// Its key, as PEM.
    pub key: Option<Vec<u8>>,
    /// The CAs that should have signed it, as PEM.
    pub ca: Option<Vec<u8>>,
    /// Webhook configurations; `None` where one does not exist.
    pub configurations: Vec<(Configuration, Option<Found>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckResult {
    Passed,
    ExpiresSoon,
    Failed,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The certificates of the chain.
    pub chain: Vec<Summary>,
    /// The checks, each with one line about its result.
    pub checks: Vec<(CheckResult, String)>,
}

impl Inspection {
    /// The worst result.
    #[must_use]
    pub fn result(&self) -> CheckResult {
        self.checks.iter().map(|(result, _)| *result).max().unwrap_or(CheckResult::Passed)
    }

    fn add(&mut self, result: CheckResult, text: impl Into<String>) {
        self.checks.push((result, text.into()));
    }

    /// Adds whether the clients in question accept the certificate.
    fn add_accepted(&mut self, clients: &str, host: &str, accepted: Result<(), String>) {
        match accepted {
            Ok(()) => self.add(CheckResult::Passed, format!("{clients} accepts the certificate{host}")),
            Err(reason) => {
                self.add(CheckResult::Failed, format!("{clients} does not accept the certificate{host}: {reason}"));
            }
        }
    }
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, certificate) in self.chain.iter().enumerate() {
            writeln!(f, "certificate {}: {certificate}", number + 1)?;
        }
        for (result, text) in &self.checks {
            let word = match result {
                CheckResult::Passed => "ok",
                CheckResult::ExpiresSoon => "warn",
                CheckResult::Failed => "FAIL",
            };
            writeln!(f, "{word:<5} {text}")?;
        }
        Ok(())
    }
}

/// Checks the input at `now`.
#[must_use]
pub fn inspect(input: &Input, now: SystemTime) -> Inspection {
    let mut inspection = Inspection::default();
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&input.cert).flatten().collect();
    for der in &chain {
        match X509Certificate::from_der(der) {
            Ok((_, cert)) => inspection.chain.push(Summary::of(&cert)),
            Err(_) => inspection.add(CheckResult::Failed, "a certificate of the chain is not an X.509 certificate"),
        }
    }
    let (Some((leaf, intermediates)), Some(summary)) = (chain.split_first(), inspection.chain.first().cloned()) else {
        inspection.add(CheckResult::Failed, "there is no serving certificate");
        return inspection;
    };
    check_dates(&mut inspection, &summary, now);
    if summary.names.is_empty() {
        let text = "the certificate has no DNS name and no IP address among its subject alternative names";
        inspection.add(CheckResult::Failed, text);
    }
    if let Some(key) = &input.key {
        match KeyPair::at_any_time(&input.cert, key) {
            Ok(_) => inspection.add(CheckResult::Passed, "the private key is the key of the certificate"),
            Err(error) => inspection.add(CheckResult::Failed, error.to_string()),
        }
    }
    let accepted = |bundle: &CaBundle, host: Option<&str>| verify(leaf, intermediates, now, bundle, host);
    if let Some(ca) = &input.ca {
        inspection.add_accepted("the certificate authority", "", accepted(&CaBundle::salvage(ca), None));
    }
    for (configuration, found) in &input.configurations {
        let Some(found) = found else {
            inspection.add(CheckResult::Failed, format!("{configuration} does not exist"));
            continue;
        };
        for webhook in found.webhooks() {
            let (clients, host) = (format!("{configuration}, webhook {},", webhook.name), webhook.host());
            let host_text = format!(" for {}", host.as_deref().unwrap_or("an unknown host"));
            inspection.add_accepted(&clients, &host_text, accepted(&webhook.bundle(), host.as_deref()));
        }
    }
    inspection
}

fn check_dates(inspection: &mut Inspection, leaf: &Summary, now: SystemTime) {
    let (from, to) = (leaf.not_before, leaf.not_after);
    let lifetime = to.duration_since(from).unwrap_or_default();
    let left = to.duration_since(now).unwrap_or_default();
    if left.is_zero() {
        inspection.add(CheckResult::Failed, format!("the certificate expired at {}", Timestamp(to)));
    } else if from > now {
        inspection.add(CheckResult::Failed, format!("the certificate is not valid before {}", Timestamp(from)));
    } else {
        let result = if left < lifetime / EXPIRES_SOON { CheckResult::ExpiresSoon } else { CheckResult::Passed };
        let days = left.as_secs() / (24 * 3600);
        inspection.add(result, format!("the certificate expires at {} ({days} d left)", Timestamp(to)));
    }
}

/// Whether a client that trusts `bundle` and expects `host` accepts the chain at `now`.
fn verify(
    leaf: &CertificateDer<'static>,
    intermediates: &[CertificateDer<'static>],
    now: SystemTime,
    bundle: &CaBundle,
    host: Option<&str>,
) -> Result<(), String> {
    if bundle.is_empty() {
        return Err("there is no certificate authority to trust".to_owned());
    }
    let verified = || {
        let parsed = ParsedCertificate::try_from(leaf)?;
        if !bundle.contains(leaf) {
            let roots = bundle.roots()?;
            let now = UnixTime::since_unix_epoch(now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
            let algorithms = crypto_provider().signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, &roots, intermediates, now, algorithms)?;
        }
        Ok::<_, rustls::Error>(parsed)
    };
    let parsed = verified().map_err(|error| error.to_string())?;
    let Some(host) = host else { return Ok(()) };
    let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
    verify_server_name(&parsed, &name).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
