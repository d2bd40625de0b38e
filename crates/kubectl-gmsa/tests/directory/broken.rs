//! Broken accounts: each is found.

use crate::domain::{ADMIN, account, add, administer, change, domain_sid, gmsa, prints, said, steady, user};

/// An account for nobody.
fn bare(name: &str, more: &str) {
    add(&format!(
        "dn: CN={name},CN=Managed Service Accounts,DC=contoso,DC=com\nchangetype: add\nobjectClass: msDS-GroupManagedServiceAccount\n\
         sAMAccountName: {name}$\ndNSHostName: {name}.contoso.com\nmsDS-ManagedPasswordInterval: 30\n{more}\n"
    ));
}

const AES: &str = "msDS-SupportedEncryptionTypes: 24\n";
const TRUST: &str = "userAccountControl: 4096\n";

/// What is wrong, without the head.
fn lint(name: &str, more: &str) -> String {
    let shown = said(gmsa(&format!("account lint {name}{more}"), ADMIN), 1);
    let (_head, findings) = shown.split_once("\n\n").unwrap();
    steady(findings)
}

/// The lines that name the rule, the object and what is wrong.
fn found(shown: &str) -> Vec<&str> {
    let about = |line: &&str| {
        line.starts_with("error[")
            || line.starts_with("warning[")
            || (line.starts_with("  ") && !line.starts_with("  fix") && !line.starts_with("  so"))
    };
    shown.lines().filter(about).collect()
}

fn modify(name: &str, change_of: &str) {
    change(&format!("dn: CN={name},CN=Managed Service Accounts,DC=contoso,DC=com\nchangetype: modify\n{change_of}\n"));
}

fn hosts() -> &'static str {
    static MADE: std::sync::Once = std::sync::Once::new();
    MADE.call_once(|| {
        administer("group add BrokenHosts");
        administer("user create brokenuser Passw0rd!Broken");
        administer("group addmembers BrokenHosts brokenuser");
    });
    "BrokenHosts"
}

#[test]
fn a_disabled_account_is_found() {
    account("Disabled", hosts(), &["http/disabled"]);
    modify("Disabled", "replace: userAccountControl\nuserAccountControl: 4098");
    assert_eq!(found(&lint("Disabled", "")), ["error[account-disabled] account Disabled", "  Enabled: is false"]);
}

#[test]
fn an_account_for_nobody_is_found() {
    bare("Nobodys", &format!("{AES}{TRUST}servicePrincipalName: http/nobodys\n"));
    assert_eq!(
        found(&lint("Nobodys", "")),
        ["error[account-hosts] account Nobodys", "  PrincipalsAllowedToRetrieveManagedPassword: is empty"]
    );
}

#[test]
fn a_group_that_is_gone_is_found() {
    administer("group add GoneHosts");
    account("Orphaned", "GoneHosts", &["http/orphaned"]);
    administer("group delete GoneHosts");
    let shown = lint("Orphaned", "");
    let found = found(&shown);
    assert_eq!(found[0], "error[account-hosts-orphaned] account Orphaned");
    assert!(
        found[1].starts_with("  PrincipalsAllowedToRetrieveManagedPassword: S-1-5-21-DOMAIN-")
            && found[1].ends_with(" no longer exists"),
        "{shown}"
    );
    assert_eq!(found.len(), 2);
}

#[test]
fn a_group_without_members_is_found() {
    administer("group add EmptyHosts");
    account("Emptied", "EmptyHosts", &["http/emptied"]);
    assert_eq!(
        lint("Emptied", ""),
        "error[account-hosts-empty] account Emptied\n  \
         PrincipalsAllowedToRetrieveManagedPassword: group \"EmptyHosts\" has no members\n  \
         so: no container starts with the account there\n  \
         fix: Add the nodes, or the user that the plugin logs on as: `Add-ADGroupMember`. A node learns of its groups when it restarts.\n\n\
         1 error in 1 object\n"
    );
}

#[test]
fn an_account_that_everybody_may_use_is_found() {
    account("Everybodys", hosts(), &["http/everybodys"]);
    // O:BAD:(A;;0xf01ff;;;AU)
    modify(
        "Everybodys",
        "replace: msDS-GroupMSAMembership\nmsDS-GroupMSAMembership:: \
         AQAEgBQAAAAAAAAAAAAAACQAAAABAgAAAAAABSAAAAAgAgAABAAcAAEAAAAAABQA/wEPAAEBAAAAAAAFCwAAAA==",
    );
    assert_eq!(
        found(&lint("Everybodys", "")),
        [
            "warning[account-hosts-wide] account Everybodys",
            "  PrincipalsAllowedToRetrieveManagedPassword: holds Authenticated Users, so every user and every computer of the domain may retrieve the password",
        ]
    );
}

#[test]
fn an_entry_that_is_not_understood_is_found() {
    account("Callback", hosts(), &["http/callback"]);
    // Of kind 9, for Authenticated Users.
    modify(
        "Callback",
        "replace: msDS-GroupMSAMembership\nmsDS-GroupMSAMembership:: \
         AQAEgBQAAAAAAAAAAAAAACQAAAABAgAAAAAABSAAAAAgAgAABAAcAAEAAAAJABQA/wEPAAEBAAAAAAAFCwAAAA==",
    );
    assert_eq!(
        found(&lint("Callback", "")),
        [
            "warning[account-hosts-unknown] account Callback",
            "  PrincipalsAllowedToRetrieveManagedPassword: holds an entry for \"Authenticated Users\" that is not understood (kind 9)",
        ]
    );
    let shown = said(gmsa("account lint Callback", ADMIN), 1);
    assert!(shown.contains("\nPassword for:  Authenticated Users (an entry that is not understood)\n"), "{shown}");
}

#[test]
fn an_account_with_rc4_alone_is_found() {
    account("Rc4", hosts(), &["http/rc4"]);
    modify("Rc4", "replace: msDS-SupportedEncryptionTypes\nmsDS-SupportedEncryptionTypes: 4");
    assert_eq!(
        found(&lint("Rc4", "")),
        ["warning[account-encryption] account Rc4", "  msDS-SupportedEncryptionTypes: holds RC4 alone"]
    );
}

#[test]
fn a_service_that_two_accounts_have_is_found() {
    account("TwinA", hosts(), &["http/twin"]);
    account("TwinB", hosts(), &["http/twin-b"]);
    modify("TwinB", "add: servicePrincipalName\nservicePrincipalName: HTTP/twin");
    for (name, other) in [("TwinA", "TwinB"), ("TwinB", "TwinA")] {
        let service = if name == "TwinA" { "http/twin" } else { "HTTP/twin" };
        assert_eq!(
            lint(name, ""),
            format!(
                "error[account-spn-duplicate] account {name}\n  \
                 ServicePrincipalNames: \"{service}\" is a name of \"CN={other},CN=Managed Service Accounts,DC=contoso,DC=com\" too\n  \
                 so: the domain gives no ticket for it, so clients fall back to NTLM or fail\n  \
                 fix: setspn -D {service} ACCOUNT, for the one that does not serve it\n\n1 error in 1 object\n"
            )
        );
    }
}

#[test]
fn a_service_that_is_missing_is_found() {
    account("Serviceless", hosts(), &["http/other.contoso.com"]);
    assert_eq!(
        found(&lint("Serviceless", " --service http/web.contoso.com")),
        ["warning[account-spn] account Serviceless", "  ServicePrincipalNames: does not hold \"http/web.contoso.com\"",]
    );
}

#[test]
fn an_account_of_one_machine_is_found() {
    add(
        "dn: CN=Standalone,CN=Managed Service Accounts,DC=contoso,DC=com\nchangetype: add\nobjectClass: msDS-ManagedServiceAccount\n\
         sAMAccountName: Standalone$\nuserAccountControl: 4096\nmsDS-SupportedEncryptionTypes: 24\nservicePrincipalName: http/standalone\n",
    );
    let shown = lint("Standalone", "");
    assert_eq!(
        found(&shown)[..2],
        [
            "error[account-class] account Standalone",
            "  ObjectClass: \"msDS-ManagedServiceAccount\" is not msDS-GroupManagedServiceAccount",
        ]
    );
    let tested = gmsa("account test Standalone", ADMIN);
    assert_eq!(
        said(tested, 1).lines().next(),
        Some(
            "fail  password  account Standalone: ObjectClass: \"msDS-ManagedServiceAccount\" is not msDS-GroupManagedServiceAccount [account-class]"
        )
    );
}

#[test]
fn an_account_that_is_no_computer_is_found() {
    account("Trustless", hosts(), &["http/trustless"]);
    modify("Trustless", "replace: userAccountControl\nuserAccountControl: 512");
    assert_eq!(
        found(&lint("Trustless", "")),
        [
            "warning[account-trust] account Trustless",
            "  userAccountControl: is 0x200, without WORKSTATION_TRUST_ACCOUNT (0x1000)",
        ]
    );
}

#[test]
fn a_name_that_is_too_long_is_found() {
    bare("SixteenLettersXY", &format!("{AES}{TRUST}servicePrincipalName: http/long\n"));
    let shown = lint("SixteenLettersXY", "");
    assert_eq!(
        found(&shown)[..2],
        [
            "error[account-name] account SixteenLettersXY",
            "  SamAccountName: \"SixteenLettersXY\" has 16 characters, more than 15",
        ]
    );
}

/// The descriptor that allows or denies it to these.
fn descriptor(entries: &[(bool, &str)]) -> String {
    let entries: String = entries
        .iter()
        .map(|(allows, sid)| format!("({};;RPWPCRCCDCLCLORCWOWDSDDTSW;;;{sid})", if *allows { 'A' } else { 'D' }))
        .collect();
    let program = "import base64, sys\nfrom samba.dcerpc import security\nfrom samba.ndr import ndr_pack\n\
                   print(base64.b64encode(ndr_pack(security.descriptor.from_sddl(sys.argv[1], security.dom_sid(sys.argv[2])))).decode())";
    prints(&["python3", "-c", program, &format!("O:BAD:{entries}"), &domain_sid()], "").trim().to_owned()
}

/// Whether a user may retrieve the password: what the domain controller gives, and what is said otherwise.
fn tested(name: &str, user: (&str, &str)) -> String {
    gmsa(&format!("account test {name}"), user).stdout
}

#[test]
fn what_is_said_of_each_principal_is_what_the_domain_gives() {
    administer("group add TokenHosts");
    user("tokenuser", "Passw0rd!Token", Some("TokenHosts"));
    account("TokenApp", "TokenHosts", &["http/token"]);
    let token = ("tokenuser@contoso.com", "Passw0rd!Token");
    let domain = domain_sid();
    for (entries, gives, said) in [
        (vec![(true, "S-1-1-0".to_owned())], true, Some("holds Everyone, so every user")),
        (vec![(true, "S-1-5-2".to_owned())], true, Some("holds Network, so every user")),
        (
            vec![(true, "S-1-5-32-554".to_owned())],
            true,
            Some("\"Pre-Windows 2000 Compatible Access\", in which Authenticated Users is"),
        ),
        (vec![(true, format!("{domain}-513"))], true, Some("holds Domain Users, so every user of the domain")),
        (vec![(true, format!("{domain}-515"))], false, Some("holds Domain Computers, so every computer of the domain")),
        (vec![(true, "S-1-5-18".to_owned())], false, Some("holds Local System, which nobody has")),
        (vec![(true, "S-1-5-4".to_owned())], false, Some("holds Interactive, which nobody has")),
        (vec![(false, format!("{domain}-513")), (true, "S-1-5-11".to_owned())], false, None),
        (
            vec![(true, "S-1-5-11".to_owned()), (false, format!("{domain}-513"))],
            true,
            Some("holds Authenticated Users"),
        ),
    ] {
        let listed: Vec<(bool, &str)> = entries.iter().map(|(allows, sid)| (*allows, sid.as_str())).collect();
        modify(
            "TokenApp",
            &format!("replace: msDS-GroupMSAMembership\nmsDS-GroupMSAMembership:: {}", descriptor(&listed)),
        );
        let answer = tested("TokenApp", token);
        let may = "pass  password  tokenuser@contoso.com may retrieve the password of TokenApp\n";
        assert_eq!(answer == may, gives, "{entries:?}: {answer}");
        // Nobody is added to a group that holds all of a kind.
        assert!(!answer.contains("Add-ADGroupMember"), "{entries:?}: {answer}");
        let shown = gmsa("account lint TokenApp", ADMIN).stdout;
        assert!(said.is_none_or(|said| shown.contains(said)), "{entries:?}: {shown}");
    }
}

#[test]
fn an_account_without_a_list_is_tested_as_it_is_linted() {
    administer("group add UnsetHosts");
    account("UnsetApp", "UnsetHosts", &["http/unset"]);
    modify("UnsetApp", "delete: msDS-GroupMSAMembership");
    let answer = "fail  password  account UnsetApp: PrincipalsAllowedToRetrieveManagedPassword: is empty, so \"administrator@contoso.com\" may not \
                  retrieve the password, nor may anybody [account-password]\n                \
                  -> Set-ADServiceAccount 'UnsetApp' -PrincipalsAllowedToRetrieveManagedPassword GROUP, a group with the user or the nodes\n";
    assert_eq!(said(gmsa("account test UnsetApp", ADMIN), 1), answer);
    assert!(gmsa("account lint UnsetApp", ADMIN).stdout.contains("error[account-hosts] account UnsetApp"));
}
