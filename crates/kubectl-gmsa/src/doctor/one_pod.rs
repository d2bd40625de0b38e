//! One pod, from admission to node.

use std::collections::HashMap;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Line, text,
    usage::{Slots, slots},
};
use crate::connect::{CALL, Cluster};
use gmsa_cluster::authorizer::{Authorizer as _, access_review::AccessReviews};
use gmsa_core::{
    admission::{Subject, UseFact, advice::advise, pod::Pod},
    credspec::{Contents, GROUP, PLURAL, SpecName, VERSION, is_dns_subdomain},
};

const ADMISSION: &str = "admission";
const SPEC: &str = "credential spec";
const PERMISSION: &str = "permission";
const NODE: &str = "node";
const NEXT: &str = "in the pod";

/// Explains a pod, `NAMESPACE/NAME`.
pub(super) async fn explain(cluster: &Cluster, pod: &str) -> anyhow::Result<Vec<Line>> {
    let (namespace, name) = pod.split_once('/').unwrap_or((&cluster.namespace, pod));
    if !is_dns_subdomain(namespace) || !is_dns_subdomain(name) {
        bail!("{pod:?} is not NAMESPACE/NAME of a pod");
    }
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let value = cluster.find(&path).await?.with_context(|| format!("there is no pod {namespace}/{name}"))?;
    let body = value.to_string();
    let pod = Pod::from_json(&body).context("the pod cannot be understood")?;
    let mut names: Vec<SpecName> = pod.slots().filter_map(|slot| slot.name.and_then(SpecName::parse)).collect();
    names.sort();
    names.dedup();
    let mut specs = Vec::new();
    let mut lines = Vec::new();
    for name in &names {
        let spec = cluster.find(&format!("/apis/{GROUP}/{VERSION}/{PLURAL}/{name}")).await?;
        if spec.is_none() {
            lines.push(Line::fail(SPEC, format!("{name} does not exist"), format!("kubectl gmsa credspec new {name}")));
        }
        specs.extend(spec.map(|spec| (name, spec)));
        lines.push(permission(cluster, namespace, &pod, name).await);
    }
    let contents: HashMap<&str, Contents> = specs
        .iter()
        .filter_map(|(name, spec)| Some((name.as_str(), Contents::of(spec.get("credspec")?.as_object()?))))
        .collect();
    lines.insert(0, admitted(&pod, &contents));
    for advice in advise(&pod) {
        lines.push(Line::warn(NODE, advice.text, "see docs/windows-placement.md"));
    }
    lines.extend(placed(&value));
    let runs = text(&value, "/status/phase") == "Running";
    for (_, spec) in specs.iter().filter(|_| runs) {
        lines.push(commands(namespace, name, spec));
    }
    Ok(lines)
}

fn admitted(pod: &Pod, contents: &HashMap<&str, Contents>) -> Line {
    match slots(pod, contents) {
        Slots::NoGmsa => {
            Line::warn(ADMISSION, "the pod does not use GMSA", "set windowsOptions.gmsaCredentialSpecName")
        }
        Slots::Good => Line::pass(ADMISSION, "the pod carries the contents of its credential spec"),
        Slots::Bare => Line::fail(
            ADMISSION,
            "the pod names a credential spec and carries no contents: the webhook did not see it",
            "delete it: its controller makes a new one; then run doctor without --pod",
        ),
        Slots::Outdated => Line::warn(
            ADMISSION,
            "the pod carries other contents than its credential spec has now",
            "delete it: its controller makes a new one",
        ),
    }
}

async fn permission(cluster: &Cluster, namespace: &str, pod: &Pod, name: &SpecName) -> Line {
    let account = pod.service_account();
    let subject = Subject { namespace: namespace.into(), service_account: account.into() };
    let reviews = AccessReviews::new(std::sync::Arc::clone(&cluster.api));
    match reviews.may_use(&subject, name, Instant::now() + CALL).await.fact {
        UseFact::Allowed => Line::pass(PERMISSION, format!("{namespace}:{account} may use {name}")),
        UseFact::Denied { .. } => Line::fail(
            PERMISSION,
            format!("{namespace}:{account} may not use {name}"),
            format!("kubectl gmsa grant --credspec {name} --serviceaccount {namespace}:{account} --apply"),
        ),
        UseFact::Failed(failure) => {
            Line::warn(PERMISSION, failure.cause, "run this as somebody who may create access reviews")
        }
    }
}

fn placed(pod: &Value) -> Vec<Line> {
    let node = text(pod, "/spec/nodeName");
    let phase = text(pod, "/status/phase");
    if node.is_empty() {
        let why = super::items(pod, "/status/conditions").find(|found| text(found, "/type") == "PodScheduled");
        let why = why.map(|found| text(found, "/message")).filter(|why| !why.is_empty());
        let why = why.unwrap_or("the scheduler has not looked at it");
        return vec![Line::fail(NODE, format!("no node has the pod yet: {why}"), "see docs/windows-placement.md")];
    }
    let waiting = super::items(pod, "/status/containerStatuses")
        .filter_map(|status| status.pointer("/state/waiting"))
        .map(|waiting| format!("{}: {}", text(waiting, "/reason"), text(waiting, "/message")));
    let waiting: Vec<String> = waiting.collect();
    vec![if waiting.is_empty() {
        Line::pass(NODE, format!("{phase} on {node}"))
    } else {
        Line::fail(NODE, format!("{phase} on {node}, waiting: {}", waiting.join("; ")), "see docs/troubleshooting.md")
    }]
}

/// What only the pod itself can say.
fn commands(namespace: &str, name: &str, spec: &Value) -> Line {
    let domain = text(spec, "/credspec/DomainJoinConfig/DnsName");
    let account = text(spec, "/credspec/DomainJoinConfig/MachineAccountName");
    // Each is one word of a command line.
    let plain = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.$".contains(c));
    if !plain(domain) || !plain(account) {
        return Line::warn(
            NEXT,
            "the credential spec has no plain names of a domain and an account",
            "kubectl gmsa credspec lint",
        );
    }
    let exec = format!("kubectl exec -n {namespace} {name} --");
    let commands = vec![
        format!("{exec} nltest /query"),
        format!("{exec} nltest /sc_verify:{domain}"),
        format!("{exec} klist get {account}"),
        format!("{exec} whoami"),
    ];
    Line { commands, ..Line::pass(NEXT, "ask it:") }
}
