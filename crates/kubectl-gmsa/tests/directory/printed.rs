//! What `ldapsearch` prints, where the directory is not asked by the plugin itself.

use crate::domain::{ADMIN, account, administer, gmsa, gmsa_in, prints, said, user};

/// What the two lines on the page print, with a simple bind in place of a ticket.
fn ldapsearch(base: &str, words: &[&str]) -> String {
    let command =
        ["ldapsearch", "-LLL", "-x", "-H", "ldaps://dc1.contoso.com", "-D", ADMIN.0, "-w", ADMIN.1, "-b", base];
    prints(&[&command, words].concat(), "")
}

#[test]
fn what_ldapsearch_prints_is_as_good_as_the_directory() {
    administer("group add PrintHosts");
    user("printuser", "Passw0rd!Print", Some("PrintHosts"));
    account("PrintApp", "PrintHosts", &["http/print.contoso.com"]);
    let accounts =
        "(|(objectClass=domainDNS)(objectClass=group)(objectClass=user)(objectClass=foreignSecurityPrincipal))";
    let pages = ["-E", "pr=1000/noprompt"];
    let ldif = ldapsearch("DC=contoso,DC=com", &[&pages[..], &[accounts, "*", "msDS-GroupMSAMembership"]].concat())
        + &ldapsearch(
            "CN=Partitions,CN=Configuration,DC=contoso,DC=com",
            &["(nETBIOSName=*)", "nCName", "dnsRoot", "nETBIOSName", "objectClass"],
        );
    let folder = tempfile::tempdir().unwrap();
    for asked in ["credspec new --account PrintApp", "account lint PrintApp", "account lint PrintApp -o json"] {
        let printed = gmsa_in(folder.path(), &format!("{asked} --directory -"), None, &ldif);
        assert_eq!(said(printed, 0), said(gmsa(asked, ADMIN), 0), "{asked}");
    }
}
