//! Names that do not exist: an empty result for one of them must be an error.

use anyhow::{anyhow, bail};
use gmsa_cluster::resolver::live::collection;
use gmsa_core::{admission::Denial, credspec::is_dns_label};
use serde_json::Value;

use super::{spelling::nearest, unread::Read, world::World};

/// Fails if the API server says that the object does not exist, and names the nearest name in its list. `what` describes the object.
/// Passes without the right to read it.
pub async fn expect(world: &World, what: &str, list: &str, name: &str) -> anyhow::Result<()> {
    absent(world, what, list, name).await.map_or(Ok(()), |absent| Err(anyhow!(absent.text)))
}

/// An object that does not exist.
pub struct Absent {
    pub text: String,
    /// Whether an object with a similar name exists.
    pub is_misspelt: bool,
}

/// The missing object that [`expect`] reports.
pub async fn absent(world: &World, what: &str, list: &str, name: &str) -> Option<Absent> {
    let Ok(None) = world.find::<Value>(&format!("{list}/{name}")).await else { return None };
    let nearest = nearest_in(world, list, name).await;
    let meant = nearest.as_ref().map(|nearest| format!(": is {nearest} meant?")).unwrap_or_default();
    Some(Absent { text: format!("there is no {what}{meant}"), is_misspelt: nearest.is_some() })
}

/// The object that was read from a list of the command's namespace. Otherwise the error says what else may be meant: its namespace does not exist, another object
/// has nearly its name, or another namespace has it. A bundle keeps only a part of some lists.
pub async fn found<T>(world: &World, read: Read<Option<T>>, kind: &str, list: &str, name: &str) -> anyhow::Result<T> {
    let namespace = &world.namespace;
    let absent = match read {
        Ok(Some(object)) => return Ok(object),
        Ok(None) => anyhow!("there is no {kind} {namespace}/{name}"),
        Err(unread) if world.is_live() => return Err(unread.into()),
        Err(unread) => unread.into(),
    };
    expect(world, &format!("namespace {namespace}"), "/api/v1/namespaces", namespace).await?;
    let known: Vec<Value> = world.list(list).await.unwrap_or_default();
    let known = || known.iter().filter_map(|object| object.pointer("/metadata/name")?.as_str());
    // The name of its controller stands in front in the name of a pod.
    let begins = |known: &&str| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    if let Some(nearest) = nearest(name, known()).or_else(|| known().find(begins)) {
        bail!("{absent}: is {nearest} meant?");
    }
    let all = list.replacen(&format!("/namespaces/{namespace}"), "", 1);
    let others = world.some_of(&all, Some::<Value>).await.unwrap_or_default();
    let is_same = |object: &&Value| object.pointer("/metadata/name").is_some_and(|other| other == name);
    let other = others.iter().find(is_same).and_then(|other| other.pointer("/metadata/namespace")?.as_str());
    match other.filter(|other| is_dns_label(other)) {
        Some(other) => bail!("{absent}: namespace {other} has one of this name (`--namespace {other}`)"),
        None => Err(absent),
    }
}

/// The most similar name of an existing credential spec, if one of these denials is that it is missing.
pub async fn nearest_spec(world: &World, denials: &[Denial]) -> Option<String> {
    let missing = |denial: &Denial| if let Denial::SpecMissing(spec) = denial { Some(spec.clone()) } else { None };
    nearest_in(world, &collection(), denials.iter().find_map(missing)?.as_str()).await
}

/// The most similar name in a list.
async fn nearest_in(world: &World, list: &str, name: &str) -> Option<String> {
    let known = world.list::<Value>(list).await.unwrap_or_default();
    let known = known.iter().filter_map(|object| object.pointer("/metadata/name")?.as_str());
    nearest(name, known).map(str::to_owned)
}
