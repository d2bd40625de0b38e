//! Accounts, as the directory shows them or PowerShell prints them.
//!
//! Invariants: an account is complete when it is made; principals, services and encryption types that were not printed are [`None`], which is
//! different from none.

use time::UtcDateTime;
use uuid::Uuid;

use crate::{
    Directory, Entry, Error, LdapFilter, LdapSearch, Retrieval, SearchScope, Sid,
    entry::{domain_of, first_value, parts, time_of_file},
};

/// The class of a group Managed Service Account.
pub const CLASS: &str = "msDS-GroupManagedServiceAccount";
/// The security descriptor for retrieving its password.
const MEMBERSHIP: &str = "msDS-GroupMSAMembership";
/// The security descriptor for logging on to its services as any user (resource-based constrained delegation).
const DELEGATION: &str = "msDS-AllowedToActOnBehalfOfOtherIdentity";
/// The password. The controller computes it for each request, and returns it only to principals that may retrieve it.
pub const PASSWORD: &str = "msDS-ManagedPassword";

const ATTRIBUTES: [&str; 19] = [
    "accountExpires",
    "dNSHostName",
    "isDeleted",
    "logonHours",
    "memberOf",
    DELEGATION,
    "msDS-SupersededByManagedAccountLink",
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

/// Result code `noSuchObject` (RFC 4511, appendix A).
pub const NO_SUCH_OBJECT: u32 = 32;
/// Result code `invalidDNSyntax`.
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

/// The bits of `msDS-SupportedEncryptionTypes` that name an encryption type of tickets ([MS-KILE] 2.2.7); the others are flags.
/// `ADKerberosEncryptionType` of PowerShell has the same values.
pub const ENCRYPTION_TYPES: [(&str, u64); 5] =
    [("DES-CBC-CRC", 0x1), ("DES-CBC-MD5", 0x2), ("RC4", 0x4), ("AES128", 0x8), ("AES256", 0x10)];

/// The names of the encryption types of tickets, of the bits of `msDS-SupportedEncryptionTypes`.
pub fn encryption_names(types: u64) -> Vec<&'static str> {
    ENCRYPTION_TYPES.iter().filter(|(_, bit)| types & bit != 0).map(|(name, _)| *name).collect()
}

/// `ACCOUNTDISABLE` of `userAccountControl` ([MS-ADTS] 2.2.16).
pub const DISABLED: u64 = 0x2;
/// `SMARTCARD_REQUIRED` of `userAccountControl`.
pub const SMARTCARD_REQUIRED: u64 = 0x4_0000;

/// Whether `logonHours` allows no hour: 21 bytes, a bit for each hour of a week ([MS-ADA1] 2.388).
pub fn has_no_hours(entry: &Entry) -> bool {
    entry.value("logonHours").is_some_and(|hours| !hours.is_empty() && hours.iter().all(|byte| *byte == 0))
}

/// Whether it is an object that was deleted ([MS-ADTS] 3.1.1.5.5), or one that replication made of two with the same name ([MS-ADTS] 3.1.1.5.1.4).
fn is_left_over(entry: &Entry) -> bool {
    let name = first_value(&entry.name);
    entry.text("isDeleted").is_some_and(|is| is.eq_ignore_ascii_case("TRUE"))
        || ["\nDEL:", "\nCNF:"].iter().any(|mark| name.contains(mark))
}

/// When an account expires, of `accountExpires` (Microsoft: Account-Expires attribute): 0 and the largest number are never.
pub fn expiry(time: i64) -> Option<UtcDateTime> {
    Some(time).filter(|time| !matches!(*time, 0 | i64::MAX)).and_then(time_of_file)
}

/// Whether a security descriptor is the text for people that `ldbsearch` prints (SDDL), which says less than the value.
fn is_printed(descriptor: &[u8]) -> bool {
    [b"O:", b"G:", b"D:"].into_iter().any(|start| descriptor.starts_with(start))
}

/// The root key of `msDS-ManagedPasswordId`, an envelope without its keys ([MS-GKDI] 2.2.4).
fn root_key(envelope: &[u8]) -> Option<Uuid> {
    const MAGIC: &[u8] = b"KDSK";
    Uuid::from_slice_le(envelope.get(24..40).filter(|_| envelope.get(4..8) == Some(MAGIC))?).ok()
}

/// Whether an object of another kind may be taken for a group Managed Service Account: another kind of service account, or in their container.
fn may_be_meant(entry: &Entry) -> bool {
    const OTHERS: [&str; 2] = ["msDS-ManagedServiceAccount", "msDS-DelegatedManagedServiceAccount"];
    OTHERS.iter().any(|class| entry.is_a(class))
        || parts(&entry.name).nth(1).is_some_and(|place| place.eq_ignore_ascii_case("CN=Managed Service Accounts"))
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// `sAMAccountName`, without the `$` at its end.
    pub sam: String,
    /// The distinguished name; empty where it was not printed.
    pub name: String,
    /// The last of `objectClass`, which begins with `top`.
    pub class: Option<String>,
    pub enabled: Option<bool>,
    /// The principals that may retrieve the password.
    pub retrieval: Option<Retrieval>,
    /// The principals that may log on to its services as any user: a list of the same form.
    pub delegation: Option<Retrieval>,
    pub service_principals: Option<Vec<String>>,
    /// The encryption types of its tickets, as bits of `msDS-SupportedEncryptionTypes`.
    pub encryption: Option<u64>,
    /// `userAccountControl`
    pub control: Option<u64>,
    pub sid: Option<Sid>,
    pub guid: Option<String>,
    pub host_name: Option<String>,
    /// In days.
    pub password_interval: Option<i64>,
    pub password_set: Option<UtcDateTime>,
    /// When it expires; `None` for never.
    pub expires: Option<UtcDateTime>,
    /// Whether the domain has made a password, which needs a root key.
    pub has_password: bool,
    /// The root key that the password is made of.
    pub root_key: Option<Uuid>,
    /// It is a deleted object, or a conflict of replication.
    pub is_left_over: bool,
    /// Its logon hours allow none.
    pub has_no_hours: bool,
    /// The delegated Managed Service Account (dMSA) that has taken its place, or is about to: its distinguished name.
    pub superseded_by: Option<String>,
    /// The groups that it is a member of: their distinguished names.
    pub groups: Vec<String>,
}

impl Account {
    /// `is_live`: every property was requested. A printed entry counts as complete if it has `whenCreated`, which every object has.
    fn of(entry: Entry, is_live: bool) -> Option<Self> {
        let control = entry.number("userAccountControl").and_then(|control| u64::try_from(control).ok());
        let encryption = entry.number("msDS-SupportedEncryptionTypes").and_then(|types| u64::try_from(types).ok());
        let is_whole = is_live || entry.value("whenCreated").is_some();
        let shown = |attribute| is_whole || entry.value(attribute).is_some();
        // Without a value, the list is empty.
        let listed = |descriptor: Option<&[u8]>| descriptor.map_or(Retrieval::listed(Vec::new()), Retrieval::read);
        let services = || entry.texts("servicePrincipalName").map(str::to_owned).collect();
        // Others have no password that is retrieved.
        let is_managed = entry.is_a(CLASS) || entry.value("objectClass").is_none();
        Some(Self {
            sam: entry.text("sAMAccountName")?.trim_end_matches('$').to_owned(),
            class: Some(CLASS)
                .filter(|class| entry.is_a(class))
                .or(entry.texts("objectClass").last())
                .map(str::to_owned),
            enabled: control.map(|control| control & DISABLED == 0),
            retrieval: (is_managed && shown(MEMBERSHIP) && !entry.value(MEMBERSHIP).is_some_and(is_printed))
                .then(|| listed(entry.value(MEMBERSHIP))),
            delegation: entry.value(DELEGATION).filter(|list| !is_printed(list)).map(Retrieval::read),
            service_principals: shown("servicePrincipalName").then(services),
            encryption: shown("msDS-SupportedEncryptionTypes").then(|| encryption.unwrap_or_default()),
            control,
            sid: entry.sid("objectSid"),
            guid: entry.guid("objectGUID").map(|guid| guid.to_string()),
            host_name: entry.text("dNSHostName").map(str::to_owned),
            password_interval: entry.number("msDS-ManagedPasswordInterval"),
            password_set: entry.file_time("pwdLastSet").filter(|_| entry.number("pwdLastSet") != Some(0)),
            expires: entry.number("accountExpires").and_then(expiry),
            has_password: entry.value("msDS-ManagedPasswordId").is_some(),
            root_key: entry.value("msDS-ManagedPasswordId").and_then(root_key),
            is_left_over: is_left_over(&entry),
            has_no_hours: has_no_hours(&entry),
            superseded_by: entry.text("msDS-SupersededByManagedAccountLink").map(str::to_owned),
            groups: entry.texts("memberOf").map(str::to_owned).collect(),
            name: entry.name,
        })
    }

    pub fn is_group_managed(&self) -> bool {
        self.class.as_deref().is_some_and(|class| class.eq_ignore_ascii_case(CLASS))
    }

    /// The DNS name of the domain that it is in.
    pub fn domain(&self) -> Option<String> {
        domain_of(&self.name)
    }

    /// The SID of that domain.
    pub fn domain_sid(&self) -> Option<Sid> {
        Some(self.sid.as_ref()?.split()?.0)
    }

    /// The SIDs of those who may retrieve the password.
    pub fn principals(&self) -> impl Iterator<Item = &Sid> {
        self.retrieval.iter().flat_map(Retrieval::principals)
    }

    /// The SIDs whose names are shown: those of entries that allow or deny it, or that are not understood.
    pub fn named(&self) -> impl Iterator<Item = &Sid> {
        let unknown = self.retrieval.iter().flat_map(Retrieval::unknown);
        let rules = self.retrieval.iter().flat_map(Retrieval::rules);
        rules.map(|rule| &rule.to).chain(unknown.filter_map(|entry| entry.to.as_ref()))
    }

    pub fn services(&self) -> &[String] {
        self.service_principals.as_deref().unwrap_or_default()
    }
}

impl Directory {
    /// The account with this name, if there is one. Without a domain, the own one is searched first.
    ///
    /// # Errors
    /// Where several accounts of a domain have it, or a domain that may have it cannot be asked.
    pub async fn account(&mut self, name: &AccountName) -> Result<Option<Account>, Error> {
        let is_live = self.is_live();
        let (sam, bases) = match name {
            AccountName::Distinguished(name) => {
                let found = match self.search(&LdapSearch::object(name, &ATTRIBUTES)).await {
                    Err(Error::Refused(_, _, NO_SUCH_OBJECT | INVALID_NAME)) => Vec::new(),
                    found => found?,
                };
                return Ok(found.into_iter().find_map(|entry| Account::of(entry, is_live)));
            }
            AccountName::Sam(sam, domain) => (sam, self.bases(domain.as_deref())?),
        };
        let names = [sam.clone(), format!("{sam}$")].map(|name| LdapFilter::equals("sAMAccountName", name));
        let filter = LdapFilter::Any(names.to_vec());
        let mut unread = None;
        for base in &bases {
            let entries = match self.below(base, filter.clone()).await {
                Ok(entries) => entries.into_iter(),
                // Another domain may have it.
                Err(error) => {
                    unread.get_or_insert(error);
                    continue;
                }
            };
            let mut found: Vec<Account> = entries.filter_map(|entry| Account::of(entry, is_live)).collect();
            // Below a domain there may be others, in what was printed.
            let domain = domain_of(base);
            found.retain(|found| domain.is_none() || found.domain() == domain);
            // A user may have the name without `$`, and a deleted account the name of one that is there.
            found.sort_by_key(|found| (!found.is_group_managed(), found.is_left_over));
            let managed = found.iter().filter(|found| found.is_group_managed() && !found.is_left_over);
            let managed: Vec<String> = managed.filter_map(Account::domain).collect();
            if managed.len() > 1 {
                return Err(Error::Ambiguous(sam.clone(), managed.join(", ")));
            }
            if let Some(found) = found.into_iter().next() {
                return Ok(Some(found));
            }
        }
        unread.map_or(Ok(None), Err)
    }

    /// The domains that are looked at, for messages.
    pub fn places(&self) -> String {
        match &self.forest {
            Some(forest) if self.is_live() => forest.dns_names(),
            _ => self.address().to_owned(),
        }
    }

    /// Every group Managed Service Account of this domain, by default of the controller's own, or among the printed entries. If none was printed, the
    /// accounts that may be intended.
    ///
    /// # Errors
    /// Where the directory refuses, or the forest has no such domain.
    pub async fn accounts(&mut self, domain: Option<&str>) -> Result<Vec<Account>, Error> {
        let is_live = self.is_live();
        let Some(base) = self.bases(domain)?.into_iter().next() else { return Ok(Vec::new()) };
        let is_managed = LdapFilter::equals("objectClass", CLASS);
        // Printed output may omit the classes.
        let filter =
            if is_live { is_managed } else { LdapFilter::Any(vec![is_managed, LdapFilter::Present(MEMBERSHIP)]) };
        let mut entries = self.below(&base, filter).await?;
        if entries.is_empty() && !is_live {
            entries = self.below(&base, LdapFilter::Present("sAMAccountName")).await?;
            if entries.iter().any(may_be_meant) {
                entries.retain(may_be_meant);
            }
        }
        let mut accounts: Vec<Account> = entries.into_iter().filter_map(|entry| Account::of(entry, is_live)).collect();
        // Below a domain there may be others, in what was printed.
        accounts.retain(|found| domain.is_none() || found.domain() == domain_of(&base));
        Ok(accounts)
    }

    async fn below(&mut self, base: &str, filter: LdapFilter) -> Result<Vec<Entry>, Error> {
        self.search(&LdapSearch { base, scope: SearchScope::Subtree, filter, attributes: &ATTRIBUTES }).await
    }

    /// The distinguished names of the domains to search: the named one, otherwise all of the forest, the own one first. Printed entries are searched
    /// as a whole.
    ///
    /// # Errors
    /// If the forest has no such domain.
    pub fn bases(&self, domain: Option<&str>) -> Result<Vec<String>, Error> {
        let Some(forest) = &self.forest else { return Ok(vec![String::new()]) };
        if let Some(domain) = domain {
            return Ok(vec![forest.named(domain)?.name.clone()]);
        }
        if !self.is_live() {
            return Ok(vec![String::new()]);
        }
        let own = forest.own();
        let others = forest.domains.iter().filter(|domain| Some(*domain) != own);
        Ok(own.into_iter().chain(others).map(|domain| domain.name.clone()).collect())
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
