//! The commands, each of which depends on the one before, and what their answers mean.

use super::{CommandOutput, Identity, cause};
use gmsa_core::diagnostic::{
    Check, Diagnostic,
    rules::{self, Rule},
};

/// One check in the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// As whom commands run in it.
    User,
    /// Whether Windows gave it a credential spec.
    CredentialSpec,
    /// Whether it finds the domain controllers, over UDP.
    Dns,
    /// The same over TCP, which Windows uses for long answers.
    DnsOverTcp,
    /// Whether it has logged on to the domain.
    SecureChannel,
    /// Whether a domain controller confirms that.
    Trust,
    /// Whether it gets a ticket of the domain itself.
    DomainTicket,
    /// Whether it gets a ticket of a service.
    ServiceTicket,
}

impl Step {
    pub(super) const ALL: [Self; 8] = [
        Self::User,
        Self::CredentialSpec,
        Self::Dns,
        Self::DnsOverTcp,
        Self::SecureChannel,
        Self::Trust,
        Self::DomainTicket,
        Self::ServiceTicket,
    ];

    /// What it is about, for people.
    pub(super) fn about(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::CredentialSpec => "credential spec",
            Self::Dns => "DNS",
            Self::DnsOverTcp => "DNS over TCP",
            Self::SecureChannel => "secure channel",
            Self::Trust => "trust",
            Self::DomainTicket => "ticket of the domain",
            Self::ServiceTicket => "ticket of the service",
        }
    }

    /// The command; `None` where the answer would say nothing of the account, since the user with this SID does not act as it.
    /// The SIDs are those of Microsoft's page on securing Windows containers, and the well-known ones ([MS-DTYP] 2.4.2.4).
    pub(super) fn command(self, identity: &Identity, user: Option<&str>, service: Option<&str>) -> Option<Vec<String>> {
        let Identity { domain, account } = identity;
        let record = format!("_ldap._tcp.dc._msdcs.{domain}.");
        let ticket = |of: &str| match user {
            // SYSTEM and NETWORK SERVICE act as the account on the network.
            Some("S-1-5-18" | "S-1-5-20") => Some(["klist", "get", of].map(str::to_owned).to_vec()),
            // ContainerAdministrator may look into the logon session of SYSTEM.
            Some("S-1-5-93-2-1") => Some(["klist", "-li", "0x3e7", "get", of].map(str::to_owned).to_vec()),
            _ => None,
        };
        let words: Vec<&str> = match self {
            Self::User => vec!["whoami", "/user"],
            Self::CredentialSpec => vec!["nltest", "/parentdomain"],
            Self::Dns => vec!["nslookup", "-type=SRV", &record],
            Self::DnsOverTcp => vec!["nslookup", "-vc", "-type=SRV", &record],
            Self::SecureChannel => vec!["nltest", "/query"],
            Self::Trust => return Some(vec!["nltest".to_owned(), format!("/sc_verify:{domain}")]),
            Self::DomainTicket => return ticket("krbtgt"),
            Self::ServiceTicket => return ticket(service.unwrap_or(account)),
        };
        Some(words.into_iter().map(str::to_owned).collect())
    }

    pub(super) fn check(self, answer: &CommandOutput, identity: &Identity, command: &[String]) -> Check {
        let Identity { domain, account } = identity;
        let about = self.about();
        let found = |rule: &'static Rule, text: String| Check::found(about, Diagnostic::new(rule, text));
        match self {
            Self::User => self.user(answer),
            Self::Dns if !answer.assigns(LDAP) => {
                found(&rules::DOMAIN_DNS, format!("the container finds no domain controller of {domain} in DNS"))
            }
            Self::DnsOverTcp if !answer.assigns(LDAP) => found(
                &rules::DOMAIN_DNS_TCP,
                format!("DNS names the domain controllers of {domain} over UDP, and not over TCP"),
            ),
            Self::Dns => Check::pass(about, format!("names the domain controllers of {domain}")),
            Self::DnsOverTcp => Check::pass(about, "the same over TCP"),
            _ => match answer.failure() {
                Some(code) => found_by_code(self, code, identity, command),
                None if self.needs_a_status() && !answer.succeeded() => {
                    let text = format!("{} printed no status code", command.join(" "));
                    found(&rules::UNKNOWN_STATUS, text)
                }
                None => Check::pass(
                    about,
                    match self {
                        Self::CredentialSpec => format!("Windows gave the container that of {account}"),
                        Self::SecureChannel => format!("the container has logged on to {domain}"),
                        Self::Trust => format!("a domain controller of {domain} confirms it"),
                        _ => format!("{account} gets it"),
                    },
                ),
            },
        }
    }

    /// Whether a success has a code too.
    fn needs_a_status(self) -> bool {
        matches!(self, Self::SecureChannel | Self::Trust)
    }

    fn user(self, answer: &CommandOutput) -> Check {
        let about = self.about();
        let name = match answer.sid() {
            None => {
                let text = "whoami printed no SID, so the tickets are not checked";
                return Check::found(about, Diagnostic::new(&rules::NOT_CHECKED, text));
            }
            Some("S-1-5-18") => return Check::pass(about, "SYSTEM, which acts as the gMSA"),
            Some("S-1-5-20") => return Check::pass(about, "NETWORK SERVICE, which acts as the gMSA"),
            Some("S-1-5-93-2-1") => "ContainerAdministrator".to_owned(),
            Some("S-1-5-93-2-2") => "ContainerUser".to_owned(),
            Some(sid) => format!("the user {sid}"),
        };
        // IIS and other services run their processes as a user of their own.
        let text = format!("commands in the container run as {name}, which does not act as the gMSA");
        Check::found(about, Diagnostic::new(&rules::RUN_AS_USER, text))
    }
}

/// The port of LDAP, which a service record of a domain controller has.
const LDAP: &str = "389";

fn found_by_code(step: Step, code: u32, identity: &Identity, command: &[String]) -> Check {
    let number = if code < 0x1_0000 { code.to_string() } else { format!("{code:#x}") };
    let (rule, name) = match (step, cause::of(code)) {
        // Without a credential spec there is no NETLOGON to answer (Kubernetes: Configure GMSA, troubleshooting).
        (Step::CredentialSpec, Some((rule, name))) if rule.id == rules::NO_SECURE_CHANNEL.id => {
            (&rules::NO_CREDENTIALS, name)
        }
        // `klist` answers so where the directory has no such service principal name.
        (Step::ServiceTicket, Some((rule, name))) if rule.id == rules::TRUST_FAILED.id => {
            (&rules::PRINCIPAL_UNKNOWN, name)
        }
        (_, Some(known)) => known,
        (_, None) => (&rules::UNKNOWN_STATUS, "not known here"),
    };
    let text = format!("{}: {number} ({name})", command.join(" "));
    let found = Diagnostic::new(rule, text);
    let fix = remedy(rule, identity, command);
    Check::found(step.about(), Diagnostic { fix, ..found })
}

/// The remedy, with the names of this account and domain where they help.
fn remedy(rule: &Rule, identity: &Identity, command: &[String]) -> Option<String> {
    let Identity { domain, account } = identity;
    Some(match rule.id {
        "logon-denied" => format!(
            "Test-ADServiceAccount {account} on the node: if False, add the node to PrincipalsAllowedToRetrieveManagedPassword and restart it"
        ),
        "account-disabled" => format!("Set-ADServiceAccount {account} -Enabled $true"),
        "account-unknown" => {
            format!(
                "Get-ADServiceAccount {account} -Server {domain}: correct MachineAccountName, or create the account"
            )
        }
        "principal-unknown" => {
            format!(
                "setspn -Q {}: register it, only once (setspn -X lists duplicates)",
                command.last().unwrap_or(account)
            )
        }
        "ticket-encryption" => format!("Set-ADServiceAccount {account} -KerberosEncryptionType AES128,AES256"),
        _ => return None,
    })
}
