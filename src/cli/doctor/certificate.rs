//! The certificate authorities that the API server trusts for the webhook. Whether the certificate that is served fits them, only
//! a call shows.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use x509_parser::pem::Pem;

use super::Line;

const CERTIFICATE: &str = "certificate";
const DAY: i64 = 24 * 60 * 60;

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
    // Rounded down: less than a day after its end it has ended.
    match (end - now()).div_euclid(DAY) {
        ..0 => Line::fail(CERTIFICATE, format!("the caBundle of {name} has expired"), REMEDY),
        days @ 0..14 => Line::warn(CERTIFICATE, format!("the caBundle of {name} expires in {days} days"), REMEDY),
        days => Line::pass(CERTIFICATE, format!("the caBundle of {name} is good for {days} days")),
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
