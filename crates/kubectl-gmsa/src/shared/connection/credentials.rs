//! The credentials: from the kubeconfig, found and merged as by `kubectl`, with overrides from the command line; or from the pod that
//! this runs in.
//!
//! The rules follow client-go (`tools/clientcmd`: `client_config.go`, `loader.go`, `merged_client_builder.go`). Errors are in our own words: the
//! libraries' messages contain Rust debug output, and omit the name of a credential program.

use std::{env, io, path::PathBuf};

use anyhow::{Context as _, anyhow, bail, ensure};
use http::{HeaderValue, Uri};
use kube::{
    client::AuthError,
    config::{
        AuthInfo, Cluster, Context, ExecConfig, KubeConfigOptions, Kubeconfig, KubeconfigError, LoadDataError,
        NamedCluster, NamedContext,
    },
};

use super::Connection;
use crate::shared::spelling::meant;
use gmsa_cluster::apiserver::{ConnectError, proxy};

impl Connection {
    /// The configuration, and its context if any.
    pub(super) async fn config(&self) -> anyhow::Result<(kube::Config, Option<String>)> {
        let file = self.read_kubeconfig()?;
        let name = self.context.clone().or_else(|| file.current_context.clone());
        let is_empty = file.clusters.is_empty() && file.auth_infos.is_empty() && name.is_none();
        let named = [&self.server, &self.cluster, &self.user];
        let (mut config, proxy) = if is_empty && named.into_iter().all(Option::is_none) {
            let variable = env::var_os("KUBERNETES_SERVICE_HOST");
            variable.context("there is no kubeconfig: set KUBECONFIG, or give --kubeconfig or --server")?;
            // The service account of the pod that this runs in.
            (kube::Config::incluster().context("cannot use the service account of this pod")?, None)
        } else {
            self.chosen(file).await?
        };
        config.proxy_url = proxy::to(&config.cluster_url, proxy.as_deref(), |name| env::var(name).ok())?;
        self.override_user(&mut config.auth_info);
        expect_token(&config.auth_info)?;
        if let Some(insecure) = self.insecure_skip_tls_verify {
            config.accept_invalid_certs = insecure;
        }
        Ok((config, name))
    }

    /// The requested file, otherwise the files of `KUBECONFIG` or `~/.kube/config`, which need not exist.
    fn read_kubeconfig(&self) -> anyhow::Result<Kubeconfig> {
        let files = self.kubeconfig.as_ref().map_or_else(default_files, |file| vec![file.clone()]);
        let mut merged = Kubeconfig::default();
        for path in files {
            let read = Kubeconfig::read_from(&path).map_err(of_kubeconfig);
            let read = read.with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
            merged = merged.merge(read).context("cannot merge the files of KUBECONFIG")?;
        }
        if let Some(path) = &self.kubeconfig {
            let names_cluster = !merged.clusters.is_empty() || !merged.contexts.is_empty() || self.server.is_some();
            ensure!(names_cluster, "{} is not a kubeconfig: it names no cluster", path.display());
        }
        Ok(merged)
    }

    /// The configuration of the context, and its proxy. Names on the command line must exist in the kubeconfig. The user of a context may be
    /// missing.
    async fn chosen(&self, mut file: Kubeconfig) -> anyhow::Result<(kube::Config, Option<String>)> {
        let context = match self.context.as_ref().or(file.current_context.as_ref()) {
            Some(name) => {
                entry("context", name, &file.contexts, |known| &known.name)?.context.clone().unwrap_or_default()
            }
            None if self.cluster.is_some() || self.server.is_some() => Context::default(),
            None => bail!("the kubeconfig has no current context: name one with --context"),
        };
        let name = self.cluster.as_ref().unwrap_or(&context.cluster);
        let mut cluster = match entry("cluster", name, &file.clusters, |known| &known.name) {
            Err(_) if self.cluster.is_none() && self.server.is_some() => Cluster::default(),
            found => found?.cluster.clone().unwrap_or_default(),
        };
        if let Some(name) = &self.user {
            entry("user", name, &file.auth_infos, |known| &known.name)?;
        }
        if let Some(server) = &self.server {
            cluster.server = Some(server.clone());
            // It belongs to the server that is overridden.
            cluster.tls_server_name = None;
        }
        if self.insecure_skip_tls_verify == Some(true) {
            cluster.insecure_skip_tls_verify = Some(true);
            (cluster.certificate_authority, cluster.certificate_authority_data) = (None, None);
        }
        let server = cluster.server.as_deref().unwrap_or_default();
        ensure!(!server.is_empty(), "the cluster of the kubeconfig has no server");
        let is_address = |url: Uri| {
            url.host().is_some_and(|host| !host.is_empty()) && matches!(url.scheme_str(), Some("http" | "https"))
        };
        ensure!(
            server.parse().is_ok_and(is_address),
            "{server:?} is not the address of a server: expected https://HOST:PORT"
        );
        // The context and the cluster with the overrides come first in the kubeconfig, with this name.
        let (name, proxy) = ("chosen".to_owned(), cluster.proxy_url.clone());
        let options =
            KubeConfigOptions { context: Some(name.clone()), cluster: Some(name.clone()), user: self.user.clone() };
        file.clusters.insert(0, NamedCluster { name: name.clone(), cluster: Some(cluster), ..NamedCluster::default() });
        file.contexts.insert(0, NamedContext { name, context: Some(context), ..NamedContext::default() });
        let config = kube::Config::from_custom_kubeconfig(file, &options).await;
        Ok((config.map_err(of_kubeconfig).context("cannot use the kubeconfig")?, proxy))
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

/// The entry with this name. Otherwise, the error has the nearest name.
fn entry<'e, E>(kind: &str, name: &str, entries: &'e [E], name_of: fn(&E) -> &String) -> anyhow::Result<&'e E> {
    entries.iter().find(|known| name_of(known) == name).ok_or_else(|| {
        let meant = meant(name, entries.iter().map(|known| name_of(known).as_str()));
        anyhow!("there is no {kind} {name:?} in the kubeconfig{meant}")
    })
}

/// Refuses a token with a line break, such as at the end of a file, because a header cannot contain it: tower-http would panic.
fn expect_token(user: &AuthInfo) -> anyhow::Result<()> {
    let user = serde_json::to_value(user)?;
    let token = user.get("token").and_then(serde_json::Value::as_str).unwrap_or_default();
    if HeaderValue::from_str(token).is_err() {
        bail!("the token has a character that no token has, such as a line break: write it without");
    }
    Ok(())
}

/// Those that exist.
fn default_files() -> Vec<PathBuf> {
    let list = env::var_os("KUBECONFIG").unwrap_or_default();
    let mut files: Vec<PathBuf> = env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect();
    if files.is_empty() {
        files.extend(env::home_dir().map(|home| home.join(".kube").join("config")));
    }
    files.retain(|file| file.try_exists().unwrap_or(true));
    files
}

/// The error of an unreadable or unusable kubeconfig.
fn of_kubeconfig(error: KubeconfigError) -> anyhow::Error {
    match error {
        KubeconfigError::ReadConfig(error, _) => error.into(),
        // The later lines quote the file.
        KubeconfigError::Parse(error) => {
            anyhow!(error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned())
        }
        KubeconfigError::LoadCertificateAuthority(error) => of_data("certificate-authority", error),
        KubeconfigError::LoadClientCertificate(error) => of_data("client-certificate", error),
        KubeconfigError::LoadClientKey(error) => of_data("client-key", error),
        other => other.into(),
    }
}

fn of_data(field: &str, error: LoadDataError) -> anyhow::Error {
    match error {
        LoadDataError::DecodeBase64(_) => anyhow!("{field}-data is not base64"),
        LoadDataError::ReadFile(error, path) => {
            anyhow::Error::from(error).context(format!("{field}: {}", path.display()))
        }
        LoadDataError::NoBase64DataOrFile => anyhow!("{field}: it names no file"),
    }
}

/// The error of unusable credentials.
pub(super) fn of_client(error: ConnectError, user: &AuthInfo) -> anyhow::Error {
    let ConnectError::Unusable(cause) = error else { return error.into() };
    match cause.downcast::<kube::Error>().map(|error| *error) {
        Ok(kube::Error::Auth(error)) => of_user(error, user),
        Ok(kube::Error::InferKubeconfig(error)) => of_kubeconfig(error).context("cannot use the kubeconfig"),
        Ok(other) => ConnectError::Unusable(other.into()).into(),
        Err(other) => ConnectError::Unusable(other).into(),
    }
}

fn of_user(error: AuthError, user: &AuthInfo) -> anyhow::Error {
    let program = user.exec.as_ref().and_then(|ExecConfig { command, .. }| command.as_deref()).unwrap_or("the program");
    match error {
        AuthError::AuthExecStart(error) if error.kind() == io::ErrorKind::NotFound => anyhow!(
            "the kubeconfig takes its credentials from {program}, which is not there: install it, or put it on the PATH"
        ),
        AuthError::AuthExecStart(error) => anyhow::Error::from(error)
            .context(format!("cannot run {program}, from which the kubeconfig takes its credentials")),
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            let said = said.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it does not say why");
            anyhow!(
                "{program}, from which the kubeconfig takes its credentials, failed ({}): {said}. Log in again",
                out.status
            )
        }
        AuthError::AuthExecParse(_) | AuthError::ExecPluginFailed => {
            anyhow!("{program}, from which the kubeconfig takes its credentials, printed no ExecCredential")
        }
        AuthError::ReadTokenFile(error, path) => {
            anyhow::Error::from(error).context(format!("cannot read the token file {}", path.display()))
        }
        other => match &user.auth_provider {
            Some(provider) => anyhow!(
                "the kubeconfig has the auth-provider {}, which kubectl has not any more either: use an exec plugin, such as kubelogin or gke-gcloud-auth-plugin",
                provider.name
            ),
            None => anyhow::Error::from(other).context("the credentials of the kubeconfig cannot be used"),
        },
    }
}
