//! The state of a cluster that one run of a command reads, live or from a bundle.
//!
//! Invariants: every list and object is read at most once, also by parallel readers, except by [`Snapshot::list_unkept`]. A failed read is
//! an [`Unread`], with the request and the missing right. Dry runs and access reviews are sent once too. After a time-out before the first
//! answer the API server is not asked again. A bundle gives the answers of its cluster; a request that it does not have is `Unread` too.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    path::PathBuf,
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use clap::Args;
use gmsa_cluster::{
    apiserver::{ApiServer, CallError},
    probe::{self, Answer},
};
use gmsa_core::admission::Webhook;
use http::{Request, header::ACCEPT};
use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use tokio::sync::OnceCell;

use super::{
    connection::{Cluster, Connection},
    unread::{Read, Unread},
};

mod bundle;

pub use bundle::{Bundle, CA_VOLUME};

/// An answer with the metadata of the object only. <https://kubernetes.io/docs/reference/using-api/api-concepts/#metadata-only-fetches>
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

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
    pub async fn open(&self, connection: &Connection) -> anyhow::Result<Snapshot> {
        match &self.from {
            Some(file) => {
                let bundle = Bundle::read(file)?;
                let namespace = connection.asked_namespace().unwrap_or(&bundle.namespace).to_owned();
                Ok(Snapshot::new(Origin::Recorded(Rc::new(bundle)), namespace))
            }
            None => Ok(Snapshot::of(connection.cluster().await?)),
        }
    }
}

#[derive(Clone)]
enum Origin {
    Live(Cluster),
    Recorded(Rc<Bundle>),
}

/// The answer to one request, as JSON: the items of a list, or one value or none.
type Answered = Vec<Box<RawValue>>;

/// The answers by request: verb and path.
type Answers = BTreeMap<(&'static str, String), Rc<OnceCell<Read<Rc<Answered>>>>>;

pub struct Snapshot {
    source: Origin,
    /// The default namespace.
    pub namespace: String,
    kept: RefCell<Answers>,
    api_server: Cell<ApiServerState>,
}

/// Whether the API server has answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ApiServerState {
    #[default]
    Untried,
    Answers,
    /// The first request timed out after this time: no other request is sent.
    Silent(Duration),
}

/// The API server's answer to a probe pod, in a form that a bundle can hold: see [`Answer`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DryRunAnswer {
    Admitted,
    Warned,
    Refused,
    Guarded(String),
    Failed(Unread),
}

/// The facts about a Secret.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretFacts {
    /// Whether it has the field `immutable`. Its value is not read: `false` counts too.
    #[serde(default)]
    pub is_immutable: bool,
}

const LIST: &str = "list";
const GET: &str = "get";
const CREATE: &str = "create";
const DRY_RUN: &str = "dry run";

impl Snapshot {
    pub fn of(cluster: Cluster) -> Self {
        let namespace = cluster.namespace.clone();
        Self::new(Origin::Live(cluster), namespace)
    }

    /// An empty snapshot of the same cluster.
    pub fn again(&self) -> Self {
        Self::new(self.source.clone(), self.namespace.clone())
    }

    fn new(source: Origin, namespace: String) -> Self {
        Self { source, namespace, kept: RefCell::default(), api_server: Cell::default() }
    }

    /// The time when it was taken.
    pub fn taken(&self) -> Timestamp {
        match &self.source {
            Origin::Live(_) => Timestamp::now(),
            Origin::Recorded(bundle) => bundle.taken(),
        }
    }

    /// How long one call may take.
    pub fn timeout(&self) -> Duration {
        match &self.source {
            Origin::Live(cluster) => cluster.timeout,
            Origin::Recorded(_) => Duration::ZERO,
        }
    }

    /// The client, where there is a cluster to ask.
    pub fn api(&self) -> Option<&Arc<ApiServer>> {
        match &self.source {
            Origin::Live(cluster) => Some(&cluster.api),
            Origin::Recorded(_) => None,
        }
    }

    /// Reads an object.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Read<T> {
        self.find(path).await?.ok_or_else(|| Unread::missing(path))
    }

    /// Reads an object that may not be there.
    pub async fn find<T: DeserializeOwned>(&self, path: &str) -> Read<Option<T>> {
        self.object(GET, path, async |source| match source {
            Origin::Live(cluster) => cluster.find(path).await,
            Origin::Recorded(bundle) => raw(bundle.object(path)?),
        })
        .await
    }

    /// Reads a collection.
    pub async fn list<T: DeserializeOwned>(&self, path: &str) -> Read<Vec<T>> {
        let answered = self.once(LIST, path, async |source| match source {
            Origin::Live(cluster) => cluster.list(path).await,
            Origin::Recorded(bundle) => raw(bundle.list(path)?),
        });
        answered.await?.iter().map(|json| parsed(LIST, path, json)).collect()
    }

    /// Reads a collection without keeping the answer, for a caller that needs only a part of it.
    pub async fn list_unkept<T: DeserializeOwned>(&self, path: &str) -> Read<Vec<T>> {
        let Origin::Live(cluster) = &self.source else { return self.list(path).await };
        let read = self.unless_silent(cluster.list(path)).await;
        self.note_state(&read);
        read.map_err(|error| Unread::of(LIST, path, &error))
    }

    /// Asks the API server something by creating an object that is not stored.
    pub async fn ask<T: DeserializeOwned>(&self, path: &str, object: &impl Serialize) -> Read<T> {
        let body = serde_json::to_value(object).map_err(|error| Unread::of(CREATE, path, &error.into()))?;
        let request = format!("{path} {body}");
        let answer = self.object(CREATE, &request, async |source| match source {
            Origin::Live(cluster) => {
                Ok(Some(cluster.post(path, &body).await.map_err(|error| Unread::of(CREATE, path, &error))?))
            }
            Origin::Recorded(bundle) => raw(Some(bundle.answer(CREATE, &request)?)),
        });
        answer.await?.ok_or_else(|| Unread::of(CREATE, &request, &anyhow::anyhow!("there is no answer")))
    }

    /// Sends a pod that the webhook should refuse, as a dry run; `None` if the namespace is not a valid name.
    pub async fn dry_run(&self, webhook: Webhook, pod: &Value) -> Option<Read<DryRunAnswer>> {
        let request = format!("{} in {}", webhook.path(), self.namespace);
        let answer = self.object(DRY_RUN, &request, async |source| match source {
            Origin::Live(cluster) => {
                let answer = probe::ask(&cluster.api, &self.namespace, pod, webhook).await;
                // A late failure can come from the API server or from a proxy before it.
                if !matches!(answer, Some(Answer::Failed(_))) {
                    self.api_server.set(ApiServerState::Answers);
                }
                raw(answer.map(of_answer))
            }
            Origin::Recorded(bundle) => raw(bundle.answer(DRY_RUN, &request)?),
        });
        answer.await.transpose()
    }

    /// The facts about a Secret; `None` if it does not exist. Only metadata is read: its managed fields show whether `immutable` is
    /// set, without values.
    pub async fn secret_facts(&self, namespace: &str, name: &str) -> Read<Option<SecretFacts>> {
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        self.object(GET, &path, async |source| match source {
            Origin::Live(cluster) => {
                let request = Request::get(&path).header(ACCEPT, METADATA).body(Vec::new())?;
                match cluster.api.call(request, cluster.deadline()).await {
                    Ok(metadata) => {
                        let metadata: Value = serde_json::from_slice(&metadata)?;
                        let managed = metadata.pointer("/metadata/managedFields").and_then(Value::as_array);
                        let sets = |entry: &Value| entry.pointer("/fieldsV1/f:immutable").is_some();
                        raw(SecretFacts { is_immutable: managed.into_iter().flatten().any(sets) })
                    }
                    Err(error) if error.code() == Some(404) => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
            Origin::Recorded(bundle) => raw(bundle.object(&path)?),
        })
        .await
    }

    /// Plain text, such as a log or the metrics that a pod serves.
    pub async fn text(&self, path: &str) -> Read<String> {
        let text = self.object(GET, path, async |source| match source {
            Origin::Live(cluster) => raw(cluster.read_text(path).await?),
            Origin::Recorded(bundle) => raw(bundle.text(path)?),
        });
        Ok(text.await?.unwrap_or_default())
    }

    /// Reads one object, once.
    async fn object<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        request: &str,
        ask: impl AsyncFnOnce(&Origin) -> anyhow::Result<Option<Box<RawValue>>>,
    ) -> Read<Option<T>> {
        let answered = self.once(verb, request, async |source| Ok(Vec::from_iter(ask(source).await?))).await?;
        answered.first().map(|json| parsed(verb, request, json)).transpose()
    }

    /// Sends a request once and keeps the answer.
    async fn once(
        &self,
        verb: &'static str,
        request: &str,
        ask: impl AsyncFnOnce(&Origin) -> anyhow::Result<Answered>,
    ) -> Read<Rc<Answered>> {
        let cell = Rc::clone(self.kept.borrow_mut().entry((verb, request.to_owned())).or_default());
        let answer = cell.get_or_init(async || {
            let answer = self.unless_silent(ask(&self.source)).await;
            if verb != DRY_RUN {
                self.note_state(&answer);
            }
            answer.map(Rc::new).map_err(|error| Unread::of(verb, request, &error))
        });
        answer.await.clone()
    }

    /// The answer, unless an earlier call timed out.
    async fn unless_silent<T>(&self, answer: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        match self.api_server.get() {
            ApiServerState::Silent(time) => Err(CallError::TimedOut(time).into()),
            ApiServerState::Untried | ApiServerState::Answers => answer.await,
        }
    }

    fn note_state<T>(&self, answer: &anyhow::Result<T>) {
        match answer {
            Err(error) => match error.downcast_ref() {
                Some(CallError::TimedOut(time)) if self.api_server.get() == ApiServerState::Untried => {
                    self.api_server.set(ApiServerState::Silent(*time));
                }
                Some(CallError::Refused { .. }) => self.api_server.set(ApiServerState::Answers),
                _ => {}
            },
            Ok(_) => self.api_server.set(ApiServerState::Answers),
        }
    }
}

fn parsed<T: DeserializeOwned>(verb: &str, request: &str, json: &RawValue) -> Read<T> {
    serde_json::from_str(json.get()).map_err(|error| Unread::of(verb, request, &error.into()))
}

fn of_answer(answer: Answer) -> DryRunAnswer {
    match answer {
        Answer::Admitted => DryRunAnswer::Admitted,
        Answer::Warned => DryRunAnswer::Warned,
        Answer::Refused => DryRunAnswer::Refused,
        Answer::Guarded(policy) => DryRunAnswer::Guarded(policy),
        Answer::Failed(error) => DryRunAnswer::Failed(Unread::of(CREATE, "/api/v1/pods", &error.into())),
    }
}

/// The JSON that the API server would have sent.
fn raw<T: Serialize, R: DeserializeOwned>(value: T) -> anyhow::Result<R> {
    Ok(serde_json::from_str(&serde_json::to_string(&value)?)?)
}
