//! The objects, their resource versions and what happened to them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::Serialize;
use serde_json::{Value, json};

/// A kind that the server knows.
#[derive(Clone, Debug)]
pub struct Kind {
    /// `GROUP/VERSION`, or `v1` for the core group.
    pub api_version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
}

impl Kind {
    pub const fn new(api_version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self { api_version, kind, plural }
    }

    pub fn group(&self) -> &'static str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The path of the list of all of them.
    pub fn list(&self) -> String {
        let root = if self.group().is_empty() { "api" } else { "apis" };
        format!("/{root}/{}/{}", self.api_version, self.plural)
    }

    /// The resource as the server's messages name it: `secrets`, `gmsacredentialspecs.windows.k8s.io`.
    pub fn resource(&self) -> String {
        match self.group() {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }
}

fn known_kinds() -> Vec<Kind> {
    let admission = "admissionregistration.k8s.io/v1";
    vec![
        Kind::new("windows.k8s.io/v1", "GMSACredentialSpec", "gmsacredentialspecs"),
        Kind::new("v1", "Secret", "secrets"),
        Kind::new("v1", "Pod", "pods"),
        Kind::new(admission, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
        Kind::new(admission, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ChangeKind {
    Added,
    Modified,
    Deleted,
    Bookmark,
}

/// One thing that happened. A bookmark is for every kind.
#[derive(Clone, Debug)]
pub struct Change {
    pub version: u64,
    pub what: ChangeKind,
    pub key: Key,
    pub object: Arc<Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub plural: String,
    pub namespace: String,
    pub name: String,
}

/// Why an object is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    NotFound,
    AlreadyExists,
    Conflict,
}

pub struct Store {
    kinds: Vec<Kind>,
    objects: BTreeMap<Key, Arc<Value>>,
    version: u64,
    pub history: Vec<Change>,
    pub compacted: u64,
    /// The rest of a list that was given in part, by its continue token.
    rests: HashMap<String, (u64, Vec<Arc<Value>>)>,
}

impl Default for Store {
    fn default() -> Self {
        // Not 1: a client must not take a version for a count.
        Self {
            kinds: known_kinds(),
            objects: BTreeMap::new(),
            version: 1000,
            history: Vec::new(),
            compacted: 0,
            rests: HashMap::new(),
        }
    }
}

impl Store {
    pub fn define(&mut self, kind: Kind) {
        self.undefine(kind.plural);
        self.kinds.push(kind);
    }

    pub fn undefine(&mut self, plural: &str) {
        self.kinds.retain(|kind| kind.plural != plural);
        self.objects.retain(|key, _| key.plural != plural);
    }

    pub fn kind(&self, api_version: &str, plural: &str) -> Option<Kind> {
        self.kinds.iter().find(|kind| kind.api_version == api_version && kind.plural == plural).cloned()
    }

    pub fn object(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        self.objects.get(&key(plural, namespace, name)).map(|object| Value::clone(object))
    }

    /// Creates or replaces an object.
    pub fn apply(&mut self, mut object: Value) -> u64 {
        let (api_version, kind) = (object["apiVersion"].clone(), object["kind"].clone());
        let known = self.kinds.iter().find(|known| api_version == known.api_version && kind == known.kind);
        let plural = known.unwrap_or_else(|| panic!("{api_version} {kind} is not defined")).plural;
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = key(plural, &text("namespace"), &text("name"));
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("resourceVersion");
        }
        let is_known = self.objects.contains_key(&key);
        let written = if is_known { self.update(&key, object) } else { self.create(&key, object) };
        written.unwrap()["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
    }

    pub fn create(&mut self, key: &Key, mut object: Value) -> Result<Arc<Value>, Refusal> {
        if self.objects.contains_key(key) {
            return Err(Refusal::AlreadyExists);
        }
        // A uid that a test chose stays, so that its owner references can name it.
        if object["metadata"]["uid"].is_null() {
            let uid = format!("00000000-0000-4000-8000-{:012}", self.version + 1);
            object["metadata"]["uid"] = Value::from(uid);
        }
        if !key.namespace.is_empty() {
            object["metadata"]["namespace"] = Value::from(key.namespace.clone());
        }
        Ok(self.write(key, object, ChangeKind::Added))
    }

    /// Replaces; an object that carries a resource version must carry the current one.
    pub fn update(&mut self, key: &Key, mut object: Value) -> Result<Arc<Value>, Refusal> {
        let old = self.objects.get(key).ok_or(Refusal::NotFound)?;
        let based_on = object["metadata"]["resourceVersion"].as_str();
        if based_on.is_some_and(|version| old["metadata"]["resourceVersion"] != version) {
            return Err(Refusal::Conflict);
        }
        object["metadata"]["uid"] = old["metadata"]["uid"].clone();
        Ok(self.write(key, object, ChangeKind::Modified))
    }

    fn write(&mut self, key: &Key, mut object: Value, what: ChangeKind) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = Value::from(self.version.to_string());
        let object = Arc::new(object);
        self.objects.insert(key.clone(), Arc::clone(&object));
        self.record(what, key.clone(), Arc::clone(&object));
        object
    }

    pub fn remove(&mut self, key: &Key) -> Result<Arc<Value>, Refusal> {
        let mut object = Value::clone(&*self.objects.remove(key).ok_or(Refusal::NotFound)?);
        self.version += 1;
        object["metadata"]["resourceVersion"] = Value::from(self.version.to_string());
        let object = Arc::new(object);
        self.record(ChangeKind::Deleted, key.clone(), Arc::clone(&object));
        Ok(object)
    }

    pub fn delete(&mut self, plural: &str, namespace: &str, name: &str) {
        self.remove(&key(plural, namespace, name)).unwrap();
    }

    pub fn bookmark(&mut self) {
        self.record(ChangeKind::Bookmark, Key::default(), Arc::new(Value::Null));
    }

    fn record(&mut self, what: ChangeKind, key: Key, object: Arc<Value>) {
        self.history.push(Change { version: self.version, what, key, object });
    }

    /// Drops all objects, and counts versions from a lower number.
    pub fn rewind(&mut self) {
        self.objects.clear();
        self.history.clear();
        self.version = 100;
    }

    pub fn compact(&mut self) {
        self.compacted = self.version;
    }

    /// A page of a list: of all namespaces where `namespace` is `None`. `None` where the token is not known.
    pub fn list(&mut self, kind: &Kind, namespace: Option<&str>, limit: usize, token: Option<&str>) -> Option<Value> {
        let (version, mut items) = match token {
            Some(token) => self.rests.remove(token)?,
            None => (self.version, self.matching(kind, namespace)),
        };
        let rest = items.split_off(limit.min(items.len()));
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if !rest.is_empty() {
            let token = format!("v{version}r{}", rest.len());
            metadata["continue"] = Value::from(token.clone());
            metadata["remainingItemCount"] = Value::from(rest.len());
            self.rests.insert(token, (version, rest));
        }
        let list_kind = format!("{}List", kind.kind);
        let mut list = json!({"apiVersion": kind.api_version, "kind": list_kind, "metadata": metadata});
        list["items"] = items.iter().map(|object| Value::clone(object)).collect();
        Some(list)
    }

    fn matching(&self, kind: &Kind, namespace: Option<&str>) -> Vec<Arc<Value>> {
        let objects = self.objects.iter().filter(|(key, _)| {
            key.plural == kind.plural && namespace.is_none_or(|namespace| key.namespace == namespace)
        });
        objects.map(|(_, object)| Arc::clone(object)).collect()
    }
}

pub fn key(plural: &str, namespace: &str, name: &str) -> Key {
    Key { plural: plural.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}
