//! Accounts, as the directory shows them.

use gmsa_core::account::Account;
use time::UtcDateTime;

use crate::{
    Directory, Entry, Error, Filter, Retrieval, Scope, Search, Sid,
    entry::{domain_of, parts},
    forest::InForest,
    principal::Principals,
};

/// The class of a group Managed Service Account.
pub const CLASS: &str = "msDS-GroupManagedServiceAccount";
/// Who may retrieve its password: a security descriptor.
pub const MEMBERSHIP: &str = "msDS-GroupMSAMembership";
/// The password: made by the controller as it is asked for, for those who may have it.
pub const PASSWORD: &str = "msDS-ManagedPassword";

pub(crate) const ATTRIBUTES: [&str; 13] = [
    "dNSHostName",
    MEMBERSHIP,
    "msDS-ManagedPasswordId",
    "msDS-ManagedPasswordInterval",
    "msDS-SupportedEncryptionTypes",
    "objectClass",
    "objectGUID",
    "objectSid",
    "pwdLastSet",
    "sAMAccountName",
    "servicePrincipalName",
    "userAccountControl",
    "whenCreated",
];

/// Result codes of a name that nothing has, and of one that is none (RFC 4511, appendix A).
pub(crate) const NO_SUCH_OBJECT: u32 = 32;
const INVALID_NAME: u32 = 34;

/// The name of an account as it is typed: `WebApp1`, `CONTOSO\WebApp1`, `WebApp1@contoso.com`, or a distinguished name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountName {
    /// The SAM name without `$`, and the DNS or NetBIOS name of the domain where one was typed.
    Sam(String, Option<String>),
    Distinguished(String),
}

impl AccountName {
    pub fn parse(text: &str) -> Self {
        let sam = |name: &str| name.trim_end_matches('$').to_owned();
        if parts(text).any(|part| part.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("DC="))) {
            Self::Distinguished(text.to_owned())
        } else if let Some((domain, name)) = text.split_once('\\') {
            Self::Sam(sam(name), Some(domain.to_owned()))
        } else if let Some((name, domain)) = text.rsplit_once('@') {
            Self::Sam(sam(name), Some(domain.to_owned()))
        } else {
            Self::Sam(sam(text), None)
        }
    }
}

/// An account of the directory.
#[derive(Clone, Debug)]
pub struct Found {
    /// What it is without its principals' names.
    account: Account,
    /// `None` where it was not printed.
    pub retrieval: Option<Retrieval>,
    /// The DNS name of its domain.
    pub domain: String,
    pub name: String,
    pub sid: Option<Sid>,
    pub host_name: Option<String>,
    /// In days.
    pub password_interval: Option<i64>,
    pub password_set: Option<UtcDateTime>,
    /// Whether the domain has made a password, which needs a root key.
    pub has_password: bool,
}

impl Found {
    /// `is_live` where everything was asked for; of what was printed, that is so where other properties that every object has are there.
    fn of(entry: Entry, is_live: bool) -> Option<Self> {
        const DISABLED: u64 = 0x2;
        let sam = entry.text("sAMAccountName")?.trim_end_matches('$').to_owned();
        let control = entry.number("userAccountControl").and_then(|control| u64::try_from(control).ok());
        let encryption = entry.number("msDS-SupportedEncryptionTypes").and_then(|types| u64::try_from(types).ok());
        let is_whole = is_live || entry.value("whenCreated").is_some();
        let shown = |attribute| is_whole || entry.value(attribute).is_some();
        // Without a value, nobody is listed.
        let listed = |descriptor: Option<&[u8]>| descriptor.map_or(Retrieval::listed(Vec::new()), Retrieval::read);
        let retrieval = shown(MEMBERSHIP).then(|| listed(entry.value(MEMBERSHIP)));
        let services = || entry.texts("servicePrincipalName").map(str::to_owned).collect();
        let account = Account {
            sam,
            distinguished_name: Some(entry.name.clone()),
            class: entry.texts("objectClass").last().map(str::to_owned),
            enabled: control.map(|control| control & DISABLED == 0),
            may_retrieve: None,
            service_principals: shown("servicePrincipalName").then(services),
            encryption: shown("msDS-SupportedEncryptionTypes").then(|| encryption.unwrap_or_default()),
            control,
            sid: entry.sid("objectSid").map(|sid| sid.to_string()),
            guid: entry.guid("objectGUID").map(|guid| guid.to_string()),
        };
        Some(Self {
            account,
            retrieval,
            domain: domain_of(&entry.name).unwrap_or_default(),
            sid: entry.sid("objectSid"),
            host_name: entry.text("dNSHostName").map(str::to_owned),
            password_interval: entry.number("msDS-ManagedPasswordInterval"),
            password_set: entry.file_time("pwdLastSet").filter(|_| entry.number("pwdLastSet") != Some(0)),
            has_password: entry.value("msDS-ManagedPasswordId").is_some(),
            name: entry.name,
        })
    }

    pub fn sam(&self) -> &str {
        &self.account.sam
    }

    pub fn is_group_managed(&self) -> bool {
        self.account.class.as_deref().is_some_and(|class| class.eq_ignore_ascii_case(CLASS))
    }

    /// The account with the names of those who may retrieve its password, those included of whom it is not certain.
    pub fn account(&self, principals: &Principals) -> Account {
        let names = |retrieval: &Retrieval| match retrieval {
            Retrieval::Everybody => Some(vec!["Everyone".to_owned()]),
            Retrieval::Listed { .. } => {
                let unknown = retrieval.unknown().iter();
                let unknown =
                    unknown.map(|entry| entry.to.as_ref().map_or_else(String::new, |sid| principals.name(sid)));
                Some(retrieval.principals().map(|sid| principals.name(sid)).chain(unknown).collect())
            }
            Retrieval::Unreadable => None,
        };
        Account { may_retrieve: self.retrieval.as_ref().and_then(names), ..self.account.clone() }
    }

    /// The SIDs of those who may retrieve the password.
    pub fn principals(&self) -> impl Iterator<Item = &Sid> {
        self.retrieval.iter().flat_map(Retrieval::principals)
    }

    /// The SIDs of all whose names are shown: theirs, and those of entries that are not understood.
    pub fn named(&self) -> impl Iterator<Item = &Sid> {
        let unknown = self.retrieval.iter().flat_map(Retrieval::unknown);
        self.principals().chain(unknown.filter_map(|entry| entry.to.as_ref()))
    }

    pub fn services(&self) -> &[String] {
        self.account.service_principals.as_deref().unwrap_or_default()
    }
}

impl Directory {
    /// The accounts with this name: none, or one. Without a domain, those of the own one come first.
    ///
    /// # Errors
    /// Where a domain that may have it cannot be asked.
    pub async fn account(&mut self, name: &AccountName) -> Result<Option<Found>, Error> {
        let is_live = self.is_live();
        let (sam, bases) = match name {
            AccountName::Distinguished(name) => {
                let found = match self.search(&Search::object(name, &ATTRIBUTES)).await {
                    Err(Error::Refused(_, _, NO_SUCH_OBJECT | INVALID_NAME)) => Vec::new(),
                    found => found?,
                };
                return Ok(found.into_iter().find_map(|entry| Found::of(entry, is_live)));
            }
            AccountName::Sam(sam, domain) => (sam, self.bases(domain.as_deref())?),
        };
        let names = [sam.clone(), format!("{sam}$")].map(|name| Filter::equals("sAMAccountName", name));
        let filter = Filter::Any(names.to_vec());
        let mut unread = None;
        for base in &bases {
            let search = Search { base, scope: Scope::Subtree, filter: filter.clone(), attributes: &ATTRIBUTES };
            let entries = match self.search(&search).await {
                Ok(entries) => entries.into_iter(),
                // Another domain may have it.
                Err(error) => {
                    unread.get_or_insert(error);
                    continue;
                }
            };
            let mut found: Vec<Found> = entries.filter_map(|entry| Found::of(entry, is_live)).collect();
            // Below a domain there may be others, in what was printed.
            let domain = domain_of(base);
            found.retain(|found| domain.as_ref().is_none_or(|domain| *domain == found.domain));
            // A user may have the name without `$`.
            found.sort_by_key(|found| !found.is_group_managed());
            let managed: Vec<&str> =
                found.iter().filter(|found| found.is_group_managed()).map(|found| found.domain.as_str()).collect();
            if managed.len() > 1 {
                return Err(Error::Ambiguous(sam.clone(), managed.join(", ")));
            }
            if let Some(found) = found.into_iter().next() {
                return Ok(Some(found));
            }
        }
        unread.map_or(Ok(None), Err)
    }

    /// Every group Managed Service Account of the own domain, or of what was printed.
    ///
    /// # Errors
    /// Where the directory refuses.
    pub async fn accounts(&mut self) -> Result<Vec<Found>, Error> {
        let filter = Filter::equals("objectClass", CLASS);
        let (mut accounts, is_live) = (Vec::new(), self.is_live());
        for base in self.bases(None)?.into_iter().take(1) {
            let search = Search { base: &base, scope: Scope::Subtree, filter: filter.clone(), attributes: &ATTRIBUTES };
            let entries = self.search(&search).await?.into_iter();
            accounts.extend(entries.filter_map(|entry| Found::of(entry, is_live)));
        }
        Ok(accounts)
    }

    /// The distinguished names of the domains to search, the own one first; of what was printed, all there is.
    fn bases(&self, domain: Option<&str>) -> Result<Vec<String>, Error> {
        let Some(forest) = &self.forest else { return Ok(vec![String::new()]) };
        if let Some(domain) = domain {
            return Ok(vec![forest.named(domain)?.name.clone()]);
        }
        if !self.is_live() {
            return Ok(vec![String::new()]);
        }
        let own = forest.own().map(|own| own.name.clone());
        let others =
            forest.domains.iter().map(|of: &InForest| of.name.clone()).filter(|name| Some(name) != own.as_ref());
        Ok(own.iter().cloned().chain(others.collect::<Vec<_>>()).collect())
    }

    /// The distinguished names of every domain of the forest; of what was printed, all there is.
    pub(crate) fn all_bases(&self) -> Result<Vec<String>, Error> {
        self.bases(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_type_a_name_is_read() {
        let sam = |name: &str, domain: Option<&str>| AccountName::Sam(name.to_owned(), domain.map(str::to_owned));
        assert_eq!(AccountName::parse("WebApp1$"), sam("WebApp1", None));
        assert_eq!(AccountName::parse(r"EMEA\WebApp1$"), sam("WebApp1", Some("EMEA")));
        assert_eq!(AccountName::parse("WebApp1@emea.contoso.com"), sam("WebApp1", Some("emea.contoso.com")));
        let name = "CN=WebApp1,CN=Managed Service Accounts,DC=contoso,DC=com";
        assert_eq!(AccountName::parse(name), AccountName::Distinguished(name.to_owned()));
    }
}
