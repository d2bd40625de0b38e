//! Where the serving certificate comes from, and who may connect.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use anyhow::Context as _;
use gmsa_cluster::apiserver::ApiServer;
use gmsa_webhook::{
    admin::Fact,
    config::{CHECK_INTERVAL, Certificate, Config},
    metrics::Metrics,
    tls::{
        self, Clock, Publication, Served, ca_file,
        client_auth::ClientAuth,
        self_managed::SelfManaged,
        self_signed::{self, TemporaryCaFile},
    },
};

use crate::Tasks;

/// A file with a certificate that verifies the one that is served.
pub enum Anchor {
    /// Removed at the end of the process.
    Temporary(TemporaryCaFile),
    Given(PathBuf),
}

impl Anchor {
    pub fn path(&self) -> &Path {
        match self {
            Self::Temporary(file) => file.path(),
            Self::Given(path) => path,
        }
    }
}

/// Serves a certificate from now on, or as soon as there is one. `ready` is set when API servers can trust it.
pub fn serve(
    config: &Config,
    api: Option<&Arc<ApiServer>>,
    served: &Served,
    metrics: &Metrics,
    ready: Fact,
    tasks: &mut Tasks,
) -> anyhow::Result<Option<Anchor>> {
    let now = SystemTime::now();
    let cluster = || api.cloned().context("webhook configurations are in a cluster, and this server has none");
    match &config.certificate {
        Certificate::Files { files, publish } => {
            let pair = tls::files::load(&files.cert, &files.key, now)?;
            tracing::info!(certificate = %pair.summary(), "using the certificate in {}", files.cert.display());
            served.publish(pair);
            ready.set();
            let kept = files.clone().keep_served(served.clone(), config.tls_reload_interval, Clock::system());
            tasks.spawn(async move { match kept.await {} });
            if let Some((file, configurations)) = publish {
                let publication = Publication::new(cluster()?, configurations.clone(), config.foreign_ca_grace);
                let kept = ca_file::keep_published(file.clone(), publication, CHECK_INTERVAL, Clock::system());
                tasks.spawn(async move { match kept.await {} });
            }
            // curl accepts a leaf as its own CA.
            Ok(Some(Anchor::Given(files.cert.clone())))
        }
        Certificate::SelfManaged(settings) => {
            let (settings, metrics) = ((**settings).clone(), metrics.clone());
            let ready = move || ready.set();
            let managed = SelfManaged::new(cluster()?, settings, served.clone(), Clock::system(), metrics, ready);
            tasks.spawn(async move { match managed.run().await {} });
            Ok(None)
        }
        Certificate::SelfSigned => {
            let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
            let own = config.listen.ip();
            if !own.is_unspecified() && !own.is_loopback() {
                names.push(own.to_string());
            }
            let (pair, ca_file) = self_signed::make(&names, &env::temp_dir(), now)?;
            tracing::info!(ca = %ca_file.path().display(), names = names.join(","), "made a certificate for this run");
            served.publish(pair);
            ready.set();
            Ok(Some(Anchor::Temporary(ca_file)))
        }
    }
}

type Clients = Option<Arc<dyn rustls::server::danger::ClientCertVerifier>>;

/// Says who may connect, where that is restricted.
pub fn clients(config: &Config, tasks: &mut Tasks) -> anyhow::Result<Clients> {
    let Some((file, names)) = &config.clients else { return Ok(None) };
    let clients = ClientAuth::load(file.clone(), names.clone())?;
    let kept = Arc::clone(&clients).keep_loaded(config.tls_reload_interval);
    tasks.spawn(async move { match kept.await {} });
    Ok(Some(clients))
}
