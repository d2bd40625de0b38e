//! What `doctor` says of the DNS of the cluster, on each platform.

use serde_json::{Value, json};

use super::{
    super::{
        cluster::{healthy, kind, run},
        support::{Fault, SimulatedApi, Verb},
        text,
    },
    complaints, explained,
};

const HELP: &str = "`kubectl gmsa dns --domain contoso.com --server IP --server IP` prints the zone to add. It is not needed where the domain is resolved already. \
     See docs/dns.md.";

fn map(name: &str, data: &Value) -> Value {
    let metadata = json!({"name": name, "namespace": "kube-system"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
}

/// The Corefile in place of that of the healthy cluster.
fn corefile(api: &SimulatedApi, text: &str) {
    api.apply(map("coredns", &json!({"Corefile": text})));
}

const ROOT: &str = ".:53 {\n  kubernetes cluster.local\n  forward . /etc/resolv.conf\n}\n";

/// The line about DNS of a cluster with these objects.
async fn line(change: impl FnOnce(&SimulatedApi)) -> String {
    let api = healthy().await;
    change(&api);
    let output = run(&api, &["doctor"]).await;
    let lines: Vec<&str> = text(&output.stdout).lines().filter(|line| line.get(6..10) == Some("DNS ")).collect();
    let [line] = lines[..] else { panic!("{}", text(&output.stdout)) };
    line.replace("                ", " ")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_without_a_zone_is_a_note_with_the_command() {
    let api = healthy().await;
    corefile(&api, ROOT);
    let output = run(&api, &["doctor"]).await;
    let said = format!(
        "note  DNS                contoso.com: no zone is for it, and all other names go to the resolvers of the nodes that the DNS runs on \
         (/etc/resolv.conf, ConfigMap kube-system/coredns): this works where they know the domain [dns-zone]\n                         -> {HELP}\n"
    );
    assert!(text(&output.stdout).contains(&said), "{}", text(&output.stdout));
    // It may work, so it is no fault.
    assert_eq!(output.status.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_do_not_know_the_domain_are_found() {
    let servers = |servers: &str| format!("{ROOT}contoso.com {{\n  forward . {servers}\n}}\n");
    let said = |level: &str, servers: &str, problem: &str, rule: &str| {
        format!(
            "{level} DNS: contoso.com: the zone contoso.com goes to {servers} (ConfigMap kube-system/coredns){problem} [{rule}]"
        )
    };
    let public = ": public resolvers do not know it, and are asked too";
    for (written, expected) in [
        ("10.0.0.4", said("warn", "10.0.0.4", "", "dns-servers")),
        ("10.0.0.4 8.8.8.8", said("fail", "10.0.0.4, 8.8.8.8", public, "dns-resolvers")),
        ("10.0.0.4 1.1.1.1 {\n policy sequential\n }", said("warn", "10.0.0.4, 1.1.1.1", public, "dns-resolvers")),
        ("8.8.8.8 8.8.4.4", said("fail", "8.8.8.8, 8.8.4.4", ": public resolvers do not know it", "dns-resolvers")),
        (
            "10.0.0.4 /etc/resolv.conf",
            said(
                "warn",
                "10.0.0.4, /etc/resolv.conf",
                ": the resolvers of the node are asked too, and may not know it",
                "dns-resolvers",
            ),
        ),
    ] {
        assert_eq!(complaints(|api| corefile(api, &servers(written))).await, [expected]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zone_that_gets_no_question_is_found() {
    let found =
        explained(|api| corefile(api, &format!("{ROOT}contoso.com:5353 {{\n  forward . 10.0.0.4 10.0.0.5\n}}\n")))
            .await;
    let text = "warn DNS: contoso.com: its zone in ConfigMap kube-system/coredns is at port 5353, and pods ask at port 53 [dns-zone]";
    assert_eq!(found, [(text.to_owned(), "Write the zone as `contoso.com:53`.".to_owned())]);

    let found = explained(|api| corefile(api, "cluster.local {\n  kubernetes\n}\n")).await;
    let text = "fail DNS: contoso.com: no zone of ConfigMap kube-system/coredns is for it, and none for all other names [dns-zone]";
    assert_eq!(found, [(text.to_owned(), HELP.to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_corefile_with_which_coredns_does_not_start_is_found() {
    let found = complaints(|api| corefile(api, &format!("{ROOT}contoso.com {{\n  forward . 10.0.0.4\n"))).await;
    let text =
        "fail DNS: ConfigMap kube-system/coredns: line 6: a server block has no } at its end [dns-configuration]";
    assert_eq!(found, [text]);
    let found = complaints(|api| {
        api.apply(map("coredns", &json!({})));
    })
    .await;
    assert_eq!(found, ["fail DNS: ConfigMap kube-system/coredns: it has no Corefile [dns-configuration]"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_read_or_is_not_known_is_neither() {
    let found = complaints(|api| api.fault(Verb::Get, "/configmaps/coredns", usize::MAX, Fault::forbidden())).await;
    assert_eq!(found, ["skip DNS: could not be checked: the API server answered 403: not allowed here [not-checked]"]);

    let found = complaints(|api| corefile(api, &format!("{ROOT}import /etc/other/*.conf\n"))).await;
    let unread = "the Corefile of ConfigMap kube-system/coredns has \"import /etc/other/*.conf\", which may be about contoso.com";
    assert_eq!(found, [format!("skip DNS: could not be checked: {unread} [not-checked]")]);

    let found = explained(|api| api.delete("configmaps", "kube-system", "coredns")).await;
    let none = "there is no ConfigMap coredns, rke2-coredns-rke2-coredns or kube-dns in kube-system, and no dns.operator.openshift.io";
    let remedy = "Find out what answers the DNS questions of pods (on GKE perhaps Cloud DNS), and whether it forwards the domain. See docs/dns.md.";
    assert_eq!(found, [(format!("skip DNS: could not be checked: {none} [not-checked]"), remedy.to_owned())]);

    // Without a credential spec nobody asks for a domain.
    let found = complaints(|api| {
        api.delete("configmaps", "kube-system", "coredns");
        api.delete("gmsacredentialspecs", "", "webapp1");
        api.delete("pods", "shop", "web");
    })
    .await;
    assert_eq!(found, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_platform_is_read() {
    // AKS and k3s.
    let zone = "contoso.com:53 {\n  forward . 10.0.0.6 10.0.0.7\n}\n";
    let custom = line(|api| {
        corefile(api, &format!("{ROOT}import custom/*.server\n"));
        api.apply(map("coredns-custom", &json!({"contoso.server": zone, "notes": "}"})));
    })
    .await;
    assert_eq!(
        custom,
        "pass  DNS contoso.com: the zone contoso.com goes to 10.0.0.6, 10.0.0.7 (ConfigMap kube-system/coredns)"
    );

    let rke2 = line(|api| {
        api.delete("configmaps", "kube-system", "coredns");
        api.apply(map("rke2-coredns-rke2-coredns", &json!({"Corefile": format!("{ROOT}{zone}")})));
    })
    .await;
    assert_eq!(
        rke2,
        "pass  DNS contoso.com: the zone contoso.com goes to 10.0.0.6, 10.0.0.7 (ConfigMap kube-system/rke2-coredns-rke2-coredns)"
    );

    let gke = line(|api| {
        api.delete("configmaps", "kube-system", "coredns");
        api.apply(map("kube-dns", &json!({"stubDomains": "{\"contoso.com\": [\"10.0.0.8\", \"10.0.0.9\"]}"})));
    })
    .await;
    assert_eq!(
        gke,
        "pass  DNS contoso.com: the zone contoso.com goes to 10.0.0.8, 10.0.0.9 (ConfigMap kube-system/kube-dns)"
    );

    let openshift = line(|api| {
        api.delete("configmaps", "kube-system", "coredns");
        api.define(kind("operator.openshift.io/v1", "DNS", "dnses", false));
        let servers = json!([{"name": "ad", "zones": ["contoso.com"], "forwardPlugin": {"policy": "Random", "upstreams": ["10.0.0.2", "10.0.0.3"]}}]);
        api.apply(json!({"apiVersion": "operator.openshift.io/v1", "kind": "DNS", "metadata": {"name": "default"}, "spec": {"servers": servers}}));
    })
    .await;
    assert_eq!(openshift, "pass  DNS contoso.com: the zone contoso.com goes to 10.0.0.2, 10.0.0.3 (DNS default)");
}
