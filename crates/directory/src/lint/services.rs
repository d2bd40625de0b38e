//! Service principal names: what they cover, and which of them other accounts have too.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use gmsa_core::{
    diagnostic::{Diagnostic, Diagnostics, rules},
    quote::{Quoted, shell},
};

use super::{SHOWN, fixed, found, not_checked};
use crate::{Directory, Error, LdapFilter, LdapSearch, SearchScope, account::Account};

const NO_TICKET: &str = "the domain gives no ticket for it, so clients fall back to NTLM or fail";
/// How many names are asked for at once.
const AT_ONCE: usize = 25;

/// Service principal names that other accounts have too, in any domain of the forest.
pub(super) async fn duplicates(directory: &mut Directory, accounts: &[&Account]) -> Result<Diagnostics, Error> {
    const FIELD: &str = "ServicePrincipalNames";
    let names = || accounts.iter().flat_map(|&one| one.services().iter().map(move |name| (one, name.as_str())));
    let NameOwners { owners, unread } = owners(directory, names().map(|(_, name)| name)).await?;
    let problem = |(one, name): (&Account, &str)| {
        let others: Vec<String> = owners
            .get(&name.to_ascii_lowercase())?
            .iter()
            .filter(|owner| !owner.eq_ignore_ascii_case(&one.name))
            .take(SHOWN)
            .map(|owner| Quoted::new(owner).to_string())
            .collect();
        let problem = format!("{} is a name of {} too", Quoted::new(name), others.join(", "));
        let fix = shell::cmd(name).map(|name| format!("setspn -D {name} ACCOUNT, for the one that does not serve it"));
        (!others.is_empty()).then(|| Diagnostic {
            consequence: Some(NO_TICKET),
            ..fixed(found(&rules::ACCOUNT_SPN_DUPLICATE, one, FIELD, problem), fix)
        })
    };
    let unread = unread.iter().map(|(domain, error)| not_checked("duplicate service principal names", domain, error));
    let mut list = Diagnostics::default();
    list.extend(names().filter_map(problem).chain(unread));
    Ok(list)
}

/// Who has service principal names.
struct NameOwners {
    /// The distinguished names of the objects that have a name, which is in lower case.
    owners: BTreeMap<String, Vec<Arc<str>>>,
    /// Why domains could not be asked, by their distinguished names.
    unread: BTreeMap<String, Error>,
}

/// Looks for the owners of service principal names in every domain of the forest.
async fn owners<'n>(directory: &mut Directory, names: impl Iterator<Item = &'n str>) -> Result<NameOwners, Error> {
    let wanted: HashSet<String> = names.map(str::to_ascii_lowercase).collect();
    let names: Vec<&String> = wanted.iter().collect();
    let mut found = NameOwners { owners: BTreeMap::new(), unread: BTreeMap::new() };
    for base in directory.all_bases()? {
        for some in names.chunks(AT_ONCE) {
            let filter = LdapFilter::Any(
                some.iter().map(|name| LdapFilter::equals("servicePrincipalName", name.as_str())).collect(),
            );
            let search =
                LdapSearch { base: &base, scope: SearchScope::Subtree, filter, attributes: &["servicePrincipalName"] };
            let entries = match directory.search(&search).await {
                Ok(entries) => entries,
                Err(error @ Error::Exhausted(..)) => return Err(error),
                Err(error) => {
                    found.unread.insert(base, error);
                    break;
                }
            };
            for entry in entries {
                let owner: Arc<str> = entry.name.as_str().into();
                let own = entry.texts("servicePrincipalName").map(str::to_ascii_lowercase);
                // An owner may have many others.
                for name in own.filter(|name| wanted.contains(name)) {
                    found.owners.entry(name).or_default().push(Arc::clone(&owner));
                }
            }
        }
    }
    Ok(found)
}

/// The service classes that an SPN of class `host` covers (Microsoft: Setspn, built-in SPNs for computer accounts;
/// the default of the directory's attribute `sPNMappings`).
const HOST_COVERS: [&str; 53] = [
    "alerter",
    "appmgmt",
    "browser",
    "cifs",
    "cisvc",
    "clipsrv",
    "dcom",
    "dhcp",
    "dmserver",
    "dns",
    "dnscache",
    "eventlog",
    "eventsystem",
    "fax",
    "http",
    "ias",
    "iisadmin",
    "mcsvc",
    "messenger",
    "msdtc",
    "msiserver",
    "netdde",
    "netddedsm",
    "netlogon",
    "netman",
    "nmagent",
    "oakley",
    "plugplay",
    "policyagent",
    "protectedstorage",
    "rasman",
    "remoteaccess",
    "replicator",
    "rpc",
    "rpclocator",
    "rpcss",
    "rsvp",
    "samss",
    "scardsvr",
    "scesrv",
    "schedule",
    "scm",
    "seclogon",
    "snmp",
    "spooler",
    "tapisrv",
    "time",
    "trksvr",
    "trkwks",
    "ups",
    "w3svc",
    "wins",
    "www",
];

/// Whether a service principal name answers for another one: the same, or one of class `host` for a class that it covers.
pub(super) fn covers(own: &str, wanted: &str) -> bool {
    let (Some((class, host)), Some((wanted_class, wanted_host))) = (own.split_once('/'), wanted.split_once('/')) else {
        return own.eq_ignore_ascii_case(wanted);
    };
    let covered = HOST_COVERS.iter().any(|covered| covered.eq_ignore_ascii_case(wanted_class));
    host.eq_ignore_ascii_case(wanted_host)
        && (class.eq_ignore_ascii_case(wanted_class) || (class.eq_ignore_ascii_case("host") && covered))
}
