//! Where the serving certificate comes from, and who may connect.

use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use anyhow::Context as _;
use gmsa_webhook::{
    admin::Fact,
    apiserver::ApiServer,
    config::{CHECK_INTERVAL, Certificate, Config},
    tls::{
        self, Clock, Publication, Served,
        ca_file::CaFile,
        client_auth::ClientAuth,
        self_managed::{Progress, SelfManaged},
        self_signed,
    },
};

use crate::Tasks;

/// What a certificate comes from that was made for this run: a file that goes with the process.
pub struct Anchor {
    _made: Option<self_signed::CaFile>,
    path: PathBuf,
}

impl Anchor {
    /// A certificate that the one that is served can be verified with.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What there is to know of the certificates while the process runs.
pub struct Serving {
    /// What the one that is served can be verified with, where that is a file.
    pub anchor: Option<Anchor>,
    /// What was done to them, where the webhook manages them itself.
    pub progress: Option<Arc<Progress>>,
}

/// Serves a certificate from now on, or as soon as there is one; `ready` comes true once API servers can trust it.
pub fn serve(
    config: &Config,
    api: Option<&Arc<ApiServer>>,
    served: &Served,
    ready: Fact,
    tasks: &mut Tasks,
) -> anyhow::Result<Serving> {
    let now = SystemTime::now();
    let interval = config.tls_reload_interval;
    let cluster = || api.cloned().context("webhook configurations are in a cluster, and this server has none");
    match &config.certificate {
        Certificate::Files { files, publish } => {
            let pair = tls::files::load(&files.cert, &files.key, now)?;
            tracing::info!(certificate = %pair.summary(), "using the certificate in {}", files.cert.display());
            served.publish(pair);
            ready.set();
            let path = files.cert.clone();
            let kept = files.clone().keep_served(served.clone(), interval, Clock::system());
            tasks.spawn(async move { match kept.await {} });
            if let Some((file, configurations)) = publish {
                let publication = Publication::new(cluster()?, configurations.clone(), config.foreign_ca_grace);
                let kept = CaFile::new(file.clone(), publication).keep_published(CHECK_INTERVAL, Clock::system());
                tasks.spawn(async move { match kept.await {} });
            }
            // curl takes a leaf for its own anchor.
            Ok(Serving { anchor: Some(Anchor { _made: None, path }), progress: None })
        }
        Certificate::SelfManaged(settings) => {
            let managed = SelfManaged::new(cluster()?, (**settings).clone(), served.clone(), Clock::system());
            let progress = managed.progress();
            let steps = Arc::clone(&progress);
            tasks.spawn(async move { match managed.run().await {} });
            tasks.spawn(async move {
                steps.until_ready().await;
                ready.set();
                std::future::pending::<()>().await;
            });
            Ok(Serving { anchor: None, progress: Some(progress) })
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
            let path = ca_file.path().to_owned();
            Ok(Serving { anchor: Some(Anchor { _made: Some(ca_file), path }), progress: None })
        }
    }
}

type Clients = Option<Arc<dyn rustls::server::danger::ClientCertVerifier>>;

/// Says who may connect, where that is restricted.
pub fn clients(config: &Config, tasks: &mut Tasks) -> anyhow::Result<Clients> {
    let Some((file, names)) = &config.clients else { return Ok(None) };
    let clients = ClientAuth::load(file.clone(), names.clone())?;
    let fresh = Arc::clone(&clients).keep_fresh(config.tls_reload_interval);
    tasks.spawn(async move { match fresh.await {} });
    Ok(Some(clients))
}
