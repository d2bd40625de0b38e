//! The whole path with the tool alone: from the domain, as PowerShell prints it, to pods that carry what a changed credential spec says; and the fields that
//! the API server refuses in a Windows pod.

use gmsa_core::admission::pod::fields::{self, LinuxField};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature},
    desk::Desk,
    doctor::put_in_service,
    installed::contents,
    nodes::{join, name, run_pods},
    release::Release,
};

/// What `Get-ADDomain | ConvertTo-Json` prints, the parts that matter and some that do not.
pub const DOMAIN: &str = include_str!("objects/domain.json");

#[test]
fn from_the_domain_to_the_new_contents_of_running_pods() {
    let cluster = Cluster::start();
    let desk = Desk::new(&cluster);
    desk.write("domain.json", DOMAIN);
    let new = "credspec new --account WebApp1 --from-ad domain.json --out webapp1.yaml";
    assert_eq!(desk.gmsa(new).1, 0);
    let grant = "grant --credspec webapp1 --serviceaccount shop:web";
    desk.write("grant.yaml", &desk.gmsa(grant).0);
    desk.write("web.yaml", include_str!("objects/web.yaml"));

    let release = Release::install(&cluster, "");
    put_in_service(&release);
    let _replica = release.start_replica();
    join(&cluster, "windows-1", "windows");
    cluster.create_namespace("shop");
    cluster.prints("create serviceaccount web -n shop");
    assert_eq!(desk.gmsa("doctor --wait 60s").1, 0);

    // Where the pod does not say that it is for Windows, the API server takes what only Linux has, and the webhook warns of it.
    let for_any = include_str!("objects/web.yaml").replace("      os: {name: windows}\n", "");
    let for_any = for_any + "        securityContext:\n          runAsUser: 1000\n";
    let output = cluster.kubectl_with("apply --dry-run=server -f -", &for_any);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said.contains(" [linux-only]\n"), cluster.has(Feature::MatchConditions), "{said}");

    let dry_run = desk.gmsa(&format!("{grant} --dry-run=server"));
    assert_eq!(dry_run.1, 0);
    assert_eq!(
        desk.gmsa("who-can --serviceaccount shop:web").0,
        "shop:web may use no credential spec\n",
        "a dry run grants nothing"
    );
    desk.run("kubectl apply -f webapp1.yaml -f grant.yaml");
    cluster.until("the cluster grants it", || desk.gmsa("check --live -f web.yaml").1 == 0);
    desk.run("kubectl apply -f web.yaml");
    run_pods(&cluster, "shop", "windows-1", 1);
    let written = || serde_saphyr::from_str::<Value>(&desk.read("webapp1.yaml")).unwrap()["credspec"].take();
    let old = cluster.list("pods -n shop").remove(0);
    assert_eq!(contents(&old), written());
    assert_eq!(desk.finds("outdated -A"), (Vec::new(), 0));

    desk.gmsa(&format!("{new} --additional-account Reports --force"));
    assert!(written().to_string().contains("Reports"));
    desk.run("kubectl apply -f webapp1.yaml");
    let outdated = "warning contents-outdated Deployment shop/web".to_owned();
    assert_eq!(desk.finds("outdated -A"), (vec![outdated], 1));
    let (report, _) = desk.gmsa("outdated -A");
    assert!(report.contains(name(&old)), "{report}");
    desk.run("kubectl rollout restart -n shop $(kubectl gmsa outdated -n shop -o name)");
    // The old pod leaves when the new one is ready; there is no kubelet that ends it.
    run_pods(&cluster, "shop", "windows-1", 2);
    let staying = || {
        let mut pods = cluster.list("pods -n shop");
        pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        pods
    };
    cluster.until("the old pod is being deleted", || staying().len() == 1);
    assert_eq!(contents(&staying()[0]), written());
    assert_eq!(desk.finds("outdated -A"), (Vec::new(), 0));

    assert_eq!(desk.gmsa(&format!("{grant} --revoke --apply")).1, 0);
    assert_eq!(desk.gmsa("who-can --serviceaccount shop:web").0, "shop:web may use no credential spec\n");
}

#[test]
fn the_api_server_refuses_in_windows_pods_what_the_list_says() {
    let cluster = Cluster::start();
    if cluster.lacks(Feature::PodResources) {
        return;
    }
    // Values that the API server takes on Linux; of the others it takes `true`.
    let values: Value = serde_json::from_str(include_str!("objects/linux-fields.json")).unwrap();
    let of_container =
        ["allowPrivilegeEscalation", "capabilities", "privileged", "procMount", "readOnlyRootFilesystem"];
    let mut otherwise = Vec::new();
    for LinuxField { path, .. } in fields::FIELDS.iter().filter(|field| field.is_refused) {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": "default"},
            "spec": {"os": {"name": "windows"}, "containers": [{"name": "a", "image": "a"}]},
        });
        let name = path.rsplit('.').next().unwrap();
        let value = values.get(name).cloned().unwrap_or(json!(true));
        match path.strip_prefix("securityContext.") {
            None => pod["spec"][name] = value,
            Some(_) if of_container.contains(&name) => {
                pod["spec"]["containers"][0]["securityContext"] = json!({name: value});
            }
            Some(_) => pod["spec"]["securityContext"] = json!({name: value}),
        }
        let output = cluster.kubectl_with("create --dry-run=server -f -", &pod.to_string());
        let said = String::from_utf8_lossy(&output.stderr);
        let names_it = said.contains("windows") && said.to_lowercase().contains(&name.to_lowercase());
        if output.status.success() || !names_it {
            otherwise.push(format!("{path}: {said}"));
        }
    }
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n"));
}
