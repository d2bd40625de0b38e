//! Service principal names: what they cover, and which of them other accounts have too.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use gmsa_core::{
    diagnostic::{Diagnostics, rules},
    quote::{Quoted, shell},
};

use super::{finding, not_checked, quoted};
use crate::{Directory, Error, LdapFilter, account::Account};

const NO_TICKET: &str = "the domain gives no ticket for it, so clients fall back to NTLM or fail";

/// Service principal names that other accounts have too, in any domain of the forest.
pub(super) async fn duplicates(directory: &mut Directory, accounts: &[&Account]) -> Result<Diagnostics, Error> {
    const FIELD: &str = "ServicePrincipalNames";
    let names = || accounts.iter().flat_map(|&one| one.services().iter().map(move |name| (one, name.as_str())));
    let (owners, unread) = owners(directory, names().map(|(_, name)| name)).await?;
    let problem = |(one, name): (&Account, &str)| {
        let others = owners.get(&name.to_ascii_lowercase())?.iter();
        let others = quoted(others.map(AsRef::as_ref).filter(|owner| !owner.eq_ignore_ascii_case(&one.name)));
        let problem = format!("{} is a name of {others} too", Quoted::new(name));
        let fix = shell::cmd(name).map(|name| format!("setspn -D {name} ACCOUNT, for the one that does not serve it"));
        (!others.is_empty()).then(|| finding(&rules::ACCOUNT_SPN_DUPLICATE, one, FIELD, problem, NO_TICKET, fix))
    };
    let unread = unread.iter().map(|(domain, error)| not_checked("duplicate service principal names", domain, error));
    let mut list = Diagnostics::default();
    list.extend(names().filter_map(problem).chain(unread));
    Ok(list)
}

/// By service principal names in lower case, the distinguished names of the objects that have them.
type Owners = BTreeMap<String, Vec<Arc<str>>>;

/// Looks for the owners of service principal names in every domain of the forest, and why some could not be asked, by their distinguished names.
async fn owners<'n>(
    directory: &mut Directory,
    names: impl Iterator<Item = &'n str>,
) -> Result<(Owners, BTreeMap<String, Error>), Error> {
    const NAME: &str = "servicePrincipalName";
    let wanted: HashSet<String> = names.map(str::to_ascii_lowercase).collect();
    let by: Vec<_> = wanted.iter().map(|name| LdapFilter::equals(NAME, name.as_str())).collect();
    let (mut owners, mut unread) = (Owners::new(), BTreeMap::new());
    for base in directory.bases(None)? {
        for entry in directory.search_any(&base, &by, &[NAME], &mut unread).await? {
            let owner: Arc<str> = entry.name.as_str().into();
            // An owner may have many others.
            let own = entry.texts(NAME).map(str::to_ascii_lowercase).filter(|name| wanted.contains(name));
            for name in own {
                owners.entry(name).or_default().push(Arc::clone(&owner));
            }
        }
    }
    Ok((owners, unread))
}

/// The service classes that an SPN of class `host` covers (Microsoft: Setspn, built-in SPNs for computer accounts), as the directory writes them:
/// the default of its attribute `sPNMappings`.
const HOST_COVERS: &str = "alerter,appmgmt,browser,cifs,cisvc,clipsrv,dcom,dhcp,dmserver,dns,dnscache,eventlog,eventsystem,fax,http,ias,iisadmin,mcsvc,\
    messenger,msdtc,msiserver,netdde,netddedsm,netlogon,netman,nmagent,oakley,plugplay,policyagent,protectedstorage,rasman,\
    remoteaccess,replicator,rpc,rpclocator,rpcss,rsvp,samss,scardsvr,scesrv,schedule,scm,seclogon,snmp,spooler,tapisrv,time,trksvr,\
    trkwks,ups,w3svc,wins,www";

/// Whether a service principal name answers for another one: the same, or one of class `host` for a class that it covers.
pub(super) fn covers(own: &str, wanted: &str) -> bool {
    let (Some((class, host)), Some((wanted_class, wanted_host))) = (own.split_once('/'), wanted.split_once('/')) else {
        return own.eq_ignore_ascii_case(wanted);
    };
    let covered = HOST_COVERS.split(',').any(|covered| covered.eq_ignore_ascii_case(wanted_class));
    host.eq_ignore_ascii_case(wanted_host)
        && (class.eq_ignore_ascii_case(wanted_class) || (class.eq_ignore_ascii_case("host") && covered))
}
