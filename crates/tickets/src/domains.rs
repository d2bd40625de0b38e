//! The broker's configuration: the domains that it gives tickets of, in one YAML file.
//!
//! Invariants: a file that is wrong is refused as a whole, with the field and what to write; a password is in a file of its own, which is
//! read before each read of the directory, as the CA is, so that a changed Secret needs no restart.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use gmsa_core::{
    causes::chain,
    credspec::{Verb, is_dns_subdomain, services::is_in},
    quote::Quoted,
};
use gmsa_directory::{Address, Controller, Error, NameServers, credentials::password_in, ldap};
use gmsa_kerberos::Realm;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::limits::{MAX_CONTROLLERS, MAX_DOMAINS};

/// The largest configuration, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The port of a KDC (RFC 4120, 7.2.3).
const KDC_PORT: u16 = 88;

/// The setting for controllers whose certificates are not trusted.
pub const CA_SETTING: &str = "`caFile` (with the chart `domains[].caConfigMap`) names the CA of the domain controllers";

/// A domain, and where its KDCs are.
#[derive(Clone, Debug)]
pub struct DomainKdcs {
    /// Its DNS name, in lower case.
    pub name: String,
    pub realm: Realm,
    /// Named controllers, asked in this order; without any they are found by the DNS.
    pub controllers: Vec<Controller>,
    pub kdc_port: u16,
}

/// A domain whose accounts get tickets.
#[derive(Clone, Debug)]
pub struct DomainConfig {
    pub kdcs: DomainKdcs,
    /// The DNS servers that name its KDCs; `None` for those of the system.
    pub name_servers: Option<NameServers>,
    /// The CA of the controllers' certificates; without it those of the system.
    pub ca_file: Option<PathBuf>,
    /// The user that may retrieve the passwords of the accounts.
    pub user: String,
    pub password_file: PathBuf,
    /// The accounts with tickets, by their SAM names without `$`, in lower case; `None` for every account whose password the user may
    /// retrieve.
    pub accounts: Option<Vec<String>>,
    /// The other domains whose KDCs are asked, where a KDC refers to them. Without any, no referral is followed.
    pub referrals: Vec<DomainKdcs>,
    /// Whether keytabs of these accounts are given.
    pub keytabs: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    domains: Vec<DomainText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct DomainText {
    name: String,
    #[serde(default)]
    controllers: Vec<String>,
    kdc_port: Option<u16>,
    ca_file: Option<PathBuf>,
    user: String,
    password_file: PathBuf,
    accounts: Option<Vec<String>>,
    #[serde(default)]
    keytabs: bool,
    #[serde(default)]
    referrals: Vec<ReferralText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ReferralText {
    name: String,
    #[serde(default)]
    controllers: Vec<String>,
    kdc_port: Option<u16>,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DomainsError {
    #[error("cannot read {}: --config names a YAML file with domains", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// A field, and what to write.
    #[error("{}: {what}", .file.display())]
    Wrong { file: PathBuf, what: String },
}

/// Reads the file, and those that it names, and gives the domains.
///
/// # Errors
/// Where a file cannot be read, or a field is wrong.
pub fn load(file: &Path) -> Result<Vec<DomainConfig>, DomainsError> {
    let unreadable = |error| DomainsError::Read(file.to_owned(), error);
    let wrong = |what| DomainsError::Wrong { file: file.to_owned(), what };
    if fs::metadata(file).map_err(unreadable)?.len() > MAX_FILE {
        return Err(wrong("has more than 1 MiB".to_owned()));
    }
    let domains = parse(&fs::read_to_string(file).map_err(unreadable)?).map_err(wrong)?;
    for (number, domain) in domains.iter().enumerate() {
        domain.check_files().map_err(|what| wrong(format!("domains[{number}].{what}")))?;
    }
    Ok(domains)
}

fn parse(text: &str) -> Result<Vec<DomainConfig>, String> {
    let read: File = serde_saphyr::from_str(text)
        .map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())?;
    if read.domains.is_empty() {
        return Err("domains: is empty: name at least one domain, with name, user and passwordFile".to_owned());
    }
    if read.domains.len() > MAX_DOMAINS {
        return Err(format!("domains: has more than {MAX_DOMAINS} domains: install another broker for the others"));
    }
    let mut domains: Vec<DomainConfig> = Vec::with_capacity(read.domains.len());
    for (number, text) in read.domains.into_iter().enumerate() {
        let domain = DomainConfig::new(text).map_err(|what| format!("domains[{number}].{what}"))?;
        let name = &domain.kdcs.name;
        if domains.iter().any(|other| other.kdcs.name == *name) {
            return Err(format!("domains[{number}].name: {name} stands twice: write each domain once"));
        }
        domains.push(domain);
    }
    Ok(domains)
}

impl DomainKdcs {
    fn new(text: &str, controllers: &[String], kdc_port: Option<u16>) -> Result<Self, String> {
        let name = text.trim_end_matches('.').to_ascii_lowercase();
        let realm = Realm::from_domain(&name).filter(|_| is_dns_subdomain(&name));
        let realm = realm.ok_or_else(|| {
            format!("name: {} is not the DNS name of a domain, such as contoso.com", Quoted::new(text))
        })?;
        if controllers.len() > MAX_CONTROLLERS {
            return Err(format!("controllers: names more than {MAX_CONTROLLERS}: name the nearest"));
        }
        let controllers = controllers.iter().map(|controller| controller_at(controller)).collect::<Result<_, _>>()?;
        Ok(Self { name, realm, controllers, kdc_port: kdc_port.unwrap_or(KDC_PORT) })
    }
}

impl DomainConfig {
    fn new(text: DomainText) -> Result<Self, String> {
        let kdcs = DomainKdcs::new(&text.name, &text.controllers, text.kdc_port)?;
        let referrals =
            text.referrals.iter().map(|other| DomainKdcs::new(&other.name, &other.controllers, other.kdc_port));
        let referrals = referrals.collect::<Result<_, _>>().map_err(|what| format!("referrals: {what}"))?;
        if text.user.trim().is_empty() {
            return Err("user: is empty: write USER@DOMAIN or DOMAIN\\USER".to_owned());
        }
        let sam = |account: &String| account.trim_end_matches('$').to_lowercase();
        Ok(Self {
            kdcs,
            referrals,
            name_servers: None,
            ca_file: text.ca_file,
            user: text.user,
            password_file: text.password_file,
            accounts: text.accounts.map(|accounts| accounts.iter().map(sam).collect()),
            keytabs: text.keytabs,
        })
    }

    fn check_files(&self) -> Result<(), String> {
        self.password().map_err(|error| format!("passwordFile: {error}"))?;
        let trusted = ldap::trust(self.ca_file.as_deref());
        trusted.map(drop).map_err(|error| wrong_ca(&error))
    }

    /// The password of the user, as its file holds it now: without the line break at its end.
    ///
    /// # Errors
    /// Where the file cannot be read, or holds no password.
    pub fn password(&self) -> Result<Zeroizing<String>, String> {
        let path = &self.password_file;
        let read = fs::File::open(path).and_then(password_in);
        let password = read.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        if password.is_empty() {
            return Err(format!("{} is empty: write the password of the user into it", path.display()));
        }
        Ok(password)
    }

    /// The listed domain that a service is in, by the name of its host.
    pub fn referral_of(&self, service: &str) -> Option<&DomainKdcs> {
        let listed = self.referrals.iter().filter(|other| is_in(service, &other.name));
        let nearest = listed.max_by_key(|other| other.name.len())?;
        // A child domain can list its parent.
        Some(nearest).filter(|nearest| !is_in(service, &self.kdcs.name) || nearest.name.len() > self.kdcs.name.len())
    }

    /// Whether what this verb is for is given of its accounts.
    pub fn gives(&self, verb: Verb) -> bool {
        match verb {
            Verb::Use => true,
            Verb::Export => self.keytabs,
        }
    }

    /// Whether tickets of this account may be given.
    pub fn allows(&self, sam: &str) -> bool {
        self.accounts.as_ref().is_none_or(|accounts| accounts.iter().any(|account| account == sam))
    }
}

/// The fault of a missing or wrong CA, with the broker's own options.
fn wrong_ca(error: &Error) -> String {
    let is_missing = matches!(error, Error::NoRoots);
    let missing = || format!("is missing, and the system has no trusted authorities: {CA_SETTING}");
    format!("caFile: {}", if is_missing { missing() } else { chain(error) })
}

/// A controller; without a scheme it is asked by LDAP over TLS.
fn controller_at(text: &str) -> Result<Controller, String> {
    let url = if text.contains("://") { text.to_owned() } else { format!("ldaps://{text}") };
    if let Ok(Address::Controller(controller)) = Address::parse(&url) {
        return Ok(controller);
    }
    let text = Quoted::new(text);
    Err(format!("controllers: {text} is not a domain controller, such as dc1.contoso.com or ldaps://dc1.contoso.com"))
}

#[cfg(test)]
mod tests;
