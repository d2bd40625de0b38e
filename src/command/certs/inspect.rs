//! Checks a serving certificate as an API server would: names, dates, key, CA, and every webhook configuration.
//!
//! Invariants: the result never contains key material. A certificate is accepted here exactly where the verifier of
//! API servers (Go's) accepts it: also where the bundle holds the certificate itself.

use std::{
    fmt::{Display, Write as _},
    time::SystemTime,
};

use gmsa_core::diagnostic::rules::{self, Rule};
use gmsa_edge::{
    object::ObjectName,
    tls::{CaBundle, KeyPair, NO_NAMES, Summary, Timestamp, WebhookConfiguration, crypto_provider},
};
use rustls::{
    client::{verify_server_cert_signed_by_trust_anchor, verify_server_name},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use x509_parser::prelude::{FromDer, X509Certificate};

/// A certificate with less than this part of its lifetime left expires soon.
const EXPIRES_SOON: u32 = 5;

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

/// The report: a line for each certificate of the chain, then one for each check.
#[derive(Debug)]
pub struct Inspection {
    pub report: String,
    /// Whether there is neither a failure nor a warning.
    pub passed: bool,
}

impl Inspection {
    fn pass(&mut self, text: impl Display) {
        _ = writeln!(self.report, "ok    {text}");
    }

    fn fail(&mut self, rule: &Rule, message: impl Display) {
        self.found("FAIL", rule, message);
    }

    fn trust(&mut self, clients: &str, suffix: &str, verified: Result<(), String>) {
        match verified {
            Ok(()) => self.pass(format!("{clients} accepts the certificate{suffix}")),
            Err(reason) => {
                let message = format!("{clients} does not accept the certificate{suffix}: {reason}");
                self.fail(&rules::CERTIFICATE_NOT_TRUSTED, message);
            }
        }
    }

    fn found(&mut self, word: &str, rule: &Rule, message: impl Display) {
        self.passed = false;
        _ = writeln!(self.report, "{word}  {message} ({})", rule.id);
    }
}

/// Checks the input at `now`.
#[must_use]
pub fn inspect(input: &Input, now: SystemTime) -> Inspection {
    let mut found = Inspection { report: String::new(), passed: true };
    let ders: Vec<_> = CertificateDer::pem_slice_iter(&input.cert).flatten().collect();
    let parsed = ders.iter().map(|der| X509Certificate::from_der(der).map(|(_, cert)| Summary::of(&cert)));
    let (chain, wrong): (Vec<_>, Vec<_>) = parsed.partition(Result::is_ok);
    let chain: Vec<Summary> = chain.into_iter().flatten().collect();
    for (number, certificate) in chain.iter().enumerate() {
        _ = writeln!(found.report, "certificate {}: {certificate}", number + 1);
    }
    for _ in wrong {
        found.fail(&rules::CERTIFICATE_UNUSABLE, "a certificate of the chain is not an X.509 certificate");
    }
    let (Some((leaf, intermediates)), Some(summary)) = (ders.split_first(), chain.first()) else {
        found.fail(&rules::CERTIFICATE_UNUSABLE, "there is no serving certificate");
        return found;
    };
    check_dates(&mut found, summary, now);
    if summary.names.is_empty() {
        found.fail(&rules::CERTIFICATE_UNUSABLE, NO_NAMES);
    }
    match input.key.as_ref().map(|key| KeyPair::at_any_time(&input.cert, key)) {
        Some(Ok(_)) => found.pass("the private key is the key of the certificate"),
        Some(Err(error)) => found.fail(&rules::PRIVATE_KEY, error),
        None => {}
    }
    let trusts = |bundle: &CaBundle, host: Option<&str>| verify(leaf, intermediates, now, bundle, host);
    if let Some(ca) = &input.ca {
        found.trust("the certificate authority", "", trusts(&CaBundle::salvage(ca), None));
    }
    for (configuration, existing) in &input.configurations {
        let Some(existing) = existing else {
            found.fail(&rules::WEBHOOK_MISSING, format!("{configuration} does not exist"));
            continue;
        };
        for webhook in existing.webhooks() {
            let host = webhook.host();
            let suffix = format!(" for {}", host.as_deref().unwrap_or("an unknown host"));
            let clients = format!("{configuration}, webhook {},", webhook.name);
            found.trust(&clients, &suffix, trusts(&webhook.bundle(), host.as_deref()));
        }
    }
    found
}

fn check_dates(found: &mut Inspection, leaf: &Summary, now: SystemTime) {
    let (from, to) = (leaf.not_before, leaf.not_after);
    let lifetime = to.duration_since(from).unwrap_or_default();
    let left = to.duration_since(now).unwrap_or_default();
    let text = format!("the certificate expires at {} ({} d left)", Timestamp(to), left.as_secs() / (24 * 3600));
    if left.is_zero() {
        found.fail(&rules::CERTIFICATE_EXPIRY, format!("the certificate expired at {}", Timestamp(to)));
    } else if from > now {
        let message = format!("the certificate is not valid before {}", Timestamp(from));
        found.fail(&rules::CERTIFICATE_UNUSABLE, message);
    } else if left < lifetime / EXPIRES_SOON {
        found.found("warn", &rules::CERTIFICATE_EXPIRY, text);
    } else {
        found.pass(text);
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
