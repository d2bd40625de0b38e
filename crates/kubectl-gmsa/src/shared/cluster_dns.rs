//! The DNS of a cluster, as its objects configure it: CoreDNS by a Corefile, kube-dns by stub domains, OpenShift by its operator.
//!
//! Invariants: only pods are its clients. A Windows node asks the resolvers of its own network adapters.

use std::collections::BTreeMap;

use super::corefile::{Answer, Corefile, CorefileError, Forward, Stubs};
use anyhow::{Context as _, bail};
use serde::Deserialize;
use serde_json::Value;

use super::{not_checked::Read, snapshot::Snapshot};

/// Where a DNS is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DnsObject {
    /// The Corefile of kubeadm, EKS, AKS and k3s.
    CoreDns,
    /// What that of AKS and k3s imports.
    Custom,
    Rke2,
    /// On GKE. CoreDNS does not read it.
    KubeDns,
    OpenShift,
}

impl DnsObject {
    fn name(self) -> &'static str {
        match self {
            Self::CoreDns => "coredns",
            Self::Custom => "coredns-custom",
            Self::Rke2 => "rke2-coredns-rke2-coredns",
            Self::KubeDns => "kube-dns",
            Self::OpenShift => "default",
        }
    }

    fn path(self) -> String {
        match self {
            Self::OpenShift => format!("/apis/operator.openshift.io/v1/dnses/{}", self.name()),
            _ => format!("/api/v1/namespaces/kube-system/configmaps/{}", self.name()),
        }
    }

    /// For a message: `ConfigMap kube-system/coredns`.
    pub fn place(self) -> String {
        let of = if self == Self::OpenShift { "DNS " } else { "ConfigMap kube-system/" };
        format!("{of}{}", self.name())
    }
}

/// Those of the objects that there are.
pub type Objects = BTreeMap<DnsObject, Value>;

/// Reads the objects of a cluster. The API of OpenShift is asked only where there is no other DNS: a user who may not read what no
/// other platform has must not fail there.
pub async fn objects(snapshot: &Snapshot) -> Read<Objects> {
    let paths = [DnsObject::CoreDns, DnsObject::Custom, DnsObject::Rke2, DnsObject::KubeDns];
    let read = paths.map(|object| async move { Ok((object, snapshot.find(&object.path()).await?)) });
    let read: Vec<(DnsObject, Option<Value>)> = futures::future::try_join_all(read).await?;
    let mut found: Objects = read.into_iter().filter_map(|(object, value)| Some((object, value?))).collect();
    if found.is_empty() {
        let openshift = snapshot.find(&DnsObject::OpenShift.path()).await?;
        found.extend(openshift.map(|value| (DnsObject::OpenShift, value)));
    }
    Ok(found)
}

/// What the DNS of a cluster does with questions of pods.
pub struct ClusterDns {
    /// The object that says it.
    pub object: DnsObject,
    pub zones: Zones,
}

pub enum Zones {
    Corefile(Corefile),
    Stubs(Stubs),
}

impl ClusterDns {
    /// `None` where none of the objects is there.
    pub fn of(objects: &Objects) -> anyhow::Result<Option<Self>> {
        for object in [DnsObject::CoreDns, DnsObject::Rke2, DnsObject::KubeDns, DnsObject::OpenShift] {
            let Some(value) = objects.get(&object) else { continue };
            let zones = match object {
                DnsObject::KubeDns => Zones::Stubs(kube_dns(value).with_context(|| object.place())?),
                DnsObject::OpenShift => Zones::Stubs(openshift(value)),
                _ => Zones::Corefile(corefile(value, objects.get(&DnsObject::Custom)).with_context(|| object.place())?),
            };
            return Ok(Some(Self { object, zones }));
        }
        Ok(None)
    }

    /// Where a question about a domain goes.
    pub fn answer(&self, domain: &str) -> Answer {
        match &self.zones {
            Zones::Corefile(corefile) => corefile.answer(domain),
            Zones::Stubs(stubs) => stubs.answer(domain),
        }
    }
}

/// Whether the objects could be read, and what they hold is too much for this program.
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
fn kube_dns(map: &Value) -> anyhow::Result<Stubs> {
    let text = |wanted: &str| texts(map).find(|(key, _)| *key == wanted).map(|(_, text)| text);
    let stubs: BTreeMap<String, Vec<String>> = read_json("stubDomains", text("stubDomains").unwrap_or("{}"))?;
    let upstream: Vec<String> = read_json("upstreamNameservers", text("upstreamNameservers").unwrap_or("[]"))?;
    let root = if upstream.is_empty() { vec![RESOLVERS_OF_NODE.to_owned()] } else { upstream };
    let zones = stubs.into_iter().chain([(".".to_owned(), root)]);
    Ok(Stubs(zones.map(|(zone, servers)| Forward { zone, servers, is_sequential: false }).collect()))
}

fn read_json<T: for<'t> Deserialize<'t>>(name: &str, text: &str) -> anyhow::Result<T> {
    serde_json::from_str(text).with_context(|| format!("{name} cannot be read"))
}

/// `spec` of `operator.openshift.io/v1`, kind DNS: <https://github.com/openshift/api/blob/master/operator/v1/types_dns.go>.
fn openshift(object: &Value) -> Stubs {
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
    Stubs(forwards)
}
