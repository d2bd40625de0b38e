//! The chart of many accounts on a control plane: an entry from the tool, what an upgrade revokes and what it keeps, and the end of the release.

use std::fs;

use serde_json::Value;

use crate::{
    cluster::{Cluster, complaint},
    desk::{Desk, block, cases},
    objects::CRD,
    pods::SPEC,
};

const ACCOUNTS: &str = "charts/gmsa-accounts";
const PAGE: &str = "charts/gmsa-accounts/README.md";
const NEW: &str = "credspec new --account WebApp1 --from-ad domain.json";

/// The objects of the releases, and the ones that they left.
fn objects(cluster: &Cluster) -> Vec<String> {
    let kinds = "gmsacredentialspecs,clusterroles,rolebindings -A -l app.kubernetes.io/name=gmsa-accounts";
    let short = |line: &str| line.replace(".rbac.authorization.k8s.io", "").replace(".windows.k8s.io", "");
    let mut names: Vec<String> = cluster.names(kinds).lines().map(short).collect();
    names.sort();
    names
}

/// A cluster that knows the kind, with a namespace.
fn cluster() -> Cluster {
    let cluster = Cluster::start();
    cluster.define(CRD);
    cluster.create_namespace("shop");
    cluster
}

#[test]
fn accounts_come_and_grants_go_with_the_list() {
    let cluster = cluster();
    let desk = Desk::new(&cluster);
    desk.write("domain.json", include_str!("objects/domain.json"));
    let (values, code) = desk.gmsa(&format!("{NEW} -o values"));
    assert_eq!(code, 0);
    desk.write("values.yaml", &values);
    let file = desk.path("values.yaml");
    let run = |command: &str, more: &str| {
        cluster.helm_prints(&format!("{command} accounts {ACCOUNTS} -n shop --values {} {more}", file.display()));
    };
    let granted = |grants: &str| format!("--set accounts[1].account=db,accounts[1].grants={{{grants}}}");
    run("install", &granted("shop:till,shop:default"));
    let stays = [
        "clusterrole/gmsa-use-db",
        "clusterrole/gmsa-use-webapp1",
        "gmsacredentialspec/db",
        "gmsacredentialspec/webapp1",
    ];
    let bindings = ["rolebinding/gmsa-use-db-default", "rolebinding/gmsa-use-db-till"];
    assert_eq!(objects(&cluster), [&stays[..], &bindings].concat());
    // What the tool prints as a manifest, and what the chart makes of its values, is the same credential spec.
    let manifest: Value = serde_saphyr::from_str(&desk.gmsa(NEW).0).unwrap();
    assert_eq!(cluster.get("gmsacredentialspec webapp1")["credspec"], manifest["credspec"]);
    let holders = || {
        let list = desk.gmsa("who-can db -o json").0;
        ["till", "default"].map(|name| list.contains(&format!("\"{name}\"")))
    };
    assert_eq!(holders(), [true, true]);

    // A grant that is removed is revoked.
    run("upgrade", &granted("shop:till"));
    assert_eq!(objects(&cluster), [&stays[..], &bindings[1..]].concat());
    assert_eq!(holders(), [true, false]);
    // An entry that is removed leaves its credential spec; one that comes back finds it.
    desk.write("values.yaml", &values.replace("account: WebApp1", "account: Other").replace("webapp1", "other"));
    run("upgrade", "");
    let count = |kind: &str| objects(&cluster).iter().filter(|name| name.starts_with(kind)).count();
    assert_eq!((count("gmsacredentialspec/"), count("rolebinding/")), (3, 0), "{:?}", objects(&cluster));
    desk.write("values.yaml", &values);
    run("upgrade", &granted("shop:till"));
    assert!(objects(&cluster).contains(&bindings[1].to_owned()));

    cluster.helm_prints("uninstall accounts -n shop");
    let left = ["gmsacredentialspec/", "clusterrole/", "rolebinding/"].map(count);
    assert_eq!(left, [3, 3, 0], "{:?}", objects(&cluster));
    assert_eq!(desk.gmsa("who-can db").1, 0);
}

/// Runs helm for a release with these accounts; gives back what it complains of.
fn run(cluster: &Cluster, command: &str, release: &str, accounts: &str) -> Option<String> {
    let file = cluster.folder().join("accounts.yaml");
    fs::write(&file, include_str!("objects/accounts.yaml").replace("ACCOUNTS", accounts)).unwrap();
    complaint(cluster.helm(&format!("{command} {release} {ACCOUNTS} -n shop --values {}", file.display())))
}

/// What would end in the middle, or have pods refused, is refused with its entry; and the ways that README.md names instead.
#[test]
fn what_would_end_in_the_middle_or_refuse_pods_is_refused_with_its_entry() {
    let cluster = cluster();
    let desk = Desk::new(&cluster);
    let run = |command: &str, release: &str, accounts: &str| run(&cluster, command, release, accounts);
    let refused = |command: &str, release: &str, accounts: &str| {
        let before = objects(&cluster);
        let said = run(command, release, accounts).unwrap();
        assert_eq!(objects(&cluster), before, "{said}");
        said.split_once("): ").unwrap().1.to_owned()
    };
    let web = "{account: web, grants: ['shop:till']}";
    assert_eq!(run("install", "a", &format!("[{web}, {{account: db, grants: ['shop:db']}}]")), None);
    for (accounts, said) in cases("refused/accounts") {
        assert_eq!(refused("upgrade", "a", &accounts), said);
    }
    // What README.md says instead of another name.
    let renamed = "{account: Web, name: till, grants: ['shop:till']}";
    assert_eq!(run("upgrade", "a", &format!("[{renamed}, {web}]")), None);
    let renamed = format!("[{renamed}]");
    assert_eq!(run("upgrade", "a", &renamed), None);
    // Two releases with one account.
    for command in ["install", "install --take-ownership"] {
        let said = refused(command, "b", &renamed);
        let theirs = "values: accounts[0]: the credential spec \"till\" is of the release a in namespace shop: ";
        assert!(said.starts_with(theirs), "{said}");
    }

    // What is kept and in no list.
    let kept = block(PAGE, "sh", "comm -23").replace("=accounts namespace=gmsa-webhook", "=a namespace=shop");
    let names = "gmsacredentialspec.windows.k8s.io/db\ngmsacredentialspec.windows.k8s.io/web\n";
    assert_eq!(desk.run(&kept), names);

    // An entry moves to another release, and its grant is there all the while.
    assert_eq!(run("upgrade --set keepGrants=true", "a", &renamed), None);
    assert_eq!(run("upgrade --set keepGrants=true", "a", "[]"), None);
    let grant = || cluster.uid("rolebinding gmsa-use-till-till -n shop");
    let before = grant();
    let page = fs::read_to_string(PAGE).unwrap();
    let step = page.lines().find_map(|line| line.strip_prefix("2. `")).unwrap();
    desk.run(&step.trim_end_matches('`').replace("NAME", "till"));
    assert_eq!(run("install --take-ownership", "b", &renamed), None);
    cluster.helm_prints("uninstall a -n shop");
    assert_eq!(grant(), before);

    // As README.md says: of what kubectl applied, Helm 4 takes the ownership and not the fields.
    cluster.apply(&SPEC.replace("webapp1", "sql").replace("corp.example.com", "a.example.com"));
    let take_over = "upgrade --install --take-ownership";
    let said = run(take_over, "c", "[{account: sql}]").unwrap();
    assert!(said.contains("conflicts with \"kubectl-client-side-apply\""), "{said}");
    assert_eq!(run(&format!("{take_over} --force-conflicts"), "c", "[{account: sql}]"), None);
    let spec = cluster.get("gmsacredentialspec sql");
    assert_eq!(spec["credspec"]["DomainJoinConfig"]["DnsName"], "corp.example.com");
}
