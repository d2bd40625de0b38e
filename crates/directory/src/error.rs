//! Errors of connections to domain controllers, in words.
//!
//! A message may end with a hint about an option of the plugin. The hint begins with one of [`HINTS`].

use std::{error::Error as _, io, time::Duration};

use gmsa_core::causes;

/// A failed operation of a domain controller, or of the connection to it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot connect to {0}{next}", next = next(.0, ""))]
    Unreachable(String, #[source] io::Error),
    #[error("cannot find the domain controllers of {domain}: {why}")]
    NotLocated { domain: String, why: String },
    #[error(
        "the DNS names {host} as a domain controller of {domain}, which is of another domain: name it with --directory ldaps://{host} if that is right"
    )]
    OtherDomain { domain: String, host: String },
    #[error(
        "the DNS names {controller} as a domain controller of {domain}, and its certificate does not have the name {domain}, which proves it: \
         nothing was sent; use --directory {controller} if it is one, or give it a certificate with that name (template Kerberos Authentication)"
    )]
    Unproven { controller: String, domain: String },
    #[error("the certificate of {0} is not trusted; --directory-ca FILE names the authority that made it")]
    Certificate(String, #[source] io::Error),
    #[error("the certificate of {0} is not for this name; use --directory ldaps:// with a name that it has")]
    CertificateName(String, #[source] io::Error),
    #[error(
        "the certificate of {0} is not valid now; give the domain controller a new one, or correct the clock of this machine"
    )]
    CertificateTime(String, #[source] io::Error),
    #[error("TLS with {0} fails{next}", next = next(.0, NO_CERTIFICATE))]
    Tls(String, #[source] io::Error),
    #[error("{0} does not take StartTLS: {1}{NO_CERTIFICATE}")]
    NoTls(String, String),
    #[error("cannot read the authority's certificates in {0}")]
    Authority(String, #[source] io::Error),
    #[error(
        "there is no certificate in {0}: expected a CA certificate in PEM or DER (`openssl pkcs7 -print_certs -inform der -in FILE` \
         prints the certificates of a .p7b file)"
    )]
    NoAuthority(String),
    #[error("the system has no trusted authorities: --directory-ca FILE names one")]
    NoRoots,
    #[error("{0} does not let {1} in: {2}")]
    Credentials(String, String, &'static str),
    #[error("{0} refuses: {1}")]
    Refused(String, String, u32),
    #[error("{0} ended the connection{next}", next = next(.0, TRY_ANOTHER))]
    Ended(String),
    #[error("{0} did not answer within {time} s", time = .1.as_secs())]
    TimedOut(String, Duration),
    #[error("{0} answers with more than {1}")]
    TooMuch(String, &'static str),
    #[error(
        "one command takes at most {1}, which {0} exceeds: name single accounts, or another domain controller with --directory ldaps://HOST"
    )]
    Exhausted(String, &'static str),
    #[error("{0} sends an answer that is not LDAP{next}", next = next(.0, ""))]
    Malformed(String),
    #[error("{0}: the directory does not say {1}")]
    Incomplete(String, &'static str),
    #[error("there are several accounts {0}, in {1}: write it as {0}@DOMAIN")]
    Ambiguous(String, String),
    #[error("{0} is not a domain of the forest, which has {1}")]
    NoDomain(String, String),
    #[error(
        "the file does not show its domains: add the entries below CN=Partitions,CN=Configuration, and those of the domains themselves \
         (objectClass=domainDNS)"
    )]
    NoDomains,
}

impl Error {
    /// Whether another controller can be asked: this one gave no answer.
    pub fn is_unanswered(&self) -> bool {
        match self {
            Self::Unreachable(..) | Self::NotLocated { .. } | Self::NoTls(..) | Self::Ended(_) | Self::TimedOut(..) => {
                true
            }
            Self::Tls(_, error) => error.get_ref().is_none() || error.kind() == io::ErrorKind::UnexpectedEof,
            Self::Refused(_, _, code) => matches!(*code, BUSY | UNAVAILABLE),
            _ => false,
        }
    }

    /// The message without its hint, and the causes: for a program that does not have these options.
    pub fn without_hint(&self) -> String {
        let mut said = match self {
            Self::Exhausted(controller, what) => return format!("{controller} takes more than {what}"),
            // They end with the controller's own words.
            Self::Credentials(..) | Self::Refused(..) => return self.to_string(),
            Self::NoTls(controller, why) => return format!("{controller} does not take StartTLS: {why}"),
            other => other.to_string(),
        };
        said.truncate(HINTS.iter().filter_map(|hint| said.find(hint)).min().unwrap_or(said.len()));
        self.source().map_or_else(|| said.clone(), |source| format!("{said}: {}", causes::chain(source)))
    }

    /// Whether it counts towards locking the user out: the password may be wrong.
    pub fn counts_as_wrong_password(&self) -> bool {
        matches!(self, Self::Credentials(_, _, UNKNOWN_USER | WRONG_PASSWORD | WRONG))
    }
}

/// The texts that hints begin with. No other text of ours has them.
const HINTS: [&str; 3] = ["; ", ": name ", ": --"];

/// Result codes (RFC 4511, appendix A).
const BUSY: u32 = 51;
const UNAVAILABLE: u32 = 52;

const UNKNOWN_USER: &str = "the domain does not know the user";
const WRONG_PASSWORD: &str = "the password is wrong, or the domain does not know the user";
const WRONG: &str = "the user or the password is wrong";

const NO_CERTIFICATE: &str =
    "; a domain controller without a certificate takes no TLS: try another one, with --directory ldaps://HOST";
const TRY_ANOTHER: &str = "; try again, or another domain controller, with --directory ldaps://HOST";

/// The hint for an address by its port, or else this one. A global catalog has two ports too, but not all properties of accounts.
fn next(address: &str, otherwise: &str) -> String {
    let port = address.rsplit_once(':');
    match port {
        Some((host, "389" | "3268")) if host.starts_with("ldaps://") => {
            format!("; on this port TLS begins with StartTLS: use --directory {}", host.replacen("ldaps", "ldap", 1))
        }
        Some((host, "636" | "3269")) if host.starts_with("ldap://") => {
            format!("; on this port TLS begins at once: use --directory {}", host.replacen("ldap", "ldaps", 1))
        }
        _ => otherwise.to_owned(),
    }
}

/// The meaning of a refused bind, from the status in its message, such as `… data 52e, v3839` (Microsoft: Common Active Directory bind errors).
pub(crate) fn bind_refused(message: &str) -> &'static str {
    let status = message.split_once("data ").and_then(|(_, rest)| rest.split(',').next());
    match status.map(str::trim) {
        Some("525") => UNKNOWN_USER,
        Some("52e") => WRONG_PASSWORD,
        Some("52f") => "the policy of the domain does not let this account log on",
        Some("530") => "the account may not log on at this time",
        Some("531") => "the account may not log on from here",
        Some("532") => "the password has expired",
        Some("533") => "the account is disabled",
        Some("568") => "the account is in too many groups",
        Some("701") => "the account has expired",
        Some("773") => "the password must be changed first",
        Some("775") => "the account is locked out",
        _ => WRONG,
    }
}

/// A result code of a bind or a search (RFC 4511, appendix A; [MS-ADTS] 3.1.1.3.1.9), and what the server says.
pub(crate) fn refused(address: &str, code: u32, message: &str) -> Error {
    let name = match code {
        1 => "operations error",
        3 => "its time limit is exceeded",
        4 => "its size limit is exceeded",
        8 => "it wants stronger authentication",
        10 => "it refers to another domain controller",
        11 => "its administrative limit is exceeded",
        32 => "there is no such object",
        34 => "the name is not a distinguished name",
        50 => "insufficient access rights",
        BUSY => "it is busy",
        UNAVAILABLE => "it is not available",
        53 => "it is unwilling to perform",
        _ => "",
    };
    let said: String = message.chars().filter(|c| !c.is_control()).take(300).collect();
    let text = match (name, said.trim()) {
        ("", "") => format!("LDAP result code {code}"),
        ("", said) => format!("LDAP result code {code}: {said}"),
        (name, "") => name.to_owned(),
        (name, said) => format!("{name} ({said})"),
    };
    Error::Refused(address.to_owned(), text, code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_without_its_hint_names_no_option() {
        let ldaps = || "ldaps://dc1.contoso.com:389".to_owned();
        let io = || io::Error::other("broken");
        let [domain, host] = ["contoso.com", "dc1.contoso.com"].map(str::to_owned);
        let refused = |code| refused("dc1", code, "comment: this; that");
        for (error, expected) in [
            (Error::Unreachable(ldaps(), io()), "cannot connect to ldaps://dc1.contoso.com:389: broken"),
            (
                Error::OtherDomain { domain: domain.clone(), host: host.clone() },
                "the DNS names dc1.contoso.com as a domain controller of contoso.com, which is of another domain",
            ),
            (
                Error::Unproven { controller: host, domain },
                "the DNS names dc1.contoso.com as a domain controller of contoso.com, and its certificate does not have the name contoso.com, \
                 which proves it: nothing was sent",
            ),
            (
                Error::Certificate(ldaps(), io()),
                "the certificate of ldaps://dc1.contoso.com:389 is not trusted: broken",
            ),
            (
                Error::CertificateName(ldaps(), io()),
                "the certificate of ldaps://dc1.contoso.com:389 is not for this name: broken",
            ),
            (
                Error::CertificateTime(ldaps(), io()),
                "the certificate of ldaps://dc1.contoso.com:389 is not valid now: broken",
            ),
            (Error::Tls(ldaps(), io()), "TLS with ldaps://dc1.contoso.com:389 fails: broken"),
            (Error::Tls("dc1".to_owned(), io()), "TLS with dc1 fails: broken"),
            (Error::NoTls("dc1".to_owned(), "a; b".to_owned()), "dc1 does not take StartTLS: a; b"),
            (Error::NoRoots, "the system has no trusted authorities"),
            (Error::Ended("dc1".to_owned()), "dc1 ended the connection"),
            (Error::Exhausted("dc1".to_owned(), "10 searches"), "dc1 takes more than 10 searches"),
            (Error::Malformed(ldaps()), "ldaps://dc1.contoso.com:389 sends an answer that is not LDAP"),
            (refused(50), "dc1 refuses: insufficient access rights (comment: this; that)"),
        ] {
            assert_eq!(error.without_hint(), expected);
        }
    }
}
