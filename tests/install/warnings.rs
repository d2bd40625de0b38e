//! What `kubectl apply` shows of the webhooks that warn, by the chart's own wiring: the rules, whose sentences the core's tests assert; and that each can be
//! turned off.

use serde_json::{Value, json};

use crate::{
    cluster::{Cluster, Feature},
    pods::{Options, SPEC, creation, grant, pod},
    release::Release,
};

/// A Deployment with everything to warn of, and a Job and a `CronJob` that name what is not there.
const WORKLOADS: &str = include_str!("objects/workloads.yaml");

/// The credential spec with mistakes that take knowledge of domains, so the CRD takes it.
fn mistaken(name: &str) -> String {
    SPEC.replace("name: webapp1", &format!("name: {name}"))
        .replace("    DnsName: corp.example.com", "    DnsName: corp")
        .replace("    DnsTreeName: example.com", "    DnsTreeName: exa mple.com")
}

/// The rules that `kubectl` warns of, in their order, and what it complains of.
fn warned(cluster: &Cluster, command: &str, objects: &str) -> (Vec<String>, Option<String>) {
    let output = cluster.kubectl_with(&format!("{command} -f -"), objects);
    let said = String::from_utf8(output.stderr).unwrap();
    let rule = |line: &str| line.strip_prefix("Warning: ")?.rsplit_once(" [")?.1.strip_suffix(']').map(str::to_owned);
    let rules: Vec<String> = said.lines().map_while(rule).collect();
    let rest: Vec<&str> = said.lines().skip(rules.len()).collect();
    assert!(!output.status.success() || rest.is_empty(), "{said}");
    (rules, (!output.status.success()).then(|| rest.join("\n")))
}

fn assert_warned(cluster: &Cluster, objects: &str, rules: &[&str]) {
    assert_eq!(warned(cluster, "apply", objects), (rules.iter().map(|rule| (*rule).to_owned()).collect(), None));
}

#[test]
fn kubectl_apply_shows_what_will_go_wrong() {
    let cluster = Cluster::start();
    let release = Release::install_for_pods(&cluster, "");
    cluster.prints("create serviceaccount web -n apps");
    wiring(&release, &json!([["workloads", "Ignore", 2], ["credentialspecs", "Ignore", 2]]));

    let replica = release.start_replica();
    let try_out = "create --dry-run=server";
    let asks = || !warned(&cluster, try_out, &mistaken("mistaken")).0.is_empty();
    cluster.until("the API server trusts the webhook", asks);
    let of_the_deployment = ["contents-without-name", "not-authorized", "linux-node", "run-as-user"];
    let of_the_others = ["spec-missing", "not-authorized"].repeat(2);
    let mut of_workloads = [&of_the_deployment[..], &of_the_others].concat();
    of_workloads.retain(|_| cluster.has(Feature::MatchConditions));
    assert_warned(&cluster, WORKLOADS, &of_workloads);
    // An update that leaves the pods as they are says nothing new, so the API server does not ask.
    assert!(cluster.kubectl("label deployment web -n apps a=b").stderr.is_empty());
    assert_warned(&cluster, &mistaken("mistaken"), &["dns-name", "dns-tree-name"]);
    pods(&cluster);
    drop(replica);

    // With `strict`, a credential spec with mistakes is refused; one with mere warnings is not, and a deletion never is.
    release.upgrade("webhooks.credentialSpecs.strict=true");
    wiring(&release, &json!([["workloads", "Ignore", 2], ["credentialspecs", "Fail", 2]]));
    let replica = release.start_replica();
    let is_refused = || warned(&cluster, try_out, &mistaken("refused")).1.is_some();
    cluster.until("the API server asks the new replica", is_refused);
    // A single-label domain is possible.
    let (rules, said) = warned(&cluster, "apply", &mistaken("refused"));
    let by = "admission webhook \"credentialspecs.windows-gmsa.sigs.k8s.io\" denied the request: ";
    let refused = said.unwrap();
    assert!(refused.contains(by) && refused.contains("credspec.DomainJoinConfig.DnsTreeName: "), "{refused}");
    assert_eq!(rules, ["dns-name"]);
    cluster.prints("delete gmsacredentialspec mistaken");
    let one_scope = SPEC.replace("name: webapp1", "name: one-scope");
    assert_warned(&cluster, &one_scope.replace("      - {Name: WebApp1, Scope: CORP}\n", ""), &["accounts"]);
    drop(replica);

    off(&release);
}

/// The webhooks that warn, each with its failure policy and its seconds; those on workloads need match conditions.
fn wiring(release: &Release<'_>, expected: &Value) {
    let configuration = release.get("validatingwebhookconfiguration/gmsa");
    let webhooks = configuration["webhooks"].as_array().unwrap().iter().skip(1);
    let found = webhooks.map(|webhook| {
        let name = webhook["name"].as_str().unwrap().split('.').next();
        json!([name, webhook["failurePolicy"], webhook["timeoutSeconds"]])
    });
    let found: Vec<_> = found.filter(|webhook| webhook[0] != "system-namespaces").collect();
    let mut expected = expected.as_array().unwrap().clone();
    expected.retain(|webhook| webhook[0] != "workloads" || release.cluster.has(Feature::MatchConditions));
    assert_eq!(found, expected);
}

/// The advice comes along with a pod that is admitted.
fn pods(cluster: &Cluster) {
    grant(cluster, "web", &["webapp1".to_owned()]);
    let mut pod = pod("web", "pod", Options::Name, "webapp1");
    pod["spec"]["serviceAccountName"] = json!("web");
    let administrator = json!({"windowsOptions": {"runAsUserName": "ContainerAdministrator"}});
    pod["spec"]["containers"][0]["securityContext"] = administrator;
    cluster.until("the grant is in force", || creation(cluster, &pod).is_none());
    assert_warned(cluster, &pod.to_string(), &["linux-node", "run-as-user"]);
}

/// Each of them can be turned off by a value.
fn off(release: &Release<'_>) {
    let cluster = release.cluster;
    release.upgrade("webhooks.workloads.enabled=false");
    wiring(release, &json!([["credentialspecs", "Ignore", 2]]));
    let _replica = release.start_replica();
    let deployment = WORKLOADS.split("---").next().unwrap().replace("name: web,", "name: other,");
    let is_silent = |command: &str, objects: &str| warned(cluster, command, objects).0.is_empty();
    let try_out = "create --dry-run=server";
    cluster.until("workloads are not asked about", || is_silent(try_out, &deployment));
    assert_warned(cluster, &deployment, &[]);

    release.upgrade("webhooks.credentialSpecs.enabled=false");
    wiring(release, &json!([["workloads", "Ignore", 2]]));
    let unchecked = "create --dry-run=server --validate=false";
    cluster.until("credential specs are not asked about", || is_silent(unchecked, &mistaken("mistaken")));
}
