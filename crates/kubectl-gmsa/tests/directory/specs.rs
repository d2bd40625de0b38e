//! Credential specs against the domain: each wrong field is found. What is said of it is asserted by the unit tests of `crates/directory/src/lint`.

use std::fs;

use crate::domain::{ADMIN, account, administer, gmsa, gmsa_there, said};

#[test]
fn each_wrong_field_of_a_credential_spec_is_found() {
    administer("group add SpecHosts");
    account("SpecApp", "SpecHosts", &["http/spec.contoso.com"]);
    let right = said(gmsa("credspec new --account SpecApp", ADMIN), 0);
    let folder = tempfile::tempdir().unwrap();
    for (key, wrong, rule) in [
        ("DnsName", "emea.contoso.com", "dns-name"),
        ("DnsTreeName", "fabrikam.com", "dns-tree-name"),
        ("NetBiosName", "FABRIKAM", "netbios-name"),
        ("Sid", "S-1-5-21-1-2-3", "sid"),
        ("Guid", "244818ae-87ac-4fcd-92ec-e79e5252348a", "guid"),
        ("MachineAccountName", "SpecOther", "account-unknown"),
        ("- Name", "SpecOther", "account-differs"),
    ] {
        let start = format!("{key}: ");
        let line = right.lines().find(|line| line.trim_start().starts_with(&start)).unwrap();
        let (indent, _) = line.split_once(&start).unwrap();
        fs::write(folder.path().join("spec.yaml"), right.replace(line, &format!("{indent}{start}{wrong}"))).unwrap();
        let shown = said(gmsa_there(folder.path(), "credspec lint -f spec.yaml", ADMIN), 1);
        assert!(shown.contains(&format!("error[{rule}] spec.yaml:")), "{shown}");
    }
}
