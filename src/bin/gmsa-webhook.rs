//! The server: reads its settings, puts the parts together, and owns every task.
//!
//! What always holds: a task that ends unexpectedly ends the process. Exit codes: 0 after a signal, 2 where it could not
//! start or a part of it failed.

use std::{env, net::SocketAddr, path::Path, process::ExitCode, sync::Arc, time::SystemTime};

use anyhow::Context as _;
use clap::Parser as _;
use gmsa_webhook::{
    admin::{self, Fact, Readiness, Scrape},
    apiserver::ApiServer,
    authorizer::{Authorizer, access_review::AccessReviews, remembered::Remembered},
    config::{Args, Backend, Certificate, Config},
    metrics::Metrics,
    resolver::{Resolver, cache::Cache},
    server::{Bound, Reviewer, listener::Listener},
    shutdown::{Shutdown, Signals},
    standalone::Standalone,
    telemetry,
    tls::{self, Clock, Served, client_auth::ClientAuth, files::Files, self_signed},
};
use tokio::{sync::watch, task::JoinSet};

fn main() -> ExitCode {
    let config = match Args::parse().resolve() {
        Ok(config) => config,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::from(2);
        }
    };
    telemetry::init(config.log_levels.clone(), config.log_format);
    let served = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")
        .and_then(|runtime| runtime.block_on(serve(&config)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::from(2)
        }
    }
}

/// The tasks of the process. None of them ends on its own.
type Tasks = JoinSet<()>;

async fn serve(config: &Config) -> anyhow::Result<()> {
    for name in &config.without_effect {
        tracing::info!("{name} is accepted for compatibility and is no longer needed");
    }
    let mut signals = Signals::install().context("cannot handle signals")?;
    let shutdown = Shutdown::default();
    let mut readiness = Readiness::new(shutdown.clone());
    let mut tasks = Tasks::new();
    let (metrics, registry) = Metrics::new(env!("CARGO_PKG_VERSION"));

    let resolver_answers = readiness.expect("credential specs cannot be looked up yet");
    let (resolver, authorizer) = match &config.backend {
        Backend::Standalone(folder) => {
            resolver_answers.set();
            offline(folder)?
        }
        Backend::Cluster => cluster(config, &metrics, resolver_answers, &mut tasks).await?,
    };

    let certificate_served = readiness.expect("no certificate to serve with yet");
    let served = Served::new();
    let ca_file = certificate(config, &served, &mut tasks)?;
    certificate_served.set();
    let tls = tls::server_config(&served, clients(config, &mut tasks)?).context("cannot set TLS up")?;

    let reviewer = Reviewer::new(resolver, authorizer, config.random_hostname, metrics.clone())
        .strict_credential_specs(config.strict_credential_specs);
    let webhook = Bound::bind(config.listen, tls, config.limits, reviewer)
        .with_context(|| format!("cannot listen on {}", config.listen))?;
    let probes = Listener::bind(config.admin_listen, None, admin::MAX_CONNECTIONS)
        .with_context(|| format!("cannot listen on {} (--admin-listen)", config.admin_listen))?;
    tracing::info!(address = %webhook.address(), admin = %probes.address(), version = env!("CARGO_PKG_VERSION"), "serving");
    if let Backend::Standalone(folder) = &config.backend {
        let ca = ca_file.as_ref().map(self_signed::CaFile::path);
        tracing::info!("try it: {}", curl_line(folder, webhook.address(), &served, &config.certificate, ca));
    }

    let scrape = Scrape::new(registry, move || {
        let status = served.status();
        metrics.certificate(status.current.map(|current| current.not_after), status.published, status.refused);
    });
    let drain = config.drain_timeout;
    // Probes are answered until the process ends.
    let (_open, never) = watch::channel(false);
    let probes = probes.serve(admin::router(readiness, scrape), never, drain);
    tasks.spawn(async move {
        probes.await;
    });
    let closing = shutdown.closing();
    let mut webhook = tokio::spawn(webhook.serve(closing, drain));
    tokio::select! {
        signal = signals.next() => tracing::info!(signal, "ending"),
        _ = tasks.join_next() => anyhow::bail!("a part of the server ended unexpectedly"),
        _ = &mut webhook => anyhow::bail!("the webhook's listener ended unexpectedly"),
    }
    let ending = async {
        shutdown.begin(config.shutdown_delay).await;
        webhook.await
    };
    tokio::select! {
        dropped = ending => tracing::info!(dropped_connections = dropped.unwrap_or_default(), "ended"),
        signal = signals.next() => tracing::warn!(signal, "ended at once by a second signal"),
    }
    Ok(())
}

/// Where credential specs and permissions come from.
type Sources = (Arc<dyn Resolver>, Arc<dyn Authorizer>);

fn offline(folder: &Path) -> anyhow::Result<Sources> {
    let Standalone { specs, rbac } = Standalone::load(folder)?;
    let (roles, bindings) = (rbac.role_count(), rbac.binding_count());
    tracing::info!(folder = %folder.display(), specs = specs.len(), roles, bindings, "read manifests");
    Ok((Arc::new(specs), Arc::new(rbac)))
}

async fn cluster(config: &Config, metrics: &Metrics, answers: Fact, tasks: &mut Tasks) -> anyhow::Result<Sources> {
    let api = ApiServer::from_environment().await.context("no cluster to work for (--standalone DIR needs none)")?;
    let api = Arc::new(api);
    let (cache, watch) = Cache::new(Arc::clone(&api), metrics.clone());
    let mut ready = cache.ready();
    tasks.spawn(async move { match watch.await {} });
    tasks.spawn(async move {
        // The cache, which says so, lives as long as the process.
        if ready.wait_for(|ready| *ready).await.is_ok() {
            answers.set();
        }
        std::future::pending::<()>().await;
    });
    Ok((Arc::new(cache), Arc::new(Remembered::new(AccessReviews::new(api), config.authorization_cache_ttl))))
}

/// Serves a certificate from now on. Where it was made for this run, gives back the file that its CA is in.
fn certificate(config: &Config, served: &Served, tasks: &mut Tasks) -> anyhow::Result<Option<self_signed::CaFile>> {
    let now = SystemTime::now();
    match &config.certificate {
        Certificate::Files { cert, key } => {
            let pair = tls::files::load(cert, key, now)?;
            tracing::info!(certificate = %pair.summary(), "using the certificate in {}", cert.display());
            served.publish(pair);
            let files = Files { cert: cert.clone(), key: key.clone() };
            let kept = files.keep_served(served.clone(), config.tls_reload_interval, Clock::system());
            tasks.spawn(async move { match kept.await {} });
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
            Ok(Some(ca_file))
        }
    }
}

type Clients = Option<Arc<dyn rustls::server::danger::ClientCertVerifier>>;

/// Says who may connect, where that is restricted.
fn clients(config: &Config, tasks: &mut Tasks) -> anyhow::Result<Clients> {
    let Some((file, names)) = &config.clients else { return Ok(None) };
    let clients = ClientAuth::load(file.clone(), names.clone())?;
    let fresh = Arc::clone(&clients).keep_fresh(config.tls_reload_interval);
    tasks.spawn(async move { match fresh.await {} });
    Ok(Some(clients))
}

/// A command that posts an example review, or asks for the version where there is none; it works when pasted.
fn curl_line(
    folder: &Path,
    address: SocketAddr,
    served: &Served,
    certificate: &Certificate,
    ca: Option<&Path>,
) -> String {
    let mut words = vec!["curl".to_owned()];
    // curl takes a leaf for its own anchor where it has no CA.
    let anchor = match certificate {
        Certificate::Files { cert, .. } => Some(cert.as_path()),
        Certificate::SelfSigned => ca,
    };
    if let Some(anchor) = anchor {
        words.extend(["--cacert".to_owned(), quote(&anchor.display().to_string())]);
    }
    let ip = if address.ip().is_unspecified() { "127.0.0.1".to_owned() } else { address.ip().to_string() };
    let port = address.port();
    let names = served.current().map(|current| current.names).unwrap_or_default();
    let host = match names.first() {
        Some(name) if !names.contains(&ip) => {
            words.extend(["--resolve".to_owned(), format!("{name}:{port}:{ip}")]);
            name.clone()
        }
        _ if ip.contains(':') => format!("[{ip}]"),
        _ => ip,
    };
    let example = folder.join("review-mutate.json");
    if example.is_file() {
        let data = quote(&format!("@{}", example.display()));
        words.extend([
            "-H".to_owned(),
            "'Content-Type: application/json'".to_owned(),
            "--data-binary".to_owned(),
            data,
        ]);
        words.push(format!("https://{host}:{port}/mutate"));
    } else {
        words.push(format!("https://{host}:{port}/info"));
    }
    words.join(" ")
}

/// A word as a shell takes it.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-@:".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}
