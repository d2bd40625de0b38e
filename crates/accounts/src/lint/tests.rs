//! Every rule on accounts, by the mistake that people make, and on what a directory shows.

use std::time::{Duration, SystemTime};

use gmsa_core::diagnostic::Diagnostic;
use serde_json::{Value, json};
use time::UtcDateTime;

use super::*;
use crate::{ldif, principal::DirectoryPrincipal};
use gmsa_directory::{
    AccessRule, Retrieval, Sid,
    account::{AccountName, CLASS},
};

/// An account whose principals are not known.
fn alone(of: &Account, services: &[String]) -> Vec<Diagnostic> {
    account(of, &Principals::default(), services, now())
}

/// 2026-11-23T09:12:44Z
fn now() -> UtcDateTime {
    UtcDateTime::from(SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_425_164))
}

fn good() -> Account {
    Account {
        sam: "WebApp1".to_owned(),
        name: "CN=WebApp1,CN=Managed Service Accounts,DC=contoso,DC=com".to_owned(),
        class: Some("msDS-GroupManagedServiceAccount".to_owned()),
        enabled: Some(true),
        retrieval: Some(Retrieval::Named(vec!["CN=Hosts,CN=Users,DC=contoso,DC=com".to_owned()])),
        service_principals: Some(vec!["host/web.contoso.com".to_owned()]),
        encryption: Some(0x1c),
        control: Some(0x1000),
        sid: Sid::parse("S-1-5-21-1-2-3-1103"),
        guid: Some("850ad035-f87e-4846-b6bf-403235381858".to_owned()),
        ..Account::default()
    }
}

fn lines(found: &[Diagnostic]) -> Vec<String> {
    let line = |f: &Diagnostic| {
        let fix = f.fix.as_deref().unwrap_or_default();
        format!("{} {} {}: {} -> {fix}", f.severity.as_str(), f.rule.id, f.field, f.message)
    };
    found.iter().map(line).collect()
}

#[test]
fn a_good_account_has_no_findings() {
    for good in [good(), Account { sam: "a".repeat(15), ..good() }] {
        assert_eq!(lines(&alone(&good, &[])), [""; 0], "{good:?}");
    }
    let served = ["host/web.contoso.com", "HTTP/WEB.contoso.com"].map(str::to_owned);
    assert_eq!(lines(&alone(&good(), &served)), [""; 0]);
}

#[test]
fn a_finding_names_the_account_and_says_what_follows() {
    let found = alone(&Account { enabled: Some(false), ..good() }, &[]);
    let [Diagnostic { object, consequence, .. }] = &*found else { panic!("{found:?}") };
    assert_eq!(object, "account WebApp1");
    assert_eq!(*consequence, Some("the domain refuses every logon of the account"));
}

#[test]
fn each_mistake_is_found() {
    let name = "ApplicationServer".to_owned();
    let allowed = |to| AccessRule { allows: true, to: Sid::parse(to).unwrap() };
    let (everybody, controllers) = (allowed("S-1-5-11"), allowed("S-1-5-9"));
    for (wrong, expected) in [
        (
            Account { enabled: Some(false), ..good() },
            "error account-disabled Enabled: is false -> Set-ADServiceAccount 'WebApp1' -Enabled $true",
        ),
        (
            Account { retrieval: Some(Retrieval::Named(Vec::new())), ..good() },
            "error account-hosts PrincipalsAllowedToRetrieveManagedPassword: is empty -> Set-ADServiceAccount 'WebApp1' -PrincipalsAllowedToRetrieveManagedPassword GROUP, a group of the nodes, or of the user that the plugin or the broker logs on as",
        ),
        (
            Account { sam: name, ..good() },
            "error account-name SamAccountName: \"ApplicationServer\" has 17 characters, more than 15 -> make an account with a shorter name, such as ApplicationServ",
        ),
        (
            Account { service_principals: Some(vec![]), ..good() },
            "note account-spn ServicePrincipalNames: is empty: clients cannot log on to a service of this account with Kerberos -> Set-ADServiceAccount 'WebApp1' -ServicePrincipalNames @{Add='host/HOST'}, with the host name that clients use",
        ),
        (
            Account { encryption: Some(0x4), ..good() },
            "warning account-encryption msDS-SupportedEncryptionTypes: holds RC4 alone -> Set-ADServiceAccount 'WebApp1' -KerberosEncryptionType AES128,AES256",
        ),
        (
            Account { encryption: Some(0x8_0000), ..good() },
            "warning account-encryption msDS-SupportedEncryptionTypes: names no encryption type -> Set-ADServiceAccount 'WebApp1' -KerberosEncryptionType AES128,AES256",
        ),
        (
            Account { encryption: Some(0x7), ..good() },
            "warning account-encryption msDS-SupportedEncryptionTypes: holds no AES, only DES-CBC-CRC, DES-CBC-MD5, RC4 -> Set-ADServiceAccount 'WebApp1' -KerberosEncryptionType AES128,AES256",
        ),
        (
            Account { control: Some(0x200), ..good() },
            "warning account-trust userAccountControl: is 0x200, without WORKSTATION_TRUST_ACCOUNT (0x1000) -> $a = Get-ADServiceAccount 'WebApp1' -Properties userAccountControl; Set-ADObject $a -Replace @{userAccountControl=$a.userAccountControl -band 0x7FFFC5FF -bor 0x1000}",
        ),
        (
            Account { class: Some("msDS-ManagedServiceAccount".to_owned()), ..good() },
            "error account-class ObjectClass: \"msDS-ManagedServiceAccount\" is not msDS-GroupManagedServiceAccount -> New-ADServiceAccount NAME -DNSHostName NAME.DOMAIN -PrincipalsAllowedToRetrieveManagedPassword GROUP, with a name that nothing else has",
        ),
        (
            Account { control: Some(0x4_1000), ..good() },
            "error account-logon userAccountControl: is 0x41000, with SMARTCARD_REQUIRED (0x40000) -> $a = Get-ADServiceAccount 'WebApp1' -Properties userAccountControl; Set-ADObject $a -Replace @{userAccountControl=$a.userAccountControl -band -bnot 0x40000}",
        ),
        (
            Account { has_no_hours: true, ..good() },
            "error account-logon logonHours: allows no hour of the week -> Set-ADServiceAccount 'WebApp1' -Clear logonHours",
        ),
        (
            Account { control: Some(0x8_1000), ..good() },
            "warning account-weakened userAccountControl: is 0x81000, with TRUSTED_FOR_DELEGATION (0x80000) -> Set-ADAccountControl 'WebApp1$' -TrustedForDelegation $false",
        ),
        (
            Account { control: Some(0x1020), ..good() },
            "warning account-weakened userAccountControl: is 0x1020, with PASSWD_NOTREQD (0x20) -> Set-ADAccountControl 'WebApp1$' -PasswordNotRequired $false",
        ),
        (
            Account { control: Some(0x40_1000), ..good() },
            "warning account-weakened userAccountControl: is 0x401000, with DONT_REQ_PREAUTH (0x400000) -> Set-ADAccountControl 'WebApp1$' -DoesNotRequirePreAuth $false",
        ),
        (
            Account { is_left_over: true, ..good() },
            "error account-deleted DistinguishedName: is a deleted object, or a conflict of replication (CNF) -> Use the account that is there, or restore this one: Get-ADObject -IncludeDeletedObjects, Restore-ADObject.",
        ),
        (
            Account { superseded_by: Some("CN=d,DC=c".to_owned()), ..good() },
            "warning account-superseded msDS-SupersededByManagedAccountLink: is \"CN=d,DC=c\": a delegated Managed Service Account takes the place of this account -> Reset-ADServiceAccountMigration or Undo-ADServiceAccountMigration for 'WebApp1', or use another group Managed Service Account",
        ),
        (
            Account { groups: vec!["CN=Protected Users,CN=Users,DC=contoso,DC=com".to_owned()], ..good() },
            "warning account-protected MemberOf: holds Protected Users -> Remove-ADGroupMember 'Protected Users' -Members 'WebApp1$'",
        ),
        (
            Account { password_interval: Some(0), ..good() },
            "error account-password msDS-ManagedPasswordInterval: is 0 days -> Make the account again: the interval cannot be changed. New-ADServiceAccount NAME -ManagedPasswordIntervalInDays 30 -PrincipalsAllowedToRetrieveManagedPassword GROUP",
        ),
        (
            Account { service_principals: Some(vec!["http://web.contoso.com".to_owned()]), ..good() },
            "warning account-spn ServicePrincipalNames: holds \"http://web.contoso.com\", which no client asks for: a service principal name is CLASS/HOST -> Set-ADServiceAccount 'WebApp1' -ServicePrincipalNames @{Remove='http://web.contoso.com'}, and add CLASS/HOST",
        ),
        (
            Account { service_principals: Some(vec!["http/*.contoso.com".to_owned()]), ..good() },
            "warning account-spn ServicePrincipalNames: holds \"http/*.contoso.com\", which no client asks for: a service principal name is CLASS/HOST -> Set-ADServiceAccount 'WebApp1' -ServicePrincipalNames @{Remove='http/*.contoso.com'}, and add CLASS/HOST",
        ),
        (
            Account { expires: Some(now() + Duration::from_secs(3600)), ..good() },
            "warning account-expired AccountExpirationDate: is 2026-11-23 10:12 UTC -> Clear-ADAccountExpiration -Identity 'WebApp1$'",
        ),
        (
            Account { expires: Some(now()), ..good() },
            "error account-expired AccountExpirationDate: is 2026-11-23 09:12 UTC -> Clear-ADAccountExpiration -Identity 'WebApp1$'",
        ),
        (
            Account { groups: vec!["CN=Backup Operators,CN=Builtin,DC=contoso,DC=com".to_owned()], ..good() },
            "warning account-weakened MemberOf: holds Backup Operators -> Remove-ADGroupMember 'Backup Operators' -Members 'WebApp1$'",
        ),
        (
            Account { delegation: Some(Retrieval::listed(vec![everybody])), ..good() },
            "warning account-weakened PrincipalsAllowedToDelegateToAccount: holds Authenticated Users, so every user and every computer of the domain may log on to the services of the account as any user, administrators included -> Set-ADServiceAccount 'WebApp1' -PrincipalsAllowedToDelegateToAccount $null",
        ),
        (
            Account { retrieval: Some(Retrieval::listed(vec![controllers])), ..good() },
            "error account-hosts PrincipalsAllowedToRetrieveManagedPassword: holds only domain controllers, on which no pod runs -> Set-ADServiceAccount 'WebApp1' -PrincipalsAllowedToRetrieveManagedPassword GROUP, a group of the nodes, or of the user that the plugin or the broker logs on as",
        ),
        (
            Account { encryption: None, service_principals: None, ..good() },
            "warning account-incomplete : was printed without ServicePrincipalNames, msDS-SupportedEncryptionTypes -> Get-ADServiceAccount 'WebApp1' -Properties * | ConvertTo-Json -Depth 4",
        ),
    ] {
        assert_eq!(lines(&alone(&wrong, &[])), [expected]);
    }
}

#[test]
fn a_name_that_no_client_asks_for_is_found() {
    for (name, why) in [
        ("HTTP/10.0.0.5", "clients ask for names, not for addresses"),
        ("HTTP/10.0.0.5:80", "clients ask for names, not for addresses"),
        ("HTTP/web app.contoso.com", "it has a blank"),
        ("HTTP/web.contoso.com/", "a service principal name is CLASS/HOST"),
        ("web.contoso.com", "a service principal name is CLASS/HOST"),
    ] {
        let wrong = Account { service_principals: Some(vec![name.to_owned()]), ..good() };
        let [Diagnostic { message, .. }] = &*alone(&wrong, &[]) else { panic!("{name}") };
        assert_eq!(*message, format!("holds \"{name}\", which no client asks for: {why}"));
    }
    let short = |more: &[&str]| {
        let names = ["HTTP/web", "MSSQLSvc/db.contoso.com:1433"].iter().chain(more).map(|&name| name.to_owned());
        lines(&alone(&Account { service_principals: Some(names.collect()), ..good() }, &[]))
    };
    assert_eq!(
        short(&[]),
        [
            "note account-spn ServicePrincipalNames: holds \"HTTP/web\", and not the full name of the host -> Set-ADServiceAccount 'WebApp1' -ServicePrincipalNames @{Add='HTTP/web.contoso.com'}"
        ]
    );
    assert_eq!(short(&["http/web.Contoso.com"]), [""; 0]);
}

#[test]
fn a_service_needs_its_principal_name() {
    let served = ["http/web.contoso.com", "http/shop", "MSSQLSvc/web.contoso.com"].map(str::to_owned);
    let missing = |name: &str| {
        format!(
            "warning account-spn ServicePrincipalNames: does not hold \"{name}\" -> Set-ADServiceAccount 'WebApp1' -ServicePrincipalNames @{{Add='{name}'}}"
        )
    };
    assert_eq!(lines(&alone(&good(), &served)), [missing("http/shop"), missing("MSSQLSvc/web.contoso.com")]);
}

#[test]
fn a_name_is_no_code_of_the_command_that_mends_its_account() {
    let fix = |of: Account, services: &[String]| alone(&of, services)[0].fix.clone().unwrap();
    let named = |sam: &str| Account { sam: sam.to_owned(), enabled: Some(false), ..good() };
    assert_eq!(
        fix(named("w\u{2019}(calc)\u{2018}'"), &[]),
        "Set-ADServiceAccount 'w\u{2019}\u{2019}(calc)\u{2018}\u{2018}''' -Enabled $true"
    );
    assert_eq!(fix(named("a\nb"), &[]), "Enable it: `Set-ADServiceAccount NAME -Enabled $true`.");
    let service = ["http/a\u{201b}};calc".to_owned()];
    assert_eq!(
        fix(good(), &service),
        "Set-ADServiceAccount 'WebApp1' -ServicePrincipalNames @{Add='http/a\u{201b}\u{201b}};calc'}"
    );
    let other = against(&[Account { sam: "a: b #\u{202e}".to_owned(), ..good() }], &spec(|_| ()));
    assert_eq!(other[0].fix.as_deref(), Some("MachineAccountName: \"a: b #\\u202e\""));
}

fn spec(change: impl Fn(&mut Value)) -> Value {
    let mut spec = json!({
        "metadata": {"name": "webapp1"},
        "credspec": {
            "ActiveDirectoryConfig": {"GroupManagedServiceAccounts": [{"Name": "webapp1", "Scope": "contoso.com"}]},
            "DomainJoinConfig": {
                "DnsName": "CONTOSO.com", "Guid": "244818ae-87ac-4fcd-92ec-e79e5252348a", "MachineAccountName": "webapp1",
                "Sid": "S-1-5-21-1-2-3",
            },
        },
    });
    change(&mut spec);
    spec
}

#[test]
fn the_credential_spec_is_of_the_same_account_and_domain() {
    let join = |key: &'static str, value: &'static str| {
        spec(move |spec| spec["credspec"]["DomainJoinConfig"][key] = Value::from(value))
    };
    let other = Account { sam: "Other".to_owned(), ..good() };
    assert_eq!(lines(&against(&[other.clone(), good()], &spec(|_| ()))), [""; 0]);
    for (spec, expected) in [
        (
            join("MachineAccountName", "WebApp2"),
            "error account-differs SamAccountName: credential spec \"webapp1\" is for the account \"WebApp2\", not for \"Other\", \"WebApp1\" -> MachineAccountName: Other",
        ),
        (
            join("DnsName", "corp.contoso.com"),
            "error account-differs DistinguishedName: the domain is \"contoso.com\", and \"corp.contoso.com\" in credential spec \"webapp1\" -> DnsName: contoso.com",
        ),
        (
            join("Sid", "S-1-5-21-1-2-3-1103"),
            "error account-differs SID: the domain is \"S-1-5-21-1-2-3\", and \"S-1-5-21-1-2-3-1103\" in credential spec \"webapp1\" -> Sid: S-1-5-21-1-2-3",
        ),
        (
            join("Guid", "850AD035-f87e-4846-b6bf-403235381858"),
            "error account-differs ObjectGUID: credential spec \"webapp1\" has the GUID of the account instead of the domain -> Guid: (Get-ADDomain).ObjectGUID",
        ),
        (
            spec(|spec| spec["credspec"]["ActiveDirectoryConfig"] = Value::Null),
            "error account-differs SamAccountName: credential spec \"webapp1\" does not list \"WebApp1\" for the host -> add {Name: WebApp1, Scope: CONTOSO.com} to GroupManagedServiceAccounts",
        ),
    ] {
        assert_eq!(lines(&against(&[other.clone(), good()], &spec)), [expected]);
    }
}

/// A forest with one account, and what else is in it.
fn directory(more: &str) -> Directory {
    let text = format!(
        "dn: CN=CONTOSO,CN=Partitions,CN=Configuration,DC=contoso,DC=com\nobjectClass: crossRef\ndnsRoot: contoso.com\nnETBIOSName: CONTOSO\n\
         nCName: <GUID=8259123b-591e-479d-9189-2a80af4d8de2>;<SID=S-1-5-21-1-2-3>;DC=contoso,DC=com\n\n\
         dn: CN=WebApp1,CN=Managed Service Accounts,DC=contoso,DC=com\nobjectClass: {CLASS}\nsAMAccountName: WebApp1$\n\
         servicePrincipalName: http/web.contoso.com\nuserAccountControl: 4096\nmsDS-SupportedEncryptionTypes: 24\n\n{more}"
    );
    ldif::directory(&text).unwrap()
}

fn said(found: &[Diagnostic]) -> Vec<String> {
    found.iter().map(|found| format!("{} {}", found.rule.id, found.message)).collect()
}

fn of_forest(more: &str) -> Vec<String> {
    let mut directory = directory(more);
    let accounts = block_on(directory.accounts(None)).unwrap();
    said(&block_on(forest(&mut directory, &accounts.iter().collect::<Vec<_>>(), now())).unwrap())
}

fn checked(directory: &mut Directory, all: &[Account]) -> Diagnostics {
    let principals = block_on(Principals::of(directory, all)).unwrap();
    block_on(accounts(directory, all, &principals, &[], now())).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

fn key(start: &str) -> String {
    format!(
        "dn: CN=1,CN=Master Root Keys,CN=Group Key Distribution Service,CN=Services,CN=Configuration,DC=contoso,DC=com\n\
         objectClass: msKds-ProvRootKey\n{start}\n"
    )
}

#[test]
fn a_root_key_is_used_ten_hours_after_its_effective_time() {
    assert_eq!(of_forest(""), [""; 0]);
    // 2026-11-22T23:12:44Z, and a second later.
    assert_eq!(of_forest(&key("msKds-UseStartTime: 134398627640000000")), [""; 0]);
    let later = ["kds-root-key is used from 2026-11-23 09:12 UTC on, 10 hours after its effective time"];
    assert_eq!(of_forest(&key("msKds-UseStartTime: 134398627650000000")), later);
    // Others than administrators see that it is there, and not since when.
    assert_eq!(of_forest(&key("cn: 1")), [""; 0]);
    // A password was made of it: it is used already.
    let mut directory = directory(
        &key("msKds-UseStartTime: 134398627650000000").replace("CN=1,", "CN=00000000-0000-0000-0000-000000000000,"),
    );
    let key = Some(uuid::Uuid::nil());
    let account = Account { root_key: key, ..good() };
    assert_eq!(said(&block_on(forest(&mut directory, &[&account], now())).unwrap()), [""; 0]);
}

#[test]
fn a_name_is_no_code_of_the_command_that_removes_it() {
    let fix = |name: &str| {
        let encoded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, name);
        let other = |of: &str, class: &str| {
            format!(
                "dn: CN={of},DC=contoso,DC=com\nobjectClass: {class}\nsAMAccountName: {of}$\nwhenCreated: 1\nservicePrincipalName:: {encoded}\n"
            )
        };
        let mut directory = directory(&(other("a", CLASS) + "\n" + &other("b", "user")));
        let all = block_on(directory.accounts(None)).unwrap();
        let found = checked(&mut directory, &all);
        let found = found.into_iter().find(|found| *found.rule == rules::ACCOUNT_SPN_DUPLICATE).unwrap();
        found.fix.unwrap()
    };
    let of = |argument: &str| format!("setspn -D {argument} ACCOUNT, for the one that does not serve it");
    assert_eq!(fix("http/a"), of("http/a"));
    assert_eq!(fix("http/web & calc & rem"), of("\"http/web & calc & rem\""));
    for refused in ["http/%PATH%", "http/a\" & calc", "http/$(calc)", "http/a\r\ncalc"] {
        assert_eq!(fix(refused), rules::ACCOUNT_SPN_DUPLICATE.remedy);
    }
}

#[test]
fn an_entry_that_is_not_understood_is_a_finding() {
    // D:(XA;;RP;;;S-1-5-21-1-2-3-1103;(…)): an entry of kind 9.
    let encoded =
        "AQAEgBQAAAAAAAAAAAAAACQAAAABAgAAAAAABSAAAAAgAgAABAAsAAEAAAAJACQA/wEPAAEFAAAAAAAFFQAAAAEAAAACAAAAAwAAAE8EAAA=";
    let name = "dn: CN=w\\,eb,DC=contoso,DC=com\nobjectClass: group\nobjectSid:: AQUAAAAAAAUVAAAAAQAAAAIAAAADAAAATwQAAA==\nsAMAccountName: we\"b\n";
    let account = format!(
        "dn: CN=kept,DC=contoso,DC=com\nobjectClass: {CLASS}\nsAMAccountName: kept$\nservicePrincipalName: http/kept.contoso.com\n\
         userAccountControl: 4096\nmsDS-SupportedEncryptionTypes: 24\nmsDS-GroupMSAMembership:: {encoded}\n\n{name}"
    );
    let mut directory = directory(&account);
    let all = vec![block_on(directory.account(&AccountName::parse("kept"))).unwrap().unwrap()];
    let found = checked(&mut directory, &all);
    assert_eq!(
        said(found.as_slice()),
        ["account-hosts-unknown holds an entry for \"we\\\"b\" that is not understood (kind 9)"]
    );
}

#[test]
fn a_group_that_leads_to_domain_admins_is_found() {
    let group = |name: &str, number: &str, member: &str| {
        format!(
            "dn: CN={name},CN=Users,DC=contoso,DC=com\nobjectClass: group\nobjectSid: S-1-5-21-1-2-3-{number}\nsAMAccountName: {name}\n\
             groupType: -2147483646\nmember: {member},DC=contoso,DC=com\n\n"
        )
    };
    let inner = group("Apps", "1200", "CN=kept,CN=Users");
    let account = format!(
        "dn: CN=kept,CN=Users,DC=contoso,DC=com\nobjectClass: {CLASS}\nsAMAccountName: kept$\nobjectSid: S-1-5-21-1-2-3-1103\n\
         servicePrincipalName: http/kept.contoso.com\n"
    );
    let mut directory = directory(&(group("Domain Admins", "512", "CN=Apps,CN=Users") + &inner + &account));
    let all = block_on(directory.accounts(None)).unwrap();
    let found = said(&block_on(privileged::nested(&mut directory, &all.iter().collect::<Vec<_>>())).unwrap());
    assert_eq!(found, ["account-weakened leads to \"Domain Admins\""]);
}

#[test]
fn a_name_that_two_accounts_have_is_found() {
    let other = "dn: CN=old,DC=contoso,DC=com\nobjectClass: user\nservicePrincipalName: HTTP/WEB.contoso.com\n";
    let mut directory = directory(other);
    let all = block_on(directory.accounts(None)).unwrap();
    let found = checked(&mut directory, &all);
    let wanted = [
        "account-incomplete was printed without PrincipalsAllowedToRetrieveManagedPassword",
        "account-spn-duplicate \"http/web.contoso.com\" is a name of \"CN=old,DC=contoso,DC=com\" too",
    ];
    assert_eq!(said(found.as_slice()), wanted);
}

#[test]
fn a_lock_ends_after_the_time_of_the_domain() {
    let obstacle = |domain: &str| {
        // 2026-11-23T08:52:44Z, 20 minutes before.
        let user = "dn: CN=ccg,CN=Users,DC=contoso,DC=com\nobjectClass: user\nsAMAccountName: ccg\n\
                    objectSid: S-1-5-21-1-2-3-1200\nlockoutTime: 134398975640000000\n\n";
        let sid = Sid::parse("S-1-5-21-1-2-3-1200").unwrap();
        let mut directory = directory(&format!("{user}dn: DC=contoso,DC=com\nobjectClass: domainDNS\n{domain}"));
        let principals = block_on(Principals::read_all(&mut directory, [&sid].into_iter())).unwrap();
        let Some(DirectoryPrincipal::Single(member)) = principals.get(&sid) else { panic!("{principals:?}") };
        member.obstacle.unwrap().at(now()).map(|obstacle| obstacle.what)
    };
    let forever = "lockoutDuration: -9223372036854775808\n";
    let locked = Some("is locked out");
    for (domain, expected) in [("", locked), (forever, locked), ("lockoutDuration: -6000000000\n", None)] {
        assert_eq!(obstacle(domain), expected, "{domain}");
    }
}
