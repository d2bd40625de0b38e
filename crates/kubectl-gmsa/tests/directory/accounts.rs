//! Accounts: shown, tested, and in one go to a pod that is checked.

use std::fs;

use tempfile::tempdir;

use crate::domain::{ADMIN, account, administer, gmsa, gmsa_in, gmsa_there, of_domain, said, user};

#[test]
fn an_account_becomes_the_identity_of_a_pod_as_the_quickstart_prints_it() {
    administer("group add QuickHosts");
    user("quickuser", "Passw0rd!Quick", Some("QuickHosts"));
    user("quickother", "Passw0rd!Other", None);
    let folder = tempdir().unwrap();
    account("Quick", "QuickHosts", &["http/quick.contoso.com"]);
    assert_eq!(
        said(gmsa("account test Quick", ("quickuser@contoso.com", "Passw0rd!Quick")), 0),
        "pass  password  quickuser@contoso.com may retrieve the password of Quick\n"
    );
    assert_eq!(
        said(gmsa("account test Quick", ("quickother@contoso.com", "Passw0rd!Other")), 1),
        "fail  password  account Quick: PrincipalsAllowedToRetrieveManagedPassword: \"quickother@contoso.com\" is neither listed nor a member: \
         it holds group \"QuickHosts\" [account-password]\n                \
         -> Add-ADGroupMember 'QuickHosts' 'quickother'; a computer learns of its groups when it restarts\n"
    );
    let shown = said(gmsa("account lint Quick", ("quickother@contoso.com", "Passw0rd!Other")), 0);
    let lines: Vec<&str> =
        shown.lines().filter(|line| !line.starts_with("SID:") && !line.starts_with("Password: ")).collect();
    assert_eq!(
        lines,
        [
            "Account:       Quick",
            "Name:          CN=Quick,CN=Managed Service Accounts,DC=contoso,DC=com",
            "Class:         msDS-GroupManagedServiceAccount",
            "Enabled:       yes",
            "DNS host name: Quick.contoso.com",
            "Services:      http/quick.contoso.com",
            "Encryption:    AES128, AES256",
            "Password for:  group QuickHosts (quickuser)",
            "",
            "no problems found in 1 object",
        ]
    );
    assert!(shown.contains(", changes every 30 days\n"), "{shown}");
    let written = gmsa_there(folder.path(), "credspec new --account Quick --out quick.yaml", ADMIN);
    assert_eq!(said(written, 0), "quick.yaml written\n");
    let spec = fs::read_to_string(folder.path().join("quick.yaml")).unwrap();
    let values: Vec<String> =
        spec.lines().filter_map(|line| Some(line.trim().split("  # ").next()?.replace('"', ""))).collect();
    for value in [
        "DnsName: contoso.com".to_owned(),
        "DnsTreeName: contoso.com".to_owned(),
        format!("Guid: {}", of_domain("objectGUID")),
        "MachineAccountName: Quick".to_owned(),
        "NetBiosName: CONTOSO".to_owned(),
        format!("Sid: {}", of_domain("objectSid")),
    ] {
        assert!(values.contains(&value), "{value} is not in {spec}");
    }
    let grant = gmsa_in(folder.path(), "grant --credspec quick --serviceaccount shop:web", None, "");
    fs::write(folder.path().join("grant.yaml"), said(grant, 0)).unwrap();
    fs::write(folder.path().join("pod.yaml"), include_str!("pod.yaml")).unwrap();
    let checked = gmsa_in(folder.path(), "check -f .", None, "");
    assert_eq!(
        said(checked, 0),
        "OBJECT        SLOT       CREDENTIAL SPEC  RESULT\nPod shop/web  pod \"web\"  quick            gets its contents\n\n\
         no problems found in 4 objects\n"
    );
    assert_eq!(
        said(gmsa_there(folder.path(), "credspec lint -f quick.yaml", ADMIN), 0),
        "no problems found in 1 object\n"
    );
}

#[test]
fn membership_through_groups_counts_and_ends() {
    for group in ["NestOuter", "NestMiddle", "NestInner"] {
        administer(&format!("group add {group}"));
    }
    administer("group addmembers NestOuter NestMiddle");
    administer("group addmembers NestMiddle NestInner");
    user("nestuser", "Passw0rd!Nest", Some("NestInner"));
    account("NestApp", "NestOuter", &["http/nest.contoso.com"]);
    let nested = ("nestuser@contoso.com", "Passw0rd!Nest");
    assert_eq!(
        said(gmsa("account test NestApp", nested), 0),
        "pass  password  nestuser@contoso.com may retrieve the password of NestApp\n"
    );
    let shown = said(gmsa("account lint NestApp", ADMIN), 0);
    assert!(shown.contains("\nPassword for:  group NestOuter (nestuser)\n"), "{shown}");
    administer("group removemembers NestMiddle NestInner");
    let answer = said(gmsa("account test NestApp", nested), 1);
    assert!(answer.contains("it holds group \"NestOuter\" [account-password]\n"), "{answer}");
}
