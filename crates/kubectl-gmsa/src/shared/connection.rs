//! The connection to the cluster: `--context`, `--kubeconfig`, `--as` and `--namespace`, as `kubectl` has them.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use http::{Request, header::CONTENT_TYPE};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::time::Instant;

use super::progress;
use gmsa_cluster::apiserver::{ApiServer, CallError};

/// How long one call to the API server may take.
pub const CALL: Duration = Duration::from_secs(15);

/// How long a pod may take to answer: the API server itself waits longer for one that does not answer.
const POD_CALL: Duration = Duration::from_secs(2);

/// Which cluster, and as which user.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub struct Connection {
    /// The kubeconfig file [default: $KUBECONFIG, or ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: the current context]
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
    /// The namespace of objects that name none [default: the context's where the cluster is asked, otherwise default]
    #[arg(long, short, global = true, value_name = "NAME")]
    namespace: Option<String>,
    /// The user to act as
    #[arg(long = "as", global = true, value_name = "USER")]
    impersonate: Option<String>,
    /// A group to act as; repeatable
    #[arg(long = "as-group", global = true, value_name = "GROUP", requires = "impersonate")]
    impersonate_groups: Vec<String>,
}

/// `--dry-run`, as `kubectl` has it.
#[derive(Debug, Args)]
pub struct DryRun {
    /// Have the API server check the change without making it
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "server")]
    dry_run: Option<DryRunBy>,
}

/// Who makes a dry run.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DryRunBy {
    /// The API server
    Server,
}

impl DryRun {
    pub fn is_off(&self) -> bool {
        self.dry_run.is_none()
    }

    /// The parameter of a URL, with the `&` before it.
    pub fn parameter(&self) -> &'static str {
        if self.is_off() { "" } else { "&dryRun=All" }
    }

    /// What is printed after each change.
    pub fn suffix(&self) -> &'static str {
        if self.is_off() { "" } else { " (server dry run)" }
    }
}

/// A cluster, and the namespace to use where an object names none.
pub struct Cluster {
    pub api: Arc<ApiServer>,
    pub namespace: String,
}

/// How many objects one page of a list holds.
const PAGE: usize = 500;

#[derive(Deserialize)]
struct Page<T> {
    #[serde(default)]
    metadata: ListMeta,
    items: Option<Vec<T>>,
}

impl Cluster {
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        progress::doing(&format!("reading {path}"));
        self.call(Request::get(path).body(Vec::new())?).await
    }

    /// Reads an object that may not be there.
    pub async fn find<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Option<T>> {
        match self.get(path).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a collection, in pages. Its items do not say their kind.
    pub async fn list<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<Vec<T>> {
        let separator = if path.contains('?') { '&' } else { '?' };
        let (mut all, mut from) = (Vec::new(), String::new());
        loop {
            progress::doing(&format!("reading {path}, {} so far", all.len()));
            let page = Request::get(format!("{path}{separator}limit={PAGE}{from}")).body(Vec::new())?;
            let Page { metadata, items } = self.call(page).await?;
            // A list without items is null.
            all.extend(items.into_iter().flatten());
            // The token is made of letters, digits, `-` and `_`.
            match metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => from = format!("&continue={token}"),
                None => return Ok(all),
            }
        }
    }

    /// Creates an object, and returns the answer.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, object: &impl Serialize) -> anyhow::Result<T> {
        self.call(creation(path, object)?).await
    }

    async fn call<T: DeserializeOwned>(&self, request: Request<Vec<u8>>) -> anyhow::Result<T> {
        Ok(serde_json::from_slice(&self.api.call(request, Instant::now() + CALL).await?)?)
    }

    /// Reads what a pod serves in plain HTTP on one of its ports, through the API server.
    pub async fn read_from_pod(&self, namespace: &str, pod: &str, port: i32, path: &str) -> anyhow::Result<String> {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy{path}");
        let answer = self.api.call(Request::get(path).body(Vec::new())?, Instant::now() + POD_CALL).await?;
        Ok(String::from_utf8(answer.into())?)
    }
}

fn creation(path: &str, object: &impl Serialize) -> anyhow::Result<Request<Vec<u8>>> {
    Ok(Request::post(path).header(CONTENT_TYPE, "application/json").body(serde_json::to_vec(object)?)?)
}

/// Whether a call failed because there is no such object, or no such kind of object.
pub fn is_missing(error: &anyhow::Error) -> bool {
    error.downcast_ref::<CallError>().and_then(CallError::code) == Some(404)
}

impl Connection {
    /// The namespace that was asked for, or `default`, for commands that ask no cluster.
    pub fn offline_namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("default")
    }

    pub fn asked_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Makes a client. Must be called within a tokio runtime.
    pub async fn cluster(&self) -> anyhow::Result<Cluster> {
        let config = self.config().await?;
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        Ok(Cluster { api: Arc::new(ApiServer::new(config)?), namespace })
    }

    /// Makes a client that speaks HTTP/1.1 alone, whose connections can become web sockets.
    pub async fn http1_client(&self) -> anyhow::Result<kube::Client> {
        Ok(kube::Client::try_from(self.config().await?)?)
    }

    async fn config(&self) -> anyhow::Result<kube::Config> {
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config = match &self.kubeconfig {
            Some(path) => {
                let file = Kubeconfig::read_from(path)
                    .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
                kube::Config::from_custom_kubeconfig(file, &options).await
            }
            None => kube::Config::from_kubeconfig(&options).await,
        }
        .context("cannot use the kubeconfig")?;
        config.auth_info.impersonate.clone_from(&self.impersonate);
        if !self.impersonate_groups.is_empty() {
            config.auth_info.impersonate_groups = Some(self.impersonate_groups.clone());
        }
        Ok(config)
    }
}

/// Runs a future on a new runtime, and shows progress.
pub fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    runtime.block_on(progress::shown_during(future))
}
