//! What can be said of a serving certificate before an API server says it: names, dates, key, authority, and whether each
//! webhook configuration would accept it.
//!
//! What always holds: a report never contains key material. A certificate is accepted here exactly where an API server's
//! verifier (Go's) accepts it: also where the bundle holds the certificate itself.

mod exhibit;

use std::{fmt, time::SystemTime};

use rustls::{
    RootCertStore,
    client::{verify_server_cert_signed_by_trust_anchor, verify_server_name},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
    server::ParsedCertificate,
};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::{CaBundle, KeyPair, Summary, Timestamp, configurations::FoundWebhook, crypto_provider};

pub use exhibit::{Exhibit, ExhibitError};

/// A certificate with less of its lifetime left than this part is worth a word.
const LATE: u32 = 5;

/// Something that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// How it went.
    pub verdict: Verdict,
    /// What was checked and what came of it: one line.
    pub text: String,
}

/// How a check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It works, but not for long.
    Late,
    /// It does not work.
    Bad,
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The certificates of the chain.
    pub chain: Vec<Summary>,
    /// What was checked.
    pub checks: Vec<Check>,
}

impl Report {
    /// The worst of the checks.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Good)
    }

    fn add(&mut self, verdict: Verdict, text: impl Into<String>) {
        self.checks.push(Check { verdict, text: text.into() });
    }

    fn add_result(&mut self, what: &str, result: Result<(), String>) {
        match result {
            Ok(()) => self.add(Verdict::Good, what),
            Err(reason) => self.add(Verdict::Bad, format!("not so: {what}: {reason}")),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, certificate) in self.chain.iter().enumerate() {
            writeln!(f, "certificate {}: {certificate}", number + 1)?;
        }
        for Check { verdict, text } in &self.checks {
            let word = match verdict {
                Verdict::Good => "ok",
                Verdict::Late => "warn",
                Verdict::Bad => "FAIL",
            };
            writeln!(f, "{word:<5} {text}")?;
        }
        Ok(())
    }
}

/// Looks at an exhibit as it is at `now`.
#[must_use]
pub fn inspect(exhibit: &Exhibit, now: SystemTime) -> Report {
    let mut report = Report::default();
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&exhibit.cert).flatten().collect();
    for der in &chain {
        match X509Certificate::from_der(der) {
            Ok((_, cert)) => report.chain.push(Summary::of(&cert)),
            Err(_) => report.add(Verdict::Bad, "a certificate of the chain is not an X.509 certificate"),
        }
    }
    let (Some(leaf), Some(summary)) = (chain.first(), report.chain.first().cloned()) else {
        report.add(Verdict::Bad, "there is no serving certificate");
        return report;
    };
    check_dates(&mut report, &summary, now);
    if summary.names.is_empty() {
        report
            .add(Verdict::Bad, "the certificate has no DNS name and no IP address among its subject alternative names");
    }
    if let Some(key) = &exhibit.key {
        let pair = KeyPair::at_any_time(&exhibit.cert, key);
        let result = pair.map(|_| ()).map_err(|error| error.to_string());
        report.add_result("the private key is the key of the certificate", result);
    }
    let presented = Presented { leaf, intermediates: chain.get(1..).unwrap_or_default(), now };
    if let Some(ca) = &exhibit.ca {
        let result = presented.accepted_by(&CaBundle::salvage(ca), None);
        report.add_result("the certificate authority accepts the certificate", result);
    }
    for (configuration, found) in &exhibit.configurations {
        let Some(found) = found else {
            report.add(Verdict::Bad, format!("{configuration} does not exist"));
            continue;
        };
        for FoundWebhook { name, host, bundle } in &found.webhooks {
            let host_text = host.as_deref().unwrap_or("an unknown host");
            let what = format!("{configuration}, webhook {name}, accepts the certificate for {host_text}");
            report.add_result(&what, presented.accepted_by(bundle, host.as_deref()));
        }
    }
    report
}

fn check_dates(report: &mut Report, leaf: &Summary, now: SystemTime) {
    let (from, to) = (leaf.not_before, leaf.not_after);
    let lifetime = to.duration_since(from).unwrap_or_default();
    let left = to.duration_since(now).unwrap_or_default();
    if left.is_zero() {
        report.add(Verdict::Bad, format!("the certificate expired at {}", Timestamp(to)));
    } else if from > now {
        report.add(Verdict::Bad, format!("the certificate is not valid before {}", Timestamp(from)));
    } else {
        let verdict = if left < lifetime / LATE { Verdict::Late } else { Verdict::Good };
        let days = left.as_secs() / (24 * 3600);
        report.add(verdict, format!("the certificate expires at {} ({days} d left)", Timestamp(to)));
    }
}

/// What a server shows, and when.
struct Presented<'a> {
    leaf: &'a CertificateDer<'static>,
    intermediates: &'a [CertificateDer<'static>],
    now: SystemTime,
}

impl Presented<'_> {
    /// Whether a client that trusts `bundle` and asks for `host` would go on.
    fn accepted_by(&self, bundle: &CaBundle, host: Option<&str>) -> Result<(), String> {
        if bundle.is_empty() {
            return Err("there is no certificate authority to trust".to_owned());
        }
        let parsed = ParsedCertificate::try_from(self.leaf).map_err(|error| error.to_string())?;
        if !bundle.contains(self.leaf) {
            let mut roots = RootCertStore::empty();
            for authority in bundle.iter() {
                roots.add(authority.clone()).map_err(|error| error.to_string())?;
            }
            let since = self.now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let (now, algorithms) =
                (UnixTime::since_unix_epoch(since), crypto_provider().signature_verification_algorithms);
            verify_server_cert_signed_by_trust_anchor(&parsed, &roots, self.intermediates, now, algorithms.all)
                .map_err(|error| error.to_string())?;
        }
        let Some(host) = host else { return Ok(()) };
        let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
        verify_server_name(&parsed, &name).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
