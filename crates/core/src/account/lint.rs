//! What makes an account wrong, before a host asks the domain for its password.
//!
//! Pure. Invariants: a property that was not printed is not checked, and is reported as missing; each quoted text is
//! escaped and cut; a name that cannot be quoted for a command is in none, and the rule says what to do.

use serde_json::Value;

use super::{Account, encryption_names};
use crate::{
    credspec::{KIND, generate::scalar, lint::WRONG_DOMAIN},
    diagnostic::{
        Diagnostic,
        rules::{self, Rule},
    },
    quote::{Quoted, cut, shell::powershell},
};

/// The most characters of a name without its `$`: the host refers to the account as to a computer, by a NetBIOS name.
pub const MAX_NAME: usize = 15;

/// The class of a group Managed Service Account. A standalone one and a delegated one belong to a machine of their own.
const CLASS: &str = "msDS-GroupManagedServiceAccount";

/// AES128 and AES256.
const AES: u64 = 0x18;

/// `WORKSTATION_TRUST_ACCOUNT` of `userAccountControl`, which NETLOGON in a container needs (Microsoft: Troubleshoot gMSAs for
/// Windows containers).
const WORKSTATION_TRUST: u64 = 0x1000;

/// `ACCOUNTDISABLE` of `userAccountControl` ([MS-ADTS] 2.2.16).
const DISABLED: u64 = 0x2;

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

/// Checks an account that has to serve clients under these service principal names.
pub fn account(account: &Account, services: &[String]) -> Vec<Diagnostic> {
    let mut found = Findings { list: Vec::new(), account };
    found.incomplete();
    found.name();
    found.class();
    found.enabled();
    found.hosts();
    found.services(services);
    found.encryption();
    found.trust();
    found.list
}

/// Compares accounts with the credential spec that pods get; `spec` is the whole object.
pub fn against(accounts: &[Account], spec: &Value) -> Vec<Diagnostic> {
    let name = text(spec, "/metadata/name");
    let join = |key: &str| text(spec, &format!("/credspec/DomainJoinConfig/{key}"));
    let wanted = join("MachineAccountName");
    let spec_name = Quoted::new(name);
    let Some(account) = accounts.iter().find(|account| account.sam.eq_ignore_ascii_case(wanted)) else {
        let names: Vec<String> = accounts.iter().take(3).map(|account| Quoted::new(&account.sam).to_string()).collect();
        let problem = format!(
            "credential spec {spec_name} is for the account {}, not for {}",
            Quoted::new(wanted),
            names.join(", ")
        );
        let fix = accounts.first().map(|account| format!("MachineAccountName: {}", scalar(&account.sam)));
        return vec![Diagnostic {
            object: format!("{KIND} {name}"),
            field: "SamAccountName".to_owned(),
            fix,
            consequence: Some("the host asks the domain for another account"),
            ..Diagnostic::new(&rules::ACCOUNT_DIFFERS, problem)
        }];
    };
    let mut found = Findings { list: Vec::new(), account };
    let listed = spec.pointer("/credspec/ActiveDirectoryConfig/GroupManagedServiceAccounts").and_then(Value::as_array);
    let names = listed.into_iter().flatten().map(|entry| text(entry, "/Name"));
    if !names.clone().any(|listed| listed.eq_ignore_ascii_case(&account.sam)) {
        let problem = format!("credential spec {spec_name} does not list {} for the host", Quoted::new(&account.sam));
        let (sam, scope) = (scalar(&account.sam), scalar(join("DnsName")));
        let fix = Some(format!("add {{Name: {sam}, Scope: {scope}}} to GroupManagedServiceAccounts"));
        found.add(&rules::ACCOUNT_DIFFERS, "SamAccountName", problem, "the host fetches no password for it", fix);
    }
    let domain = account.domain();
    found.same("DistinguishedName", domain.as_deref(), "DnsName", join("DnsName"), &spec_name);
    found.same("SID", account.domain_sid(), "Sid", join("Sid"), &spec_name);
    if account.guid.as_deref().is_some_and(|guid| guid.eq_ignore_ascii_case(join("Guid"))) {
        let problem =
            format!("credential spec {spec_name} has the GUID of the account where that of the domain belongs");
        found.add(
            &rules::ACCOUNT_DIFFERS,
            "ObjectGUID",
            problem,
            WRONG_DOMAIN,
            Some("Guid: (Get-ADDomain).ObjectGUID".to_owned()),
        );
    }
    found.list
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// What was found on one account.
struct Findings<'a> {
    list: Vec<Diagnostic>,
    account: &'a Account,
}

impl Findings<'_> {
    /// Without a fix that fits this account, what the rule says.
    fn add(
        &mut self,
        rule: &'static Rule,
        field: &str,
        problem: impl Into<String>,
        consequence: &'static str,
        fix: Option<String>,
    ) {
        self.list.push(Diagnostic {
            object: format!("account {}", self.account.sam),
            field: field.to_owned(),
            consequence: Some(consequence),
            fix: Some(fix.unwrap_or_else(|| rule.remedy.to_owned())),
            ..Diagnostic::new(rule, problem)
        });
    }

    fn set(&self, what: &str) -> Option<String> {
        Some(format!("Set-ADServiceAccount {} {what}", powershell(&self.account.sam)?))
    }

    fn incomplete(&mut self) {
        let account = self.account;
        let missing: Vec<&str> = [
            (account.enabled.is_none() && account.control.is_none(), "Enabled"),
            (account.may_retrieve.is_none(), "PrincipalsAllowedToRetrieveManagedPassword"),
            (account.service_principals.is_none(), "ServicePrincipalNames"),
            (account.encryption.is_none(), "msDS-SupportedEncryptionTypes"),
        ]
        .into_iter()
        .filter_map(|(missing, name)| missing.then_some(name))
        .collect();
        if !missing.is_empty() {
            let problem = format!("was printed without {}", missing.join(", "));
            let fix = powershell(&account.sam)
                .map(|name| format!("Get-ADServiceAccount {name} -Properties * | ConvertTo-Json -Depth 4"));
            self.add(&rules::ACCOUNT_INCOMPLETE, "", problem, "these properties are not checked", fix);
        }
    }

    fn name(&mut self) {
        let length = self.account.sam.chars().count();
        if length > MAX_NAME {
            let problem = format!("{} has {length} characters, more than {MAX_NAME}", Quoted::new(&self.account.sam));
            let short = scalar(cut(&self.account.sam, MAX_NAME));
            let fix = Some(format!("make an account with a shorter name, such as {short}"));
            self.add(
                &rules::ACCOUNT_NAME,
                "SamAccountName",
                problem,
                "it is the name of the container as a computer of the domain, which cannot be longer",
                fix,
            );
        }
    }

    fn class(&mut self) {
        if let Some(class) = self.account.class.as_deref().filter(|class| !class.eq_ignore_ascii_case(CLASS)) {
            let problem = format!("{} is not {CLASS}", Quoted::new(class));
            let why = "a credential spec works with a group Managed Service Account only";
            let fix = "New-ADServiceAccount, without -RestrictToSingleComputer and -CreateDelegatedServiceAccount";
            self.add(&rules::ACCOUNT_CLASS, "ObjectClass", problem, why, Some(fix.to_owned()));
        }
    }

    fn enabled(&mut self) {
        let by_control = self.account.control.map(|control| control & DISABLED == 0);
        if self.account.enabled.or(by_control) == Some(false) {
            let why = "the domain refuses every logon of the account";
            self.add(&rules::ACCOUNT_DISABLED, "Enabled", "is false", why, self.set("-Enabled $true"));
        }
    }

    fn hosts(&mut self) {
        if self.account.may_retrieve.as_ref().is_some_and(Vec::is_empty) {
            const FIELD: &str = "PrincipalsAllowedToRetrieveManagedPassword";
            let why = "no host gets the password, so no container starts with the account";
            // A plugin logs on as a user, which is listed here too.
            let fix =
                self.set(&format!("-{FIELD} GROUP, a group of the nodes, or of the user that the plugin logs on as"));
            self.add(&rules::ACCOUNT_HOSTS, FIELD, "is empty", why, fix);
        }
    }

    fn services(&mut self, wanted: &[String]) {
        const FIELD: &str = "ServicePrincipalNames";
        const WHY: &str = "clients that ask for a ticket to the service get none, and fall back to NTLM or fail";
        let Some(own) = &self.account.service_principals else { return };
        if own.is_empty() && wanted.is_empty() {
            let fix = self.set("-ServicePrincipalNames @{Add='host/HOST'}, with the host name that clients use");
            let problem = "is empty: clients cannot log on to a service of this account with Kerberos";
            self.add(&rules::ACCOUNT_SPN, FIELD, problem, WHY, fix);
        }
        for name in wanted.iter().filter(|name| !own.iter().any(|own| covers(own, name))) {
            let fix = powershell(name).and_then(|name| self.set(&format!("-ServicePrincipalNames @{{Add={name}}}")));
            let problem = format!("does not hold {}", Quoted::new(name));
            self.add(&rules::ACCOUNT_SPN, FIELD, problem, WHY, fix);
        }
    }

    fn encryption(&mut self) {
        const FIELD: &str = "msDS-SupportedEncryptionTypes";
        let Some(types) = self.account.encryption.filter(|types| types & AES == 0) else { return };
        let problem = match encryption_names(types).as_slice() {
            [] => "names no encryption type".to_owned(),
            ["RC4"] => "holds RC4 alone".to_owned(),
            names => format!("holds no AES, only {}", names.join(", ")),
        };
        // Microsoft KB5073381: by default, accounts without a type get AES tickets only, and RC4 only where it is set explicitly.
        let why = "domain controllers are being moved off RC4: which tickets the account gets depends on their updates and settings";
        let fix = self.set("-KerberosEncryptionType AES128,AES256, then wait for the password to change");
        self.add(&rules::ACCOUNT_ENCRYPTION, FIELD, problem, why, fix);
    }

    fn trust(&mut self) {
        if let Some(control) = self.account.control.filter(|control| control & WORKSTATION_TRUST == 0) {
            let problem = format!("is {control:#x}, without WORKSTATION_TRUST_ACCOUNT ({WORKSTATION_TRUST:#x})");
            let why = "NETLOGON in the container cannot talk to domain controllers: names cannot be resolved to SIDs";
            // As Microsoft's page does it: no other kind of account at the same time.
            let control = (control & 0x7FFF_C5FF) | WORKSTATION_TRUST;
            let fix = powershell(&self.account.sam).map(|name| {
                format!("Set-ADObject (Get-ADServiceAccount {name}) -Replace @{{userAccountControl={control}}}")
            });
            self.add(&rules::ACCOUNT_TRUST, "userAccountControl", problem, why, fix);
        }
    }

    /// Reports a domain of the account that differs from that of the credential spec.
    fn same(&mut self, field: &str, own: Option<&str>, key: &str, spec: &str, name: &Quoted) {
        let Some(own) = own.filter(|own| !own.eq_ignore_ascii_case(spec)) else { return };
        let problem =
            format!("the domain is {}, and {} in credential spec {name}", Quoted::new(own), Quoted::new(spec));
        self.add(&rules::ACCOUNT_DIFFERS, field, problem, WRONG_DOMAIN, Some(format!("{key}: {}", scalar(own))));
    }
}

/// Whether a service principal name answers for another one: the same, or one of class `host` for a class that it covers.
fn covers(own: &str, wanted: &str) -> bool {
    let (Some((class, host)), Some((wanted_class, wanted_host))) = (own.split_once('/'), wanted.split_once('/')) else {
        return own.eq_ignore_ascii_case(wanted);
    };
    let covered = HOST_COVERS.iter().any(|covered| covered.eq_ignore_ascii_case(wanted_class));
    host.eq_ignore_ascii_case(wanted_host)
        && (class.eq_ignore_ascii_case(wanted_class) || (class.eq_ignore_ascii_case("host") && covered))
}

#[cfg(test)]
mod tests;
