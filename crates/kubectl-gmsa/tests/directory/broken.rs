//! Broken accounts: each is found.

use serde::Deserialize;

use crate::{
    domain::{ADMIN, account, add, administer, change, gmsa, of_domain, prints, said, user},
    follow,
};

/// An account of `broken.yaml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Broken {
    name: String,
    group: Option<String>,
    /// A user in it.
    user: Option<String>,
    /// What adds it, where it is not a group Managed Service Account.
    ldif: Option<String>,
    /// What is changed of it.
    modify: Option<String>,
    /// What is done in the domain when it is there.
    then: Option<String>,
    /// More options of `account lint`.
    more: String,
    found: String,
    says: String,
    head: String,
    tested: Option<String>,
    /// Another change, over the network.
    also: Option<String>,
    /// The fix, which is followed where it is named here: the finding is gone then.
    fix: Option<String>,
}

impl Broken {
    fn make(&self) {
        if let Some(ldif) = &self.ldif {
            return add(ldif);
        }
        let group = self.group.as_deref().unwrap_or("BrokenHosts");
        if self.group.is_some() {
            administer(&format!("group add {group}"));
        }
        if let Some(name) = &self.user {
            user(name, "Passw0rd!Broken", Some(group));
        }
        account(&self.name, group, &[&format!("http/{}.contoso.com", self.name)]);
        if let Some(of) = &self.modify {
            modify(&self.name, of);
        }
        if let Some(command) = &self.then {
            administer(command);
        }
        if let Some(ldif) = &self.also {
            add(ldif);
        }
    }
}

pub fn modify(name: &str, change_of: &str) {
    change(&format!("dn: CN={name},CN=Managed Service Accounts,DC=contoso,DC=com\nchangetype: modify\n{change_of}\n"));
}

#[test]
fn each_fault_of_an_account_is_found() {
    administer("group add BrokenHosts");
    user("brokenuser", "Passw0rd!Broken", Some("BrokenHosts"));
    let all: Vec<Broken> = serde_saphyr::from_str(include_str!("broken.yaml")).unwrap();
    all.iter().for_each(Broken::make);
    let domain = of_domain("objectSid");
    for Broken { name, more, found, says, head, tested, fix, .. } in all {
        let shown = said(gmsa(&format!("account lint {name}{more}"), ADMIN), 1);
        let (of_account, findings) = shown.split_once("\n\n").unwrap();
        assert!(of_account.contains(&head), "{shown}");
        let of = format!(" account {name}");
        let rules: Vec<&str> = findings.lines().filter_map(|line| line.strip_suffix(&of)).collect();
        assert_eq!(rules, [found.as_str()], "{shown}");
        let first = findings.lines().nth(1).unwrap().trim_start();
        let words = first.split(' ').map(|word| if word.starts_with(&domain) { "SID" } else { word });
        assert_eq!(words.collect::<Vec<_>>().join(" "), says);
        if let Some(tested) = tested {
            let shown = said(gmsa(&format!("account test {name}"), ADMIN), 1);
            assert!(shown.starts_with(&tested), "{shown}");
        }
        if let Some(fix) = fix {
            assert!(findings.contains(&format!("\n  fix: {fix}\n")), "{shown}");
            follow::follow(&name, &fix);
            let shown = gmsa(&format!("account lint {name}{more}"), ADMIN).stdout;
            assert!(shown.ends_with("\n\nno problems found in 1 object\n"), "after {fix}: {shown}");
        }
    }
}

/// The descriptor with these entries, `A` to allow it and `D` to deny it, each with a principal as SDDL writes it.
pub fn descriptor(entries: &str, domain: &str) -> String {
    let entry = |entry: &str| {
        let (kind, principal) = entry.split_once(':').unwrap();
        format!("({kind};;RPWPCRCCDCLCLORCWOWDSDDTSW;;;{principal})")
    };
    let sddl: String = entries.split(' ').map(entry).collect();
    let program = "import base64, sys\nfrom samba.dcerpc import security\nfrom samba.ndr import ndr_pack\n\
                   print(base64.b64encode(ndr_pack(security.descriptor.from_sddl(sys.argv[1], security.dom_sid(sys.argv[2])))).decode())";
    prints(&["python3", "-c", program, &format!("O:BAD:{sddl}"), domain], "").trim().to_owned()
}

#[test]
fn what_is_said_of_each_principal_is_what_the_domain_gives() {
    administer("group add TokenHosts");
    user("tokenuser", "Passw0rd!Token", Some("TokenHosts"));
    account("TokenApp", "TokenHosts", &["http/token.contoso.com"]);
    let domain = of_domain("objectSid");
    for (entries, gives, says) in [
        ("A:S-1-1-0", true, "holds Everyone, so every user"),
        ("A:S-1-5-2", true, "holds Network, so every user"),
        ("A:S-1-5-32-554", true, "\"Pre-Windows 2000 Compatible Access\", in which Authenticated Users is"),
        ("A:DU", true, "holds Domain Users, so every user of the domain"),
        ("A:DC", false, "holds Domain Computers, so every computer of the domain"),
        ("A:S-1-5-18", false, "holds Local System, which no client has"),
        ("A:S-1-5-4", false, "holds Interactive, which no client has"),
        ("D:DU A:S-1-5-11", false, ""),
        ("A:S-1-5-11 D:DU", true, "holds Authenticated Users"),
    ] {
        let listed = descriptor(entries, &domain);
        modify("TokenApp", &format!("replace: msDS-GroupMSAMembership\nmsDS-GroupMSAMembership:: {listed}"));
        let answer = gmsa("account test TokenApp", ("tokenuser@contoso.com", "Passw0rd!Token")).stdout;
        let may = "pass  password  tokenuser@contoso.com may retrieve the password of TokenApp\n";
        assert_eq!(answer == may, gives, "{entries}: {answer}");
        // Nobody is added to a group that holds all of a kind.
        assert!(!answer.contains("Add-ADGroupMember"), "{entries}: {answer}");
        let shown = gmsa("account lint TokenApp", ADMIN).stdout;
        assert!(shown.contains(says), "{entries}: {shown}");
    }
}
