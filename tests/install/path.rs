//! The whole path with the tool alone: from the account in the directory, as PowerShell prints it, to pods that carry what a
//! changed credential spec says; and the fields that the API server refuses in a Windows pod.

use gmsa_core::admission::pod::fields::{self, LinuxField};
use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, printed},
    doctor::put_in_service,
    nodes::{join, run_pods},
    release::Release,
    tool::Tool,
};

/// What `Get-ADDomain | ConvertTo-Json` prints, the parts that matter and some that do not.
pub const DOMAIN: &str = include_str!("path/domain.json");

/// A Deployment that uses the credential spec.
const DEPLOYMENT: &str = include_str!("path/web.yaml");

/// What `Get-ADServiceAccount WebApp1 -Properties * | ConvertTo-Json` prints, the parts that matter and some that do not. The
/// account is disabled, no host may fetch its password, and its tickets are encrypted with RC4.
const ACCOUNT: &str = include_str!("path/account.json");

/// A field that only Linux has, at the end of the container.
const RUN_AS_USER: &str = "        securityContext:\n          runAsUser: 1000\n";

const CHECK: &str = "check -f webapp1.yaml -f grant.yaml -f web.yaml";
const CLEAN: &str = "no problems found in 1 object\n";

#[test]
fn from_the_account_to_the_new_contents_of_running_pods() {
    let cluster = Cluster::start();
    let tool = Tool::new(&cluster);
    at_the_desk(&tool);
    in_the_cluster(&cluster, &tool);
}

fn at_the_desk(tool: &Tool<'_>) {
    tool.write("account.json", ACCOUNT);
    let found = ["error[account-disabled]", "error[account-hosts]", "warning[account-encryption]"];
    assert_eq!(tool.finds("account lint -f account.json"), (found.map(str::to_owned).to_vec(), 1));
    let fixed = ACCOUNT
        .replace("\"Enabled\":  false", "\"Enabled\":  true")
        .replace("4098", "4096")
        .replace("                                   4\n", "                                   24\n")
        .replace("Types\":  4,", "Types\":  24,")
        .replace("Password\":  [\n\n", "Password\":  [\n\"CN=WebApp1 Hosts,CN=Users,DC=contoso,DC=com\"\n");
    tool.write("account.json", &fixed);
    assert_eq!(tool.gmsa("account lint -f account.json"), (CLEAN.to_owned(), 0));

    tool.write("domain.json", DOMAIN);
    let made = tool.gmsa("credspec new --account WebApp1 --from-ad domain.json --out webapp1.yaml");
    assert_eq!(made, ("webapp1.yaml written\n".to_owned(), 0));
    assert_eq!(tool.gmsa("account lint -f account.json --credspec webapp1.yaml"), (CLEAN.to_owned(), 0));
    let (grant, code) = tool.gmsa("grant --credspec webapp1 --serviceaccount shop:web");
    assert_eq!(code, 0);
    tool.write("grant.yaml", &grant);
    let may =
        "CREDENTIAL SPEC  BY\nwebapp1          RoleBinding gmsa-use-webapp1-web of ClusterRole gmsa-use-webapp1\n";
    tool.write("state.yaml", &format!("{}---\n{grant}", tool.read("webapp1.yaml")));
    assert_eq!(tool.gmsa("can shop:web --state state.yaml"), (may.to_owned(), 0));

    tool.write("web.yaml", &(DEPLOYMENT.to_owned() + RUN_AS_USER));
    assert_eq!(tool.finds(CHECK), (vec!["error[linux-only]".to_owned()], 1));
    tool.write("web.yaml", DEPLOYMENT);
    assert_eq!(tool.gmsa(CHECK).1, 0);
}

/// Installs the release with a replica, a Windows node and a namespace for the pods; it runs until it is dropped.
fn install<'p>(cluster: &'p Cluster, tool: &Tool<'_>) -> impl Sized + use<'p> {
    let release = Release::install(cluster);
    put_in_service(&release);
    let replica = release.start_replica();
    join(cluster, "windows-1", "windows");
    cluster.create_namespace("shop");
    printed(tool.kubectl("create serviceaccount web --namespace shop"));
    assert_eq!(tool.gmsa("doctor --wait 60").1, 0);
    (replica, release)
}

fn in_the_cluster(cluster: &Cluster, tool: &Tool<'_>) {
    let _running = install(cluster, tool);
    what_linux_has_alone(tool);
    let (dry_run, code) = tool.gmsa("grant --credspec webapp1 --serviceaccount shop:web --dry-run=server");
    assert!(dry_run.ends_with("\nthere is no credential spec webapp1 yet\n"), "{dry_run}");
    assert_eq!(code, 0);
    assert_eq!(tool.gmsa("can shop:web").0, "none\n", "a dry run grants nothing");
    printed(tool.kubectl("apply -f webapp1.yaml -f grant.yaml"));
    cluster.until("the cluster grants it", || tool.gmsa("check --live -f web.yaml").1 == 0);
    printed(tool.kubectl("apply -f web.yaml"));
    run_pods(cluster, "shop", "windows-1", 1);
    let [old] = pods(cluster).try_into().unwrap();
    assert_eq!(carried(&old), contents(tool));
    assert_eq!(tool.gmsa("outdated -A"), (CLEAN.to_owned(), 0));

    tool.gmsa(
        "credspec new --account WebApp1 --additional-account Reports --from-ad domain.json --out webapp1.yaml --force",
    );
    printed(tool.kubectl("apply -f webapp1.yaml"));
    let outdated = vec!["warning[contents-outdated]".to_owned()];
    let (report, code) = tool.gmsa("outdated -A");
    assert!(report.contains(old["metadata"]["name"].as_str().unwrap()), "{report}");
    assert_eq!((tool.finds("outdated -A"), code), ((outdated.clone(), 1), 1));
    assert_eq!(tool.finds("outdated -n shop --restart --dry-run=server"), (outdated.clone(), 1));
    assert_eq!(tool.finds("outdated -n shop --restart --yes"), (outdated, 0));
    // The old pod leaves when the new one is ready; there is no kubelet that ends it.
    run_pods(cluster, "shop", "windows-1", 2);
    cluster.until("the old pod is being deleted", || {
        pods(cluster).iter().any(|pod| !pod["metadata"]["deletionTimestamp"].is_null())
    });
    let new: Vec<Value> =
        pods(cluster).into_iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null()).collect();
    assert_eq!(new.iter().map(carried).collect::<Vec<_>>(), [contents(tool)]);
    assert!(contents(tool).contains("Reports"));
    assert_eq!(tool.gmsa("outdated -A"), (CLEAN.to_owned(), 0));

    let revoked = tool.gmsa("grant --credspec webapp1 --serviceaccount shop:web --revoke --apply");
    assert_eq!(revoked, ("rolebinding/gmsa-use-webapp1-web deleted in shop\n".to_owned(), 0));
    assert_eq!(tool.gmsa("can shop:web"), ("none\n".to_owned(), 0));
}

/// What the check said of the field is what the API server does; where the pod does not say that it is for Windows, the webhook
/// warns of it.
fn what_linux_has_alone(tool: &Tool<'_>) {
    let deployment = DEPLOYMENT.to_owned() + RUN_AS_USER;
    let applied = |name: &str, text: &str| {
        tool.write(name, text);
        let output = tool.kubectl(&format!("apply --dry-run=server -f {name}"));
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let (taken, said) = applied("refused.yaml", &deployment);
    assert!(!taken && said.contains("runAsUser: Forbidden: cannot be set for a windows pod"), "{said}");
    let (taken, said) = applied("warned.yaml", &deployment.replace("      os: {name: windows}\n", ""));
    let warning = "Warning: container \"iis\" sets securityContext.runAsUser: Windows has runAsUserName instead";
    assert!(taken && said.contains(warning), "{said}");
}

/// The pods of the Deployment.
pub fn pods(cluster: &Cluster) -> Vec<Value> {
    let pods = cluster.kubectl_prints(["get", "pods", "--namespace", "shop", "-o", "json"]);
    serde_json::from_str::<Value>(&pods).unwrap()["items"].as_array().cloned().unwrap()
}

/// The contents that a pod carries.
pub fn carried(pod: &Value) -> String {
    pod["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"].as_str().unwrap().to_owned()
}

/// What the file says that pods carry.
pub fn contents(tool: &Tool<'_>) -> String {
    let made: Value = serde_saphyr::from_str(&tool.read("webapp1.yaml")).unwrap();
    made["credspec"].to_string()
}

/// A value that the API server takes of a field on Linux.
fn value(name: &str) -> Value {
    match name {
        "hostUsers" | "allowPrivilegeEscalation" => json!(false),
        "appArmorProfile" | "seccompProfile" => json!({"type": "RuntimeDefault"}),
        "capabilities" => json!({"drop": ["ALL"]}),
        "fsGroup" | "runAsGroup" | "runAsUser" => json!(1000),
        "fsGroupChangePolicy" => json!("Always"),
        "procMount" => json!("Default"),
        "resources" => json!({"limits": {"cpu": "1"}}),
        "seLinuxChangePolicy" => json!("MountOption"),
        "seLinuxOptions" => json!({"level": "s0"}),
        "supplementalGroups" => json!([1000]),
        "supplementalGroupsPolicy" => json!("Merge"),
        "sysctls" => json!([{"name": "kernel.shm_rmid_forced", "value": "1"}]),
        _ => json!(true),
    }
}

#[test]
fn the_api_server_refuses_in_windows_pods_what_the_list_says() {
    let cluster = Cluster::start();
    let of_container =
        ["allowPrivilegeEscalation", "capabilities", "privileged", "procMount", "readOnlyRootFilesystem"];
    let mut otherwise = Vec::new();
    for LinuxField { path, is_refused, .. } in fields::all().filter(|field| field.is_refused) {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", "namespace": "default"},
            "spec": {"os": {"name": "windows"}, "containers": [{"name": "a", "image": "a"}]},
        });
        let name = path.rsplit('.').next().unwrap();
        match path.strip_prefix("securityContext.") {
            None => pod["spec"][name] = value(name),
            Some(_) if of_container.contains(&name) => {
                pod["spec"]["containers"][0]["securityContext"] = json!({name: value(name)});
            }
            Some(_) => pod["spec"]["securityContext"] = json!({name: value(name)}),
        }
        let output = cluster.kubectl_with(["create", "--dry-run=server", "-f", "-"], &pod.to_string());
        let said = String::from_utf8_lossy(&output.stderr);
        let is_so = said.contains("windows") && said.to_lowercase().contains(&name.to_lowercase());
        if output.status.success() == *is_refused || !is_so {
            otherwise.push(format!("{path}: {said}"));
        }
    }
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n"));
}
