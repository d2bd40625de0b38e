//! Every rule on accounts, by the mistake that people make.

use serde_json::{Value, json};

use super::{super::Account, account, against};
use crate::diagnostic::Diagnostic;

fn good() -> Account {
    Account {
        sam: "WebApp1".to_owned(),
        distinguished_name: Some("CN=WebApp1,CN=Managed Service Accounts,DC=contoso,DC=com".to_owned()),
        class: Some("msDS-GroupManagedServiceAccount".to_owned()),
        enabled: Some(true),
        may_retrieve: Some(vec!["CN=Hosts,CN=Users,DC=contoso,DC=com".to_owned()]),
        service_principals: Some(vec!["host/web.contoso.com".to_owned()]),
        encryption: Some(0x1c),
        control: Some(0x1000),
        sid: Some("S-1-5-21-1-2-3-1103".to_owned()),
        guid: Some("850ad035-f87e-4846-b6bf-403235381858".to_owned()),
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
    for good in [good(), Account { enabled: None, ..good() }, Account { sam: "a".repeat(15), ..good() }] {
        assert_eq!(lines(&account(&good, &[])), [""; 0], "{good:?}");
    }
    let served = ["host/web.contoso.com", "HTTP/WEB.contoso.com"].map(str::to_owned);
    assert_eq!(lines(&account(&good(), &served)), [""; 0]);
}

#[test]
fn a_finding_names_the_account_and_says_what_follows() {
    let found = account(&Account { enabled: Some(false), ..good() }, &[]);
    let [Diagnostic { object, consequence, .. }] = &*found else { panic!("{found:?}") };
    assert_eq!(object, "account WebApp1");
    assert_eq!(*consequence, Some("the domain refuses every logon of the account"));
}

#[test]
fn each_mistake_is_found() {
    let name = "ApplicationServer".to_owned();
    for (wrong, expected) in [
        (
            Account { enabled: Some(false), ..good() },
            "error account-disabled Enabled: is false -> Set-ADServiceAccount 'WebApp1' -Enabled $true",
        ),
        (
            Account { enabled: None, control: Some(0x1002), ..good() },
            "error account-disabled Enabled: is false -> Set-ADServiceAccount 'WebApp1' -Enabled $true",
        ),
        (
            Account { may_retrieve: Some(vec![]), ..good() },
            "error account-hosts PrincipalsAllowedToRetrieveManagedPassword: is empty -> Set-ADServiceAccount 'WebApp1' -PrincipalsAllowedToRetrieveManagedPassword GROUP, a group of the nodes, or of the user that the plugin logs on as",
        ),
        (
            Account { sam: name, ..good() },
            "error account-name SamAccountName: \"ApplicationServer\" has 17 characters, more than 15 -> make an account with a shorter name, such as ApplicationServ",
        ),
        (
            Account { service_principals: Some(vec![]), ..good() },
            "warning account-spn ServicePrincipalNames: is empty: clients cannot log on to a service of this account with Kerberos -> Set-ADServiceAccount 'WebApp1' -ServicePrincipalNames @{Add='host/HOST'}, with the host name that clients use",
        ),
        (
            Account { encryption: Some(0x4), ..good() },
            "warning account-encryption msDS-SupportedEncryptionTypes: holds RC4 alone -> Set-ADServiceAccount 'WebApp1' -KerberosEncryptionType AES128,AES256, then wait for the password to change",
        ),
        (
            Account { encryption: Some(0x8_0000), ..good() },
            "warning account-encryption msDS-SupportedEncryptionTypes: names no encryption type -> Set-ADServiceAccount 'WebApp1' -KerberosEncryptionType AES128,AES256, then wait for the password to change",
        ),
        (
            Account { encryption: Some(0x7), ..good() },
            "warning account-encryption msDS-SupportedEncryptionTypes: holds no AES, only DES-CBC-CRC, DES-CBC-MD5, RC4 -> Set-ADServiceAccount 'WebApp1' -KerberosEncryptionType AES128,AES256, then wait for the password to change",
        ),
        (
            Account { control: Some(0x200), ..good() },
            "warning account-trust userAccountControl: is 0x200, without WORKSTATION_TRUST_ACCOUNT (0x1000) -> Set-ADObject (Get-ADServiceAccount 'WebApp1') -Replace @{userAccountControl=4096}",
        ),
        (
            Account { class: Some("msDS-ManagedServiceAccount".to_owned()), ..good() },
            "error account-class ObjectClass: \"msDS-ManagedServiceAccount\" is not msDS-GroupManagedServiceAccount -> New-ADServiceAccount, without -RestrictToSingleComputer and -CreateDelegatedServiceAccount",
        ),
        (
            Account { encryption: None, service_principals: None, ..good() },
            "warning account-incomplete : was printed without ServicePrincipalNames, msDS-SupportedEncryptionTypes -> Get-ADServiceAccount 'WebApp1' -Properties * | ConvertTo-Json -Depth 4",
        ),
    ] {
        assert_eq!(lines(&account(&wrong, &[])), [expected]);
    }
}

#[test]
fn a_service_needs_its_principal_name() {
    let served = ["http/web.contoso.com", "http/shop", "MSSQLSvc/web.contoso.com"].map(str::to_owned);
    let missing = |name: &str| {
        format!(
            "warning account-spn ServicePrincipalNames: does not hold \"{name}\" -> Set-ADServiceAccount 'WebApp1' -ServicePrincipalNames @{{Add='{name}'}}"
        )
    };
    assert_eq!(lines(&account(&good(), &served)), [missing("http/shop"), missing("MSSQLSvc/web.contoso.com")]);
}

#[test]
fn a_name_is_no_code_of_the_command_that_mends_its_account() {
    let fix = |of: Account, services: &[String]| account(&of, services)[0].fix.clone().unwrap();
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
            "error account-differs ObjectGUID: credential spec \"webapp1\" has the GUID of the account where that of the domain belongs -> Guid: (Get-ADDomain).ObjectGUID",
        ),
        (
            spec(|spec| spec["credspec"]["ActiveDirectoryConfig"] = Value::Null),
            "error account-differs SamAccountName: credential spec \"webapp1\" does not list \"WebApp1\" for the host -> add {Name: WebApp1, Scope: CONTOSO.com} to GroupManagedServiceAccounts",
        ),
    ] {
        assert_eq!(lines(&against(&[other.clone(), good()], &spec)), [expected]);
    }
}
