//! Checks a serving certificate as an API server would: names, dates, key, CA, and every webhook configuration.
//!
//! Invariants: the result never contains key material. A certificate is accepted here exactly where the verifier of
//! API servers (Go's) accepts it: also where the bundle holds the certificate itself.

use std::{fmt, time::SystemTime};

use gmsa_core::diagnostic::{
    Check, Diagnostic, Severity,
    rules::{self, Rule},
};
use gmsa_edge::{
    object::ObjectName,
    tls::{CaBundle, KeyPair, KeyPairError, Summary, Timestamp, WebhookConfiguration, crypto_provider},
};
use rustls::{
    client::{verify_server_cert_signed_by_trust_anchor, verify_server_name},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use x509_parser::prelude::{FromDer, X509Certificate};

/// A certificate with less than this part of its lifetime left expires soon.
const EXPIRES_SOON: u32 = 5;
/// The subject of every check.
const ABOUT: &str = "certificate";

/// The input of an inspection. The private key is never printed.
#[derive(Clone, Default)]
pub struct Input {
    /// The serving chain, as PEM.
    pub cert: Vec<u8>,
    /// Its key, as PEM.
    pub key: Option<Vec<u8>>,
    /// The CAs that should have signed it, as PEM.
    pub ca: Option<Vec<u8>>,
    /// Webhook configurations; `None` where one does not exist.
    pub configurations: Vec<(ObjectName, Option<WebhookConfiguration>)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The certificates of the chain.
    pub chain: Vec<Summary>,
    pub checks: Vec<Check>,
}

impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, certificate) in self.chain.iter().enumerate() {
            writeln!(f, "certificate {}: {certificate}", number + 1)?;
        }
        for Check { result, .. } in &self.checks {
            match result {
                Ok(text) => writeln!(f, "ok    {text}")?,
                Err(found) => {
                    let word = if found.severity < Severity::Error { "warn" } else { "FAIL" };
                    writeln!(f, "{word}  {} ({})", found.message, found.rule.id)?;
                }
            }
        }
        Ok(())
    }
}

fn pass(text: impl Into<String>) -> Check {
    Check::pass(ABOUT, text)
}

fn found(rule: &'static Rule, message: impl Into<String>) -> Check {
    Check::found(ABOUT, Diagnostic::new(rule, message))
}

/// Checks the input at `now`.
#[must_use]
pub fn inspect(input: &Input, now: SystemTime) -> Inspection {
    let mut inspection = Inspection::default();
    let Inspection { chain, checks } = &mut inspection;
    let ders: Vec<_> = CertificateDer::pem_slice_iter(&input.cert).flatten().collect();
    for der in &ders {
        match X509Certificate::from_der(der) {
            Ok((_, cert)) => chain.push(Summary::of(&cert)),
            Err(_) => checks
                .push(found(&rules::CERTIFICATE_UNUSABLE, "a certificate of the chain is not an X.509 certificate")),
        }
    }
    let (Some((leaf, intermediates)), Some(summary)) = (ders.split_first(), chain.first()) else {
        checks.push(found(&rules::CERTIFICATE_UNUSABLE, "there is no serving certificate"));
        return inspection;
    };
    checks.push(check_dates(summary, now));
    if summary.names.is_empty() {
        checks.push(found(&rules::CERTIFICATE_UNUSABLE, KeyPairError::NoNames.to_string()));
    }
    if let Some(key) = &input.key {
        checks.push(match KeyPair::at_any_time(&input.cert, key) {
            Ok(_) => pass("the private key is the key of the certificate"),
            Err(error) => found(&rules::PRIVATE_KEY, error.to_string()),
        });
    }
    let check_trust = |clients: &str, bundle: &CaBundle, host: Option<&str>, suffix: &str| {
        let Err(reason) = verify(leaf, intermediates, now, bundle, host) else {
            return pass(format!("{clients} accepts the certificate{suffix}"));
        };
        let message = format!("{clients} does not accept the certificate{suffix}: {reason}");
        found(&rules::CERTIFICATE_NOT_TRUSTED, message)
    };
    if let Some(ca) = &input.ca {
        checks.push(check_trust("the certificate authority", &CaBundle::salvage(ca), None, ""));
    }
    for (configuration, existing) in &input.configurations {
        let Some(existing) = existing else {
            checks.push(found(&rules::WEBHOOK_MISSING, format!("{configuration} does not exist")));
            continue;
        };
        for webhook in existing.webhooks() {
            let (clients, host) = (format!("{configuration}, webhook {},", webhook.name), webhook.host());
            let suffix = format!(" for {}", host.as_deref().unwrap_or("an unknown host"));
            checks.push(check_trust(&clients, &webhook.bundle(), host.as_deref(), &suffix));
        }
    }
    inspection
}

fn check_dates(leaf: &Summary, now: SystemTime) -> Check {
    let (from, to) = (leaf.not_before, leaf.not_after);
    let lifetime = to.duration_since(from).unwrap_or_default();
    let left = to.duration_since(now).unwrap_or_default();
    if left.is_zero() {
        return found(&rules::CERTIFICATE_EXPIRY, format!("the certificate expired at {}", Timestamp(to)));
    }
    if from > now {
        let message = format!("the certificate is not valid before {}", Timestamp(from));
        return found(&rules::CERTIFICATE_UNUSABLE, message);
    }
    let text = format!("the certificate expires at {} ({} d left)", Timestamp(to), left.as_secs() / (24 * 3600));
    if left < lifetime / EXPIRES_SOON {
        let soon = Diagnostic::new(&rules::CERTIFICATE_EXPIRY, text).with_severity(Severity::Warning);
        return Check::found(ABOUT, soon);
    }
    pass(text)
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
