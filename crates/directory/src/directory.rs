//! The directory: a domain controller and, for objects of other domains of the forest, theirs; or what one printed, as LDIF.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use rustls::ClientConfig;

use crate::{
    Address, Connection, Controller, Credentials, Entry, Error, Resolver, Search, Transport,
    entry::parts,
    forest::{Facts, Forest, ROOT},
    ldap::trust,
};

/// How a directory is reached.
pub struct Access {
    pub address: Address,
    /// A DNS server that knows the domain, where the system's do not.
    pub resolver: Option<Resolver>,
    /// A file with the authority that made the certificates of the controllers; `None` for those that the system trusts.
    pub authority: Option<PathBuf>,
    pub credentials: Credentials,
}

/// A directory, and the forest that it shows.
pub struct Directory {
    source: Source,
    /// `None` where it is printed, and what was printed does not show it.
    pub forest: Option<Forest>,
}

enum Source {
    Live(Box<Live>),
    Printed(Vec<Entry>),
}

struct Live {
    access: Access,
    tls: Arc<ClientConfig>,
    connection: Connection,
    /// By the DNS names of their domains.
    others: BTreeMap<String, Connection>,
}

impl Directory {
    /// Connects, logs on, and reads which domains there are.
    ///
    /// # Errors
    /// Where the directory cannot be reached, its certificate is not trusted, or the user may not log on.
    pub async fn connect(access: Access) -> Result<Self, Error> {
        let tls = trust(access.authority.as_deref())?;
        let mut connection = match &access.address {
            Address::Controller(controller) => open(&access, &tls, controller).await?,
            Address::Domain(domain) => of_domain(&access, &tls, domain).await?,
        };
        let address = connection.address().to_owned();
        let root = connection.search(&ROOT).await?.pop().unwrap_or_default();
        let (facts, configuration) = Facts::of(&root, &address)?;
        let references = connection.search_extended(&Forest::search(&Forest::references(&configuration))).await?;
        let forest = Some(Forest::of(&address, configuration, &references, &[], Some(facts))?);
        let live = Live { access, tls, connection, others: BTreeMap::new() };
        Ok(Self { source: Source::Live(Box::new(live)), forest })
    }

    /// What a directory printed. It shows the forest where it holds references to its domains.
    pub fn printed(entries: Vec<Entry>) -> Self {
        let is_of_domain = |entry: &&Entry| entry.is_a("crossRef") && entry.text("nETBIOSName").is_some();
        let references: Vec<Entry> = entries.iter().filter(is_of_domain).cloned().collect();
        // CN=CONTOSO,CN=Partitions,CN=Configuration,DC=contoso,DC=com
        let configuration = references.first().map(|entry| parts(&entry.name).skip(2).collect::<Vec<_>>().join(","));
        let forest = configuration.and_then(|name| Forest::of("the file", name, &references, &entries, None).ok());
        Self { source: Source::Printed(entries), forest }
    }

    /// Whether it can be asked for more.
    pub fn is_live(&self) -> bool {
        matches!(self.source, Source::Live(_))
    }

    /// Its name, for messages.
    pub fn address(&self) -> &str {
        match &self.source {
            Source::Live(live) => live.connection.address(),
            Source::Printed(_) => "the file",
        }
    }

    /// All entries that fit, from a controller of the domain that the base is in.
    ///
    /// # Errors
    /// Where that cannot be asked, or refuses.
    pub async fn search(&mut self, search: &Search<'_>) -> Result<Vec<Entry>, Error> {
        match &mut self.source {
            Source::Live(live) => live.serving(self.forest.as_ref(), search.base).await?.search(search).await,
            Source::Printed(entries) => Ok(search.within(entries)),
        }
    }

    /// Whether an object has a value of this attribute, of which nothing is kept; `None` where there is no such object.
    ///
    /// # Errors
    /// As [`Self::search`].
    pub async fn holds(&mut self, search: &Search<'_>, attribute: &str) -> Result<Option<bool>, Error> {
        match &mut self.source {
            Source::Live(live) => live.serving(self.forest.as_ref(), search.base).await?.holds(search, attribute).await,
            Source::Printed(entries) => Ok(search
                .within(entries)
                .first()
                .map(|entry| entry.value(attribute).is_some_and(|value| !value.is_empty()))),
        }
    }

    /// Adds an object.
    ///
    /// # Errors
    /// Where the directory refuses it, or is a file.
    pub async fn add(&mut self, entry: &Entry) -> Result<(), Error> {
        match &mut self.source {
            Source::Live(live) => live.serving(self.forest.as_ref(), &entry.name).await?.add(entry).await,
            Source::Printed(_) => Err(Error::Refused("the file".to_owned(), "nothing is written to it".to_owned(), 53)),
        }
    }
}

impl Live {
    /// The connection to the domain that an object is in. What is in no domain of the forest is asked of the controller that was named.
    async fn serving(&mut self, forest: Option<&Forest>, name: &str) -> Result<&mut Connection, Error> {
        let is_own = |forest: &Forest, of: &str| forest.own().is_none_or(|own| own.name.eq_ignore_ascii_case(of));
        let other = forest.and_then(|forest| forest.of_object(name).filter(|of| !is_own(forest, &of.name)));
        // Each controller has the configuration of the whole forest.
        let other = other.filter(|_| forest.is_none_or(|forest| !crate::entry::is_within(name, &forest.configuration)));
        let Some(other) = other else { return Ok(&mut self.connection) };
        let dns = &other.domain.dns;
        if !self.others.contains_key(dns) {
            let connection = of_domain(&self.access, &self.tls, dns).await?;
            self.others.insert(dns.clone(), connection);
        }
        Ok(self.others.get_mut(dns).unwrap_or(&mut self.connection))
    }
}

/// A connection to the first controller of a domain that can be reached.
async fn of_domain(access: &Access, tls: &Arc<ClientConfig>, domain: &str) -> Result<Connection, Error> {
    let resolver = match &access.resolver {
        Some(resolver) => resolver.clone(),
        None => Resolver::of_system()
            .map_err(|error| Error::NotLocated { domain: domain.to_owned(), why: error.to_string() })?,
    };
    let transport = match &access.address {
        Address::Controller(controller) => controller.transport,
        Address::Domain(_) => Transport::Tls,
    };
    let mut failed = Error::NotLocated { domain: domain.to_owned(), why: "the DNS names none".to_owned() };
    for host in resolver.controllers(domain).await? {
        match open(access, tls, &Controller::new(host, transport)).await {
            Ok(connection) => return Ok(connection),
            // A password that is wrong is tried once only: the account could be locked out.
            Err(error @ (Error::Credentials(..) | Error::Refused(..))) => return Err(error),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

async fn open(access: &Access, tls: &Arc<ClientConfig>, controller: &Controller) -> Result<Connection, Error> {
    let mut connection = Connection::open(controller, access.resolver.as_ref(), tls).await?;
    connection.bind(&access.credentials).await?;
    Ok(connection)
}
