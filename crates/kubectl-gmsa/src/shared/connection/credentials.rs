//! The credentials: from the kubeconfig, found and merged as by `kubectl`, with overrides from the command line; or from the pod that
//! this runs in.
//!
//! The rules follow client-go (`tools/clientcmd`: `client_config.go`, `loader.go`, `merged_client_builder.go`).

use std::{
    env, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, anyhow, bail, ensure};
use http::{HeaderValue, Uri};
use kube::config::{
    AuthInfo, Cluster, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedAuthInfo, NamedCluster,
    NamedContext,
};

use super::{Connection, reason};
use crate::shared::names;
use gmsa_cluster::apiserver::proxy;

/// The name of the only context, cluster and user in the resulting kubeconfig.
const CHOSEN: &str = "chosen";

impl Connection {
    /// The configuration, and its context if any.
    pub(super) async fn config(&self) -> anyhow::Result<(kube::Config, Option<String>)> {
        let file = self.read_kubeconfig()?;
        let name = self.context.clone().or_else(|| file.current_context.clone());
        let is_empty = file.contexts.is_empty()
            && file.clusters.is_empty()
            && file.auth_infos.is_empty()
            && file.current_context.is_none();
        let names = [&self.server, &self.context, &self.cluster, &self.user];
        let variable = |name: &str| env::var(name).ok();
        let mut config = if is_empty && names.into_iter().all(Option::is_none) {
            let mut config = in_cluster()?;
            config.proxy_url = proxy::to(&config.cluster_url, None, variable)?;
            config
        } else {
            let (context, mut cluster, user) = self.choose(file)?;
            let server = self.override_cluster(&mut cluster)?;
            let proxy_url = proxy::to(&server, cluster.proxy_url.as_deref(), variable)?;
            let (chosen, options) = (kubeconfig(context.namespace, cluster, user), KubeConfigOptions::default());
            let config = kube::Config::from_custom_kubeconfig(chosen, &options).await;
            let mut config = config.map_err(reason::of_kubeconfig).context("cannot use the kubeconfig")?;
            config.proxy_url = proxy_url;
            config
        };
        self.override_user(&mut config.auth_info);
        expect_token(&config.auth_info)?;
        if let Some(insecure) = self.insecure_skip_tls_verify {
            config.accept_invalid_certs = insecure;
        }
        Ok((config, name))
    }

    /// The requested file, otherwise the files of `KUBECONFIG` or `~/.kube/config`, which need not exist.
    fn read_kubeconfig(&self) -> anyhow::Result<Kubeconfig> {
        let read = |path: &Path| {
            Kubeconfig::read_from(path)
                .map_err(reason::of_kubeconfig)
                .with_context(|| format!("cannot read the kubeconfig {}", path.display()))
        };
        if let Some(path) = &self.kubeconfig {
            let file = read(path)?;
            let is_one = !file.clusters.is_empty() || !file.contexts.is_empty() || self.server.is_some();
            ensure!(is_one, "{} is not a kubeconfig: it names no cluster", path.display());
            return Ok(file);
        }
        let mut merged = Kubeconfig::default();
        for path in default_files() {
            match Kubeconfig::read_from(&path) {
                Err(KubeconfigError::ReadConfig(error, _)) if error.kind() == io::ErrorKind::NotFound => {}
                _ => merged = merged.merge(read(&path)?).context("cannot merge the files of KUBECONFIG")?,
            }
        }
        Ok(merged)
    }

    /// Names on the command line must exist in the kubeconfig. The user of a context may be missing.
    fn choose(&self, file: Kubeconfig) -> anyhow::Result<(Context, Cluster, AuthInfo)> {
        let Kubeconfig { contexts, clusters, auth_infos, current_context, .. } = file;
        let context = match self.context.as_ref().or(current_context.as_ref()) {
            Some(name) => {
                let found = contexts.iter().find(|context| context.name == *name);
                let known = contexts.iter().map(|context| &*context.name);
                found.and_then(|found| found.context.clone()).ok_or_else(|| unknown("context", name, known))?
            }
            None if self.cluster.is_some() || self.server.is_some() => Context::default(),
            None => bail!("the kubeconfig has no current context: name one with --context"),
        };
        let named = self.cluster.as_ref().unwrap_or(&context.cluster);
        let cluster = clusters.iter().find(|cluster| cluster.name == *named).and_then(|found| found.cluster.clone());
        if cluster.is_none() && (self.cluster.is_some() || self.server.is_none()) {
            return Err(unknown("cluster", named, clusters.iter().map(|cluster| &*cluster.name)));
        }
        let user = self.user.as_ref().or(context.user.as_ref());
        let found = auth_infos.iter().find(|known| Some(&known.name) == user).and_then(|found| found.auth_info.clone());
        if let (None, Some(name)) = (&found, &self.user) {
            return Err(unknown("user", name, auth_infos.iter().map(|known| &*known.name)));
        }
        Ok((context, cluster.unwrap_or_default(), found.unwrap_or_default()))
    }

    /// Returns the address of the server.
    fn override_cluster(&self, cluster: &mut Cluster) -> anyhow::Result<Uri> {
        if let Some(server) = &self.server {
            cluster.server = Some(server.clone());
            // It belongs to the server that is overridden.
            cluster.tls_server_name = None;
        }
        if self.insecure_skip_tls_verify == Some(true) {
            cluster.insecure_skip_tls_verify = Some(true);
            (cluster.certificate_authority, cluster.certificate_authority_data) = (None, None);
        }
        let server = cluster.server.as_deref().filter(|server| !server.is_empty());
        let server = server.context("the cluster of the kubeconfig has no server")?;
        if !server.contains("://") {
            let tls = cluster.certificate_authority.is_some()
                || cluster.certificate_authority_data.is_some()
                || cluster.insecure_skip_tls_verify == Some(true);
            cluster.server = Some(format!("{}://{server}", if tls { "https" } else { "http" }));
        }
        let server = cluster.server.as_deref().unwrap_or_default();
        let url: Uri = server.parse().with_context(|| format!("{server:?} is not the address of a server"))?;
        if url.host().is_none_or(str::is_empty) || !matches!(url.scheme_str(), Some("http" | "https")) {
            bail!("{server:?} is not the address of a server: expected https://HOST:PORT");
        }
        Ok(url)
    }

    /// A token replaces all other credentials except a client certificate, as in `kubectl`.
    fn override_user(&self, user: &mut AuthInfo) {
        if let Some(token) = &self.token {
            user.token = Some(token.clone().into());
            (user.token_file, user.exec, user.auth_provider) = (None, None, None);
            (user.username, user.password) = (None, None);
        }
        if self.impersonate.is_some() {
            user.impersonate.clone_from(&self.impersonate);
        }
        if !self.impersonate_groups.is_empty() {
            user.impersonate_groups = Some(self.impersonate_groups.clone());
        }
    }
}

/// The error for a name that the kubeconfig does not have, with the nearest name.
fn unknown<'n>(kind: &str, name: &str, known: impl Iterator<Item = &'n str>) -> anyhow::Error {
    let nearest = names::nearest(name, known).map(|nearest| format!(": is {nearest} meant?")).unwrap_or_default();
    anyhow!("there is no {kind} {name:?} in the kubeconfig{nearest}")
}

/// Refuses a token with a line break, such as at the end of a file, because a header cannot contain it.
fn expect_token(user: &AuthInfo) -> anyhow::Result<()> {
    let user = serde_json::to_value(user)?;
    let token = user.get("token").and_then(serde_json::Value::as_str).unwrap_or_default();
    if HeaderValue::from_str(token).is_err() {
        bail!("the token has a character that no token has, such as a line break: write it without");
    }
    Ok(())
}

/// A kubeconfig with a single context.
fn kubeconfig(namespace: Option<String>, cluster: Cluster, user: AuthInfo) -> Kubeconfig {
    let name = CHOSEN.to_owned();
    let context = Context { cluster: name.clone(), user: Some(name.clone()), namespace, ..Context::default() };
    Kubeconfig {
        clusters: vec![NamedCluster { name: name.clone(), cluster: Some(cluster), ..NamedCluster::default() }],
        auth_infos: vec![NamedAuthInfo { name: name.clone(), auth_info: Some(user), ..NamedAuthInfo::default() }],
        contexts: vec![NamedContext { name: name.clone(), context: Some(context), ..NamedContext::default() }],
        current_context: Some(name),
        ..Kubeconfig::default()
    }
}

fn default_files() -> Vec<PathBuf> {
    let list = env::var_os("KUBECONFIG").unwrap_or_default();
    let files: Vec<PathBuf> = env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect();
    if !files.is_empty() {
        return files;
    }
    env::home_dir().map(|home| home.join(".kube").join("config")).into_iter().collect()
}

/// The service account of the pod that this runs in, if there is no kubeconfig.
fn in_cluster() -> anyhow::Result<kube::Config> {
    if env::var_os("KUBERNETES_SERVICE_HOST").is_none() {
        bail!("there is no kubeconfig: set KUBECONFIG, or give --kubeconfig or --server");
    }
    let mut config = kube::Config::incluster().context("cannot use the service account of this pod")?;
    // As in `kubectl`, it overrides the namespace of the mounted service account.
    if let Some(namespace) = env::var("POD_NAMESPACE").ok().filter(|namespace| !namespace.is_empty()) {
        config.default_namespace = namespace;
    }
    Ok(config)
}
