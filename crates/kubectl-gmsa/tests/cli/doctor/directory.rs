//! What `doctor --directory` says of the credential specs of the cluster.

use std::io::Write as _;

use serde_json::json;
use tempfile::NamedTempFile;

use super::super::{
    assert_printed,
    cluster::{healthy, run},
    support::SimulatedApi,
    text,
};

/// A forest whose root domain has the GUID that the credential spec of the healthy cluster names.
fn forest() -> NamedTempFile {
    let (other, own) = ("OxJZgh5ZnUeRiSqAr02N4g==", "rhhIJKyHzU+S7OeeUlI0ig==");
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(include_str!("../../fixtures/forest.ldif").replace(other, own).as_bytes()).unwrap();
    file
}

/// The lines about the directory, and the exit code.
async fn said(api: &SimulatedApi, directory: &[&str]) -> String {
    let output = run(api, &[&["doctor", "--directory"], directory].concat()).await;
    let lines = text(&output.stdout).lines().filter(|line| line.get(6..16) == Some("directory "));
    let lines = lines.map(|line| line.replace("          ", " ") + "\n").collect::<String>();
    format!("{lines}exit {}\n", output.status.code().unwrap())
}

/// Changes a field of the credential spec.
fn set(api: &SimulatedApi, field: &str, value: &str) {
    let mut spec = api.object("gmsacredentialspecs", "", "webapp1").unwrap();
    spec["credspec"]["DomainJoinConfig"][field] = json!(value);
    api.apply(spec);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_spec_that_agrees_passes_as_far_as_it_goes() {
    let api = healthy().await;
    let forest = forest();
    let forest = forest.path().to_str().unwrap();
    let agrees = said(&api, &[forest]).await;
    let ignored = said(&api, &[forest, "--ignore", "account-spn-duplicate"]).await;
    assert_printed("directory-agrees", &[("all rules", agrees), ("--ignore account-spn-duplicate", ignored)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_differs_from_the_directory_is_found() {
    let api = healthy().await;
    set(&api, "Sid", "S-1-5-21-9-9-9");
    set(&api, "MachineAccountName", "Broken");
    let forest = forest();
    let forest = forest.path().to_str().unwrap();
    let differs = said(&api, &[forest]).await;
    set(&api, "MachineAccountName", "Nobody");
    let unknown = said(&api, &[forest]).await;
    assert_printed("directory-differs", &[("another account and SID", differs), ("no such account", unknown)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_cannot_be_asked_is_not_checked() {
    let api = healthy().await;
    let folder = tempfile::tempdir().unwrap();
    let (password, authority) = (folder.path().join("password"), folder.path().join("ca.pem"));
    std::fs::write(&password, "secret").unwrap();
    let made = rcgen::generate_simple_self_signed(["dc1.contoso.com".to_owned()]).unwrap();
    std::fs::write(&authority, made.cert.pem()).unwrap();
    let reached = [
        "ldaps://127.0.0.1:1",
        "--directory-user",
        "alice@contoso.com",
        "--directory-password-file",
        password.to_str().unwrap(),
        "--directory-ca",
        authority.to_str().unwrap(),
    ];
    let said = said(&api, &reached).await;
    let start = "skip  directory could not be checked: cannot connect to ldaps://127.0.0.1:1: ";
    assert!(said.starts_with(start) && said.ends_with("\nexit 2\n"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_several_directories_that_cannot_be_asked_does_not_keep_the_others_from_it() {
    let api = healthy().await;
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    std::fs::write(&password, "secret").unwrap();
    let contoso = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/directory-two-forests/contoso.ldif");
    of_forest(&api, "webapp1", "WebApp1", "contoso.com", "S-1-5-21-9-9-9", "244818ae-87ac-4fcd-92ec-e79e5252348a");
    of_forest(&api, "shop", "Shop", "fabrikam.com", "S-1-5-21-7-8-9", "3b125982-591e-479d-9189-2a80af4d8de2");
    let of_password =
        ["--directory-user", "alice@fabrikam.com", "--directory-password-file", password.to_str().unwrap()];
    let ignore = ["--ignore", "contents-outdated"];
    for both in [["ldaps://127.0.0.1:1", contoso], [contoso, "ldaps://127.0.0.1:1"]] {
        let found = said(&api, &[&[both[0], "--directory", both[1]], &of_password[..], &ignore[..]].concat()).await;
        let found: Vec<&str> = found.lines().collect();
        let [shop, sid, closed, "exit 1"] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(
            *shop,
            "skip  directory shop: credspec.DomainJoinConfig: is of fabrikam.com, which is no domain of a forest that was asked [not-checked]"
        );
        assert!(
            sid.starts_with("fail  directory webapp1: credspec.DomainJoinConfig.Sid: \"S-1-5-21-9-9-9\" is not"),
            "{sid}"
        );
        let skip = "skip  directory could not be checked: cannot connect to ldaps://127.0.0.1:1: ";
        assert!(closed.starts_with(skip), "{closed}");
    }
}

/// The credential spec of an account in a forest of one domain, as `tests/cli/directory-two-forests` holds them.
fn of_forest(api: &SimulatedApi, name: &str, account: &str, dns: &str, sid: &str, guid: &str) {
    let mut spec = api.object("gmsacredentialspecs", "", "webapp1").unwrap();
    spec["metadata"]["name"] = json!(name);
    spec["credspec"]["DomainJoinConfig"] = json!({
        "DnsName": dns, "DnsTreeName": dns, "Guid": guid, "MachineAccountName": account, "NetBiosName": "CORP", "Sid": sid
    });
    let listed = [dns, "CORP"].map(|scope| json!({"Name": account, "Scope": scope}));
    spec["credspec"]["ActiveDirectoryConfig"]["GroupManagedServiceAccounts"] = json!(listed);
    api.apply(spec);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_with_two_forests_can_be_clean() {
    let api = healthy().await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/directory-two-forests");
    let [contoso, fabrikam] = ["contoso", "fabrikam"].map(|name| format!("{folder}/{name}.ldif"));
    of_forest(&api, "webapp1", "WebApp1", "contoso.com", "S-1-5-21-4-5-6", "244818ae-87ac-4fcd-92ec-e79e5252348a");
    of_forest(&api, "shop", "Shop", "fabrikam.com", "S-1-5-21-7-8-9", "3b125982-591e-479d-9189-2a80af4d8de2");
    // The pod of the healthy cluster has the contents of before.
    let ignore = ["--ignore", "contents-outdated"];
    let both = said(&api, &[&[contoso.as_str(), "--directory", &fabrikam], &ignore[..]].concat()).await;
    let one = said(&api, &[&[contoso.as_str()], &ignore[..]].concat()).await;
    assert_printed("directory-two-forests", &[("both", both), ("one", one)]);
}
