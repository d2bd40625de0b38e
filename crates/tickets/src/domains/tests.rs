//! Configurations: what is left out, and what is wrong.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on must fail")]

use super::*;

fn read(text: &str) -> Result<Vec<DomainConfig>, String> {
    parse(text).map_err(|what| format!("config.yaml: {what}"))
}

const REST: &str = "user: u\n  passwordFile: /p\n";

#[test]
fn a_domain_is_read_with_what_it_leaves_out() {
    let text = "domains:\n- name: Contoso.com\n  controllers: [dc1.contoso.com, 'ldap://dc2.contoso.com']\n  user: ccg@contoso.com\n  \
                passwordFile: /p\n  accounts: [WebApp1$]\n  keytabs: true\n- name: b.example.\n  user: B\\u\n  passwordFile: /p\n  kdcPort: 1088\n  caFile: /c\n";
    let domains = read(text).unwrap();
    let [contoso, other] = domains.as_slice() else { unreachable!() };
    let [first, second] = [contoso, other].map(|domain| &domain.kdcs);
    let shown: Vec<String> = first.controllers.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["ldaps://dc1.contoso.com", "ldap://dc2.contoso.com"]);
    assert_eq!((first.name.as_str(), first.realm.as_str(), first.kdc_port), ("contoso.com", "CONTOSO.COM", 88));
    assert!(contoso.allows("webapp1") && !contoso.allows("other"));
    assert_eq!((second.name.as_str(), second.controllers.len(), second.kdc_port), ("b.example", 0, 1088));
    assert!(other.allows("other"));
    assert_eq!([contoso.keytabs, other.keytabs], [true, false]);
    assert!(contoso.referrals.is_empty() && contoso.referral_of("HTTP/app.contoso.com").is_none());
}

#[test]
fn a_service_is_in_the_nearest_listed_domain() {
    let text = format!(
        "domains:\n- name: eu.contoso.com\n  {REST}  referrals:\n  - name: Northwind.com.\n    controllers: [dc1.northwind.com]\n  \
         - {{name: contoso.com}}\n  - {{name: asia.northwind.com, kdcPort: 1088}}\n"
    );
    let domain = read(&text).unwrap().remove(0);
    let known = |other: &DomainKdcs| (other.realm.to_string(), other.controllers.len(), other.kdc_port);
    let expected = [("NORTHWIND.COM", 1, 88), ("CONTOSO.COM", 0, 88), ("ASIA.NORTHWIND.COM", 0, 1088)]
        .map(|(r, c, p)| (r.to_owned(), c, p));
    assert_eq!(domain.referrals.iter().map(known).collect::<Vec<_>>(), expected);
    for (service, other) in [
        ("HTTP/northwind.com", Some("northwind.com")),
        ("MSSQLSvc/sql.northwind.com:1433", Some("northwind.com")),
        ("ldap/dc1.asia.northwind.com/northwind.com", Some("asia.northwind.com")),
        ("HTTP/app.us.contoso.com", Some("contoso.com")),
        ("HTTP/app.eu.contoso.com", None),
        ("HTTP/notnorthwind.com", None),
        ("HTTP/com", None),
    ] {
        assert_eq!(domain.referral_of(service).map(|other| &*other.name), other, "{service}");
    }
}

#[test]
fn a_wrong_field_is_named_with_what_to_write() {
    let many: String =
        (0..33).map(|number| format!("- name: d{number}.example\n  {REST}")).collect::<Vec<_>>().concat();
    let controllers = ["dc"; 17].join(", ");
    for (text, refused) in [
        ("domains: []".to_owned(), "domains: is empty: name at least one domain, with name, user and passwordFile"),
        (format!("domains:\n{many}"), "domains: has more than 32 domains: install another broker for the others"),
        (
            format!("domains:\n- name: CONTOSO_X\n  {REST}"),
            "domains[0].name: \"CONTOSO_X\" is not the DNS name of a domain, such as contoso.com",
        ),
        (
            format!("domains:\n- name: a.b\n  controllers: ['http://x']\n  {REST}"),
            "domains[0].controllers: \"http://x\" is not a domain controller, such as dc1.contoso.com or ldaps://dc1.contoso.com",
        ),
        (
            format!("domains:\n- name: a.b\n  controllers: [{controllers}]\n  {REST}"),
            "domains[0].controllers: names more than 16: name the nearest",
        ),
        (
            format!("domains:\n- name: a.b\n  {REST}- name: A.B.\n  {REST}"),
            "domains[1].name: a.b stands twice: write each domain once",
        ),
        (
            format!("domains:\n- name: a.b\n  {REST}  referrals: [{{name: '*'}}]\n"),
            "domains[0].referrals: name: \"*\" is not the DNS name of a domain, such as contoso.com",
        ),
        (
            format!("domains:\n- name: a.b\n  {REST}  referrals: [{{name: c.d, controllers: [{controllers}]}}]\n"),
            "domains[0].referrals: controllers: names more than 16: name the nearest",
        ),
        (
            "domains:\n- name: a.b\n  user: ' '\n  passwordFile: /p\n".to_owned(),
            "domains[0].user: is empty: write USER@DOMAIN or DOMAIN\\USER",
        ),
    ] {
        assert_eq!(read(&text).unwrap_err(), format!("config.yaml: {refused}"), "{text}");
    }
}

#[test]
fn files_are_read_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let load_with = |password: &str, ca: &str| {
        let text =
            format!("domains:\n- name: a.b\n  user: u\n  passwordFile: {}\n  caFile: {}\n", path(password), path(ca));
        fs::write(path("config.yaml"), text).unwrap();
        load(Path::new(&path("config.yaml")))
            .map(|domains| domains[0].password().unwrap().to_string())
            .map_err(|e| e.to_string())
    };
    let key = gmsa_test_support::Tls::new();
    fs::write(path("ca"), key.pem()).unwrap();
    fs::write(path("password"), "  Secret 1\r\n").unwrap();
    fs::write(path("empty"), "\n").unwrap();
    fs::write(path("long"), "x".repeat(4097)).unwrap();
    assert_eq!(load_with("password", "ca"), Ok("  Secret 1".to_owned()));
    let config = path("config.yaml");
    let missing = "No such file or directory (os error 2)";
    for (password, ca, field, what) in [
        ("missing", "ca", "passwordFile", format!("cannot read {}: {missing}", path("missing"))),
        ("empty", "ca", "passwordFile", format!("{} is empty: write the password of the user into it", path("empty"))),
        ("long", "ca", "passwordFile", format!("cannot read {}: it is longer than 1024 bytes", path("long"))),
        (
            "password",
            "missing",
            "caFile",
            format!("cannot read the authority's certificates in {}: {missing}", path("missing")),
        ),
    ] {
        assert_eq!(load_with(password, ca), Err(format!("{config}: domains[0].{field}: {what}")));
    }
    let none = load(Path::new(&path("none"))).unwrap_err();
    assert_eq!(
        chain(&none),
        format!("cannot read {}: --config names a YAML file with domains: {missing}", path("none"))
    );
}

#[test]
fn a_missing_ca_names_the_option_of_the_chart() {
    let said = "caFile: is missing, and the system has no trusted authorities: `caFile` (with the chart `domains[].caConfigMap`) names the CA of the domain controllers";
    assert_eq!(wrong_ca(&Error::NoRoots), said);
}
