//! The meaning of a domain controller's failure for the pod: a status, a rule and a sentence.
//!
//! Invariant: 409 says that the account cannot log on, 502 that a controller refuses the broker or answers what cannot be used, and 503
//! that none answers, or that a KDC says that it is not available (code 29).

use gmsa_core::causes;
use gmsa_directory::Error as DirectoryError;
use gmsa_kerberos::{Error as KerberosError, KdcError, KdcRefusal, Principal, PrincipalName, Realm, Ticket};
use http::StatusCode;

use crate::{
    api::{Reason, Refusal},
    domains::{CA_SETTING, DomainConfig},
};

/// The directory was not read.
pub fn of_directory(error: &DirectoryError, domain: &DomainConfig) -> Refusal {
    let said = error.without_hint();
    let said = match error {
        DirectoryError::Certificate(..) | DirectoryError::NoRoots => format!("{said}; {CA_SETTING}"),
        DirectoryError::OtherDomain { .. } | DirectoryError::Unproven { .. } => {
            format!("{said}; `controllers` (with the chart `domains[].controllers`) names it if it is one")
        }
        _ => said,
    };
    match error {
        error if error.is_unanswered() => Refusal::unavailable(
            Reason::LdapUnreachable,
            format!("no domain controller of {} answers: {said}", domain.kdcs.name),
        ),
        error if error.counts_as_wrong_password() => Refusal::bad_gateway(Reason::LdapCredentials, said),
        DirectoryError::Credentials(..) => Refusal::bad_gateway(Reason::LdapCredentials, said),
        DirectoryError::Certificate(..)
        | DirectoryError::CertificateName(..)
        | DirectoryError::CertificateTime(..)
        | DirectoryError::Tls(..)
        | DirectoryError::Authority(..)
        | DirectoryError::NoAuthority(_)
        | DirectoryError::NoRoots
        | DirectoryError::Unproven { .. } => Refusal::bad_gateway(Reason::ServerCertificate, said),
        DirectoryError::Refused(..) => Refusal::bad_gateway(Reason::DirectoryDenied, said),
        _ => Refusal::bad_gateway(Reason::TicketAnswer, said),
    }
}

/// A KDC of a realm gave no ticket for a service, with this ticket-granting ticket. `other` is the listed realm that the service's host is in.
pub fn of_service(
    error: &KerberosError,
    realm: &Realm,
    tgt: &Ticket,
    service: &PrincipalName,
    other: Option<&Realm>,
) -> Refusal {
    let (client, from) = (&tgt.client, &tgt.service.realm);
    let known = || of_kdc(error, client, realm, Some(service));
    let (KerberosError::Refused(refused), is_home) = (error, *realm == client.realm) else { return known() };
    let why = match (refused.code, other) {
        (7, Some(other)) if is_home => format!("no trust lets accounts of {realm} into {other}"),
        (14, Some(other)) if is_home => format!("the trust with {other} has no AES keys"),
        (43, Some(other)) if is_home => format!("the trust with {other} leads back to {realm}"),
        _ if is_home || matches!(refused.code, 7 | 29 | 37) => return known(),
        (12 | 35, _) => format!(
            "it does not let accounts of {} in, by selective authentication or because the trust has another direction",
            client.realm
        ),
        (14, _) => format!("the account of {service} has no AES keys"),
        (31, _) => format!("{from} and {realm} have different secrets of their trust"),
        (44, _) => format!("{from} and {realm} have keys of different types of their trust"),
        _ => "for an unknown reason".to_owned(),
    };
    let message = format!("the KDC of {realm} gives no ticket for {service}: {why} ({refused})");
    Refusal::bad_gateway(Reason::TicketReferral, message)
}

/// A KDC of a realm gave the account no ticket, or none for a service.
pub fn of_kdc(error: &KerberosError, client: &Principal, realm: &Realm, service: Option<&PrincipalName>) -> Refusal {
    match error {
        KerberosError::Refused(error) => refused(error, client, realm, service),
        KerberosError::NoAes => no_aes(client, "the KDC"),
        error @ KerberosError::TooMuch(..) => Refusal::bad_gateway(Reason::TicketAnswer, error.to_string()),
        error if error.is_unanswered() => {
            Refusal::unavailable(Reason::KdcUnreachable, format!("no KDC of {realm} answers: {}", causes::chain(error)))
        }
        error => Refusal::bad_gateway(Reason::TicketAnswer, format!("{realm}: {}", causes::chain(error))),
    }
}

/// The request has no time left for another answer of a KDC.
pub fn late_kdc(realm: &Realm) -> Refusal {
    Refusal::unavailable(Reason::KdcUnreachable, format!("no KDC of {realm} answers in time"))
}

fn no_aes(client: &Principal, who: &str) -> Refusal {
    Refusal::no_logon(Reason::TicketEncryption, format!("{client} cannot log on: {who} has no AES key of it"))
}

/// The KDC called every password wrong that the directory gives.
pub fn wrong_passwords(client: &Principal) -> Refusal {
    let why = "the KDC rejects the passwords that the directory gives; they are not tried again for a while";
    Refusal::no_logon(Reason::LogonDenied, format!("{client} cannot log on: {why}"))
}

fn refused(error: &KdcError, client: &Principal, realm: &Realm, service: Option<&PrincipalName>) -> Refusal {
    let no_logon =
        |reason: Reason, why: &str| Refusal::no_logon(reason, format!("{client} cannot log on: {why} ({error})"));
    let of_broker = |status: StatusCode, reason: Reason, why: &str| {
        Refusal::new(status, reason, format!("the KDC of {realm} refuses: {why} ({error})"))
    };
    match error.refusal() {
        KdcRefusal::Disabled => no_logon(Reason::AccountDisabled, "it is disabled"),
        KdcRefusal::Expired => no_logon(Reason::AccountExpired, "it has expired"),
        KdcRefusal::Locked => no_logon(Reason::AccountLocked, "it is locked out"),
        KdcRefusal::Revoked => no_logon(Reason::AccountRevoked, "it is disabled, locked out or has expired"),
        KdcRefusal::MustChangePassword => {
            no_logon(Reason::PasswordExpired, "its password has expired, or must be changed first")
        }
        KdcRefusal::WrongPassword => wrong_passwords(client),
        KdcRefusal::UnknownAccount => no_logon(Reason::AccountUnknown, "the KDC does not know it"),
        KdcRefusal::NoAes => no_aes(client, &format!("the KDC ({error})")),
        KdcRefusal::Policy => no_logon(
            Reason::LogonRestricted,
            "a policy of the domain refuses it, or requires armored requests (FAST), which the broker does not send",
        ),
        KdcRefusal::Clock => {
            let seconds = error.clock_difference.whole_seconds();
            let which = if seconds < 0 { "behind" } else { "ahead of" };
            let why = format!("its clock is {} s {which} that of the broker", seconds.unsigned_abs());
            of_broker(StatusCode::BAD_GATEWAY, Reason::DirectoryClock, &why)
        }
        KdcRefusal::UnknownService => {
            let name = service.map(ToString::to_string).unwrap_or_default();
            let why = format!("it does not know the service {name}, or knows it twice");
            of_broker(StatusCode::BAD_GATEWAY, Reason::PrincipalUnknown, &why)
        }
        KdcRefusal::WrongRealm => {
            of_broker(StatusCode::BAD_GATEWAY, Reason::KerberosConfiguration, "it does not serve the account's realm")
        }
        KdcRefusal::Unavailable => {
            of_broker(StatusCode::SERVICE_UNAVAILABLE, Reason::KdcUnreachable, "it is not available")
        }
        KdcRefusal::TicketExpired | KdcRefusal::PreauthenticationRequired | KdcRefusal::Other => {
            of_broker(StatusCode::BAD_GATEWAY, Reason::LogonDenied, "for an unknown reason")
        }
    }
}
