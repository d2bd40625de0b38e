//! The commands, in the order of their dependencies, the user of them, and the meaning of their answers.

use super::{CommandOutput, Identity, OTHER_IMAGE, not_checked};
use crate::shared::rules::{self, Names, Phase, WindowsStatus};
use gmsa_core::diagnostic::Check;

/// The questions to a container, one check each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The user of commands in it.
    User,
    /// Whether Windows gave it a credential spec, and the domain.
    CredentialSpec,
    /// Whether it finds the domain controllers, over UDP.
    Dns,
    /// The same over TCP, which Windows uses for long answers.
    DnsOverTcp,
    /// Whether it has logged on to the domain.
    SecureChannel,
    /// Whether a domain controller confirms the logon.
    Trust,
    /// Whether it gets a ticket for the domain itself, and for which account.
    DomainTicket,
    /// Whether it gets a ticket for a service.
    ServiceTicket,
}

impl Asked {
    /// All questions in order, each with the name of its check.
    pub const ALL: [(Self, &str); 8] = [
        (Self::User, "user"),
        (Self::CredentialSpec, "credential spec"),
        (Self::Dns, "DNS"),
        (Self::DnsOverTcp, "DNS over TCP"),
        (Self::SecureChannel, "secure channel"),
        (Self::Trust, "trust"),
        (Self::DomainTicket, "ticket of the domain"),
        (Self::ServiceTicket, "ticket of the service"),
    ];

    /// The command; `None` if this user's answer would not depend on the account.
    pub fn command(self, identity: &Identity, user: &User, service: Option<&str>) -> Option<Vec<String>> {
        let Identity { domain, account, .. } = identity;
        let record = format!("_ldap._tcp.dc._msdcs.{domain}.");
        let verify = format!("/sc_verify:{domain}");
        let words: &[&str] = match self {
            Self::User => &["whoami", "/user"],
            Self::CredentialSpec => &["nltest", "/parentdomain"],
            Self::Dns => &["nslookup", "-type=SRV", &record],
            Self::DnsOverTcp => &["nslookup", "-vc", "-type=SRV", &record],
            Self::SecureChannel => &["nltest", "/query"],
            Self::Trust if user.may_verify() => &["nltest", &verify],
            Self::Trust => return None,
            Self::DomainTicket => return user.get_ticket(KRBTGT),
            Self::ServiceTicket => return user.get_ticket(service.unwrap_or(account)),
        };
        Some(words.iter().map(|word| (*word).to_owned()).collect())
    }

    pub fn check(self, about: &'static str, answer: &CommandOutput, identity: &Identity, command: &[String]) -> Check {
        let domain = &identity.domain;
        match self {
            Self::User => User::of(answer).check(about),
            Self::Dns if !answer.assigns(LDAP) => {
                let text = format!("the container finds no domain controller of {domain} in DNS");
                Check::found(about, rules::found(&rules::DOMAIN_DNS, text, &identity.names()))
            }
            Self::DnsOverTcp if !answer.assigns(LDAP) => {
                let text = format!("the container finds no domain controller of {domain} over TCP");
                Check::breach(about, &rules::DOMAIN_DNS_TCP, text)
            }
            Self::Dns => Check::pass(about, format!("names the domain controllers of {domain}")),
            Self::DnsOverTcp => Check::pass(about, "the same over TCP"),
            _ => match answer.failure() {
                Some(code) => found_by_code((self, about), code, identity, command),
                // These print a code for success too.
                None if matches!(self, Self::SecureChannel | Self::Trust) && !answer.succeeded() => {
                    let text = format!("{} printed no status code", command.join(" "));
                    Check::breach(about, &rules::UNKNOWN_STATUS, text)
                }
                None => self.success(about, answer, identity, command.last().map_or("", String::as_str)),
            },
        }
    }

    /// Judges a successful command, whose output can still be about another account or domain. `asked` is the service of the ticket.
    fn success(self, about: &'static str, answer: &CommandOutput, identity: &Identity, asked: &str) -> Check {
        let Identity { domain, net_bios, account } = identity;
        let pass = |text: String| Check::pass(about, text);
        let wrong = |rule, text: String| Check::found(about, rules::found(rule, text, &identity.names()));
        match self {
            Self::CredentialSpec => {
                let is_own = |parent: &str| [domain, net_bios].iter().any(|own| own.eq_ignore_ascii_case(parent));
                if answer.parent_domain().is_none_or(is_own) {
                    pass(format!("Windows gave the container the one for {account}"))
                } else {
                    wrong(&rules::OTHER_DOMAIN, format!("nltest /parentdomain names another domain than {domain}"))
                }
            }
            Self::SecureChannel => pass(format!("the container has logged on to {domain}")),
            Self::Trust => pass(format!("a domain controller of {domain} confirms it")),
            _ => match answer.tickets_are_of(account, domain) {
                Some(false) => {
                    wrong(&rules::OTHER_ACCOUNT, format!("klist lists a ticket that is not one of {account}$"))
                }
                Some(true) if answer.is_rc4(asked) && [KRBTGT, account].contains(&asked) => {
                    wrong(&rules::ACCOUNT_ENCRYPTION, format!("{account} has a ticket that is encrypted by RC4"))
                }
                // The key belongs to the account with this name.
                Some(true) if answer.is_rc4(asked) => {
                    pass(format!("{account} gets it, encrypted by RC4 for the account of {asked}"))
                }
                Some(true) => pass(format!("{account} gets it")),
                None => {
                    let text = "klist lists no ticket, so its account is not known";
                    let fix = "Run klist in the container by hand: the client of each ticket must be the account.";
                    Check::found(about, not_checked(text, fix))
                }
            },
        }
    }
}

/// The service of every domain controller.
const KRBTGT: &str = "krbtgt";

/// The LDAP port, as in the service record of a domain controller.
const LDAP: &str = "389";

fn found_by_code((step, about): (Asked, &'static str), code: u32, identity: &Identity, command: &[String]) -> Check {
    let number = if code < 0x1_0000 { code.to_string() } else { format!("{code:#x}") };
    let name = WindowsStatus(code).name();
    let rule = match (step, WindowsStatus(code).rule(Phase::Running)) {
        // Without a credential spec NETLOGON does not answer (Kubernetes: Configure GMSA, troubleshooting).
        (Asked::CredentialSpec, Some(rule)) if *rule == rules::NO_SECURE_CHANNEL => &rules::NO_CREDENTIALS,
        // `klist` answers this way if the directory does not have the service principal name.
        (Asked::ServiceTicket, Some(rule)) if *rule == rules::TRUST_FAILED => &rules::PRINCIPAL_UNKNOWN,
        (_, rule) => rule.unwrap_or(&rules::UNKNOWN_STATUS),
    };
    let names = Names { principal: command.last().map(String::as_str), ..identity.names() };
    Check::found(about, rules::found(rule, format!("{}: {number} ({name})", command.join(" ")), &names))
}

/// The SID of a Windows user; `None` if `whoami` printed none, or did not run. The SIDs are from Microsoft's page on securing Windows containers and from the
/// well-known ones ([MS-DTYP] 2.4.2.4).
#[derive(Default)]
pub struct User(Option<String>);

const SYSTEM: &str = "S-1-5-18";
const NETWORK_SERVICE: &str = "S-1-5-20";
const CONTAINER_ADMINISTRATOR: &str = "S-1-5-93-2-1";
const CONTAINER_USER: &str = "S-1-5-93-2-2";

impl User {
    pub fn of(answer: &CommandOutput) -> Self {
        Self(answer.sid().map(str::to_owned))
    }

    /// Whether `nltest /sc_verify` can succeed: Netlogon verifies a channel only for administrators ([MS-NRPC] 3.5.4.9.1). Other users get
    /// `ERROR_ACCESS_DENIED`, whatever the account.
    fn may_verify(&self) -> bool {
        matches!(self.0.as_deref(), Some(SYSTEM | CONTAINER_ADMINISTRATOR))
    }

    /// The command that gets a ticket of the account; `None` if this user cannot see its tickets.
    fn get_ticket(&self, service: &str) -> Option<Vec<String>> {
        let words: &[&str] = match self.0.as_deref()? {
            SYSTEM | NETWORK_SERVICE => &["klist", "get", service],
            // An administrator may read the logon session of SYSTEM.
            CONTAINER_ADMINISTRATOR => &["klist", "-li", "0x3e7", "get", service],
            _ => return None,
        };
        Some(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// The line about the user. It always passes: services and IIS application pools act as the account with any user.
    fn check(&self, about: &'static str) -> Check {
        let name = match self.0.as_deref() {
            Some(SYSTEM) => return Check::pass(about, "SYSTEM, which acts as the gMSA"),
            Some(NETWORK_SERVICE) => return Check::pass(about, "NETWORK SERVICE, which acts as the gMSA"),
            Some(CONTAINER_ADMINISTRATOR) => "ContainerAdministrator",
            Some(CONTAINER_USER) => "ContainerUser",
            Some(sid) => sid,
            None => {
                let text = "whoami printed no SID, so the trust and the tickets are not checked";
                return Check::found(about, not_checked(text, OTHER_IMAGE));
            }
        };
        Check::pass(
            about,
            format!("{name}; services and IIS application pools act as the gMSA, processes of this user do not"),
        )
    }

    /// Why the tickets are not checked, where the user is known.
    pub fn sees_no_ticket(&self, about: &'static str) -> Option<Check> {
        self.0.as_ref()?;
        let text = "only SYSTEM, NETWORK SERVICE and ContainerAdministrator see the tickets of the gMSA";
        let fix = "Verify a container of the same Pod that runs as one of them. A process that acts as the gMSA itself, not by a service or an IIS \
                   application pool, needs `runAsUserName: NT AUTHORITY\\NETWORK SERVICE`.";
        Some(Check::found(about, not_checked(text, fix)))
    }
}
