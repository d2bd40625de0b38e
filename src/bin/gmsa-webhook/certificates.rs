//! Where the serving certificate comes from, and which clients may connect.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use gmsa_cluster::apiserver::ApiServer;
use gmsa_edge::{
    admin::Condition,
    clock::Moment,
    metrics::EdgeMetrics,
    shutdown::Tasks,
    tls::{
        Publication, Served,
        client_auth::ClientAuth,
        issue::Ca,
        self_managed::{CA_CERT, SelfManaged},
    },
};
use gmsa_webhook::{
    PROGRAM,
    config::{CHECK_INTERVAL, Certificate, Config},
};
use tempfile::TempDir;

/// The lifetime of a certificate that is created at start: longer than a standalone server runs.
const SELF_SIGNED_LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// A file with a certificate that verifies the serving certificate.
pub struct Anchor {
    pub path: PathBuf,
    /// The folder of a file that was made at start. It is removed when this is dropped.
    _folder: Option<TempDir>,
}

/// Serves a certificate from now on, or as soon as there is one. `ready` is set once a certificate is served; where the webhook manages its own,
/// once every configuration trusts it.
pub fn serve(
    config: &Config,
    api: Option<&Arc<ApiServer>>,
    served: &Served,
    metrics: &EdgeMetrics,
    ready: Condition,
    tasks: &mut Tasks,
) -> anyhow::Result<Option<Anchor>> {
    let now = SystemTime::now();
    let cluster = || api.cloned().context("webhook configurations are in a cluster, and this server has none");
    match &config.certificate {
        Certificate::Files { files, publish } => {
            let pair = files.load(now)?;
            tracing::info!(certificate = %pair.summary, "using the certificate in {}", files.cert.display());
            served.publish(pair);
            ready.set();
            let reload = files.clone().keep_served(served.clone(), config.typed.certificates.tls_reload_interval);
            tasks.spawn(async move { match reload.await {} });
            if let Some((file, configurations)) = publish {
                let (configurations, grace) = (configurations.clone(), config.typed.certificates.foreign_ca_grace);
                let publication = Publication::new(cluster()?, PROGRAM, configurations, grace, metrics.clone());
                let following = publication.follow(file.clone(), CHECK_INTERVAL, Arc::new(Moment::now));
                tasks.spawn(async move { match following.await {} });
            }
            // curl accepts a leaf as its own CA.
            Ok(Some(Anchor { path: files.cert.clone(), _folder: None }))
        }
        Certificate::SelfManaged(settings) => {
            let (settings, metrics) = ((**settings).clone(), metrics.clone());
            let (clock, ready) = (Arc::new(Moment::now), move || ready.set());
            let managed = SelfManaged::new(cluster()?, settings, served.clone(), clock, metrics, ready);
            tasks.spawn(async move { match managed.run().await {} });
            Ok(None)
        }
        Certificate::SelfSigned => {
            let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
            let own = config.listen.ip();
            if !own.is_unspecified() && !own.is_loopback() {
                names.push(own.to_string());
            }
            let failed = "cannot create a certificate";
            let ca = Ca::generate("gmsa-webhook standalone CA", now, SELF_SIGNED_LIFETIME).context(failed)?;
            let (_, pair) = ca.issue(PROGRAM.name, &names, now, SELF_SIGNED_LIFETIME).context(failed)?;
            // Clients read the CA's certificate. Its key stays in this process, and no other user can change the file.
            let private = Permissions::from_mode(0o700);
            let folder = tempfile::Builder::new().prefix("gmsa-webhook-").permissions(private).tempdir();
            let folder = folder.context("cannot create a folder for the CA's certificate")?;
            let path = folder.path().join(CA_CERT);
            fs::write(&path, ca.cert_pem()).with_context(|| format!("cannot write {}", path.display()))?;
            tracing::info!(ca = %path.display(), names = names.join(","), "made a certificate for this run");
            served.publish(pair);
            ready.set();
            Ok(Some(Anchor { path, _folder: Some(folder) }))
        }
    }
}

/// Verifies clients, where they are restricted.
pub fn clients(config: &Config, tasks: &mut Tasks) -> anyhow::Result<Option<Arc<ClientAuth>>> {
    let flags = &config.typed.certificates;
    let Some(file) = &flags.client_ca else { return Ok(None) };
    let clients = ClientAuth::load(file.clone(), flags.client_name.clone())?;
    let reload = Arc::clone(&clients).keep_loaded(flags.tls_reload_interval);
    tasks.spawn(async move { match reload.await {} });
    Ok(Some(clients))
}
