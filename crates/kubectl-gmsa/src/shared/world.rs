//! Everything that one run of a command reads: from a live cluster or a bundle; for `check`, from manifests too.
//!
//! Invariants: every list and object is read at most once, also by parallel readers, except by [`World::some_of`]. A failed read is
//! an [`Unread`], with the request and the missing right. Dry runs and access reviews are sent once too. After a time-out before the first
//! answer the API server is not asked again. A bundle gives the answers of its cluster; a request that it does not have is `Unread` too.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    path::PathBuf,
    rc::Rc,
    time::Duration,
};

use anyhow::{Context as _, ensure};
use clap::Args;
use gmsa_cluster::{
    apiserver::CallError,
    authorizer::rbac::Rbac,
    probe::{self, DryRun},
    resolver::manifests::CredentialSpecs,
};
use gmsa_core::{admission::Webhook, credspec::is_dns_label};
use k8s_openapi::{api::core::v1::Node, jiff::Timestamp};
use serde::{
    Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use tokio::sync::OnceCell;

use super::{
    configured::{Configured, configured},
    connection::Connection,
    live::LiveCluster,
    unread::{Read, Unread},
};

mod bundle;
mod clean;
mod facts;
mod objects;
pub mod reads;
mod scrub;

pub use bundle::Bundle;
pub use facts::{is_about_use, is_unchecked};
pub use objects::{Owned, pods_of};
pub use reads::{CA_VOLUME, LintReads};

/// The source for commands that check a cluster.
#[derive(Clone, Debug, Args)]
pub struct ClusterSource {
    /// Judge the cluster of a bundle (doctor --bundle)
    ///
    /// Checks of missing parts are skipped
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

impl ClusterSource {
    pub fn is_named(&self) -> bool {
        self.from.is_some()
    }

    /// The bundle, or the cluster of the connection.
    pub async fn open(&self, connection: &Connection) -> anyhow::Result<World> {
        match &self.from {
            Some(file) => {
                let bundle = Bundle::read(file)?;
                let namespace = connection.asked_namespace().unwrap_or(&bundle.namespace).to_owned();
                Ok(World::new(Base::Bundle(Rc::new(bundle)), namespace))
            }
            None => Ok(World::of(connection.cluster().await?)),
        }
    }
}

#[derive(Clone)]
enum Base {
    Live(LiveCluster),
    Bundle(Rc<Bundle>),
    /// Manifests, in which only the facts of decisions are looked up.
    Files(Rc<CredentialSpecs>, Rc<Rbac>),
}

/// The answer to one request, as JSON: the items of a list, or one value or none.
type Answered = Vec<Box<RawValue>>;

/// The answers by request: verb and path.
type Answers = BTreeMap<(&'static str, String), Rc<OnceCell<Read<Rc<Answered>>>>>;

/// Reads, and remembers the answers. Clones share them.
#[derive(Clone)]
pub struct World {
    seen: Rc<Remembered>,
    /// The default namespace.
    pub namespace: String,
    /// Objects of manifests, by their path in the API. They take precedence over those of the cluster, but not for the facts of decisions.
    pub files: Rc<BTreeMap<String, Value>>,
    /// The reads that the running lint has declared; `None` for commands without lints.
    declared: Option<&'static [&'static LintReads]>,
}

struct Remembered {
    base: Base,
    kept: RefCell<Answers>,
    /// Whether the API server has answered a request.
    answers: Cell<bool>,
    /// How long it did not answer another one.
    silence: Cell<Option<Duration>>,
    /// The permissions in a bundle.
    rbac: OnceCell<Read<Rbac>>,
    webhooks: OnceCell<Read<Vec<Configured>>>,
}

/// The paths of the configurations of webhooks.
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// The path of the Windows nodes.
pub const WINDOWS_NODES: &str = "/api/v1/nodes?labelSelector=kubernetes.io%2Fos%3Dwindows";

const LIST: &str = "list";
const GET: &str = "get";
const CREATE: &str = "create";
const DRY_RUN: &str = "dry run";

impl World {
    pub fn of(cluster: LiveCluster) -> Self {
        let namespace = cluster.namespace.clone();
        Self::new(Base::Live(cluster), namespace)
    }

    /// The same source, of which nothing has been read yet.
    pub fn again(&self) -> Self {
        Self::new(self.seen.base.clone(), self.namespace.clone())
    }

    /// The namespace of the command, if it can be the name of one.
    pub fn valid_namespace(&self) -> anyhow::Result<&str> {
        let namespace = self.namespace.as_str();
        ensure!(is_dns_label(namespace), "{namespace:?} is not the name of a namespace");
        Ok(namespace)
    }

    fn new(base: Base, namespace: String) -> Self {
        let seen = Remembered {
            base,
            kept: RefCell::default(),
            answers: Cell::default(),
            silence: Cell::default(),
            rbac: OnceCell::new(),
            webhooks: OnceCell::new(),
        };
        Self { seen: Rc::new(seen), namespace, files: Rc::default(), declared: None }
    }

    /// The same world for a lint. A debug build, which the tests run, refuses what the lint does not declare.
    pub fn scoped(&self, declared: &'static [&'static LintReads]) -> Self {
        Self { declared: Some(declared), ..self.clone() }
    }

    fn expect_declared(&self, verb: &str, request: &str) -> Read<()> {
        let is_declared = |declared: &[&LintReads]| declared.iter().any(|reads| reads.allow(verb, request));
        if cfg!(debug_assertions) && !self.declared.is_none_or(is_declared) {
            let error = anyhow::anyhow!("the check has not declared that it reads this: {verb} {request}");
            return Err(Unread::of(verb, request, &error));
        }
        Ok(())
    }

    /// The time of its answers.
    pub fn taken(&self) -> Timestamp {
        match &self.seen.base {
            Base::Live(_) | Base::Files(..) => Timestamp::now(),
            Base::Bundle(bundle) => bundle.taken(),
        }
    }

    /// Whether there is a cluster to ask.
    pub fn is_live(&self) -> bool {
        matches!(self.seen.base, Base::Live(_))
    }

    /// Whether there is a cluster, or the bundle of one.
    pub fn has_cluster(&self) -> bool {
        !matches!(self.seen.base, Base::Files(..))
    }

    /// Every webhook for GMSA.
    pub async fn webhooks(&self) -> Read<&[Configured]> {
        self.expect_declared(LIST, MUTATING)?;
        let read = self.seen.webhooks.get_or_init(async || {
            let (mutating, validating) = tokio::join!(self.list(MUTATING), self.list(VALIDATING));
            Ok([configured(true, mutating?), configured(false, validating?)].into_iter().flatten().collect())
        });
        let read = read.await;
        read.as_deref().map_err(Unread::clone)
    }

    /// The Windows nodes.
    pub async fn windows_nodes(&self) -> Read<Vec<Node>> {
        self.list(WINDOWS_NODES).await
    }

    /// Reads an object.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Read<T> {
        self.find(path).await?.ok_or_else(|| Unread::missing(path))
    }

    /// Reads an object that may not be there.
    pub async fn find<T: DeserializeOwned>(&self, path: &str) -> Read<Option<T>> {
        if let Some(object) = self.files.get(path) {
            return T::deserialize(object).map(Some).map_err(|error| Unread::of(GET, path, &error.into()));
        }
        self.find_in_cluster(path).await
    }

    /// Reads an object that may not be there, whatever the manifests say.
    async fn find_in_cluster<T: DeserializeOwned>(&self, path: &str) -> Read<Option<T>> {
        let answered = self.once(GET, path, async |live| Ok(Vec::from_iter(live.find(path).await?)));
        Ok(parsed(GET, path, &*answered.await?)?.pop())
    }

    /// Reads a collection.
    pub async fn list<T: DeserializeOwned>(&self, path: &str) -> Read<Vec<T>> {
        parsed(LIST, path, &*self.items(path).await?)
    }

    /// The objects of a collection, as they are remembered.
    pub async fn items(&self, path: &str) -> Read<Rc<Vec<Box<RawValue>>>> {
        self.once(LIST, path, async |live| live.list(path, async |page| page).await).await
    }

    /// Reads a collection by page. Holds only what `keep` returns, and does not remember the answer.
    pub async fn some_of<T: DeserializeOwned, K>(&self, path: &str, keep: impl Fn(T) -> Option<K>) -> Read<Vec<K>> {
        self.expect_declared(LIST, path)?;
        match &self.seen.base {
            Base::Live(live) => {
                let read = live.list(path, async |page: Vec<T>| page.into_iter().filter_map(&keep).collect());
                self.unless_silent(live, read).await.map_err(|error| Unread::of(LIST, path, &error))
            }
            Base::Bundle(_) | Base::Files(..) => Ok(self.list(path).await?.into_iter().filter_map(&keep).collect()),
        }
    }

    /// Asks the API server something by creating an object that is not stored.
    pub async fn ask<T: DeserializeOwned>(&self, path: &str, object: &impl Serialize) -> Read<T> {
        let body = serde_json::to_value(object).map_err(|error| Unread::of(CREATE, path, &error.into()))?;
        let request = format!("{path} {body}");
        let answered = self.once(CREATE, &request, async |live| {
            Ok(vec![live.post(path, &body).await.map_err(|error| Unread::of(CREATE, path, &error))?])
        });
        parsed(CREATE, &request, &*answered.await?)?.pop().ok_or_else(|| Unread::left_out(CREATE, &request))
    }

    /// Sends a pod that the webhook should refuse, as a dry run.
    pub async fn dry_run(&self, webhook: Webhook, pod: &Value) -> Read<DryRun> {
        let request = format!("{} in {}", webhook.path(), self.namespace);
        let answered = self.once(DRY_RUN, &request, async |live| {
            let answer = probe::ask(&live.api, &self.namespace, pod, webhook).await;
            let answer = answer.with_context(|| format!("{:?} is not a namespace", self.namespace))?;
            let answer = answer.map_err(|error| Unread::of(CREATE, "/api/v1/pods", &error.into()))?;
            Ok(vec![to_raw_value(&answer)?])
        });
        parsed(DRY_RUN, &request, &*answered.await?)?.pop().ok_or_else(|| Unread::left_out(DRY_RUN, &request))
    }

    /// Whether a Secret exists. Only its metadata is read.
    pub async fn has_secret(&self, namespace: &str, name: &str) -> Read<bool> {
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        // A bundle gets an empty object: not even the metadata.
        let answered = self.once(GET, &path, async |live| {
            let found = live.find::<IgnoredAny>(&path).await?;
            Ok(Vec::from_iter(found.map(|_| to_raw_value(&json!({}))).transpose()?))
        });
        Ok(!answered.await?.is_empty())
    }

    /// Plain text, such as a log or the metrics that a pod serves.
    pub async fn text(&self, path: &str) -> Read<String> {
        let answered = self.once(GET, path, async |live| Ok(vec![to_raw_value(&live.text(path).await?)?]));
        Ok(parsed(GET, path, &*answered.await?)?.pop().unwrap_or_default())
    }

    /// Sends a request once and keeps the answer.
    async fn once(
        &self,
        verb: &'static str,
        request: &str,
        ask: impl AsyncFnOnce(&LiveCluster) -> anyhow::Result<Answered>,
    ) -> Read<Rc<Answered>> {
        self.expect_declared(verb, request)?;
        let cell = Rc::clone(self.seen.kept.borrow_mut().entry((verb, request.to_owned())).or_default());
        let answer = cell.get_or_init(async || match &self.seen.base {
            Base::Bundle(bundle) => bundle.answered(verb, request).map(Rc::new),
            Base::Files(..) => self.in_files(verb, request).ok_or_else(|| Unread::left_out(verb, request)),
            Base::Live(live) => {
                let answer = self.unless_silent(live, ask(live)).await;
                answer.map(Rc::new).map_err(|error| Unread::of(verb, request, &error))
            }
        });
        answer.await.clone()
    }

    /// Asks the API server, unless a request to it timed out before its first answer.
    async fn unless_silent<T>(
        &self,
        live: &LiveCluster,
        request: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let Remembered { answers, silence, .. } = &*self.seen;
        if let (false, Some(time)) = (answers.get(), silence.get()) {
            return Err(live.located(CallError::TimedOut(time)));
        }
        let answer = request.await;
        match answer.as_ref().map_err(anyhow::Error::downcast_ref) {
            Ok(_) | Err(Some(CallError::Refused { .. })) => answers.set(true),
            Err(Some(CallError::TimedOut(time))) => silence.set(Some(*time)),
            Err(_) => {}
        }
        answer
    }

    /// The objects of a collection among the manifests, if they hold any of it.
    fn in_files(&self, verb: &str, list: &str) -> Option<Rc<Answered>> {
        let is_in = |path: &str| path.rsplit_once('/').is_some_and(|(parent, _)| parent == list);
        let found =
            self.files.iter().filter(|(path, _)| is_in(path)).filter_map(|(_, object)| to_raw_value(object).ok());
        Some(found.collect::<Vec<_>>()).filter(|found| verb == LIST && !found.is_empty()).map(Rc::new)
    }
}

/// The objects in an answer.
fn parsed<T: DeserializeOwned>(verb: &str, request: &str, answered: &Answered) -> Read<Vec<T>> {
    let objects = answered.iter().map(|json| serde_json::from_str(json.get()));
    objects.collect::<Result<_, _>>().map_err(|error| Unread::of(verb, request, &error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lint_is_refused_what_it_does_not_declare() {
        let (specs, rbac) = (CredentialSpecs::from_documents(&[]).0, Rbac::from_documents(&[]).0);
        let world = World::of_files(specs, rbac, "shop".to_owned()).scoped(&[reads::PODS, reads::REPLICA]);
        let lacks = async |path| world.find::<Value>(path).await.unwrap_err().cause;
        let refused = |request| format!("the check has not declared that it reads this: {request}");
        assert_eq!(lacks("/version").await, refused("get /version"));
        assert_eq!(
            lacks("/api/v1/namespaces/gmsa/secrets/tls").await,
            refused("get /api/v1/namespaces/gmsa/secrets/tls")
        );
        // Declared reads are made, and a world of manifests has no cluster to answer.
        let pod = "/api/v1/namespaces/gmsa/pods/a";
        assert_eq!(lacks(pod).await, format!("this bundle does not have {pod}"));
        assert_eq!(world.list::<Value>("/api/v1/nodes").await.unwrap_err().cause, refused("list /api/v1/nodes"));
    }
}
