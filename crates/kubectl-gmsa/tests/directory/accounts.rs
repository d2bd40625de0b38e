//! Accounts: made, tested, and in one go to a pod that is checked.

use tempfile::tempdir;

use crate::domain::{
    ADMIN, Ended, add, administer, domain_guid, domain_sid, gmsa, gmsa_in, gmsa_there, prints, said, user, write,
};

const POD: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  serviceAccountName: web
  os: {name: windows}
  nodeSelector: {kubernetes.io/os: windows, node.kubernetes.io/windows-build: 10.0.20348}
  securityContext: {windowsOptions: {gmsaCredentialSpecName: quick}}
  containers:
  - {name: iis, image: 'mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022'}
";

#[test]
fn an_account_becomes_the_identity_of_a_pod_as_the_quickstart_prints_it() {
    administer("group add QuickHosts");
    user("quickuser", "Passw0rd!Quick", Some("QuickHosts"));
    user("quickother", "Passw0rd!Other", None);
    let folder = tempdir().unwrap();
    let made = gmsa(
        "account new Quick --dns-host-name quick.contoso.com --hosts-group QuickHosts --service http/quick.contoso.com --apply --yes",
        ADMIN,
    );
    let shown = "\
In ldaps://dc1.contoso.com:
  CN=Quick,CN=Managed Service Accounts,DC=contoso,DC=com
  DNS host name: quick.contoso.com
  service: http/quick.contoso.com
  password for: group QuickHosts (1 member)
  encryption: AES128, AES256
";
    let done = "account Quick made in ldaps://dc1.contoso.com\n";
    assert_eq!(made, Ended { stdout: done.to_owned(), stderr: shown.to_owned(), code: Some(0) });
    assert_eq!(
        said(gmsa("account test Quick", ("quickuser@contoso.com", "Passw0rd!Quick")), 0),
        "pass  password  quickuser@contoso.com may retrieve the password of Quick\n"
    );
    assert_eq!(
        said(gmsa("account test Quick", ("quickother@contoso.com", "Passw0rd!Other")), 1),
        "fail  password  account Quick: PrincipalsAllowedToRetrieveManagedPassword: \"quickother@contoso.com\" is neither listed nor a member: \
         it holds group \"QuickHosts\" [account-password]\n                \
         -> Add-ADGroupMember 'QuickHosts' USER; a computer learns of its groups when it restarts\n"
    );
    assert_eq!(
        said(gmsa("account lint Quick", ("quickother@contoso.com", "Passw0rd!Other")), 0),
        "no problems found in 1 object\n"
    );
    let written = gmsa_there(folder.path(), "credspec new --account Quick --out quick.yaml", ADMIN);
    assert_eq!(said(written, 0), "quick.yaml written\n");
    let spec = std::fs::read_to_string(folder.path().join("quick.yaml")).unwrap();
    let values: Vec<&str> = spec.lines().filter_map(|line| line.trim().split("  # ").next()).collect();
    let (sid, guid) = (domain_sid(), domain_guid());
    for value in [
        "DnsName: contoso.com".to_owned(),
        "DnsTreeName: contoso.com".to_owned(),
        format!("Guid: \"{guid}\""),
        "MachineAccountName: Quick".to_owned(),
        "NetBiosName: CONTOSO".to_owned(),
        format!("Sid: {sid}"),
    ] {
        let plain = value.replace('"', "");
        assert!(values.contains(&value.as_str()) || values.contains(&plain.as_str()), "{value} is not in {spec}");
    }
    let grant = gmsa_in(folder.path(), &["grant", "--credspec", "quick", "--serviceaccount", "shop:web"], None, "");
    write(folder.path(), "grant.yaml", &said(grant, 0));
    write(folder.path(), "pod.yaml", POD);
    let checked = gmsa_in(folder.path(), &["check", "-f", "."], None, "");
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
fn an_account_that_could_not_work_is_not_made() {
    administer("group add NewHosts");
    user("newuser", "Passw0rd!New1", None);
    let new = |more: &str, user| gmsa(&format!("account new {more} --apply --yes"), user);
    let refused = |more: &str, error: &str| {
        let ended = Ended { stdout: String::new(), stderr: format!("error: {error}\n"), code: Some(2) };
        assert_eq!(new(more, ADMIN), ended, "{more}");
    };
    let first = "NewOne --dns-host-name a.contoso.com --hosts-group NewHosts --service http/new.contoso.com";
    assert_eq!(new(first, ADMIN).code, Some(0));
    refused(first, "account NewOne exists: CN=NewOne,CN=Managed Service Accounts,DC=contoso,DC=com");
    refused(
        "NewTwo --dns-host-name a.contoso.com --hosts-group NewHosts --service HTTP/new.contoso.com",
        "service principal name http/new.contoso.com is one of CN=NewOne,CN=Managed Service Accounts,DC=contoso,DC=com already: clients would \
         get no ticket for it",
    );
    refused(
        "NewTwo --dns-host-name a.contoso.com --hosts-group Nobody",
        "there is no group, user or computer Nobody in the domain",
    );
    let long = new("SixteenLettersXY --dns-host-name a.contoso.com --hosts-group NewHosts", ADMIN);
    assert_eq!(
        long.stderr.lines().next(),
        Some(
            "error: invalid value 'SixteenLettersXY' for '<NAME>': has 16 characters, more than 15: the host refers to the account as to a computer"
        )
    );
    // Who may not make accounts is told so by the directory.
    let shown =
        new("NewTwo --dns-host-name a.contoso.com --hosts-group NewHosts", ("newuser@contoso.com", "Passw0rd!New1"));
    assert_eq!((shown.stdout.as_str(), shown.code), ("", Some(2)));
    assert_eq!(
        shown.stderr.lines().last(),
        Some(
            "error: cannot make the account (docs/directory.md#rights says who may): ldaps://dc1.contoso.com refuses: insufficient access rights \
             (acl: unable to get access to CN=NewTwo,CN=Managed Service Accounts,DC=contoso,DC=com)"
        )
    );
    // Nothing is made without an answer.
    let unasked = gmsa("account new NewTwo --dns-host-name a.contoso.com --hosts-group NewHosts --apply", ADMIN);
    assert_eq!(unasked.stderr.lines().last(), Some("error: there is no terminal to ask for confirmation: use --yes"));
    let none = gmsa("account get NewTwo", ADMIN);
    assert_eq!((none.stderr.as_str(), none.code), ("error: there is no account NewTwo in contoso.com\n", Some(2)));
}

#[test]
fn the_ldif_of_an_account_makes_one_that_works() {
    administer("group add LdifHosts");
    user("ldifuser", "Passw0rd!Ldif", Some("LdifHosts"));
    let ldif =
        gmsa("account new LdifApp --dns-host-name l.contoso.com --hosts-group LdifHosts --interval 7 -o ldif", ADMIN);
    add(&said(ldif, 0));
    assert_eq!(
        said(gmsa("account test LdifApp", ("ldifuser@contoso.com", "Passw0rd!Ldif")), 0),
        "pass  password  ldifuser@contoso.com may retrieve the password of LdifApp\n"
    );
    let shown = said(gmsa("account get LdifApp", ("ldifuser@contoso.com", "Passw0rd!Ldif")), 0);
    let lines: Vec<&str> =
        shown.lines().filter(|line| !line.starts_with("SID:") && !line.starts_with("Password: ")).collect();
    assert_eq!(
        lines,
        [
            "Account:       LdifApp",
            "Name:          CN=LdifApp,CN=Managed Service Accounts,DC=contoso,DC=com",
            "Class:         msDS-GroupManagedServiceAccount",
            "Enabled:       yes",
            "DNS host name: l.contoso.com",
            "Services:      none",
            "Encryption:    AES128, AES256",
            "Password for:  group LdifHosts (ldifuser)",
        ]
    );
    assert!(shown.contains(", changes every 7 days\n"), "{shown}");
}

#[test]
fn membership_through_groups_counts_and_ends() {
    for group in ["NestOuter", "NestMiddle", "NestInner"] {
        administer(&format!("group add {group}"));
    }
    administer("group addmembers NestOuter NestMiddle");
    administer("group addmembers NestMiddle NestInner");
    user("nestuser", "Passw0rd!Nest", Some("NestInner"));
    assert_eq!(
        gmsa("account new NestApp --dns-host-name n.contoso.com --hosts-group NestOuter --apply --yes", ADMIN).code,
        Some(0)
    );
    let nested = ("nestuser@contoso.com", "Passw0rd!Nest");
    assert_eq!(
        said(gmsa("account test NestApp", nested), 0),
        "pass  password  nestuser@contoso.com may retrieve the password of NestApp\n"
    );
    let shown = said(gmsa("account get NestApp", ADMIN), 0);
    assert_eq!(shown.lines().last(), Some("Password for:  group NestOuter (nestuser)"));
    administer("group removemembers NestMiddle NestInner");
    assert_eq!(
        said(gmsa("account test NestApp", nested), 1),
        "fail  password  account NestApp: PrincipalsAllowedToRetrieveManagedPassword: \"nestuser@contoso.com\" is neither listed nor a member: \
         it holds group \"NestOuter\" [account-password]\n                \
         -> Add-ADGroupMember 'NestOuter' USER; a computer learns of its groups when it restarts\n"
    );
}

#[test]
fn who_may_make_accounts_by_the_delegation_of_the_page_makes_one() {
    administer("group add DelegHosts");
    user("deleguser", "Passw0rd!Deleg", Some("DelegHosts"));
    let shown = prints(&["ldbsearch", "-H", "/dc/private/sam.ldb", "sAMAccountName=deleguser", "objectSid"], "");
    let sid = shown.lines().find_map(|line| line.strip_prefix("objectSid: ")).unwrap();
    // Creating objects of the class msDS-GroupManagedServiceAccount.
    let right = format!("--sddl=(OA;;CC;7b8b558a-93a5-4af7-adca-c017e67f1057;;{sid})");
    let container = "--objectdn=CN=Managed Service Accounts,DC=contoso,DC=com";
    let set =
        ["samba-tool", "dsacl", "set", "--configfile=/dc/etc/smb.conf", "-H", "/dc/private/sam.ldb", container, &right];
    prints(&set, "");
    let delegated = ("deleguser@contoso.com", "Passw0rd!Deleg");
    let new = "account new DelegApp --dns-host-name d.contoso.com --hosts-group DelegHosts --service http/deleg --apply --yes";
    assert_eq!(gmsa(new, delegated).stdout, "account DelegApp made in ldaps://dc1.contoso.com\n");
    assert_eq!(
        said(gmsa("account test DelegApp", delegated), 0),
        "pass  password  deleguser@contoso.com may retrieve the password of DelegApp\n"
    );
    let nobody = gmsa("account get CN=Nobody,DC=contoso,DC=com", delegated);
    let error = "error: there is no account CN=Nobody,DC=contoso,DC=com in contoso.com\n";
    assert_eq!((nobody.stderr.as_str(), nobody.code), (error, Some(2)));
}
