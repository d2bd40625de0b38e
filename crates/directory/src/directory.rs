//! The directory: a domain controller, and those of other domains of the forest where their objects are needed; or printed entries.
//!
//! The controller of a domain is the named one, or the first in the DNS whose certificate is the domain's, or else the first reachable one, if the user confirms it
//! (`to_domain`). Referrals are not followed:
//! `serving` connects to the other domain itself.

use std::{collections::BTreeMap, net::IpAddr, path::PathBuf, sync::Arc};

use rustls::ClientConfig;
use zeroize::Zeroizing;

use crate::{
    Address, Budget, Controller, Credentials, Entry, Error, LdapConnection, LdapFilter, LdapSearch, NameServers,
    SearchScope, Transport,
    entry::parts,
    forest::{ControllerFacts, Forest, ROOT},
    ldap::trust,
};

/// How many filters one search holds.
const AT_ONCE: usize = 50;

/// How a directory is reached.
pub struct Access {
    pub address: Address,
    /// A DNS server that knows the domain, where the system's do not.
    pub resolver: Option<NameServers>,
    /// A file with the CA of the controllers' certificates; `None` for the CAs of the system.
    pub authority: Option<PathBuf>,
    pub credentials: Credentials,
    pub budget: Arc<Budget>,
    /// `None` without a user to ask: then a host that only the DNS names as a controller does not get the password.
    pub confirm: Option<Confirm>,
}

/// Asks a person whether a host, which the DNS names as a controller of a domain and whose certificate does not prove it, may get the password.
pub type Confirm = Box<dyn Fn(&Controller, &str) -> bool + Send + Sync>;

/// A directory, and the forest that it shows.
pub struct Directory {
    backend: Backend,
    /// `None` where it is printed, and what was printed does not show it.
    pub forest: Option<Forest>,
}

enum Backend {
    Live(Box<Live>),
    Printed { entries: Vec<Entry>, incomplete: Option<String>, budget: Budget },
}

struct Live {
    dialer: Dialer,
    connection: LdapConnection,
    /// By the DNS names of their domains.
    others: BTreeMap<String, LdapConnection>,
}

/// How to reach controllers, within a budget.
struct Dialer {
    access: Access,
    tls: Arc<ClientConfig>,
}

impl Directory {
    /// Connects, logs on, and reads which domains there are.
    ///
    /// # Errors
    /// Where the directory cannot be reached, its certificate is not trusted, or the user may not log on.
    pub async fn connect(access: Access) -> Result<Self, Error> {
        let dialer = Dialer { tls: trust(access.authority.as_deref())?, access };
        let mut connection = match &dialer.access.address {
            Address::Controller(controller) => dialer.bound(dialer.open(controller).await?).await?,
            Address::Domain(domain) => dialer.to_domain(domain).await?,
        };
        let address = connection.address().to_owned();
        let root = connection.search(&ROOT).await?.pop().unwrap_or_default();
        let (facts, configuration) = ControllerFacts::of(&root, &address)?;
        let partitions = format!("CN=Partitions,{configuration}");
        let references = connection.search_with(&Forest::search(&partitions), true).await?;
        let forest = Some(Forest::of(&address, configuration, &references, &[], Some(facts))?);
        let live = Live { dialer, connection, others: BTreeMap::new() };
        Ok(Self { backend: Backend::Live(Box::new(live)), forest })
    }

    /// Printed entries of a directory, and why they are incomplete, if they show it. They show the forest if they hold references to its
    /// domains.
    pub fn printed(entries: Vec<Entry>, incomplete: Option<String>) -> Self {
        let is_of_domain = |entry: &&Entry| entry.is_a("crossRef") && entry.text("nETBIOSName").is_some();
        let references: Vec<Entry> = entries.iter().filter(is_of_domain).cloned().collect();
        // CN=CONTOSO,CN=Partitions,CN=Configuration,DC=contoso,DC=com
        let configuration = references.first().map(|entry| parts(&entry.name).skip(2).collect::<Vec<_>>().join(","));
        let forest = configuration.and_then(|name| Forest::of("the file", name, &references, &entries, None).ok());
        Self { backend: Backend::Printed { entries, incomplete, budget: Budget::default() }, forest }
    }

    /// Why the printed entries are incomplete, if they show it.
    pub fn incomplete(&self) -> Option<&str> {
        match &self.backend {
            Backend::Printed { incomplete, .. } => incomplete.as_deref(),
            Backend::Live(_) => None,
        }
    }

    /// Whether it is a domain controller, which can be searched again.
    pub fn is_live(&self) -> bool {
        matches!(self.backend, Backend::Live(_))
    }

    /// Its name, for messages.
    pub fn address(&self) -> &str {
        match &self.backend {
            Backend::Live(live) => live.connection.address(),
            Backend::Printed { .. } => "the file",
        }
    }

    /// All entries that fit, from a controller of the domain that the base is in.
    ///
    /// # Errors
    /// Where that cannot be asked, or refuses.
    pub async fn search(&mut self, search: &LdapSearch<'_>) -> Result<Vec<Entry>, Error> {
        match &mut self.backend {
            Backend::Live(live) => live.serving(self.forest.as_ref(), search.base).await?.search(search).await,
            Backend::Printed { entries, budget, .. } => {
                budget.search("the file")?;
                budget.within("the file", async { Ok(search.within(entries)) }).await
            }
        }
    }

    /// All entries of a domain that fit one of these filters. Where it cannot be asked, `unread` says why, and entries are missing.
    ///
    /// # Errors
    /// Where the budget of the command is exceeded.
    pub async fn search_any(
        &mut self,
        base: &str,
        filters: &[LdapFilter],
        attributes: &[&str],
        unread: &mut BTreeMap<String, Error>,
    ) -> Result<Vec<Entry>, Error> {
        let mut found = Vec::new();
        for some in filters.chunks(AT_ONCE) {
            let filter = LdapFilter::Any(some.to_vec());
            match self.search(&LdapSearch { base, scope: SearchScope::Subtree, filter, attributes }).await {
                Ok(entries) => found.extend(entries),
                Err(error @ Error::Exhausted(..)) => return Err(error),
                Err(error) => {
                    unread.insert(base.to_owned(), error);
                    break;
                }
            }
        }
        Ok(found)
    }

    /// The value of an attribute of an object, in memory that is wiped, and the controller that gave it. `None` if there is no value, and always
    /// where the directory was printed: no secret belongs there.
    ///
    /// # Errors
    /// As [`Self::search`].
    pub async fn secret(
        &mut self,
        search: &LdapSearch<'_>,
        attribute: &str,
    ) -> Result<Option<(Zeroizing<Vec<u8>>, IpAddr)>, Error> {
        let Backend::Live(live) = &mut self.backend else { return Ok(None) };
        let connection = live.serving(self.forest.as_ref(), search.base).await?;
        let value = connection.secret(search, attribute).await?.filter(|value| !value.is_empty());
        value.map(|value| Ok((value, connection.peer()?))).transpose()
    }
}

impl Live {
    /// The connection to the domain that an object is in. For an object in no domain of the forest, the named controller is asked.
    async fn serving(&mut self, forest: Option<&Forest>, name: &str) -> Result<&mut LdapConnection, Error> {
        let is_own = |forest: &Forest, name: &str| forest.own().is_none_or(|own| own.name.eq_ignore_ascii_case(name));
        let other = forest.and_then(|forest| forest.of_object(name).filter(|domain| !is_own(forest, &domain.name)));
        // Each controller has the configuration of the whole forest.
        let other = other.filter(|_| forest.is_none_or(|forest| !crate::entry::is_within(name, &forest.configuration)));
        let Some(other) = other else { return Ok(&mut self.connection) };
        let dns = &other.facts.dns;
        if !self.others.contains_key(dns) {
            let connection = self.dialer.to_domain(dns).await?;
            self.others.insert(dns.clone(), connection);
        }
        Ok(self.others.get_mut(dns).unwrap_or(&mut self.connection))
    }
}

impl Dialer {
    /// A connection to the first reachable controller of a domain whose certificate has the name of the domain; where none has it, to the
    /// first reachable one, if the user confirms it. The template Kerberos Authentication adds that name. Any host of a domain can have a certificate for its own name, and the DNS can be forged.
    async fn to_domain(&self, domain: &str) -> Result<LdapConnection, Error> {
        let not_located = |why| Error::NotLocated { domain: domain.to_owned(), why };
        let resolver = match &self.access.resolver {
            Some(resolver) => resolver.clone(),
            None => NameServers::of_system().map_err(|error| not_located(error.to_string()))?,
        };
        let transport = match &self.access.address {
            Address::Controller(controller) => controller.transport,
            Address::Domain(_) => Transport::Tls,
        };
        let (mut failed, mut unproven) = (not_located("the DNS names none".to_owned()), None);
        for host in self.access.budget.within(domain, resolver.controllers(domain)).await? {
            let controller = Controller::new(host, transport);
            match self.open(&controller).await {
                Ok(connection) if !connection.is_for(domain) => unproven = unproven.or(Some(controller)),
                Ok(connection) => match self.bound(connection).await {
                    // A password that is wrong is tried once only: the account could be locked out.
                    bound @ (Ok(_) | Err(Error::Credentials(..) | Error::Refused(..))) => return bound,
                    Err(error) => failed = error,
                },
                Err(error) => failed = error,
            }
        }
        let Some(controller) = unproven else { return Err(failed) };
        if self.access.confirm.as_ref().is_some_and(|confirm| confirm(&controller, domain)) {
            return self.bound(self.open(&controller).await?).await;
        }
        Err(Error::Unproven { controller: controller.to_string(), domain: domain.to_owned() })
    }

    async fn open(&self, controller: &Controller) -> Result<LdapConnection, Error> {
        LdapConnection::open(controller, self.access.resolver.as_ref(), &self.tls, &self.access.budget).await
    }

    /// Logs on.
    async fn bound(&self, mut connection: LdapConnection) -> Result<LdapConnection, Error> {
        connection.bind(&self.access.credentials).await?;
        Ok(connection)
    }
}
