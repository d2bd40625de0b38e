//! A bundle: a cluster's answers in a file, by request path.
//!
//! Invariants: the objects of a list are kept by namespace and name, so they also answer requests for one object or one namespace. Of
//! pods, workloads and webhook configurations only those about GMSA are kept, and of events those about kept objects. A request that is
//! not in the file, or that failed when it was made, is [`Unread`], never an empty list.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};

use anyhow::{Context as _, bail};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::to_raw_value};

use super::{Answered, CREATE, DRY_RUN, GET, LIST, World, clean, objects::related, reads, scrub};
use crate::shared::{
    credspecs::contents_by_name,
    input,
    kinds::controller_in,
    unread::{Read, Unread},
};
use gmsa_cluster::resolver::live::collection;
use gmsa_core::credspec::Contents;

/// The version of the format. It changes when a field is removed or changes its meaning.
const VERSION: u32 = 2;

/// The size limit of a file, in bytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// The objects of a list by namespace and name, or by name.
type Items = BTreeMap<String, Value>;

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Bundle {
    version: u32,
    /// The version of the plugin that wrote it.
    plugin: String,
    taken: Time,
    pub(super) namespace: String,
    #[serde(default)]
    lists: BTreeMap<String, Items>,
    /// Objects outside the lists; null for an object that does not exist.
    #[serde(default)]
    objects: BTreeMap<String, Value>,
    /// Answers to access reviews and dry runs.
    #[serde(default)]
    answers: BTreeMap<String, Value>,
    /// Logs and metrics.
    #[serde(default)]
    texts: BTreeMap<String, String>,
    /// Failed reads, by request.
    #[serde(default)]
    unread: BTreeMap<String, Unread>,
}

impl Bundle {
    /// Makes a bundle of what was read.
    pub fn of(world: &World) -> anyhow::Result<Self> {
        let mut bundle = Self {
            version: VERSION,
            plugin: env!("CARGO_PKG_VERSION").to_owned(),
            taken: Time(world.taken()),
            namespace: world.namespace.clone(),
            lists: BTreeMap::new(),
            objects: BTreeMap::new(),
            answers: BTreeMap::new(),
            texts: BTreeMap::new(),
            unread: BTreeMap::new(),
        };
        let of_specs = (LIST, collection());
        let specs = world.seen.kept.borrow().get(&of_specs).and_then(|cell| cell.get()?.clone().ok());
        let specs = specs.iter().flat_map(|specs| specs.iter());
        let contents = contents_by_name(specs.filter_map(|spec| serde_json::from_str::<Value>(spec.get()).ok()));
        let kept = world.seen.kept.borrow();
        let mut lists = Vec::new();
        for ((_, request), cell) in kept.iter().filter(|((verb, _), _)| *verb == LIST) {
            let Some(Ok(items)) = cell.get() else { continue };
            let resource = resource(request, false);
            let items = items.iter().map(|item| Ok((resource, serde_json::from_str(item.get())?)));
            lists.push((request, items.collect::<anyhow::Result<Vec<(&str, Value)>>>()?));
        }
        let partial = lists.iter().flat_map(|(_, items)| items).filter(|(of, _)| reads::is_partial(of));
        let link = |(of, object): &(&str, Value)| {
            let owner = controller_in(object).and_then(|owner| owner.get("uid")?.as_str());
            (reads::is_kept(of, object), uid(object).to_owned(), owner.map(str::to_owned))
        };
        let related = related(&partial.map(link).collect::<Vec<_>>());
        for (request, items) in &lists {
            let taken =
                items.iter().filter(|(resource, item)| reads::is_kept(resource, item) || related.contains(uid(item)));
            let taken = taken.map(|(resource, item)| (key(item), clean::kept(resource, item, &contents)));
            bundle.lists.insert((*request).clone(), taken.collect());
        }
        for ((verb, request), cell) in kept.iter() {
            match cell.get() {
                Some(Ok(_)) if *verb == LIST => {}
                Some(Ok(kept)) => bundle.add(verb, request, kept, &contents)?,
                Some(Err(unread)) => drop(bundle.unread.insert(format!("{verb} {request}"), unread.clone())),
                None => {}
            }
        }
        bundle.only_events_of_what_is_there();
        let mut json = serde_json::to_value(&bundle)?;
        scrub::all(&mut json);
        Ok(serde_json::from_value(json)?)
    }

    fn add(
        &mut self,
        verb: &str,
        request: &str,
        kept: &Answered,
        contents: &HashMap<String, Contents>,
    ) -> anyhow::Result<()> {
        let name = request.to_owned();
        let of = resource(path_of(request), verb != CREATE);
        match kept.first().map(|json| serde_json::from_str(json.get())).transpose()?.unwrap_or_default() {
            answer if verb == DRY_RUN => drop(self.answers.insert(name, answer)),
            Value::String(text) => drop(self.texts.insert(name, text)),
            Value::Null => drop(self.objects.insert(name, Value::Null)),
            object => {
                let known = if verb == CREATE { &mut self.answers } else { &mut self.objects };
                known.insert(name, clean::kept(of, &object, contents));
            }
        }
        Ok(())
    }

    /// Removes events of removed objects.
    fn only_events_of_what_is_there(&mut self) {
        let (events, others): (Vec<_>, Vec<_>) =
            self.lists.iter_mut().partition(|(path, _)| resource(path, false) == "events");
        let names: BTreeSet<&String> = others.iter().flat_map(|(_, objects)| objects.keys()).collect();
        for (_, events) in events {
            let about = |event: &Value| {
                let name = event.pointer("/involvedObject/name").and_then(Value::as_str)?;
                Some(format!("{}/{name}", event.pointer("/metadata/namespace").and_then(Value::as_str)?))
            };
            events.retain(|_, event| about(event).is_some_and(|name| names.contains(&name)));
        }
    }

    pub fn read(file: &Path) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let (name, text) = (file.display(), input::text_within(file, MAX_BYTES)?);
        let is_none = || format!("{name} is not a bundle of kubectl gmsa doctor --bundle");
        let Versioned { version } = serde_json::from_str(&text).with_context(is_none)?;
        if version != VERSION {
            bail!("{name} is a bundle of version {version}, and this program reads {VERSION}");
        }
        serde_json::from_str(&text).with_context(is_none)
    }

    pub(super) fn taken(&self) -> Timestamp {
        self.taken.0
    }

    /// The answer to a request.
    pub(super) fn answered(&self, verb: &str, request: &str) -> Read<Answered> {
        let found = match verb {
            LIST => self.list(request)?,
            GET => Vec::from_iter(self.object(request)?),
            _ => {
                self.fails(verb, request)?;
                let known = self.answers.get(request).or_else(|| self.answers.get(path_of(request)));
                vec![known.cloned().ok_or_else(|| Unread::left_out(verb, request))?]
            }
        };
        let raw = found.iter().map(to_raw_value).collect::<Result<_, _>>();
        raw.map_err(|error| Unread::of(verb, request, &error.into()))
    }

    /// An object or a text; `None` if it did not exist.
    fn object(&self, path: &str) -> Read<Option<Value>> {
        if let Some(known) = self.objects.get(path) {
            return Ok(Some(known.clone()).filter(|known| !known.is_null()));
        }
        self.fails(GET, path)?;
        if let Some(text) = self.texts.get(path) {
            return Ok(Some(text.clone().into()));
        }
        let (below, name) = path.rsplit_once('/').unwrap_or_default();
        let (all, namespace) = of_all(below);
        let key = namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"));
        if let Some(objects) = self.lists.get(below).or_else(|| self.lists.get(&all)) {
            let found = objects.get(&key).cloned();
            let is_unknown = found.is_none() && reads::is_partial(resource(&all, false));
            return if is_unknown { Err(Unread::left_out(GET, path)) } else { Ok(found) };
        }
        self.fails(LIST, &all)?;
        // A list with a selector.
        let mut some =
            self.lists.iter().filter(|(list, _)| list.strip_prefix(&all).is_some_and(|rest| rest.starts_with('?')));
        let found = some.find_map(|(_, objects)| objects.get(&key));
        found.cloned().map(Some).ok_or_else(|| Unread::left_out(GET, path))
    }

    /// The objects of a list that match the selector in its path.
    fn list(&self, path: &str) -> Read<Vec<Value>> {
        if let Some(known) = self.lists.get(path) {
            return Ok(known.values().cloned().collect());
        }
        self.fails(LIST, path)?;
        let (plain, selector) = path.split_once('?').unwrap_or((path, ""));
        let (all, namespace) = of_all(plain);
        for list in [plain, &all, &format!("{all}?{selector}")] {
            self.fails(LIST, list)?;
            let Some(objects) = self.lists.get(list) else { continue };
            let is_in = |key: &str| {
                list == plain
                    || namespace.is_none_or(|namespace| key.split_once('/').is_some_and(|(of, _)| of == namespace))
            };
            let chosen = objects.iter().filter(|(key, object)| is_in(key) && selects(selector, object));
            return Ok(chosen.map(|(_, object)| object.clone()).collect());
        }
        Err(Unread::left_out(LIST, path))
    }

    fn fails(&self, verb: &str, path: &str) -> Read<()> {
        let known = [path, path_of(path)].into_iter().find_map(|path| self.unread.get(&format!("{verb} {path}")));
        known.map_or(Ok(()), |unread| Err(unread.clone()))
    }
}

/// The path of a request. A handwritten bundle has one answer per path, for any body.
fn path_of(request: &str) -> &str {
    request.split(' ').next().unwrap_or_default()
}

/// The key of an object in a list.
fn key(object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match text("/metadata/namespace") {
        "" => text("/metadata/name").to_owned(),
        namespace => format!("{namespace}/{}", text("/metadata/name")),
    }
}

fn uid(object: &Value) -> &str {
    object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default()
}

/// The path of the collection in all namespaces, and the namespace in this path.
fn of_all(path: &str) -> (String, Option<&str>) {
    let parts = path.split_once("/namespaces/").and_then(|(before, rest)| Some((before, rest.split_once('/')?)));
    match parts {
        Some((before, (namespace, below))) => (format!("{before}/{below}"), Some(namespace)),
        None => (path.to_owned(), None),
    }
}

/// Whether an object has the label of a `labelSelector`, or the type of a `fieldSelector`.
fn selects(selector: &str, object: &Value) -> bool {
    let Some((what, wanted)) = selector.split_once('=') else { return true };
    let wanted = wanted.replace("%2F", "/").replace("%3D", "=");
    let Some((key, value)) = wanted.split_once('=') else { return true };
    let holder = if what == "labelSelector" { object.pointer("/metadata/labels") } else { Some(object) };
    holder.and_then(|holder| holder.get(key)).and_then(Value::as_str) == Some(value)
}

/// The resource of a path, such as `pods`.
fn resource(path: &str, is_object: bool) -> &str {
    let mut steps = path.split('?').next().unwrap_or_default().rsplit('/');
    if is_object && path.starts_with("/api") {
        steps.next();
    }
    steps.next().unwrap_or_default()
}
