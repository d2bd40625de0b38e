//! The chart of many accounts on a control plane: an entry from the tool, what an upgrade revokes and what it keeps, and the end of the release.

use serde_json::{Value, json};

use crate::{cluster::Cluster, helm::Helm, tool::Tool};

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
    let cluster = Cluster::start();
    cluster.apply(include_str!("../../charts/gmsa-webhook/crds/gmsacredentialspecs.yaml"));
    cluster.kubectl_prints(["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
    cluster.until("the kind is served", || cluster.kubectl(["get", "gmsacredentialspecs"]).status.success());
    cluster.create_namespace("shop");
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
