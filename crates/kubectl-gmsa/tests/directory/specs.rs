//! Credential specs against the domain: each wrong field is found.

use crate::domain::{ADMIN, account, administer, gmsa, gmsa_there, said, write};

#[test]
fn each_wrong_field_of_a_credential_spec_is_found() {
    administer("group add SpecHosts");
    account("SpecApp", "SpecHosts", &["http/spec"]);
    let right = said(gmsa("credspec new --account SpecApp", ADMIN), 0);
    let folder = tempfile::tempdir().unwrap();
    let line =
        |key: &str| right.lines().find(|line| line.trim_start().starts_with(&format!("{key}: "))).unwrap().to_owned();
    for (key, wrong, rule) in [
        ("DnsName", "emea.contoso.com", "dns-name"),
        ("DnsTreeName", "fabrikam.com", "dns-tree-name"),
        ("NetBiosName", "FABRIKAM", "netbios-name"),
        ("Sid", "S-1-5-21-1-2-3", "sid"),
        ("Guid", "244818ae-87ac-4fcd-92ec-e79e5252348a", "guid"),
        ("MachineAccountName", "SpecOther", "account-unknown"),
    ] {
        let indent = " ".repeat(4);
        write(folder.path(), "spec.yaml", &right.replace(&line(key), &format!("{indent}{key}: {wrong}")));
        let shown = said(gmsa_there(folder.path(), "credspec lint -f spec.yaml", ADMIN), 1);
        let of_directory: Vec<&str> = shown
            .lines()
            .filter(|line| line.contains("the domain says") || line.contains("there is no account"))
            .collect();
        let says = match key {
            "MachineAccountName" => {
                "  credspec.DomainJoinConfig.MachineAccountName: there is no account \"SpecOther\" in contoso.com"
                    .to_owned()
            }
            _ => {
                let own = line(key)
                    .trim_start()
                    .strip_prefix(&format!("{key}: "))
                    .unwrap()
                    .split("  #")
                    .next()
                    .unwrap()
                    .trim_matches('"')
                    .to_owned();
                format!("  credspec.DomainJoinConfig.{key}: \"{wrong}\" is not what the domain says, \"{own}\"")
            }
        };
        assert_eq!(of_directory, [says.as_str()], "{shown}");
        assert!(shown.contains(&format!("error[{rule}] spec.yaml:")), "{shown}");
    }
    write(folder.path(), "spec.yaml", &right.replace("- Name: SpecApp", "- Name: SpecOther"));
    let shown = said(gmsa_there(folder.path(), "credspec lint -f spec.yaml", ADMIN), 1);
    assert!(
        shown.contains("SamAccountName: credential spec \"specapp\" does not list \"SpecApp\" for the host"),
        "{shown}"
    );
}
