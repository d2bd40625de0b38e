//! Service principal names: what they cover, and which of them other accounts have too; and other objects with the name of an account without its `$`.

use std::{
    collections::{BTreeMap, HashSet},
    net::{IpAddr, SocketAddr},
};

use gmsa_core::{
    diagnostic::{Diagnostic, Diagnostics, rules},
    quote::{Quoted, shell},
};

use super::{finding, found, not_checked, quoted};
use gmsa_directory::{Directory, Error, LdapFilter, account::Account, entry::base_of};

/// The list for tickets, in a credential spec.
const FIELD: &str = "metadata.annotations[gmsa-webhook/services]";

/// The list for a keytab.
const KEYTAB_FIELD: &str = "metadata.annotations[gmsa-webhook/keytab]";

const NO_TICKET: &str = "the domain gives no ticket for it, so clients fall back to NTLM or fail";

/// Service principal names that other accounts have too, in any domain of the forest.
pub(super) async fn duplicates(directory: &mut Directory, accounts: &[&Account]) -> Result<Diagnostics, Error> {
    const FIELD: &str = "ServicePrincipalNames";
    let names = || accounts.iter().flat_map(|&one| one.services().iter().map(move |name| (one, name.as_str())));
    let (owners, unread) = owners(directory, names().map(|(_, name)| name)).await?;
    let problem = |(one, name): (&Account, &str)| {
        let others = owners.get(&name.to_ascii_lowercase())?.iter();
        let others = others.map(|owner| owner.name.as_str()).filter(|owner| !owner.eq_ignore_ascii_case(&one.name));
        let others = quoted(others);
        let problem = format!("{} is a name of {others} too", Quoted::new(name));
        let fix = shell::cmd(name).map(|name| format!("setspn -D {name} ACCOUNT, for the one that does not serve it"));
        (!others.is_empty()).then(|| finding(&rules::ACCOUNT_SPN_DUPLICATE, one, FIELD, problem, NO_TICKET, fix))
    };
    let unread = unread.iter().map(|(domain, error)| not_checked("duplicate service principal names", domain, error));
    let mut list = Diagnostics::default();
    list.extend(names().filter_map(problem).chain(unread));
    Ok(list)
}

/// Other objects with these names, in the domain of each account.
pub(super) async fn namesakes(directory: &mut Directory, accounts: &[&Account]) -> Result<Diagnostics, Error> {
    const NAME: &str = "sAMAccountName";
    let mut by_domain: BTreeMap<String, Vec<&Account>> = BTreeMap::new();
    for account in accounts {
        let base = if directory.is_live() { base_of(&account.name) } else { String::new() };
        by_domain.entry(base).or_default().push(account);
    }
    let (mut list, mut unread) = (Diagnostics::default(), BTreeMap::new());
    for (base, accounts) in by_domain {
        let by: Vec<_> = accounts.iter().map(|account| LdapFilter::equals(NAME, account.sam.as_str())).collect();
        for entry in directory.search_any(&base, &by, &[NAME], &mut unread).await? {
            let of_name =
                |account: &&&Account| entry.text(NAME).is_some_and(|name| name.eq_ignore_ascii_case(&account.sam));
            list.extend(accounts.iter().find(of_name).map(|account| {
                let problem = format!("{} has the same name: {}", Quoted::new(&entry.name), Quoted::new(&account.sam));
                found(&rules::ACCOUNT_USER_NAME, account, "SamAccountName", problem)
            }));
        }
    }
    let unread = unread.iter().map(|(domain, error)| not_checked("users with the name of an account", domain, error));
    list.extend(unread);
    Ok(list)
}

/// Services of a list for tickets that no account has, that several have, or that a domain controller has.
pub(super) async fn of_tickets(directory: &mut Directory, listed: &[String]) -> Result<Vec<Diagnostic>, Error> {
    let by_host = |name: &str| {
        let host = format!("host/{}", name.split_once('/')?.1.to_ascii_lowercase());
        covers(&host, name).then_some(host)
    };
    let hosts: Vec<String> = listed.iter().filter_map(|name| by_host(name)).collect();
    let (owners, unread) = owners(directory, listed.iter().chain(&hosts).map(String::as_str)).await?;
    // Printed output may be incomplete.
    let is_whole = directory.is_live() && unread.is_empty();
    let fault = |name: &String| {
        let own = owners.get(&name.to_ascii_lowercase()).or_else(|| owners.get(&by_host(name)?));
        let shown = Quoted::new(name);
        match own.map(Vec::as_slice) {
            None if is_whole => {
                let fix = format!("setspn -S {name} ACCOUNT, for the account that runs the service");
                Some((&rules::TICKET_SERVICE, format!("lists {shown}, a name that no account has"), fix))
            }
            Some([one]) if one.is_controller => {
                let problem = format!("lists {shown}, a service of the domain controller {}", Quoted::new(&one.name));
                Some((&rules::TICKET_CONTROLLER, problem, rules::TICKET_CONTROLLER.remedy.to_owned()))
            }
            None | Some([_]) => None,
            Some(several) => {
                let problem = format!("lists {shown}, a name of {}", names(several));
                let fix = format!("setspn -D {name} ACCOUNT, for the one that does not serve it");
                Some((&rules::ACCOUNT_SPN_DUPLICATE, problem, fix))
            }
        }
    };
    let found = listed.iter().filter_map(fault);
    let at =
        |(rule, problem, fix)| Diagnostic { field: FIELD.to_owned(), ..Diagnostic::new(rule, problem).with_fix(fix) };
    Ok(found.map(at).collect())
}

/// Names of a keytab that the account lacks: clients get no ticket for them, or one that another account's keys open.
pub(super) async fn of_keytab(
    directory: &mut Directory,
    account: &Account,
    listed: &[String],
) -> Result<Vec<Diagnostic>, Error> {
    let is_own = |name: &&String| account.services().iter().any(|own| covers(own, name));
    let lacked: Vec<&String> = listed.iter().filter(|name| !is_own(name)).collect();
    let (owners, _) = owners(directory, lacked.iter().map(|name| name.as_str())).await?;
    let fault = |name: &&String| {
        let shown = Quoted::new(name);
        let (problem, first) = match owners.get(&name.to_ascii_lowercase()).map(|others| names(others)) {
            Some(others) => (
                format!("lists {shown}, a name of {others}, not of the account"),
                format!("setspn -D {name} ACCOUNT, for the one that has it, then "),
            ),
            None => (format!("lists {shown}, a name that the account does not have"), String::new()),
        };
        let fix = shell::cmd(&account.sam).map(|sam| format!("{first}setspn -S {name} {sam}$"));
        let found = Diagnostic::new(&rules::TICKET_SERVICE, problem).fixed(fix);
        Diagnostic { field: KEYTAB_FIELD.to_owned(), consequence: Some(NO_TICKET), ..found }
    };
    Ok(lacked.iter().map(fault).collect())
}

/// An object with a service principal name.
struct SpnOwner {
    /// Its distinguished name.
    name: String,
    is_controller: bool,
}

fn names(owners: &[SpnOwner]) -> String {
    quoted(owners.iter().map(|one| one.name.as_str()))
}

/// By service principal names in lower case, the objects that have them.
type Owners = BTreeMap<String, Vec<SpnOwner>>;

/// Looks for the owners of service principal names in every domain of the forest, and why some could not be asked, by the names of the domains.
async fn owners<'n>(
    directory: &mut Directory,
    names: impl Iterator<Item = &'n str>,
) -> Result<(Owners, BTreeMap<String, Error>), Error> {
    const NAME: &str = "servicePrincipalName";
    const CONTROL: &str = "userAccountControl";
    // `SERVER_TRUST_ACCOUNT` and `PARTIAL_SECRETS_ACCOUNT` ([MS-ADTS] 2.2.16).
    const CONTROLLER: i64 = 0x2000 | 0x400_0000;
    let wanted: HashSet<String> = names.map(str::to_ascii_lowercase).collect();
    let by: Vec<_> = wanted.iter().map(|name| LdapFilter::equals(NAME, name.as_str())).collect();
    let (mut owners, mut unread) = (Owners::new(), BTreeMap::new());
    for base in directory.bases(None)? {
        for entry in directory.search_any(&base, &by, &[NAME, CONTROL], &mut unread).await? {
            let is_controller = entry.number(CONTROL).is_some_and(|control| control & CONTROLLER != 0);
            // An owner may have many others.
            let own = entry.texts(NAME).map(str::to_ascii_lowercase).filter(|name| wanted.contains(name));
            for name in own {
                owners.entry(name).or_default().push(SpnOwner { name: entry.name.clone(), is_controller });
            }
        }
    }
    Ok((owners, unread))
}

/// Why no client asks for a service principal name, where that is so.
pub(super) fn malformed(name: &str) -> Option<&'static str> {
    let host = name.split_once('/').filter(|(class, _)| !class.is_empty()).map_or("", |(_, host)| host);
    let is_address = host.parse::<IpAddr>().is_ok() || host.parse::<SocketAddr>().is_ok();
    // A URL is not a service principal name.
    let is_other = name.contains("://") || name.contains('*') || host.split('/').any(str::is_empty);
    if name.contains(char::is_whitespace) {
        Some("it has a blank")
    } else if is_address {
        Some("clients ask for names, not for addresses")
    } else {
        is_other.then_some("a service principal name is CLASS/HOST")
    }
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
