//! Every rule of the linter, by the mistake that people make.

use serde_json::{Value, json};

use super::{Contents, Diagnostic, MAX_FINDINGS, Severity, object, suggest_name, too_large};

fn good() -> Value {
    json!({
        "apiVersion": "windows.k8s.io/v1",
        "kind": "GMSACredentialSpec",
        "metadata": {"name": "webapp1"},
        "credspec": {
            "ActiveDirectoryConfig": {"GroupManagedServiceAccounts": [
                {"Name": "WebApp1", "Scope": "CONTOSO"},
                {"Name": "WebApp1", "Scope": "contoso.com"},
            ]},
            "CmsPlugins": ["ActiveDirectory"],
            "DomainJoinConfig": {
                "DnsName": "contoso.com",
                "DnsTreeName": "contoso.com",
                "Guid": "244818ae-87ac-4fcd-92ec-e79e5252348a",
                "MachineAccountName": "WebApp1",
                "NetBiosName": "CONTOSO",
                "Sid": "S-1-5-21-2126449477-2524075714-3094792973",
            },
        },
    })
}

/// The good credential spec with one value put in, or taken out.
fn with(pointer: &str, value: Option<Value>) -> Value {
    let mut spec = good();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = spec.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => parent.insert(key.to_owned(), value),
        None => parent.remove(key),
    };
    spec
}

fn with_plugin(config: Value) -> Value {
    with("/credspec/ActiveDirectoryConfig/HostAccountConfig", Some(config))
}

/// `severity rule field: problem -> remedy` of each finding.
fn lines(spec: &Value) -> Vec<String> {
    let line = |f: &Diagnostic| {
        let fix = f.fix.as_deref().unwrap_or_default();
        format!("{} {} {}: {} -> {fix}", f.severity.as_str(), f.rule.id, f.field, f.message)
    };
    object(spec).iter().map(line).collect()
}

/// A JSON Pointer, the value that is put there (`-` takes it out), and what is found then; nothing where that is allowed.
const CASES: &str = r#"
# Names, the version, fields.
/apiVersion | "v1" | error api-version apiVersion: "v1" is not windows.k8s.io/v1 -> apiVersion: windows.k8s.io/v1
/apiVersion | "windows.k8s.io/v1beta1" | error api-version apiVersion: "windows.k8s.io/v1beta1" is not windows.k8s.io/v1 -> apiVersion: windows.k8s.io/v1
/kind | "GmsaCredentialSpec" | error api-version kind: "GmsaCredentialSpec" is not GMSACredentialSpec -> kind: GMSACredentialSpec
/spec | {"CmsPlugins": []} | warning unknown-key spec: is not a field of a credential spec -> credspec:
/credspec | "{\"CmsPlugins\":[\"ActiveDirectory\"]}" | error credspec credspec: is not an object -> kubectl gmsa credspec new --from-ad FILE --account NAME, FILE made by: Get-ADDomain | ConvertTo-Json
/credspec/DomainJoinConfig/MachineAccountName | "CN=WebApp1,CN=Managed Service Accounts,DC=contoso,DC=com" | error account credspec.DomainJoinConfig.MachineAccountName: "CN=WebApp1,CN=Managed Service Accounts,DC=contoso,DC=com" is a distinguished name -> WebApp1
/metadata/name | "gmsa-WebApp1" | error name metadata.name: "gmsa-WebApp1" is not a lower-case DNS subdomain -> name: gmsa-webapp1
/metadata | {} | error name metadata.name: is missing -> any lower-case DNS name
/metadata | {"generateName": "web-"} |
/apiVersion | "windows.k8s.io/v1alpha1" | warning api-version apiVersion: is deprecated -> apiVersion: windows.k8s.io/v1
/credspec | - | error credspec credspec: is missing -> kubectl gmsa credspec new --from-ad FILE --account NAME, FILE made by: Get-ADDomain | ConvertTo-Json
/credspec | "{}" | error credspec credspec: is not an object -> kubectl gmsa credspec new --from-ad FILE --account NAME, FILE made by: Get-ADDomain | ConvertTo-Json
/credspec/DomainJoinConfig/NetBIOSNames | "x" | warning unknown-key credspec.DomainJoinConfig.NetBIOSNames: is not a field of a credential spec -> NetBiosName:
/spec | {} | warning unknown-key spec: is not a field of a credential spec -> remove it; known are: apiVersion, kind, metadata, credspec
/credspec/CmsPlugins | - | error cms-plugins credspec.CmsPlugins: is missing -> CmsPlugins: [ActiveDirectory]
/credspec/CmsPlugins | [] | error cms-plugins credspec.CmsPlugins: does not hold ActiveDirectory -> CmsPlugins: [ActiveDirectory]
/credspec/CmsPlugins | ["activedirectory"] | error cms-plugins credspec.CmsPlugins: does not hold ActiveDirectory -> CmsPlugins: [ActiveDirectory]
/credspec/CmsPlugins | "ActiveDirectory" | error cms-plugins credspec.CmsPlugins: is not a list -> CmsPlugins: [ActiveDirectory]
# The domain.
/credspec/DomainJoinConfig/Guid | "{7}" | error guid credspec.DomainJoinConfig.Guid: "{7}" is not a GUID -> (Get-ADDomain).ObjectGUID (of the domain, not of the account)
/credspec/DomainJoinConfig/Guid | "{244818ae-87ac-4fcd-92ec-e79e5252348a}" | error guid credspec.DomainJoinConfig.Guid: "{244818ae-87ac-4fcd-92ec-e79e5252348a}" is in braces -> 244818ae-87ac-4fcd-92ec-e79e5252348a
/credspec/DomainJoinConfig/Guid | "contoso" | error guid credspec.DomainJoinConfig.Guid: "contoso" is not a GUID -> (Get-ADDomain).ObjectGUID (of the domain, not of the account)
/credspec/DomainJoinConfig/Sid | "S-1-5-21-1-2-3-1104" | error sid credspec.DomainJoinConfig.Sid: "S-1-5-21-1-2-3-1104" is an account's SID: one number too many -> S-1-5-21-1-2-3, to be compared with (Get-ADDomain).DomainSID.Value; warning guid credspec.DomainJoinConfig.Guid: "244818ae-87ac-4fcd-92ec-e79e5252348a" may be the account's too: Sid is the account's -> (Get-ADDomain).ObjectGUID (of the domain, not of the account)
/credspec/DomainJoinConfig/Sid | "S-1-5-21-1-2" | error sid credspec.DomainJoinConfig.Sid: "S-1-5-21-1-2" is not a domain's SID, which reads S-1-5-21-a-b-c -> (Get-ADDomain).DomainSID.Value
/credspec/DomainJoinConfig/Sid | "S-1-5-21-1-2-4294967296" | error sid credspec.DomainJoinConfig.Sid: "S-1-5-21-1-2-4294967296" is not a domain's SID, which reads S-1-5-21-a-b-c -> (Get-ADDomain).DomainSID.Value
/credspec/DomainJoinConfig/Sid | "S-1-5-21-1-2-x" | error sid credspec.DomainJoinConfig.Sid: "S-1-5-21-1-2-x" is not a domain's SID, which reads S-1-5-21-a-b-c -> (Get-ADDomain).DomainSID.Value
/credspec/DomainJoinConfig/Sid | "" | error sid credspec.DomainJoinConfig.Sid: is empty -> (Get-ADDomain).DomainSID.Value
/credspec/DomainJoinConfig/Sid | 21 | error sid credspec.DomainJoinConfig.Sid: is not a string -> (Get-ADDomain).DomainSID.Value
/credspec/DomainJoinConfig/Sid | null | error sid credspec.DomainJoinConfig.Sid: is missing -> (Get-ADDomain).DomainSID.Value
/credspec/DomainJoinConfig/DnsTreeName | "CONTOSO" | warning dns-tree-name credspec.DomainJoinConfig.DnsTreeName: "CONTOSO" has no dot: it looks like the NetBIOS name -> (Get-ADDomain).Forest
/credspec/DomainJoinConfig/DnsTreeName | "contoso..com" | error dns-tree-name credspec.DomainJoinConfig.DnsTreeName: "contoso..com" is not a DNS name -> (Get-ADDomain).Forest
/credspec/DomainJoinConfig/DnsTreeName | "contoso sales.com" | error dns-tree-name credspec.DomainJoinConfig.DnsTreeName: "contoso sales.com" is not a DNS name -> (Get-ADDomain).Forest
/credspec/DomainJoinConfig/DnsTreeName | "west.contoso.com" | error dns-tree-name credspec.DomainJoinConfig.DnsTreeName: "west.contoso.com" is below DnsName: the root of a forest is never below a domain -> (Get-ADDomain).Forest, and (Get-ADDomain).DNSRoot for DnsName
# The DNS of Windows takes Unicode (Microsoft: Naming conventions in Active Directory).
/credspec/DomainJoinConfig/DnsTreeName | "münchen-süd.example" |
/credspec/DomainJoinConfig/DnsTreeName | "fabrikam.com" |
/credspec/DomainJoinConfig/DnsTreeName | "mycontoso.com" |
/credspec/DomainJoinConfig/DnsTreeName | "contoso.onmicrosoft.com" | warning dns-tree-name credspec.DomainJoinConfig.DnsTreeName: "contoso.onmicrosoft.com" is the name of a tenant: right only for Microsoft Entra Domain Services -> (Get-ADDomain).Forest
/credspec/DomainJoinConfig/NetBiosName | "CONTOSO*" | error netbios-name credspec.DomainJoinConfig.NetBiosName: "CONTOSO*" holds one of \/:*?"<>| -> (Get-ADDomain).NetBIOSName
/credspec/DomainJoinConfig/NetBiosName | "SIXTEENLETTERS16" | error netbios-name credspec.DomainJoinConfig.NetBiosName: "SIXTEENLETTERS16" is longer than 15 characters -> (Get-ADDomain).NetBIOSName
/credspec/DomainJoinConfig/NetBiosName | "contoso.com" | warning netbios-name credspec.DomainJoinConfig.NetBiosName: "contoso.com" has a dot: it looks like the DNS name -> (Get-ADDomain).NetBIOSName
# The SAM name alone.
/credspec/DomainJoinConfig/MachineAccountName | "WebApp1$" | error account credspec.DomainJoinConfig.MachineAccountName: "WebApp1$" ends with $, which Windows adds itself -> WebApp1
/credspec/DomainJoinConfig/MachineAccountName | "CONTOSO\\WebApp1" | error account credspec.DomainJoinConfig.MachineAccountName: "CONTOSO\\WebApp1" carries its domain in front -> WebApp1
/credspec/DomainJoinConfig/MachineAccountName | "CONTOSO\\WebApp1$" | error account credspec.DomainJoinConfig.MachineAccountName: "CONTOSO\\WebApp1$" carries its domain in front -> WebApp1
/credspec/DomainJoinConfig/MachineAccountName | "WebApp1.contoso.com" | error account credspec.DomainJoinConfig.MachineAccountName: "WebApp1.contoso.com" carries its domain behind -> WebApp1
/credspec/DomainJoinConfig/MachineAccountName | "WebApp1.CONTOSO.com" | error account credspec.DomainJoinConfig.MachineAccountName: "WebApp1.CONTOSO.com" carries its domain behind -> WebApp1
/credspec/DomainJoinConfig/MachineAccountName | "WebApp1@contoso.com" | error account credspec.DomainJoinConfig.MachineAccountName: "WebApp1@contoso.com" carries its domain behind -> WebApp1
# What is still to be filled in is one finding.
/credspec/DomainJoinConfig/MachineAccountName | "<GMSA_ACCOUNT_USERNAME>" | error placeholder credspec.DomainJoinConfig.MachineAccountName: is still a placeholder: "<GMSA_ACCOUNT_USERNAME>" -> kubectl gmsa credspec new --from-ad FILE --account NAME, FILE made by: Get-ADDomain | ConvertTo-Json
/credspec/DomainJoinConfig | {"DnsName": "<DNS_NAME>", "DnsTreeName": "<DNS_NAME>", "Guid": "DOMAIN_GUID", "MachineAccountName": "gMSA-ACCOUNT-NAME", "NetBiosName": "${NETBIOS}", "Sid": "<DOMAIN_SID>"} | error placeholder credspec.DomainJoinConfig.DnsName: 6 values are still placeholders: DnsName, DnsTreeName, Guid, MachineAccountName, NetBiosName and 1 more -> kubectl gmsa credspec new --from-ad FILE --account NAME, FILE made by: Get-ADDomain | ConvertTo-Json
# Accounts. Another account's entry does not count.
/credspec/ActiveDirectoryConfig/GroupManagedServiceAccounts | [{"Name": "WebApp1", "Scope": "contoso.com"}] | warning accounts credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts: has no entry whose Scope is the NetBIOS name "CONTOSO" -> add the entry {Name: WebApp1, Scope: CONTOSO}
/credspec/ActiveDirectoryConfig/GroupManagedServiceAccounts | [{"Name": "WebApp1", "Scope": "contoso"}, {"Name": "Other", "Scope": "contoso.com"}] | warning accounts credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts: has no entry whose Scope is the DNS name "contoso.com" -> add the entry {Name: WebApp1, Scope: contoso.com}
/credspec/ActiveDirectoryConfig/GroupManagedServiceAccounts | [{"Name": "WebApp1", "Scope": "contoso.com"}, {"Name": "webapp1", "Scope": "contoso"}, {"Name": "Other", "Scope": "fabrikam.com"}] |
/credspec/ActiveDirectoryConfig/GroupManagedServiceAccounts | - | error accounts credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts: is missing -> two entries of {Name, Scope}: the account with the DNS name, and with the NetBIOS name
/credspec/ActiveDirectoryConfig/GroupManagedServiceAccounts | [] | error accounts credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts: is empty -> two entries of {Name, Scope}: the account with the DNS name, and with the NetBIOS name
/credspec/ActiveDirectoryConfig/GroupManagedServiceAccounts | {} | error accounts credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts: is not a list -> two entries of {Name, Scope}: the account with the DNS name, and with the NetBIOS name
# Plugins, and what the makers of the known ones document.
/credspec/ActiveDirectoryConfig/HostAccountConfig | {"PluginGUID": "{GDMA0342-266A-4D1P-831J-20990E82944F}", "PluginInput": "contoso.com:gmsaccg:x", "PortableCcgVersion": "1"} | warning plugin-guid credspec.ActiveDirectoryConfig.HostAccountConfig.PluginGUID: "{GDMA0342-266A-4D1P-831J-20990E82944F}" has letters that are not hexadecimal digits -> the plugin's GUID in braces, from its maker or from HKLM:\SYSTEM\CurrentControlSet\Control\CCG\COMClasses; error plugin-password credspec.ActiveDirectoryConfig.HostAccountConfig.PluginInput: seems to hold a password -> keep the password in the plugin's vault and name the vault here; change the password: others may have read it
/credspec/ActiveDirectoryConfig/HostAccountConfig | {"PluginGUID": "{contoso}", "PluginInput": "x", "PortableCcgVersion": "1"} | warning plugin-guid credspec.ActiveDirectoryConfig.HostAccountConfig.PluginGUID: "{contoso}" does not look like a GUID -> the plugin's GUID in braces, from its maker or from HKLM:\SYSTEM\CurrentControlSet\Control\CCG\COMClasses
/credspec/ActiveDirectoryConfig/HostAccountConfig | {"PluginGUID": "{859e1386-bdb4-49e8-85c7-3070b13920e1}", "PluginInput": "{\"credentialArn\":\"arn:aws:secretsmanager:us-west-2:111122223333:secret:x\"}", "PortableCcgVersion": "1"} |
/credspec/ActiveDirectoryConfig/HostAccountConfig | {"PluginGUID": "{859e1386-bdb4-49e8-85c7-3070b13920e1}", "PluginInput": "arn:aws:secretsmanager:us-west-2:111122223333:secret:x", "PortableCcgVersion": "1"} | warning plugin-input credspec.ActiveDirectoryConfig.HostAccountConfig.PluginInput: is not a JSON object in a string -> '{"credentialArn":"arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME"}'
/credspec/ActiveDirectoryConfig/HostAccountConfig | {"PluginGUID": "{859e1386-bdb4-49e8-85c7-3070b13920e1}", "PluginInput": {"CredentialArn": "arn:aws:secretsmanager:us-west-2:111122223333:secret:x"}, "PortableCcgVersion": "1"} | error plugin-input credspec.ActiveDirectoryConfig.HostAccountConfig.PluginInput: is an object, not a string -> '{"credentialArn":"arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME"}'
/credspec/ActiveDirectoryConfig/HostAccountConfig | {"PluginGUID": "{E4781092-F116-4B79-B55E-28EB6A224E26}", "PluginInput": "secret", "PortableCcgVersion": "1"} | warning plugin-input credspec.ActiveDirectoryConfig.HostAccountConfig.PluginInput: is not the name of a namespace and of a Secret, joined by a colon -> NAMESPACE:SECRET
/credspec/ActiveDirectoryConfig/HostAccountConfig | {"PluginGUID": "CCC2A336-D7F3-4818-A213-272B7924213E", "PluginInput": {}, "PortableCcgVersion": 1} | error plugin-version credspec.ActiveDirectoryConfig.HostAccountConfig.PortableCcgVersion: is a bare number -> PortableCcgVersion: "1"; error plugin-guid credspec.ActiveDirectoryConfig.HostAccountConfig.PluginGUID: "CCC2A336-D7F3-4818-A213-272B7924213E" is not in braces -> "{CCC2A336-D7F3-4818-A213-272B7924213E}"; error plugin-input credspec.ActiveDirectoryConfig.HostAccountConfig.PluginInput: is an object, not a string -> one string, as the plugin's maker documents it
"#;

#[test]
fn each_mistake_is_found() {
    assert_eq!(object(&good()), []);
    for case in CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let mut parts = case.splitn(3, " |").map(str::trim);
        let (pointer, value, expected) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let value = (value != "-").then(|| serde_json::from_str(value).unwrap());
        assert_eq!(lines(&with(pointer, value)).join("; "), expected, "{case}");
    }
    let remedy = "kubectl gmsa credspec new --from-ad FILE --account NAME, FILE made by: Get-ADDomain | ConvertTo-Json";
    assert_eq!(lines(&json!([])), [format!("error object : is not an object -> {remedy}")]);
}

#[test]
fn contents_beyond_what_the_api_takes_are_refused() {
    let of_length = |length: usize| {
        let guid = "{CFCA0441-511D-4B2A-862E-20348A78760B}";
        with_plugin(json!({"PluginGUID": guid, "PluginInput": "y".repeat(length), "PortableCcgVersion": "1"}))
    };
    let printed = |spec: &Value| Contents::of(spec["credspec"].as_object().unwrap()).text().len();
    let fits = 64 * 1024 - printed(&of_length(0));
    assert_eq!(lines(&of_length(fits)), [""; 0]);
    let expected =
        "error size credspec: is longer than 64 KiB when printed as JSON -> fewer accounts, a shorter PluginInput";
    assert_eq!(lines(&of_length(fits + 1)), [expected]);
}

#[test]
fn an_object_that_is_too_large_to_be_read_is_one_finding() {
    let found = too_large();
    let [Diagnostic { rule, field, message, .. }] = &*found else { panic!("{found:?}") };
    let expected = ("size", "credspec", "is longer than 512 KiB or holds more than 8192 values");
    assert_eq!((rule.id, field.as_str(), message.as_str()), expected);
}

#[test]
fn accounts_of_other_names_are_not_that_of_the_container() {
    const LIST: &str = "credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts";
    let mut spec = good();
    for index in [0, 1] {
        spec["credspec"]["ActiveDirectoryConfig"]["GroupManagedServiceAccounts"][index]["Name"] = json!("WebApp1$");
    }
    assert_eq!(
        lines(&spec),
        [
            format!("error account {LIST}[0].Name: \"WebApp1$\" ends with $, which Windows adds itself -> WebApp1"),
            format!("error account {LIST}[1].Name: \"WebApp1$\" ends with $, which Windows adds itself -> WebApp1"),
            format!(
                "warning accounts {LIST}: does not name the account \"WebApp1\" of DomainJoinConfig -> Name: WebApp1, as in MachineAccountName"
            ),
        ]
    );
}

#[test]
fn an_account_may_have_a_dot() {
    for name in ["web.app", "web.app.contoso", "contoso.com"] {
        let mut spec = with("/credspec/DomainJoinConfig/MachineAccountName", Some(json!(name)));
        for index in [0, 1] {
            spec["credspec"]["ActiveDirectoryConfig"]["GroupManagedServiceAccounts"][index]["Name"] = json!(name);
        }
        assert_eq!(object(&spec), [], "{name}");
    }
}

#[test]
fn a_domain_may_have_a_single_label() {
    let mut spec = with("/credspec/DomainJoinConfig/DnsTreeName", Some(json!("corp")));
    spec["credspec"]["DomainJoinConfig"]["DnsName"] = json!("corp");
    spec["credspec"]["ActiveDirectoryConfig"]["GroupManagedServiceAccounts"][0]["Scope"] = json!("corp");
    spec["credspec"]["ActiveDirectoryConfig"]["GroupManagedServiceAccounts"][1]["Scope"] = json!("CONTOSO");
    let lines = |field, rule, remedy| {
        format!(
            "warning {rule} credspec.DomainJoinConfig.{field}: \"corp\" has no dot: it looks like the NetBIOS name -> {remedy}"
        )
    };
    assert_eq!(
        self::lines(&spec),
        [
            lines("DnsName", "dns-name", "(Get-ADDomain).DNSRoot"),
            lines("DnsTreeName", "dns-tree-name", "(Get-ADDomain).Forest"),
        ]
    );
}

#[test]
fn a_netbios_name_may_have_15_letters() {
    let mut longest = with("/credspec/DomainJoinConfig/NetBiosName", Some(json!("FIFTEENLETTER15")));
    longest["credspec"]["ActiveDirectoryConfig"]["GroupManagedServiceAccounts"][0]["Scope"] = json!("FIFTEENLETTER15");
    assert_eq!(object(&longest), []);
}

#[test]
fn a_password_is_reported_and_not_repeated() {
    let config = json!({
        "PluginGUID": "{CCC2A336-D7F3-4818-A213-272B7924213E}",
        "PluginInput": "user=x;Password=hunter2",
        "PortableCcgVersion": "1",
    });
    let found = object(&with_plugin(config));
    assert_eq!(
        found.iter().map(|f| (f.severity, f.rule.id)).collect::<Vec<_>>(),
        [(Severity::Error, "plugin-password")]
    );
    assert!(!format!("{found:?}").contains("hunter2"));
    let aws = "{859e1386-bdb4-49e8-85c7-3070b13920e1}";
    let config = json!({"PluginGUID": aws, "PluginInput": "hunter2", "PortableCcgVersion": "1"});
    assert!(!format!("{:?}", object(&with_plugin(config))).contains("hunter2"));
}

#[test]
fn hostile_objects_yield_a_bounded_report() {
    let many: serde_json::Map<_, _> = (0..10_000).map(|n| (format!("k{n}\n"), json!("y".repeat(100)))).collect();
    let found = object(&with("/credspec/DomainJoinConfig", Some(Value::Object(many))));
    assert_eq!(found.len(), MAX_FINDINGS);
    assert_eq!(found[1].field, "credspec.DomainJoinConfig.k0\\n");
}

#[test]
fn suggested_names_can_be_created() {
    for (name, expected) in [
        ("gmsa-WebApp1", "gmsa-webapp1"),
        ("Web_App$", "web-app"),
        ("--", "gmsa"),
        ("a..b.", "a.b"),
        ("É", "gmsa"),
        ("file://webapp1.json", "webapp1"),
        ("CONTOSO\\WebApp1$", "webapp1"),
        ("CONTOSO\\", "contoso"),
        ("WebApp1@contoso.com", "webapp1"),
        ("webapp1.json", "webapp1.json"),
    ] {
        assert_eq!(suggest_name(name), expected);
    }
}

/// A list of services, and what is found about it; nothing where it is right. `WHAT` says what a service is.
const SERVICES: &str = r#"
# What clients ask for.
HTTP/app.contoso.com |
http/App.contoso.com,MSSQLSvc/sql1.contoso.com:1433 MSSQLSvc/sql1.contoso.com:SQLEXPRESS |
cifs/files.contoso.com nfs/files.contoso.com host/linux1.contoso.com postgres/db.contoso.com |
HTTP/www.example.com, HTTP/contoso.com, HTTP/dcim.contoso.com, cifs/abcd.contoso.com, HTTP/dc1.contoso.com |
# A word that is not a service: the remedy names the intended one.
app.contoso.com | error ticket-services lists "app.contoso.com", WHAT -> HTTP/app.contoso.com
https://app.contoso.com:8443/login?x=1 | error ticket-services lists "https://app.contoso.com:8443/login?x=1", WHAT -> HTTP/app.contoso.com
ldaps://files.contoso.com | error ticket-services lists "ldaps://files.contoso.com", WHAT -> ldap/files.contoso.com
HTTP/app.contoso.com@CONTOSO.COM | error ticket-services lists "HTTP/app.contoso.com@CONTOSO.COM", WHAT -> HTTP/app.contoso.com
HTTP@app.contoso.com | error ticket-services lists "HTTP@app.contoso.com", WHAT -> HTTP/app.contoso.com
HTTP\app.contoso.com | error ticket-services lists "HTTP\\app.contoso.com", WHAT -> HTTP/app.contoso.com
HTTP/app.contoso.com/ | error ticket-services lists "HTTP/app.contoso.com/", WHAT -> HTTP/app.contoso.com
"HTTP/app.contoso.com" | error ticket-services lists "\"HTTP/app.contoso.com\"", WHAT -> HTTP/app.contoso.com
[HTTP/app.contoso.com] | error ticket-services lists "[HTTP/app.contoso.com]", WHAT -> HTTP/app.contoso.com
HTTP/a.contoso.com;mssql/sql1.contoso.com:1433 | error ticket-services lists "HTTP/a.contoso.com;mssql/sql1.contoso.com:1433", WHAT -> HTTP/a.contoso.com, MSSQLSvc/sql1.contoso.com:1433
HTTP/*.contoso.com | error ticket-services lists "HTTP/*.contoso.com", WHAT -> each as CLASS/HOST, without a realm
HTTP/ | error ticket-services lists "HTTP/", WHAT -> each as CLASS/HOST, without a realm
1433 | error ticket-services lists "1433", WHAT -> each as CLASS/HOST, without a realm
app | error ticket-services lists "app", WHAT -> each as CLASS/HOST, without a realm
# Services that no client asks for, and those of domain controllers.
HTTP/10.0.0.5 | warning ticket-service lists "HTTP/10.0.0.5": clients get no ticket for an address, only for a name -> HTTP/NAME.contoso.com
HTTP/fe80::1 | warning ticket-service lists "HTTP/fe80::1": clients get no ticket for an address, only for a name -> HTTP/NAME.contoso.com
HTTP/app.contoso.com:443 | warning ticket-service lists "HTTP/app.contoso.com:443": web clients ask without a port -> HTTP/app.contoso.com
https/app.contoso.com | warning ticket-service lists "https/app.contoso.com": clients spell the class in another way -> HTTP/app.contoso.com
smb/files.contoso.com | warning ticket-service lists "smb/files.contoso.com": clients spell the class in another way -> cifs/files.contoso.com
mssqlsvc/sql1.contoso.com:1433 | warning ticket-service lists "mssqlsvc/sql1.contoso.com:1433": clients spell the class in another way -> MSSQLSvc/sql1.contoso.com:1433
HOST/linux1.contoso.com | warning ticket-service lists "HOST/linux1.contoso.com": clients spell the class in another way -> host/linux1.contoso.com
MSSQLSvc/sql1.contoso.com | warning ticket-service lists "MSSQLSvc/sql1.contoso.com": clients of SQL Server ask with the port -> MSSQLSvc/sql1.contoso.com:1433
HTTP/app | warning ticket-service lists "HTTP/app": clients append a domain to a short name, in pods that of the cluster -> HTTP/app.contoso.com
HTTP/app.contoso.com. | warning ticket-service lists "HTTP/app.contoso.com.": clients leave the dot at the end out -> HTTP/app.contoso.com
HTTP/web.shop.svc | warning ticket-service lists "HTTP/web.shop.svc": accounts have names of the domain, not of the cluster -> HTTP/NAME.contoso.com
HTTP/web.shop.svc.cluster.local | warning ticket-service lists "HTTP/web.shop.svc.cluster.local": accounts have names of the domain, not of the cluster -> HTTP/NAME.contoso.com
ldap/files.contoso.com | warning ticket-controller lists "ldap/files.contoso.com", a service of a domain controller -> remove it, or use an account for it that no other application has
LDAP/dc1.contoso.com/contoso.com | warning ticket-controller lists "LDAP/dc1.contoso.com/contoso.com", a service of a domain controller -> remove it, or use an account for it that no other application has
GC/dc1.contoso.com/contoso.com | warning ticket-controller lists "GC/dc1.contoso.com/contoso.com", a service of a domain controller -> remove it, or use an account for it that no other application has
cifs/contoso.com | warning ticket-controller lists "cifs/contoso.com", a service of a domain controller -> remove it, or use an account for it that no other application has
cifs/dc1.contoso.com | warning ticket-controller lists "cifs/dc1.contoso.com", a service of a domain controller -> remove it, or use an account for it that no other application has
host/AD-DC02.contoso.com | warning ticket-controller lists "host/AD-DC02.contoso.com", a service of a domain controller -> remove it, or use an account for it that no other application has
rpcss/rodc.contoso.com | warning ticket-controller lists "rpcss/rodc.contoso.com", a service of a domain controller -> remove it, or use an account for it that no other application has
HTTP/x.contoso.com/CONTOSO | warning ticket-controller lists "HTTP/x.contoso.com/CONTOSO", a service of a domain controller -> remove it, or use an account for it that no other application has
# The list as a whole.
* | note ticket-any is *: pods get a ticket-granting ticket -> "HTTP/app.contoso.com, MSSQLSvc/sql1.contoso.com:1433"
, | error ticket-services is empty: list services, such as HTTP/app.contoso.com, or * for any -> "HTTP/app.contoso.com, MSSQLSvc/sql1.contoso.com:1433"
*, HTTP/app.contoso.com | error ticket-services names * beside services -> "HTTP/app.contoso.com, MSSQLSvc/sql1.contoso.com:1433"
krbtgt/CONTOSO.COM | error ticket-services lists "krbtgt/CONTOSO.COM", a service of the KDC itself: * alone gives a ticket-granting ticket -> remove it
"#;

const WHAT: &str =
    "which is not a service: expected CLASS/HOST, such as HTTP/app.contoso.com or MSSQLSvc/sql1.contoso.com:1433";

/// What is found about an annotation with a list of services.
fn listed(annotation: &str, list: &str) -> String {
    let lines = lines(&with("/metadata/annotations", Some(json!({annotation: list}))));
    lines.join("; ").replace(&format!("metadata.annotations[{annotation}]: "), "")
}

#[test]
fn services_are_those_that_clients_ask_for() {
    for case in SERVICES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (list, expected) = case.split_once(" |").unwrap();
        assert_eq!(listed("gmsa-webhook/services", list), expected.trim().replace("WHAT", WHAT), "{list}");
    }
    let many: Vec<String> = (0..33).map(|number| format!("HTTP/h{number}.contoso.com")).collect();
    let right = "\"HTTP/app.contoso.com, MSSQLSvc/sql1.contoso.com:1433\"";
    let too_many = format!("error ticket-services lists more than 32 services -> {right}");
    assert_eq!(listed("gmsa-webhook/services", &many.join(",")), too_many);
    let list = with("/metadata/annotations", Some(json!({"gmsa-webhook/services": ["HTTP/a"]})));
    assert_eq!(
        lines(&list),
        [format!("error ticket-services metadata.annotations[gmsa-webhook/services]: is not a string -> {right}")]
    );
}

#[test]
fn the_names_of_a_keytab_are_linted_as_services_are() {
    for (list, expected) in [
        ("HTTP/app.contoso.com, MSSQLSvc/sql1.contoso.com:1433", ""),
        ("*", "error keytab-names is *: a keytab is for names of its own -> \"HTTP/app.contoso.com\""),
        ("app.contoso.com", "error keytab-names lists \"app.contoso.com\", WHAT -> HTTP/app.contoso.com"),
        (
            "HTTP/app.contoso.com:8443",
            "warning ticket-service lists \"HTTP/app.contoso.com:8443\": web clients ask without a port -> HTTP/app.contoso.com",
        ),
    ] {
        assert_eq!(listed("gmsa-webhook/keytab", list), expected.replace("WHAT", WHAT), "{list}");
    }
}
