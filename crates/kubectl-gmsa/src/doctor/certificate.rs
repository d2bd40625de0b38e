//! The certificate authorities that the API server trusts for the webhook, and how long the certificate that is served is good
//! for. Whether the two fit, only a call shows.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use x509_parser::pem::Pem;

use super::Line;

const CERTIFICATE: &str = "certificate";
const DAY: i64 = 24 * 60 * 60;

/// The server's metric, in seconds since 1970.
const EXPIRY: &str = "gmsa_webhook_certificate_expiry_timestamp_seconds";

/// The certificate authority that the API server trusts for a webhook.
pub(super) fn authority(name: &str, bundle: &str) -> Line {
    const REMEDY: &str = "renew the certificate authority and its caBundle";
    if bundle.is_empty() {
        let text = format!("{name} has no caBundle");
        return Line::fail(CERTIFICATE, text, "cert-manager's CA injector, or the webhook itself, must write it");
    }
    let pem = BASE64_STANDARD.decode(bundle).unwrap_or_default();
    let ends: Vec<i64> = Pem::iter_from_buffer(&pem)
        .filter_map(Result::ok)
        .filter_map(|pem| pem.parse_x509().ok().map(|found| found.validity().not_after.timestamp()))
        .collect();
    let Some(end) = ends.iter().max() else {
        return Line::fail(CERTIFICATE, format!("the caBundle of {name} holds no certificate"), REMEDY);
    };
    until(*end, &format!("the caBundle of {name}"), 14, REMEDY)
}

/// The certificate that a replica serves, out of its metrics; `None` where they do not say.
pub(super) fn served(pod: &str, metrics: &str) -> Option<Line> {
    // 0 before there is one: the replica is not ready then, which another line says.
    let value = metrics.lines().find_map(|line| line.strip_prefix(EXPIRY)?.strip_prefix(' '))?;
    let end = value.trim().parse().ok().filter(|end| *end > 0)?;
    Some(until(
        end,
        &format!("the certificate that {pod} serves"),
        7,
        "see docs/certificates.md: it should have been renewed",
    ))
}

/// How long a certificate is valid; less than `enough` days lead to a warning.
fn until(end: i64, what: &str, enough: i64, remedy: &str) -> Line {
    // Rounded down: less than a day after its end it has ended.
    match (end - now()).div_euclid(DAY) {
        ..0 => Line::fail(CERTIFICATE, format!("{what} has expired"), remedy),
        days if days < enough => Line::warn(CERTIFICATE, format!("{what} expires in {days} days"), remedy),
        days => Line::pass(CERTIFICATE, format!("{what} is good for {days} days")),
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
