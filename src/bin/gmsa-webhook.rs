//! The server: reads its settings, puts the parts together, and owns every task.
//!
//! What always holds: a task that ends unexpectedly ends the process. Exit codes: 0 after a signal, 2 where it could not
//! start or a part of it failed.

use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::SystemTime,
};

use anyhow::Context as _;
use clap::Parser as _;
use gmsa_webhook::{
    admin::{self, Readiness},
    apiserver::ApiServer,
    authorizer::{Authorizer, access_review::AccessReviews},
    config::{Args, Backend, Certificate, Config},
    resolver::{Resolver, live::Live},
    server::{Bound, Reviewer, listener::Listener},
    shutdown::{Shutdown, Signals},
    standalone::Standalone,
    telemetry,
    tls::{self, KeyPair, Served, self_signed},
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
        .and_then(|runtime| runtime.block_on(serve(config)));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::from(2)
        }
    }
}

async fn serve(config: Config) -> anyhow::Result<()> {
    for name in &config.without_effect {
        tracing::info!("{name} is accepted for compatibility and is no longer needed");
    }
    let mut signals = Signals::install().context("cannot handle signals")?;
    let shutdown = Shutdown::default();
    let mut readiness = Readiness::new(shutdown.clone());
    let certificate_served = readiness.expect("no certificate to serve with yet");
    let resolver_answers = readiness.expect("credential specs cannot be looked up yet");

    let (resolver, authorizer) = backend(&config.backend).await?;
    resolver_answers.set();
    let (pair, ca_file) = certificate(&config)?;
    let names = pair.names().to_vec();
    let served = Served::new();
    served.publish(pair);
    certificate_served.set();

    let tls = tls::server_config(&served, None).context("cannot set TLS up")?;
    let reviewer = Reviewer::new(resolver, authorizer, config.random_hostname)
        .strict_credential_specs(config.strict_credential_specs);
    let webhook = Bound::bind(config.listen, tls, config.limits, reviewer)
        .with_context(|| format!("cannot listen on {}", config.listen))?;
    let probes = Listener::bind(config.admin_listen, None, admin::MAX_CONNECTIONS)
        .with_context(|| format!("cannot listen on {} (--admin-listen)", config.admin_listen))?;
    tracing::info!(address = %webhook.address(), admin = %probes.address(), version = env!("CARGO_PKG_VERSION"), "serving");
    if let Backend::Standalone(folder) = &config.backend {
        let ca = ca_file.as_ref().map(self_signed::CaFile::path);
        tracing::info!("try it: {}", curl_line(folder, webhook.address(), &names, &config.certificate, ca));
    }

    let mut tasks = JoinSet::new();
    let (closing, drain) = (shutdown.closing(), config.drain_timeout);
    tasks.spawn(async move { webhook.serve(closing, drain).await });
    // Probes are answered until the process ends.
    let (_open, never) = watch::channel(false);
    tasks.spawn(async move { probes.serve(admin::router(readiness), never, drain).await });
    tokio::select! {
        signal = signals.next() => tracing::info!(signal, "ending"),
        _ = tasks.join_next() => anyhow::bail!("a part of the server ended unexpectedly"),
    }
    let ending = async {
        shutdown.begin(config.shutdown_delay, std::future::pending()).await;
        tasks.join_next().await
    };
    tokio::select! {
        _ = ending => tracing::info!("ended"),
        signal = signals.next() => tracing::warn!(signal, "ended at once by a second signal"),
    }
    Ok(())
}

async fn backend(backend: &Backend) -> anyhow::Result<(Arc<dyn Resolver>, Arc<dyn Authorizer>)> {
    match backend {
        Backend::Standalone(folder) => {
            let Standalone { specs, rbac } = Standalone::load(folder)?;
            let (roles, bindings) = (rbac.role_count(), rbac.binding_count());
            tracing::info!(folder = %folder.display(), specs = specs.len(), roles, bindings, "read manifests");
            Ok((Arc::new(specs), Arc::new(rbac)))
        }
        Backend::Cluster => {
            let api =
                ApiServer::from_environment().await.context("no cluster to work for; --standalone DIR needs none")?;
            let api = Arc::new(api);
            Ok((Arc::new(Live::new(Arc::clone(&api))), Arc::new(AccessReviews::new(api))))
        }
    }
}

/// The certificate to serve with; where it was made for this run, also the file that its CA is in.
fn certificate(config: &Config) -> anyhow::Result<(KeyPair, Option<self_signed::CaFile>)> {
    let now = SystemTime::now();
    match &config.certificate {
        Certificate::Files { cert, key } => Ok((tls::files::load(cert, key, now)?, None)),
        Certificate::SelfSigned => {
            let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
            let own = config.listen.ip();
            if !own.is_unspecified() && !own.is_loopback() {
                names.push(own.to_string());
            }
            let (pair, ca_file) = self_signed::make(&names, &env::temp_dir(), now)?;
            tracing::info!(ca = %ca_file.path().display(), names = names.join(","), "made a certificate for this run");
            Ok((pair, Some(ca_file)))
        }
    }
}

/// A command that posts an example review, or asks for the version where there is none; it works when pasted.
fn curl_line(
    folder: &Path,
    address: SocketAddr,
    names: &[String],
    certificate: &Certificate,
    ca: Option<&Path>,
) -> String {
    let ip = if address.ip().is_unspecified() { "127.0.0.1".to_owned() } else { address.ip().to_string() };
    let mut words = vec!["curl".to_owned(), "--cacert".to_owned()];
    // curl takes a leaf for its own anchor where it has no CA.
    let anchor = match certificate {
        Certificate::Files { cert, .. } => ca.unwrap_or(cert),
        Certificate::SelfSigned => ca.unwrap_or(Path::new("ca.crt")),
    };
    words.push(quote(&anchor.display().to_string()));
    let port = address.port();
    let host = match names.first() {
        Some(name) if !names.contains(&ip) => {
            words.extend(["--resolve".to_owned(), format!("{name}:{port}:{ip}")]);
            name.clone()
        }
        _ if ip.contains(':') => format!("[{ip}]"),
        _ => ip,
    };
    let example: PathBuf = folder.join("review-mutate.json");
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
