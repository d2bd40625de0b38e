//! The connection to the cluster: its address, user and time limits, with the flags of `kubectl`.

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::Args;

use super::{args::timeout, live::LiveCluster, progress};
use gmsa_cluster::apiserver::ApiServer;

mod credentials;

/// The default of `--request-timeout`.
const CALL: Duration = Duration::from_secs(15);

/// The heading of these options in the help.
pub const HEADING: &str = "Cluster";

/// The cluster, and the user.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = HEADING)]
pub struct Connection {
    /// The kubeconfig file [default: the files of $KUBECONFIG, or ~/.kube/config; in a pod without them, its service account]
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: the current context]
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
    /// The cluster of the kubeconfig [default: the context's]
    #[arg(long, global = true, value_name = "NAME")]
    cluster: Option<String>,
    /// The user of the kubeconfig [default: the context's]
    #[arg(long, global = true, value_name = "NAME")]
    user: Option<String>,
    /// The address of the API server [default: the cluster's]
    #[arg(long, short, global = true, value_name = "URL")]
    server: Option<String>,
    /// The bearer token to authenticate with, instead of the user's credentials
    #[arg(long, global = true, value_name = "TOKEN")]
    token: Option<String>,
    /// Do not verify the certificate of the API server, which makes the connection insecure
    #[arg(long, global = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "BOOL")]
    insecure_skip_tls_verify: Option<bool>,
    /// How long one call to the API server may take, such as 1s, 2m or 3h; 0 is no limit [default: 15s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = timeout)]
    request_timeout: Option<Duration>,
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

impl Connection {
    pub fn asked_namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// Makes a client. Must be called within a tokio runtime.
    pub async fn cluster(&self) -> anyhow::Result<LiveCluster> {
        let (config, context) = self.config().await?;
        let url = config.cluster_url.to_string();
        let url = url.trim_end_matches('/');
        let address = match context {
            Some(context) => format!("{url} (context {context})"),
            None => url.to_owned(),
        };
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        let user = config.auth_info.clone();
        let api = ApiServer::new(config).map_err(|error| credentials::of_client(error, &user))?;
        Ok(LiveCluster { api: Arc::new(api), address, namespace, timeout: self.request_timeout.unwrap_or(CALL) })
    }

    /// Makes an HTTP/1.1 client, because only HTTP/1.1 connections can become web sockets.
    pub async fn http1_client(&self) -> anyhow::Result<kube::Client> {
        let (config, _) = self.config().await?;
        let user = config.auth_info.clone();
        ApiServer::http1_client(config).map_err(|error| credentials::of_client(error, &user))
    }
}

/// Runs a future on a new runtime, and shows progress.
pub fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    runtime.block_on(progress::shown_during(future))
}
