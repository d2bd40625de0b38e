//! The object that forwards the domain, on each platform.
//!
//! Invariants: what the object held stays, and so does its version. A zone that is there is never changed: CoreDNS does not start with
//! two server blocks for one zone, so it is said where it is.

use anyhow::{Context as _, bail};
use gmsa_core::{
    corefile::{Answer, Corefile},
    quote::one_line,
};
use serde_json::{Map, Value, json};

use super::{
    platform::{Platform, import_of_custom},
    rke2,
    wanted::Wanted,
};
use crate::shared::cluster_dns::{ClusterDns, Object, Objects, Zones, texts};

pub enum Change {
    /// The domain is forwarded to these servers already, as the sentence says.
    Nothing(String),
    /// The object with the zone in it.
    Object { object: Value, exists: bool },
}

pub fn of(platform: Platform, objects: &Objects, wanted: &Wanted) -> anyhow::Result<Change> {
    let (object, with_stand_in);
    let mut known = objects;
    match platform {
        Platform::Kubeadm | Platform::Eks => object = Object::CoreDns,
        Platform::Aks | Platform::K3s => {
            object = Object::Custom;
            // A file may hold `coredns-custom` alone.
            if !objects.contains_key(&Object::CoreDns) {
                let imports = json!({"data": {"Corefile": "import custom/*.server\n"}});
                with_stand_in = [(Object::CoreDns, imports)].into_iter().chain(objects.clone()).collect();
                known = &with_stand_in;
            }
            if import_of_custom(known).is_none() {
                let place = Object::CoreDns.place();
                bail!(
                    "the Corefile of {place} does not import custom/*.server, so nothing reads {}: choose another --platform",
                    object.place()
                );
            }
        }
        Platform::Rke2 => object = Object::Rke2Values,
        Platform::Openshift => object = Object::OpenShift,
        Platform::Gke => object = Object::KubeDns,
    }
    if platform == Platform::Gke && !objects.contains_key(&object) && objects.contains_key(&Object::CoreDns) {
        let place = Object::CoreDns.place();
        bail!("there is {place}, and CoreDNS does not read {}: choose another --platform", object.place());
    }
    let dns = ClusterDns::of(&of_platform(platform, known))
        .context("the DNS is not configured correctly now: `kubectl gmsa doctor`")?;
    if let Some(dns) = &dns
        && let Some(nothing) = already(dns, wanted)?
    {
        return Ok(nothing);
    }
    let existing = objects.get(&object);
    let object = match (platform, dns.map(|dns| dns.zones)) {
        (Platform::Kubeadm | Platform::Eks, Some(Zones::Corefile(corefile))) => core_dns(existing, &corefile, wanted)?,
        (Platform::Aks | Platform::K3s, Some(Zones::Corefile(corefile))) => custom(existing, &corefile, wanted)?,
        (Platform::Rke2, Some(Zones::Corefile(corefile))) => rke2::values(existing, &corefile, wanted)?,
        (Platform::Openshift, Some(Zones::Stubs(_))) => openshift(existing, wanted)?,
        (Platform::Gke, _) => kube_dns(existing, wanted)?,
        _ => {
            let place = if platform == Platform::Rke2 { Object::Rke2 } else { object }.place();
            bail!("there is no {place}: choose another --platform, or give the object with -f");
        }
    };
    Ok(Change::Object { object, exists: existing.is_some() })
}

/// The objects that matter on the platform.
fn of_platform(platform: Platform, objects: &Objects) -> Objects {
    let matters = |object: &Object| match platform {
        Platform::Kubeadm | Platform::Eks | Platform::Aks | Platform::K3s => {
            matches!(object, Object::CoreDns | Object::Custom)
        }
        Platform::Rke2 => matches!(object, Object::Rke2 | Object::Rke2Values),
        Platform::Openshift => *object == Object::OpenShift,
        Platform::Gke => *object == Object::KubeDns,
    };
    objects.iter().filter(|(object, _)| matters(object)).map(|(object, value)| (*object, value.clone())).collect()
}

/// What there is to say where a zone of exactly this domain is there.
fn already(dns: &ClusterDns, wanted: &Wanted) -> anyhow::Result<Option<Change>> {
    let (domain, place) = (&wanted.domain, dns.object.place());
    let has_zone = match &dns.zones {
        Zones::Corefile(corefile) => corefile.has_zone(domain),
        Zones::Stubs(stubs) => stubs.has_zone(domain),
    };
    match dns.answer(domain) {
        Answer::Forwarded(forward) if has_zone || forward.zone == *domain => {
            let servers = forward.servers.iter().map(|server| one_line(server)).collect::<Vec<_>>().join(", ");
            if !wanted.has_servers(&forward.servers) {
                bail!(
                    "{domain} is forwarded already, to {servers} ({place}): change the servers there, or take the zone out first"
                );
            }
            Ok(Some(Change::Nothing(format!(
                "{domain} is forwarded to {servers} already ({place}): there is nothing to do"
            ))))
        }
        _ if has_zone => bail!("there is a zone {domain} already ({place}), which forwards nothing: take it out first"),
        _ => Ok(None),
    }
}

/// The Corefile with the server block at its end.
fn core_dns(existing: Option<&Value>, corefile: &Corefile, wanted: &Wanted) -> anyhow::Result<Value> {
    let mut map = existing.context("there is no ConfigMap kube-system/coredns")?.clone();
    if corefile.has_open_end {
        bail!(
            "the last server block of the Corefile has no braces, so no zone can follow it: put it into braces first"
        );
    }
    let (_, text) = texts(&map).find(|(key, _)| *key == "Corefile").context("it has no Corefile")?;
    let text = format!("{}\n{}", text.trim_end(), wanted.block(corefile.port()));
    set(&mut map, "data", "Corefile", text.into());
    Ok(map)
}

fn custom(existing: Option<&Value>, corefile: &Corefile, wanted: &Wanted) -> anyhow::Result<Value> {
    let mut map = existing.cloned().unwrap_or_else(|| new(Object::Custom));
    let key = format!("{}.server", wanted.domain);
    if texts(&map).any(|(there, _)| there == key) {
        bail!("{} has a key {key} already, without the zone: take it out first", Object::Custom.place());
    }
    set(&mut map, "data", &key, wanted.block(corefile.port()).into());
    Ok(map)
}

/// `stubDomains` with the domain, as JSON in a text.
fn kube_dns(existing: Option<&Value>, wanted: &Wanted) -> anyhow::Result<Value> {
    let mut map = existing.cloned().unwrap_or_else(|| new(Object::KubeDns));
    let stubs = texts(&map).find(|(key, _)| *key == "stubDomains").map_or("{}", |(_, text)| text);
    let mut stubs: Map<String, Value> = serde_json::from_str(stubs).context("stubDomains cannot be read")?;
    stubs.insert(wanted.domain.clone(), json!(wanted.servers));
    set(&mut map, "data", "stubDomains", (serde_json::to_string_pretty(&stubs)? + "\n").into());
    Ok(map)
}

/// `spec.servers` with one more.
fn openshift(existing: Option<&Value>, wanted: &Wanted) -> anyhow::Result<Value> {
    let mut object = existing.context("there is no dns.operator.openshift.io/default")?.clone();
    let mut servers = object.pointer("/spec/servers").and_then(Value::as_array).cloned().unwrap_or_default();
    let is_taken = |name: &str| servers.iter().any(|server| server.get("name").and_then(Value::as_str) == Some(name));
    let name = (1..=servers.len() + 1).map(|number| service_name(&wanted.domain, number)).find(|name| !is_taken(name));
    let forward = json!({"policy": "Random", "upstreams": wanted.servers});
    servers.push(json!({"name": name, "zones": [wanted.domain], "forwardPlugin": forward}));
    set(&mut object, "spec", "servers", servers.into());
    Ok(object)
}

/// A name for a server: the operator takes a service name of RFC 6335, of at most 15 letters, digits and hyphens, one of them a letter.
fn service_name(domain: &str, number: usize) -> String {
    const LONGEST: usize = 15;
    let ending = if number == 1 { String::new() } else { format!("-{number}") };
    let name: String = format!("ad-{}", domain.replace('.', "-")).chars().take(LONGEST - ending.len()).collect();
    // No two hyphens side by side, and none at the end.
    let words: Vec<&str> = name.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-") + &ending
}

/// An object that is not there yet, without what it is to hold.
pub fn new(object: Object) -> Value {
    let metadata = json!({"name": object.name(), "namespace": "kube-system"});
    json!({"apiVersion": object.api_version(), "kind": object.kind(), "metadata": metadata})
}

/// Sets a field of a part of the object, which may be missing.
pub fn set(object: &mut Value, part: &str, field: &str, value: Value) {
    let Some(object) = object.as_object_mut() else { return };
    let part = object.entry(part).or_insert_with(|| json!({}));
    if part.is_null() {
        *part = json!({});
    }
    if let Some(part) = part.as_object_mut() {
        part.insert(field.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_server_is_one_of_a_service() {
        for (domain, number, name) in [
            ("contoso.com", 1, "ad-contoso-com"),
            ("emea.corp.contoso.com", 1, "ad-emea-corp-co"),
            ("emea.corp.contoso.com", 2, "ad-emea-corp-2"),
            ("xn--bcher-kva.example", 1, "ad-xn-bcher-kv"),
            ("1.2", 12, "ad-1-2-12"),
        ] {
            assert_eq!(service_name(domain, number), name);
        }
    }
}
