//! The certificate authorities that the API server trusts for the webhook and those that sidecars trust for the broker, and how long the
//! served certificate is valid. Only a call shows whether the API server trusts it.

use k8s_openapi::jiff::Timestamp;
use x509_parser::{pem::Pem, prelude::ParsedExtension};

use crate::shared::{output::plural, rules};
use gmsa_core::diagnostic::{Check, Diagnostic, Severity};

pub(super) const CERTIFICATE: &str = "certificate";
const DAY: i64 = 24 * 60 * 60;

/// The programs that serve, as their metrics begin.
const PROGRAMS: [&str; 2] = ["gmsa_webhook", "gmsa_tickets"];

/// Their metric, in seconds since 1970.
const EXPIRY: &str = "_certificate_expiry_timestamp_seconds";

/// Their metric, up to the key identifier of an authority of the served certificate.
pub(super) const AUTHORITY: &str = "_certificate_authority{key_id=\"";
pub(super) const NEXT_AUTHORITY: &str = "_certificate_next_authority{key_id=\"";

/// Their metric: what a replica did to the certificates since its start.
const STEPS: &str = "_certificate_steps_total{step=\"";

/// Their metric: 1 while a new certificate is refused.
const REFUSED: &str = "_certificate_refused";

/// The certificate authorities that the API server trusts for a webhook.
pub(super) fn authority(webhook: &str, bundle: &[u8], now: Timestamp) -> Check {
    if bundle.is_empty() {
        return Check::breach(CERTIFICATE, &rules::CA_BUNDLE, format!("{webhook} has no caBundle"));
    }
    let what = format!("the caBundle of {webhook}");
    match end(bundle) {
        None => Check::breach(CERTIFICATE, &rules::CA_BUNDLE, format!("{what} contains no certificate")),
        Some(end) => until(end, now, &what, 14),
    }
}

/// When the last of these certificates expires, in seconds since 1970.
pub(super) fn end(bundle: &[u8]) -> Option<i64> {
    let ends = Pem::iter_from_buffer(bundle)
        .filter_map(Result::ok)
        .filter_map(|pem| pem.parse_x509().ok().map(|found| found.validity().not_after.timestamp()));
    ends.max()
}

/// The certificate that a replica serves, from its metrics; `None` where they do not contain it.
pub(super) fn served(pod: &str, metrics: &str, now: Timestamp) -> Option<Check> {
    // 0 without a certificate: the replica is then not ready, and the check of the Service reports that.
    let end = value(metrics, EXPIRY)?.parse().ok().filter(|end| *end > 0)?;
    Some(until(end, now, &format!("the certificate that {pod} serves"), 7))
}

/// The finding that a replica refuses its newest certificate, from its metrics.
pub(super) fn refused(namespace: &str, pod: &str, metrics: &str) -> Option<Check> {
    let is_refused = value(metrics, REFUSED)?.parse().is_ok_and(|value: f64| value > 0.0);
    let text =
        format!("{pod} refuses the certificate that was offered last, and serves the one before until it expires");
    let fix = format!(
        "Do not restart the pods: a new one has no certificate to serve. `kubectl logs {pod} -n {namespace}` says what is wrong with the new pair; put a good one into the Secret."
    );
    is_refused.then(|| Check::found(CERTIFICATE, Diagnostic::new(&rules::CERTIFICATE_UNUSABLE, text).with_fix(fix)))
}

/// Changes that others make to a replica's certificates, from its metrics.
pub(super) fn disputes(pod: &str, metrics: &str) -> Vec<Check> {
    let count = |step: &str| {
        let counts =
            values(metrics, STEPS).filter_map(|rest| rest.split_once("\"} ")).filter(|(name, _)| *name == step);
        counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum::<u64>()
    };
    let (lost, held_back) = (count("bundle-lost"), count("held-back"));
    let mut checks = Vec::new();
    // Once is an accident.
    if lost > 1 {
        let text = format!("{pod} found its CA removed from a webhook configuration {lost} times since it started");
        checks.push(Check::breach(CERTIFICATE, &rules::CA_BUNDLE_CONTESTED, text));
    }
    if held_back > 0 {
        let text = format!("another replica replaces the certificate of {pod}, {held_back} times since it started");
        checks.push(Check::breach(CERTIFICATE, &rules::REPLICAS_DISAGREE, text));
    }
    checks
}

/// Whether an authority in the metrics of a replica, the one of its certificate or the next, is among these CAs. `None` without such an
/// authority, or if a CA has no key identifier.
pub(super) fn has_authority(bundle: &[u8], metrics: &str, authority: &str) -> Option<bool> {
    let key_id = |pem: Pem| {
        let cert = pem.parse_x509().ok()?;
        cert.extensions().iter().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(key) => Some(format!("{key:x}")),
            _ => None,
        })
    };
    let trusted: Option<Vec<String>> = Pem::iter_from_buffer(bundle).map(|pem| key_id(pem.ok()?)).collect();
    let mut signers = values(metrics, authority).filter_map(|rest| rest.split('"').next()).peekable();
    signers.peek()?;
    trusted.map(|trusted| signers.any(|signer| trusted.iter().any(|known| known == signer)))
}

/// The value of a metric without labels.
fn value<'m>(metrics: &'m str, name: &'m str) -> Option<&'m str> {
    values(metrics, name).find_map(|rest| rest.strip_prefix(' ')).map(str::trim)
}

/// The rest of each line of the metrics that begins with this name.
fn values<'m>(metrics: &'m str, name: &'m str) -> impl Iterator<Item = &'m str> {
    let of_program = |line: &'m str| PROGRAMS.iter().find_map(|program| line.strip_prefix(program));
    metrics.lines().filter_map(move |line| of_program(line)?.strip_prefix(name))
}

/// How long a certificate is valid; less than `enough` days lead to a warning.
pub(super) fn until(end: i64, now: Timestamp, what: &str, enough: i64) -> Check {
    let diagnostic = |message| Diagnostic::new(&rules::CERTIFICATE_EXPIRY, message);
    // Rounded down, so a certificate counts as expired from its end on.
    match (end - now.as_second()).div_euclid(DAY) {
        ..0 => Check::found(CERTIFICATE, diagnostic(format!("{what} has expired"))),
        days if days < enough => {
            let soon =
                diagnostic(format!("{what} expires in {}", plural(usize::try_from(days).unwrap_or_default(), "day")));
            Check::found(CERTIFICATE, soon.with_severity(Severity::Warning))
        }
        days => Check::pass(CERTIFICATE, format!("{what} is valid for {days} days")),
    }
}
