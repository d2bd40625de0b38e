//! The domains of a forest, and what a domain controller says of itself.

use gmsa_core::credspec::generate::Domain;
use time::UtcDateTime;
use uuid::Uuid;

use crate::{Entry, Error, LdapFilter, LdapSearch, SearchScope, Sid, entry::domain_of};

/// The most domains of one forest.
const MAX_DOMAINS: usize = 100;

/// The root of a directory (`rootDSE`, [MS-ADTS] 3.1.1.3.2).
pub const ROOT: LdapSearch<'static> = LdapSearch {
    base: "",
    scope: SearchScope::Base,
    filter: LdapFilter::Present("objectClass"),
    attributes: &["configurationNamingContext", "currentTime", "defaultNamingContext", "domainControllerFunctionality"],
};

/// A forest, with the domains that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forest {
    /// The distinguished name of its configuration.
    pub configuration: String,
    pub domains: Vec<ForestDomain>,
    /// The facts of the domain controller, if one was asked.
    pub controller: Option<ControllerFacts>,
}

/// A domain of the forest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForestDomain {
    /// Its distinguished name.
    pub name: String,
    pub facts: Domain,
}

/// A domain controller's facts about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControllerFacts {
    /// The distinguished name of its domain.
    pub domain: String,
    /// Its clock.
    pub time: Option<UtcDateTime>,
    /// Its functional level ([MS-ADTS] 6.1.4).
    pub level: Option<i64>,
}

impl ControllerFacts {
    pub(crate) fn of(root: &Entry, address: &str) -> Result<(Self, String), Error> {
        let text = |attribute, what| {
            let text = root.text(attribute).map(str::to_owned);
            text.ok_or_else(|| Error::Incomplete(address.to_owned(), what))
        };
        let facts = Self {
            domain: text("defaultNamingContext", "which domain it serves")?,
            time: root.time("currentTime"),
            level: root.number("domainControllerFunctionality"),
        };
        Ok((facts, text("configurationNamingContext", "where its configuration is")?))
    }
}

impl Forest {
    /// The references to domains (`crossRef`, [MS-ADTS] 6.1.1.2.1.1.4), which are below the partitions of the configuration.
    pub(crate) fn search(partitions: &str) -> LdapSearch<'_> {
        LdapSearch {
            base: partitions,
            scope: SearchScope::Subtree,
            // Other references have no such name.
            filter: LdapFilter::Present("nETBIOSName"),
            attributes: &["nCName", "dnsRoot", "nETBIOSName"],
        }
    }

    /// Builds the forest from the references to its domains. `all` may hold the domain objects, which add missing SIDs and GUIDs.
    ///
    /// # Errors
    /// Where something of a domain is missing.
    pub(crate) fn of(
        address: &str,
        configuration: String,
        references: &[Entry],
        all: &[Entry],
        controller: Option<ControllerFacts>,
    ) -> Result<Self, Error> {
        let incomplete = |what| Error::Incomplete(address.to_owned(), what);
        let root = domain_of(&configuration).ok_or_else(|| incomplete("which forest it is of"))?;
        let mut domains = Vec::new();
        for reference in references.iter().take(MAX_DOMAINS) {
            let (name, sid, guid) = context(reference.text("nCName").unwrap_or_default());
            let object = all.iter().find(|entry| entry.name.eq_ignore_ascii_case(name));
            let sid = sid.or_else(|| object?.sid("objectSid"));
            let guid = guid.or_else(|| Some(object?.guid("objectGUID")?.to_string()));
            let text = |attribute| reference.text(attribute).unwrap_or_default().to_owned();
            domains.push(ForestDomain {
                name: name.to_owned(),
                facts: Domain {
                    dns: text("dnsRoot"),
                    forest: root.clone(),
                    netbios: text("nETBIOSName"),
                    sid: sid.ok_or_else(|| incomplete("the SID of the domain"))?.to_string(),
                    guid: guid.ok_or_else(|| incomplete("the GUID of the domain"))?,
                },
            });
        }
        if domains.is_empty() {
            return Err(incomplete("which domains the forest has"));
        }
        Ok(Self { configuration, domains, controller })
    }

    /// The domain that was asked, or the only one.
    pub fn own(&self) -> Option<&ForestDomain> {
        match &self.controller {
            Some(facts) => self.domains.iter().find(|domain| domain.name.eq_ignore_ascii_case(&facts.domain)),
            None => self.domains.first().filter(|_| self.domains.len() == 1),
        }
    }

    /// The domain with this DNS or NetBIOS name.
    ///
    /// # Errors
    /// If the forest has no such domain.
    pub fn named(&self, name: &str) -> Result<&ForestDomain, Error> {
        let is_it = |domain: &&ForestDomain| {
            let Domain { dns, netbios, .. } = &domain.facts;
            [dns, netbios].into_iter().any(|own| own.eq_ignore_ascii_case(name))
        };
        self.domains.iter().find(is_it).ok_or_else(|| Error::NoDomain(name.to_owned(), self.dns_names()))
    }

    /// The DNS names of its domains, for messages.
    pub(crate) fn dns_names(&self) -> String {
        self.domains.iter().map(|domain| domain.facts.dns.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The domain that an object is in.
    pub fn of_object(&self, name: &str) -> Option<&ForestDomain> {
        let dns = domain_of(name)?;
        self.domains.iter().find(|domain| domain_of(&domain.name).is_some_and(|own| own == dns))
    }

    /// The domain that a SID is of.
    pub fn of_sid(&self, sid: &Sid) -> Option<&ForestDomain> {
        let (issuer, _) = sid.split()?;
        let issuer = issuer.to_string();
        self.domains.iter().find(|domain| domain.facts.sid == issuer)
    }
}

/// The name of a domain, and with extended names its SID and its GUID: `<GUID=…>;<SID=…>;DC=contoso,DC=com`.
fn context(mut name: &str) -> (&str, Option<Sid>, Option<String>) {
    let (mut sid, mut guid) = (None, None);
    while let Some((part, rest)) = name.strip_prefix('<').and_then(|rest| rest.split_once(">;")) {
        name = rest;
        match part.split_once('=') {
            Some(("SID", text)) => sid = Sid::parse(text),
            Some(("GUID", text)) => guid = Uuid::try_parse(text).ok().map(|id| id.to_string()),
            _ => {}
        }
    }
    (name, sid, guid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(context: &str, dns: &str, netbios: &str) -> Entry {
        let mut entry = Entry {
            name: format!("CN={netbios},CN=Partitions,CN=Configuration,DC=contoso,DC=com"),
            ..Entry::default()
        };
        for (name, value) in [("ncname", context), ("dnsroot", dns), ("netbiosname", netbios)] {
            entry.attributes.insert(name.to_owned(), vec![value.as_bytes().to_vec()]);
        }
        entry
    }

    const CONFIGURATION: &str = "CN=Configuration,DC=contoso,DC=com";
    const EMEA: &str = "<GUID=8259123b-591e-479d-9189-2a80af4d8de2>;<SID=S-1-5-21-1-2-3>;DC=emea,DC=contoso,DC=com";
    const FABRIKAM: &str = "<GUID=3b125982-591e-479d-9189-2a80af4d8de2>;<SID=S-1-5-21-4-5-6>;DC=fabrikam,DC=com";

    #[test]
    fn a_child_and_a_second_tree_have_the_root_of_their_forest() {
        let references = [reference(EMEA, "emea.contoso.com", "EMEA"), reference(FABRIKAM, "fabrikam.com", "FABRIKAM")];
        let forest = Forest::of("dc1", CONFIGURATION.to_owned(), &references, &[], None).unwrap();
        let domain = Domain {
            dns: "fabrikam.com".to_owned(),
            forest: "contoso.com".to_owned(),
            netbios: "FABRIKAM".to_owned(),
            sid: "S-1-5-21-4-5-6".to_owned(),
            guid: "3b125982-591e-479d-9189-2a80af4d8de2".to_owned(),
        };
        assert_eq!(forest.named("FABRIKAM.com").unwrap().facts, domain);
        assert_eq!(forest.named("emea").unwrap().name, "DC=emea,DC=contoso,DC=com");
        assert_eq!(forest.of_object("CN=a,DC=fabrikam,DC=com").unwrap().facts.netbios, "FABRIKAM");
        assert_eq!(forest.of_sid(&Sid::parse("S-1-5-21-1-2-3-1103").unwrap()).unwrap().facts.netbios, "EMEA");
        assert_eq!(forest.own(), None);
        let error = forest.named("corp.com").unwrap_err().to_string();
        assert_eq!(error, "corp.com is not a domain of the forest, which has emea.contoso.com, fabrikam.com");
    }

    #[test]
    fn an_identifier_of_another_form_is_none() {
        for wrong in ["<GUID=3b12598259 1e>;DC=x", "<GUID=3b125982-591e: #>;DC=x", "<SID=01040000>;DC=x"] {
            assert_eq!(context(wrong), ("DC=x", None, None));
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let of = |references: &[Entry]| {
            Forest::of("dc1", CONFIGURATION.to_owned(), references, &[], None).unwrap_err().to_string()
        };
        assert_eq!(of(&[]), "dc1: the directory does not say which domains the forest has");
        let plain = reference("DC=contoso,DC=com", "contoso.com", "CONTOSO");
        assert_eq!(of(&[plain]), "dc1: the directory does not say the SID of the domain");
    }
}
