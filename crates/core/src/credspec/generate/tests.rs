//! From what administrators have to manifests. That these read back is tested with the tool's YAML reader.

use super::{Domain, Draft, DraftError, Plugin, ScopedAccount};
use crate::credspec::lint;

/// What `Get-ADDomain | ConvertTo-Json` prints, shortened in the parts that are not read.
const DIRECTORY: &str = r#"{
    "AllowedDNSSuffixes": [],
    "ComputersContainer": "CN=Computers,DC=west,DC=contoso,DC=com",
    "DistinguishedName": "DC=west,DC=contoso,DC=com",
    "DNSRoot": "west.contoso.com",
    "DomainMode": 7,
    "DomainSID": {
        "BinaryLength": 24,
        "AccountDomainSid": {"BinaryLength": 24, "AccountDomainSid": "S-1-5-21-1-2-3", "Value": "S-1-5-21-1-2-3"},
        "Value": "S-1-5-21-1-2-3"
    },
    "Forest": "contoso.com",
    "Name": "west",
    "NetBIOSName": "WEST",
    "ObjectGUID": "244818ae-87ac-4fcd-92ec-e79e5252348a",
    "ParentDomain": "contoso.com"
}"#;

fn west() -> Domain {
    Domain {
        dns: "west.contoso.com".to_owned(),
        forest: "contoso.com".to_owned(),
        netbios: "WEST".to_owned(),
        sid: "S-1-5-21-1-2-3".to_owned(),
        guid: "244818ae-87ac-4fcd-92ec-e79e5252348a".to_owned(),
    }
}

fn account(name: &str, scope: &str) -> ScopedAccount {
    ScopedAccount { name: name.to_owned(), scope: scope.to_owned() }
}

#[test]
fn reads_what_the_directory_prints() {
    assert_eq!(Domain::from_directory(DIRECTORY).unwrap(), west());
    let selected = r#"{"DNSRoot":"west.contoso.com","Forest":"contoso.com","NetBIOSName":"WEST","DomainSID":"S-1-5-21-1-2-3","ObjectGUID":"244818ae-87ac-4fcd-92ec-e79e5252348a"}"#;
    assert_eq!(Domain::from_directory(selected).unwrap(), west());
}

#[test]
fn refuses_what_the_directory_never_prints() {
    let wrong = DIRECTORY.replace("\"Value\"", "\"Other\"");
    let DraftError::Directory(error) = Domain::from_directory(&wrong).unwrap_err() else { panic!("another error") };
    assert!(error.to_string().starts_with("DomainSID has no Value at line "), "{error}");
}

#[test]
fn makes_a_spec_that_lints_clean() {
    let plugin = Plugin {
        guid: "{CCC2A336-D7F3-4818-A213-272B7924213E}".to_owned(),
        input: "ObjectId=56d9b66c-d746-4f87-bd26-26760cfdca2e;SecretUri=https://x.example/secrets/y".to_owned(),
    };
    let draft = Draft::new("webapp1".to_owned(), "WebApp1".to_owned(), west(), &["Other".to_owned()], Some(plugin));
    assert_eq!(lint::object(&draft.object()), []);
    assert_eq!(
        draft.accounts,
        [
            account("WebApp1", "west.contoso.com"),
            account("WebApp1", "WEST"),
            account("Other", "west.contoso.com"),
            account("Other", "WEST"),
        ]
    );
}

#[test]
fn the_manifest_is_sorted_and_explained() {
    let draft = Draft::new("webapp1".to_owned(), "WebApp1".to_owned(), west(), &[], None);
    assert_eq!(
        draft.yaml(),
        "\
apiVersion: windows.k8s.io/v1
kind: GMSACredentialSpec
metadata:
  name: webapp1
# Not secret. Everyone who may change it can choose the account that pods log on with.
credspec:
  ActiveDirectoryConfig:
    # What the host may fetch: each account under the domain's DNS and NetBIOS names.
    GroupManagedServiceAccounts:
    - Name: WebApp1
      Scope: west.contoso.com
    - Name: WebApp1
      Scope: WEST
  CmsPlugins:
  - ActiveDirectory
  # The domain, and the account that the container logs on with.
  DomainJoinConfig:
    DnsName: west.contoso.com  # (Get-ADDomain).DNSRoot
    DnsTreeName: contoso.com  # (Get-ADDomain).Forest
    Guid: \"244818ae-87ac-4fcd-92ec-e79e5252348a\"  # (Get-ADDomain).ObjectGUID: the domain's, not the account's
    MachineAccountName: WebApp1  # the account's SAM name, without $ and domain
    NetBiosName: WEST  # (Get-ADDomain).NetBIOSName
    Sid: S-1-5-21-1-2-3  # (Get-ADDomain).DomainSID.Value: the domain's, not the account's
"
    );
}

#[test]
fn reads_what_was_written_for_docker() {
    let docker = r#"{
        "CmsPlugins": ["ActiveDirectory"],
        "DomainJoinConfig": {
            "Sid": "S-1-5-21-1-2-3", "MachineAccountName": "WebApp_1", "Guid": "244818ae-87ac-4fcd-92ec-e79e5252348a",
            "DnsTreeName": "contoso.com", "DnsName": "west.contoso.com", "NetBiosName": "WEST"
        },
        "ActiveDirectoryConfig": {
            "GroupManagedServiceAccounts": [
                {"Name": "WebApp_1", "Scope": "west.contoso.com"}, {"Name": "WebApp_1", "Scope": "WEST"}
            ],
            "HostAccountConfig": {
                "PortableCcgVersion": "1", "PluginGUID": "{GDMA0342-266A-4D1P-831J-20990E82944F}", "PluginInput": "x"
            }
        }
    }"#;
    let draft = Draft::from_docker(None, docker).unwrap();
    assert_eq!(draft.name, "webapp-1");
    assert_eq!(draft.domain, west());
    assert_eq!(draft.accounts, [account("WebApp_1", "west.contoso.com"), account("WebApp_1", "WEST")]);
    let guid = "{GDMA0342-266A-4D1P-831J-20990E82944F}".to_owned();
    assert_eq!(draft.plugin, Some(Plugin { guid, input: "x".to_owned() }));
    // The digits of the GUID in Microsoft's own sample.
    let found = lint::object(&draft.object());
    assert_eq!(found.iter().map(|found| found.rule.id).collect::<Vec<_>>(), ["plugin-guid"]);
    assert_eq!(Draft::from_docker(Some("own".to_owned()), docker).unwrap().name, "own");
}

#[test]
fn the_input_of_a_plugin_becomes_a_text() {
    let plugin = |input: &str| {
        let json = format!(r#"{{"PluginGUID": "{{859E1386-BDB4-49E8-85C7-3070B13920E1}}"{input}}}"#);
        serde_json::from_str::<Plugin>(&json).map(|plugin| plugin.input).map_err(|error| error.to_string())
    };
    let text = r#"{"credentialArn":"arn:aws:ssm:us-west-2:111122223333:parameter/x"}"#;
    assert_eq!(
        plugin(r#", "PluginInput": {"CredentialArn": "arn:aws:ssm:us-west-2:111122223333:parameter/x"}"#).unwrap(),
        text
    );
    assert_eq!(plugin(r#", "PluginInput": "x""#).unwrap(), "x");
    assert_eq!(plugin("").unwrap(), "");
    assert!(
        plugin(r#", "PluginInput": ["x"]"#).unwrap_err().starts_with("PluginInput is neither a text nor an object")
    );
}
