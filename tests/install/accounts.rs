//! The chart of many accounts on a control plane: an entry from the tool, what an upgrade revokes and what it keeps, and the end of the release.

use std::fs;

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, printed},
    helm::Helm,
    pods::complaint,
    tool::Tool,
};

const ACCOUNTS: &str = "charts/gmsa-accounts";
const NEW: &str = "credspec new --account WebApp1 --domain corp.example.com --netbios CORP --forest example.com \
                   --domain-sid S-1-5-21-2126449477-2524075714-3094792973 --domain-guid 244818ae-87ac-4fcd-92ec-e79e5252348a";

/// The objects of the release, and those that it left.
fn objects(cluster: &Cluster) -> Vec<String> {
    let kinds = "gmsacredentialspecs,clusterroles,rolebindings";
    let label = "app.kubernetes.io/name=gmsa-accounts";
    let printed = cluster.kubectl_prints(["get", kinds, "--all-namespaces", "-l", label, "-o", "name"]);
    let mut names: Vec<String> = printed
        .lines()
        .map(|line| line.replace(".rbac.authorization.k8s.io", "").replace(".windows.k8s.io", ""))
        .collect();
    names.sort();
    names
}

#[test]
fn accounts_come_and_grants_go_with_the_list() {
    let cluster = cluster();
    let tool = Tool::new(&cluster);
    let (values, code) = tool.gmsa(&format!("{NEW} -o values"));
    assert_eq!(code, 0);
    tool.write("values.yaml", &values);
    let helm = Helm::of_cluster(&cluster.kubeconfig());
    let file = tool.path("values.yaml");
    let file = file.to_str().unwrap();
    let run = |command: &str, grants: &str| {
        let set = format!("accounts[1].account=db,accounts[1].grants={{{grants}}}");
        helm.prints([command, "accounts", ACCOUNTS, "--namespace", "shop", "--values", file, "--set", &set]);
    };
    run("install", "shop:till,shop:default");
    let stays = [
        "clusterrole/gmsa-use-db",
        "clusterrole/gmsa-use-webapp1",
        "gmsacredentialspec/db",
        "gmsacredentialspec/webapp1",
    ];
    let bindings = ["rolebinding/gmsa-use-db-default", "rolebinding/gmsa-use-db-till"];
    assert_eq!(objects(&cluster), [&stays[..], &bindings].concat());
    // What the tool prints as a manifest, and what the chart makes of its values, is the same credential spec.
    let (manifest, _) = tool.gmsa(NEW);
    let manifest: Value = serde_saphyr::from_str(&manifest).unwrap();
    let made = cluster.kubectl_prints(["get", "gmsacredentialspec", "webapp1", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&made).unwrap()["credspec"], manifest["credspec"]);
    let holders = || tool.gmsa("who-can db -o json").0;
    let named = |name: &str| holders().contains(&format!("\"{name}\""));
    assert!(named("till") && named("default"), "{}", holders());

    // A grant that is removed is revoked.
    run("upgrade", "shop:till");
    assert_eq!(objects(&cluster), [&stays[..], &bindings[1..]].concat());
    assert!(named("till") && !named("default"), "{}", holders());
    // An entry that is removed leaves its credential spec; one that comes back finds it.
    let edited = values.replace("account: WebApp1", "account: Other").replace("name: webapp1", "name: other");
    tool.write("values.yaml", &edited);
    helm.prints(["upgrade", "accounts", ACCOUNTS, "--namespace", "shop", "--values", file]);
    let now = objects(&cluster);
    assert_eq!(now.iter().filter(|name| name.starts_with("gmsacredentialspec/")).count(), 3, "{now:?}");
    assert!(!now.iter().any(|name| name.starts_with("rolebinding/")), "{now:?}");
    tool.write("values.yaml", &values);
    run("upgrade", "shop:till");
    assert!(objects(&cluster).contains(&bindings[1].to_owned()));

    helm.prints(["uninstall", "accounts", "--namespace", "shop"]);
    let left = objects(&cluster);
    let of_kind = |kind: &str| left.iter().filter(|name| name.starts_with(kind)).count();
    assert_eq!(
        (of_kind("gmsacredentialspec/"), of_kind("clusterrole/"), of_kind("rolebinding/")),
        (3, 3, 0),
        "{left:?}"
    );
    assert_eq!(json!(tool.gmsa("who-can db").1), 0);
}

/// A cluster that knows the kind, with a namespace.
fn cluster() -> Cluster {
    let cluster = Cluster::start();
    cluster.apply(include_str!("../../charts/gmsa-webhook/crds/gmsacredentialspecs.yaml"));
    cluster.until("the kind is served", || cluster.kubectl(["get", "gmsacredentialspecs"]).status.success());
    cluster.create_namespace("shop");
    cluster
}

const VALUES: &str = "{domain: {dnsName: corp.example.com, netBiosName: CORP, guid: 244818ae-87ac-4fcd-92ec-e79e5252348a, sid: S-1-5-21-1-2-3}, accounts: ACCOUNTS}";

/// What would end in the middle, or have pods refused, is refused with its entry; and the ways that README.md names instead.
#[test]
fn what_would_end_in_the_middle_or_refuse_pods_is_refused_with_its_entry() {
    let cluster = cluster();
    let helm = Helm::of_cluster(&cluster.kubeconfig());
    let file = cluster.folder().join("accounts.yaml");
    let run = |command: &[&str], release: &str, accounts: &str| {
        fs::write(&file, VALUES.replace("ACCOUNTS", accounts)).unwrap();
        let more = [release, ACCOUNTS, "--namespace", "shop", "--values", file.to_str().unwrap()];
        complaint(helm.run(command.iter().copied().chain(more)))
    };
    let refused = |command: &[&str], release: &str, accounts: &str| {
        let before = objects(&cluster);
        let said = run(command, release, accounts).unwrap();
        assert_eq!(objects(&cluster), before, "{said}");
        said.split_once("): ").map_or(said.clone(), |(_, said)| said.to_owned())
    };
    let web = "{account: web, grants: ['shop:till']}";
    assert_eq!(run(&["install"], "a", &format!("[{web}, {{account: db, grants: ['shop:db']}}]")), None);

    // A grant in a namespace that there is not, beside one that is revoked.
    assert_eq!(
        refused(&["upgrade"], "a", &format!("[{web}, {{account: db, grants: ['nowhere:db']}}]")),
        "accounts[1]: grant \"nowhere:db\": there is no namespace nowhere: create it, or remove the grant"
    );
    // Another name, and what README.md says instead.
    let renamed = "{account: Web, name: till, grants: ['shop:till']}";
    assert_eq!(
        refused(&["upgrade"], "a", &format!("[{renamed}]")),
        "accounts[0]: the name of account Web changes from \"web\" to \"till\", so pods that name \"web\" would be refused at once: keep an entry with name: web and its \
         grants beside this one until no workload names it, or delete the credential spec web if none does"
    );
    assert_eq!(run(&["upgrade"], "a", &format!("[{renamed}, {web}]")), None);
    assert_eq!(run(&["upgrade"], "a", &format!("[{renamed}]")), None);
    // Two releases with one account.
    let theirs = "accounts[0]: the credential spec \"till\" is of the release a in namespace shop: remove the entry here or there, or give this one another name; to \
                  move it here, see README.md, \"Move an entry\"";
    for command in [&["install"][..], &["install", "--take-ownership"]] {
        assert_eq!(refused(command, "b", &format!("[{renamed}]")), theirs);
    }

    // What is kept and in no list.
    let page = fs::read_to_string("charts/gmsa-accounts/README.md").unwrap();
    let block = page.split("```sh\n").find(|block| block.contains("comm -23")).unwrap().split("```").next().unwrap();
    let block = block.replace("release=accounts namespace=gmsa-webhook", "release=a namespace=shop");
    let kept = printed(cluster.command("bash").args(["-ec", &block]).output().unwrap());
    assert_eq!(kept, "gmsacredentialspec.windows.k8s.io/db\ngmsacredentialspec.windows.k8s.io/web\n");

    // An entry moves to another release, and its grant is there all the while.
    assert_eq!(run(&["upgrade", "--set", "keepGrants=true"], "a", &format!("[{renamed}]")), None);
    assert_eq!(run(&["upgrade", "--set", "keepGrants=true"], "a", "[]"), None);
    let grant = || {
        cluster.kubectl_prints([
            "get",
            "rolebinding",
            "gmsa-use-till-till",
            "-n",
            "shop",
            "-o",
            "jsonpath={.metadata.uid}",
        ])
    };
    let before = grant();
    let line =
        page.lines().find_map(|line| line.strip_prefix("2. `")).unwrap().trim_end_matches('`').replace("NAME", "till");
    printed(cluster.command("bash").args(["-ec", &line]).output().unwrap());
    assert_eq!(run(&["install", "--take-ownership"], "b", &format!("[{renamed}]")), None);
    helm.prints(["uninstall", "a", "--namespace", "shop"]);
    assert_eq!(grant(), before);
}

/// As README.md says: of what kubectl applied, Helm 4 takes the ownership and not the fields.
#[test]
fn a_credential_spec_that_kubectl_applied_is_taken_over() {
    let cluster = cluster();
    let spec = "{apiVersion: windows.k8s.io/v1, kind: GMSACredentialSpec, metadata: {name: web}, credspec: {CmsPlugins: [ActiveDirectory], DomainJoinConfig: {DnsName: a.example.com, \
                DnsTreeName: a.example.com, Guid: 244818ae-87ac-4fcd-92ec-e79e5252348a, MachineAccountName: web, NetBiosName: CORP, Sid: S-1-5-21-1-2-3}, ActiveDirectoryConfig: \
                {GroupManagedServiceAccounts: [{Name: web, Scope: CORP}]}}}";
    cluster.apply(spec);
    let helm = Helm::of_cluster(&cluster.kubeconfig());
    let file = cluster.folder().join("accounts.yaml");
    fs::write(&file, VALUES.replace("ACCOUNTS", "[{account: web}]")).unwrap();
    let install = [
        "upgrade",
        "--install",
        "a",
        ACCOUNTS,
        "--namespace",
        "shop",
        "--take-ownership",
        "--values",
        file.to_str().unwrap(),
    ];
    let said = complaint(helm.run(install)).unwrap();
    assert!(said.contains("conflicts with \"kubectl-client-side-apply\""), "{said}");
    assert_eq!(complaint(helm.run(install.into_iter().chain(["--force-conflicts"]))), None);
    let dns = ["get", "gmsacredentialspec", "web", "-o", "jsonpath={.credspec.DomainJoinConfig.DnsName}"];
    assert_eq!(cluster.kubectl_prints(dns), "corp.example.com");
}
