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

const ACCOUNTS: &str = "/credspec/ActiveDirectoryConfig/GroupManagedServiceAccounts";

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

#[track_caller]
fn assert_one(spec: &Value, expected: &str) {
    assert_eq!(lines(spec), [expected]);
}

#[test]
fn a_good_spec_has_no_findings() {
    assert_eq!(object(&good()), []);
}

#[test]
fn the_kubernetes_documentation_s_name_cannot_be_created() {
    assert_one(
        &with("/metadata/name", Some(json!("gmsa-WebApp1"))),
        "error name metadata.name: \"gmsa-WebApp1\" is not a lower-case DNS subdomain -> name: gmsa-webapp1",
    );
}

#[test]
fn a_name_may_be_left_to_the_api_server() {
    assert_one(&with("/metadata", Some(json!({}))), "error name metadata.name: is missing -> any lower-case DNS name");
    assert_eq!(object(&with("/metadata", Some(json!({"generateName": "web-"})))), []);
}

#[test]
fn the_deprecated_version_is_pointed_out() {
    assert_one(
        &with("/apiVersion", Some(json!("windows.k8s.io/v1alpha1"))),
        "warning api-version apiVersion: is deprecated -> apiVersion: windows.k8s.io/v1",
    );
}

#[test]
fn without_contents_nothing_else_is_said() {
    const REMEDY: &str =
        "kubectl gmsa credspec new --from-ad FILE --account NAME, FILE made by: Get-ADDomain | ConvertTo-Json";
    assert_one(&with("/credspec", None), &format!("error credspec credspec: is missing -> {REMEDY}"));
    assert_one(
        &with("/credspec", Some(json!("{}"))),
        &format!("error credspec credspec: is not an object -> {REMEDY}"),
    );
    assert_one(&json!([]), &format!("error object : is not an object -> {REMEDY}"));
}

#[test]
fn unknown_keys_are_named_and_typos_recognised() {
    assert_one(
        &with("/credspec/DomainJoinConfig/NetBIOSNames", Some(json!("x"))),
        "warning unknown-key credspec.DomainJoinConfig.NetBIOSNames: is not a field of a credential spec -> NetBiosName:",
    );
    assert_one(
        &with("/spec", Some(json!({}))),
        "warning unknown-key spec: is not a field of a credential spec -> remove it; known are: apiVersion, kind, metadata, credspec",
    );
}

#[test]
fn plugins_in_the_wrong_place_are_missing_plugins() {
    const START: &str = "error cms-plugins credspec.CmsPlugins: ";
    for (value, problem) in [
        (None, "is missing"),
        (Some(json!([])), "does not hold ActiveDirectory"),
        (Some(json!(["activedirectory"])), "does not hold ActiveDirectory"),
        (Some(json!("ActiveDirectory")), "is not a list"),
    ] {
        let expected = format!("{START}{problem} -> CmsPlugins: [ActiveDirectory]");
        assert_one(&with("/credspec/CmsPlugins", value), &expected);
    }
}

#[test]
fn contents_beyond_what_the_api_takes_are_refused() {
    let of_length = |length: usize| {
        let guid = "{GDMA0342-266A-4D1P-831J-20990E82944F}";
        with_plugin(json!({"PluginGUID": guid, "PluginInput": "x".repeat(length), "PortableCcgVersion": "1"}))
    };
    let printed = |spec: &Value| Contents::of(spec["credspec"].as_object().unwrap()).text().len();
    let fits = 64 * 1024 - printed(&of_length(0));
    assert_eq!(lines(&of_length(fits)), [""; 0]);
    assert_one(
        &of_length(fits + 1),
        "error size credspec: is longer than 64 KiB when printed as JSON -> fewer accounts, a shorter PluginInput",
    );
}

#[test]
fn braces_alone_make_no_guid() {
    assert_one(
        &with("/credspec/DomainJoinConfig/Guid", Some(json!("{7}"))),
        "error guid credspec.DomainJoinConfig.Guid: \"{7}\" is not a GUID -> (Get-ADDomain).ObjectGUID (of the domain, not of the account)",
    );
}

#[test]
fn an_object_that_is_too_large_to_be_read_is_one_finding() {
    let found = too_large();
    let [Diagnostic { rule, field, message, .. }] = &*found else { panic!("{found:?}") };
    let expected = ("size", "credspec", "is longer than 512 KiB or holds more than 8192 values");
    assert_eq!((rule.id, field.as_str(), message.as_str()), expected);
}

#[test]
fn an_account_s_sid_is_told_from_its_domain_s() {
    const FIELD: &str = "error sid credspec.DomainJoinConfig.Sid: ";
    const REMEDY: &str = "(Get-ADDomain).DomainSID.Value";
    for (sid, expected) in [
        (
            json!("S-1-5-21-1-2-3-1104"),
            format!(
                "\"S-1-5-21-1-2-3-1104\" is an account's SID: one number too many -> S-1-5-21-1-2-3, to be compared with {REMEDY}"
            ),
        ),
        (
            json!("S-1-5-21-1-2"),
            format!("\"S-1-5-21-1-2\" is not a domain's SID, which reads S-1-5-21-a-b-c -> {REMEDY}"),
        ),
        (
            json!("S-1-5-21-1-2-4294967296"),
            format!("\"S-1-5-21-1-2-4294967296\" is not a domain's SID, which reads S-1-5-21-a-b-c -> {REMEDY}"),
        ),
        (
            json!("S-1-5-21-1-2-x"),
            format!("\"S-1-5-21-1-2-x\" is not a domain's SID, which reads S-1-5-21-a-b-c -> {REMEDY}"),
        ),
        (json!(""), format!("is empty -> {REMEDY}")),
        (json!(21), format!("is not a string -> {REMEDY}")),
        (Value::Null, format!("is missing -> {REMEDY}")),
    ] {
        assert_one(&with("/credspec/DomainJoinConfig/Sid", Some(sid)), &format!("{FIELD}{expected}"));
    }
}

#[test]
fn a_guid_has_no_braces() {
    const START: &str = "error guid credspec.DomainJoinConfig.Guid: ";
    assert_one(
        &with("/credspec/DomainJoinConfig/Guid", Some(json!("{244818ae-87ac-4fcd-92ec-e79e5252348a}"))),
        &format!(
            "{START}\"{{244818ae-87ac-4fcd-92ec-e79e5252348a}}\" is in braces -> 244818ae-87ac-4fcd-92ec-e79e5252348a"
        ),
    );
    assert_one(
        &with("/credspec/DomainJoinConfig/Guid", Some(json!("contoso"))),
        &format!("{START}\"contoso\" is not a GUID -> (Get-ADDomain).ObjectGUID (of the domain, not of the account)"),
    );
}

#[test]
fn an_account_is_named_by_its_sam_name_alone() {
    const LIST: &str = "credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts";
    for (name, problem) in [
        ("WebApp1$", "ends with $, which Windows adds itself"),
        ("CONTOSO\\WebApp1", "carries its domain in front"),
        ("CONTOSO\\WebApp1$", "carries its domain in front"),
        ("WebApp1.contoso.com", "carries its domain behind"),
        ("WebApp1.CONTOSO.com", "carries its domain behind"),
        ("WebApp1@contoso.com", "carries its domain behind"),
    ] {
        let spec = with("/credspec/DomainJoinConfig/MachineAccountName", Some(json!(name)));
        let expected =
            format!("error account credspec.DomainJoinConfig.MachineAccountName: {name:?} {problem} -> WebApp1");
        assert_eq!(lines(&spec).first(), Some(&expected));
    }
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
fn dns_names_are_not_netbios_names() {
    assert_one(
        &with("/credspec/DomainJoinConfig/DnsTreeName", Some(json!("CONTOSO"))),
        "warning dns-tree-name credspec.DomainJoinConfig.DnsTreeName: \"CONTOSO\" has no dot: it looks like the NetBIOS name -> (Get-ADDomain).Forest",
    );
    assert_one(
        &with("/credspec/DomainJoinConfig/DnsTreeName", Some(json!("contoso..com"))),
        "error dns-tree-name credspec.DomainJoinConfig.DnsTreeName: \"contoso..com\" is not a DNS name -> (Get-ADDomain).Forest",
    );
    assert_one(
        &with("/credspec/DomainJoinConfig/DnsTreeName", Some(json!("contoso sales.com"))),
        "error dns-tree-name credspec.DomainJoinConfig.DnsTreeName: \"contoso sales.com\" is not a DNS name -> (Get-ADDomain).Forest",
    );
    // The DNS of Windows takes Unicode (Microsoft: Naming conventions in Active Directory).
    assert_eq!(object(&with("/credspec/DomainJoinConfig/DnsTreeName", Some(json!("münchen-süd.example")))), []);
}

#[test]
fn a_forest_root_never_lies_below_the_domain() {
    assert_one(
        &with("/credspec/DomainJoinConfig/DnsTreeName", Some(json!("west.contoso.com"))),
        "error dns-tree-name credspec.DomainJoinConfig.DnsTreeName: \"west.contoso.com\" is below DnsName: the root of a forest is never below a domain -> (Get-ADDomain).Forest, and (Get-ADDomain).DNSRoot for DnsName",
    );
    assert_eq!(object(&with("/credspec/DomainJoinConfig/DnsTreeName", Some(json!("fabrikam.com")))), []);
    assert_eq!(object(&with("/credspec/DomainJoinConfig/DnsTreeName", Some(json!("mycontoso.com")))), []);
}

#[test]
fn netbios_names_are_short_and_plain() {
    const START: &str = "netbios-name credspec.DomainJoinConfig.NetBiosName: ";
    const END: &str = "-> (Get-ADDomain).NetBIOSName";
    for (name, expected) in [
        ("CONTOSO*", format!("error {START}\"CONTOSO*\" holds one of \\/:*?\"<>| {END}")),
        ("SIXTEENLETTERS16", format!("error {START}\"SIXTEENLETTERS16\" is longer than 15 characters {END}")),
        ("contoso.com", format!("warning {START}\"contoso.com\" has a dot: it looks like the DNS name {END}")),
    ] {
        let spec = with("/credspec/DomainJoinConfig/NetBiosName", Some(json!(name)));
        assert_eq!(lines(&spec).first(), Some(&expected));
    }
    let mut longest = with("/credspec/DomainJoinConfig/NetBiosName", Some(json!("FIFTEENLETTER15")));
    longest["credspec"]["ActiveDirectoryConfig"]["GroupManagedServiceAccounts"][0]["Scope"] = json!("FIFTEENLETTER15");
    assert_eq!(object(&longest), []);
}

#[test]
fn one_scope_only_is_warned_of() {
    assert_one(
        &with(ACCOUNTS, Some(json!([{"Name": "WebApp1", "Scope": "contoso.com"}]))),
        "warning accounts credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts: has no entry whose Scope is the NetBIOS name \"CONTOSO\" -> add the entry {Name: WebApp1, Scope: CONTOSO}",
    );
    // Another account's entry does not count.
    assert_one(
        &with(
            ACCOUNTS,
            Some(json!([{"Name": "WebApp1", "Scope": "contoso"}, {"Name": "Other", "Scope": "contoso.com"}])),
        ),
        "warning accounts credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts: has no entry whose Scope is the DNS name \"contoso.com\" -> add the entry {Name: WebApp1, Scope: contoso.com}",
    );
}

#[test]
fn more_accounts_and_other_domains_are_allowed() {
    let accounts = json!([
        {"Name": "WebApp1", "Scope": "contoso.com"},
        {"Name": "webapp1", "Scope": "contoso"},
        {"Name": "Other", "Scope": "fabrikam.com"},
    ]);
    assert_eq!(object(&with(ACCOUNTS, Some(accounts))), []);
}

#[test]
fn no_account_is_no_identity() {
    const START: &str = "error accounts credspec.ActiveDirectoryConfig.GroupManagedServiceAccounts";
    const REMEDY: &str = "two entries of {Name, Scope}: the account with the DNS name, and with the NetBIOS name";
    assert_one(&with(ACCOUNTS, None), &format!("{START}: is missing -> {REMEDY}"));
    assert_one(&with(ACCOUNTS, Some(json!([]))), &format!("{START}: is empty -> {REMEDY}"));
    assert_one(&with(ACCOUNTS, Some(json!({}))), &format!("{START}: is not a list -> {REMEDY}"));
}

#[test]
fn plugins_are_given_texts() {
    const PATH: &str = "credspec.ActiveDirectoryConfig.HostAccountConfig";
    let guid = "{GDMA0342-266A-4D1P-831J-20990E82944F}";
    assert_eq!(
        object(&with_plugin(
            json!({"PluginGUID": guid, "PluginInput": "contoso.com:gmsaccg:x", "PortableCcgVersion": "1"})
        )),
        []
    );
    assert_eq!(
        lines(&with_plugin(
            json!({"PluginGUID": "CCC2A336-D7F3-4818-A213-272B7924213E", "PluginInput": {}, "PortableCcgVersion": 1})
        )),
        [
            format!("error plugin-version {PATH}.PortableCcgVersion: is a bare number -> PortableCcgVersion: \"1\""),
            format!(
                "error plugin-guid {PATH}.PluginGUID: \"CCC2A336-D7F3-4818-A213-272B7924213E\" is not in braces -> \"{{CCC2A336-D7F3-4818-A213-272B7924213E}}\""
            ),
            format!(
                "error plugin-input {PATH}.PluginInput: is an object, not a string -> one string, as the plugin's maker documents it"
            ),
        ]
    );
    assert_one(
        &with_plugin(json!({"PluginGUID": "{contoso}", "PluginInput": "x", "PortableCcgVersion": "1"})),
        "warning plugin-guid credspec.ActiveDirectoryConfig.HostAccountConfig.PluginGUID: \"{contoso}\" does not look like a GUID -> the plugin's GUID in braces, from its maker or from HKLM:\\SYSTEM\\CurrentControlSet\\Control\\CCG\\COMClasses",
    );
}

#[test]
fn the_input_of_a_known_plugin_is_as_its_maker_documents_it() {
    const FIELD: &str = "credspec.ActiveDirectoryConfig.HostAccountConfig.PluginInput";
    let of = |guid: &str, input: Value| {
        with_plugin(json!({"PluginGUID": guid, "PluginInput": input, "PortableCcgVersion": "1"}))
    };
    let arn = "arn:aws:secretsmanager:us-west-2:1:secret:x";
    let aws = "{859e1386-bdb4-49e8-85c7-3070b13920e1}";
    assert_eq!(object(&of(aws, Value::from(format!(r#"{{"credentialArn":"{arn}"}}"#)))), []);
    let right = r#"'{"credentialArn":"arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME"}'"#;
    assert_one(
        &of(aws, json!(arn)),
        &format!("warning plugin-input {FIELD}: is not a JSON object in a string -> {right}"),
    );
    assert_one(
        &of(aws, json!({"CredentialArn": arn})),
        &format!("error plugin-input {FIELD}: is an object, not a string -> {right}"),
    );
    assert_one(
        &of("{E4781092-F116-4B79-B55E-28EB6A224E26}", json!("secret")),
        &format!(
            "warning plugin-input {FIELD}: is not the name of a namespace and of a Secret, joined by a colon -> NAMESPACE:SECRET"
        ),
    );
    assert!(!format!("{:?}", object(&of(aws, json!("hunter2")))).contains("hunter2"));
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
        [(Severity::Warning, "plugin-input")]
    );
    assert!(!format!("{found:?}").contains("hunter2"));
}

#[test]
fn hostile_objects_yield_a_bounded_report() {
    let many: serde_json::Map<_, _> = (0..10_000).map(|n| (format!("k{n}\n"), json!("x".repeat(100)))).collect();
    let found = object(&with("/credspec/DomainJoinConfig", Some(Value::Object(many))));
    assert_eq!(found.len(), MAX_FINDINGS);
    assert_eq!(found[1].field, "credspec.DomainJoinConfig.k0\\n");
}

#[test]
fn suggested_names_can_be_created() {
    for (name, expected) in
        [("gmsa-WebApp1", "gmsa-webapp1"), ("Web_App$", "web-app"), ("--", "gmsa"), ("a..b.", "a.b"), ("É", "gmsa")]
    {
        assert_eq!(suggest_name(name), expected);
    }
}
