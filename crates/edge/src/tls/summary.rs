//! The public fields of a certificate.

use std::{fmt, net::IpAddr, time::SystemTime};

use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use x509_parser::prelude::{GeneralName, X509Certificate};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The DNS names and IP addresses that the certificate is for.
    pub names: Vec<String>,
    /// Its serial number, in lower-case hexadecimal digits.
    pub serial: String,
    pub subject: String,
    pub issuer: String,
    pub not_before: SystemTime,
    pub not_after: SystemTime,
}

impl Summary {
    pub fn of(cert: &X509Certificate<'_>) -> Self {
        Self {
            names: names(cert),
            serial: serial(cert),
            subject: cert.subject().to_string(),
            issuer: cert.issuer().to_string(),
            not_before: cert.validity().not_before.to_datetime().into(),
            not_after: cert.validity().not_after.to_datetime().into(),
        }
    }

    /// Whether clients whose clock says `now` accept its dates. What is not valid yet is as bad as what has expired.
    pub fn is_valid_at(&self, now: SystemTime) -> bool {
        self.not_before <= now && now < self.not_after
    }
}

/// One line for logs and people.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { names, serial, subject, issuer, .. } = self;
        write!(f, "serial {serial}")?;
        if !names.is_empty() {
            write!(f, " for {}", names.join(", "))?;
        }
        let (from, to) = (Timestamp(self.not_before), Timestamp(self.not_after));
        write!(f, ", subject {subject:?}, issuer {issuer:?}, valid from {from} to {to}")
    }
}

/// A time as people and logs read it: RFC 3339, to the second, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(pub SystemTime);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = OffsetDateTime::from(self.0);
        let text = time.replace_nanosecond(0).unwrap_or(time).format(&Rfc3339);
        f.write_str(&text.unwrap_or_else(|_| time.to_string()))
    }
}

fn names(cert: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = cert.subject_alternative_name() else { return Vec::new() };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(dns) => Some((*dns).to_owned()),
        GeneralName::IPAddress(octets) => ip(octets).map(|ip| ip.to_string()),
        _ => None,
    };
    extension.value.general_names.iter().filter_map(name).collect()
}

fn ip(octets: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from)).ok()
}

fn serial(cert: &X509Certificate<'_>) -> String {
    // DER puts a zero before a first byte that would read as negative.
    let digits = cert.raw_serial_as_string().replace(':', "");
    digits.strip_prefix("00").filter(|rest| !rest.is_empty()).unwrap_or(&digits).to_owned()
}
