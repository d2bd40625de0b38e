//! The DNS of a cluster, as its objects configure it: CoreDNS by a Corefile, kube-dns by stub domains, OpenShift by its operator.
//!
//! Invariants: this describes DNS for pods only. A Windows node asks the resolvers of its own network adapters.

use std::collections::BTreeMap;

use super::corefile::{Corefile, CorefileError, Forward};
use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

use super::{snapshot::Snapshot, unread::Read};

/// The Corefile of kubeadm, EKS, AKS and k3s.
const COREDNS: &str = "coredns";
/// The `ConfigMap` that the Corefiles of AKS and k3s import.
const CUSTOM: &str = "coredns-custom";
const RKE2: &str = "rke2-coredns-rke2-coredns";
/// On GKE. CoreDNS does not read it.
const KUBE_DNS: &str = "kube-dns";
/// The object of OpenShift's DNS operator; the other objects are ConfigMaps.
const OPENSHIFT: &str = "default";

/// The objects that exist, by name.
pub type Objects = BTreeMap<&'static str, Value>;

/// Reads the objects of a cluster. OpenShift's API is asked only if no other DNS is found, so other platforms need no right to it.
pub async fn objects(snapshot: &Snapshot) -> Read<Objects> {
    let read = [COREDNS, CUSTOM, RKE2, KUBE_DNS].map(|name| async move {
        Ok((name, snapshot.find(&format!("/api/v1/namespaces/kube-system/configmaps/{name}")).await?))
    });
    let read: Vec<(&str, Option<Value>)> = futures::future::try_join_all(read).await?;
    let mut found: Objects = read.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    if found.is_empty() {
        let openshift = snapshot.find(&format!("/apis/operator.openshift.io/v1/dnses/{OPENSHIFT}")).await?;
        found.extend(openshift.map(|value| (OPENSHIFT, value)));
    }
    Ok(found)
}

/// How the DNS of a cluster answers the queries of pods.
pub struct ClusterDns {
    /// The object it was read from, for messages: `ConfigMap kube-system/coredns`.
    pub place: String,
    pub corefile: Corefile,
}

impl ClusterDns {
    /// `None` if there are no objects.
    pub fn of(objects: &Objects) -> anyhow::Result<Option<Self>> {
        for name in [COREDNS, RKE2, KUBE_DNS, OPENSHIFT] {
            let Some(value) = objects.get(name) else { continue };
            let of = if name == OPENSHIFT { "DNS " } else { "ConfigMap kube-system/" };
            let place = format!("{of}{name}");
            let corefile = match name {
                KUBE_DNS => kube_dns(value),
                OPENSHIFT => Ok(openshift(value)),
                _ => corefile(value, objects.get(CUSTOM)),
            };
            return Ok(Some(Self { corefile: corefile.with_context(|| place.clone())?, place }));
        }
        Ok(None)
    }
}

/// Whether the objects were read but are too large for this program.
pub fn is_too_large(error: &anyhow::Error) -> bool {
    error.downcast_ref::<CorefileError>() == Some(&CorefileError::TooLarge)
}

/// The texts of a ConfigMap.
fn texts(map: &Value) -> impl Iterator<Item = (&str, &str)> {
    let texts = map.get("data").and_then(Value::as_object).into_iter().flatten();
    texts.filter_map(|(key, text)| Some((key.as_str(), text.as_str()?)))
}

fn corefile(map: &Value, custom: Option<&Value>) -> anyhow::Result<Corefile> {
    let Some((_, text)) = texts(map).find(|(key, _)| *key == "Corefile") else { bail!("it has no Corefile") };
    // AKS and k3s mount `coredns-custom` as the folder `custom`; where it is missing the folder is empty.
    let files = |pattern: &str| {
        let (_, file) = pattern.rsplit_once('/').filter(|(folder, _)| folder.rsplit('/').next() == Some("custom"))?;
        let names = glob::Pattern::new(file).ok()?;
        let found = custom.into_iter().flat_map(texts).filter(|(key, _)| names.matches(key));
        Some(found.map(|(_, text)| text.to_owned()).collect())
    };
    Ok(Corefile::parse(text, &files)?)
}

/// The file in which the DNS of a cluster finds the resolvers of its node.
const RESOLVERS_OF_NODE: &str = "/etc/resolv.conf";

/// `stubDomains` and `upstreamNameservers`, each JSON in a text:
/// <https://github.com/kubernetes/dns/blob/master/docs/specification.md> and `pkg/dns/config/config.go` there.
fn kube_dns(map: &Value) -> anyhow::Result<Corefile> {
    let text = |wanted: &str| texts(map).find(|(key, _)| *key == wanted).map(|(_, text)| text);
    let stubs: BTreeMap<String, Vec<String>> = read_json("stubDomains", text("stubDomains").unwrap_or("{}"))?;
    let upstream: Vec<String> = read_json("upstreamNameservers", text("upstreamNameservers").unwrap_or("[]"))?;
    let root = if upstream.is_empty() { vec![RESOLVERS_OF_NODE.to_owned()] } else { upstream };
    let zones = stubs.into_iter().chain([(".".to_owned(), root)]);
    Ok(Corefile::of_forwards(zones.map(|(zone, servers)| Forward { zone, servers, is_sequential: false })))
}

fn read_json<T: for<'t> Deserialize<'t>>(name: &str, text: &str) -> anyhow::Result<T> {
    serde_json::from_str(text).with_context(|| format!("{name} cannot be read"))
}

/// `spec` of `operator.openshift.io/v1`, kind DNS: <https://github.com/openshift/api/blob/master/operator/v1/types_dns.go>.
fn openshift(object: &Value) -> Corefile {
    fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> {
        value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
    }
    fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
        value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
    let mut forwards = Vec::new();
    for server in list(object, "/spec/servers") {
        let servers: Vec<String> =
            list(server, "/forwardPlugin/upstreams").map(|server| text(server, "").to_owned()).collect();
        let is_sequential = text(server, "/forwardPlugin/policy") == "Sequential";
        let forward = |zone| Forward { zone: text(zone, "").to_owned(), servers: servers.clone(), is_sequential };
        forwards.extend(list(server, "/zones").map(forward));
    }
    let address = |resolver| match text(resolver, "/address") {
        "" => RESOLVERS_OF_NODE.to_owned(),
        address => address.to_owned(),
    };
    let mut servers: Vec<String> = list(object, "/spec/upstreamResolvers/upstreams").map(address).collect();
    if servers.is_empty() {
        servers.push(RESOLVERS_OF_NODE.to_owned());
    }
    // Sequential is the operator's default for all other names, random that for a zone.
    let is_sequential = matches!(text(object, "/spec/upstreamResolvers/policy"), "" | "Sequential");
    forwards.push(Forward { zone: ".".to_owned(), servers, is_sequential });
    Corefile::of_forwards(forwards)
}
