//! Names that do not exist: an empty result for one of them must be an error.

use anyhow::{anyhow, bail};
use serde_json::Value;

use super::snapshot::Snapshot;

/// Fails if the API server says that the object does not exist, and names the nearest name in its list. `what` describes the object.
/// Passes without the right to read it.
pub async fn expect(snapshot: &Snapshot, what: &str, list: &str, name: &str) -> anyhow::Result<()> {
    let Ok(None) = snapshot.find::<Value>(&format!("{list}/{name}")).await else { return Ok(()) };
    match nearest_in(snapshot, list, name).await {
        Some(nearest) => bail!("there is no {what}: is {nearest} meant?"),
        None => bail!("there is no {what}"),
    }
}

/// What to say of an object that is not there: its namespace is not there either, or another has nearly its name.
pub async fn missing(snapshot: &Snapshot, what: &str, namespace: &str, list: &str, name: &str) -> anyhow::Error {
    let of_namespace = format!("namespace {namespace}");
    if let Err(missing) = expect(snapshot, &of_namespace, "/api/v1/namespaces", namespace).await {
        return missing;
    }
    let nearest = nearest_in(snapshot, list, name).await.map(|nearest| format!(": is {nearest} meant?"));
    anyhow!("there is no {what}{}", nearest.unwrap_or_default())
}

/// The most similar name in a list.
pub async fn nearest_in(snapshot: &Snapshot, list: &str, name: &str) -> Option<String> {
    let known = snapshot.list::<Value>(list).await.unwrap_or_default();
    let known = known.iter().filter_map(|object| object.pointer("/metadata/name")?.as_str());
    nearest(name, known).map(str::to_owned)
}

/// The most similar name: at most a third of its characters differ.
pub fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    // Docker's credential specs are files.
    let name = name.strip_suffix(".json").unwrap_or(name);
    let distances = known.map(|known| (strsim::osa_distance(known, name), known));
    distances.filter(|(distance, _)| *distance <= name.len() / 3).min().map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let nearest = |name| nearest(name, ["webapp1", "webapp2", "sql"].into_iter());
        assert_eq!(nearest("webap1"), Some("webapp1"));
        assert_eq!(nearest("wepapp2"), Some("webapp2"));
        assert_eq!(nearest("sql.json"), Some("sql"));
        assert_eq!(nearest("sq"), None);
        assert_eq!(nearest("print"), None);
    }
}
