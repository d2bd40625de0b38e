//! The server: reads its settings, connects the parts, and owns every task.
//!
//! Invariants: a task that ends unexpectedly before the first signal ends the process. Exit codes: 0 after a signal or a report without
//! problems, 1 after a report that names problems, 2 where it could not start or a part of it failed.

mod certificates;
mod curl;
mod sources;

use std::{process::ExitCode, sync::Arc, time::SystemTime};

use anyhow::Context as _;
use gmsa_cluster::{
    apiserver::ApiServer,
    large_memory::{LargeMemory, MemoryUser},
};
use gmsa_core::{admission::Enforcement, causes::chain};
use gmsa_edge::{
    admin::{self, Readiness},
    limits::{OWN_FILES, within_files},
    own_token, report,
    server::{Handshakes, Listener, Serving, runtime},
    shutdown::{Bound, Signals, Tasks},
    tls::{self, Served},
};
use gmsa_webhook::{
    PROGRAM,
    command::{certs, crd, dry_run},
    config::{Args, CertsCommand, Command, Config, ServeArgs},
    limits::{IDLE_TIMEOUT, Limits},
    metrics::Metrics,
    server::{LOG_LIMITS, Reviewer, routes},
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Returns memory to the system soon after a peak: the system's own allocator keeps most of what thousands of connections or
/// large reviews needed, and the next peak would exceed the memory limit.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const NO_RUNTIME: &str = "cannot start the runtime";

fn main() -> ExitCode {
    let now = SystemTime::now();
    let ended = match Args::read(std::env::args_os()).unwrap_or_else(|error| error.exit()).command() {
        Command::Serve(args) => observed(*args),
        Command::Test(args) => printed(dry_run::run(args)),
        Command::UpgradeCrd => printed(crd::upgrade()),
        Command::Certs(CertsCommand::Inspect(args)) => printed(certs::inspect(args, now)),
        Command::Certs(CertsCommand::Issue(args)) => printed(async { certs::issue(&args, now) }),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("error: {}", chain(error.as_ref()));
        ExitCode::from(2)
    })
}

/// Runs a command, and prints its report.
fn printed(command: impl Future<Output = anyhow::Result<(String, ExitCode)>>) -> anyhow::Result<ExitCode> {
    let (report, code) = runtime().context(NO_RUNTIME)?.block_on(command)?;
    report::print(&report).context("cannot write the report")?;
    Ok(code)
}

/// Serves with logs, and traces where a collector is named. An error before there is a log is returned.
fn observed(args: ServeArgs) -> anyhow::Result<ExitCode> {
    let config = args.resolve()?;
    let collector = config.typed.otlp_endpoint.as_ref().and_then(Option::as_ref);
    let log = config.typed.log.clone();
    PROGRAM.run(log, collector, async |handshakes| serve(&config, handshakes).await).context(NO_RUNTIME)
}

async fn serve(config: &Config, handshake_threads: Handle) -> anyhow::Result<()> {
    for name in &config.without_effect {
        tracing::info!("{name} is accepted for compatibility and is no longer needed");
    }
    let signals = Signals::install().context("cannot handle signals")?;
    let ending = CancellationToken::new();
    let mut readiness = Readiness::new(ending.clone());
    let mut tasks = Tasks::new();
    let (edge, metrics, registry) = Metrics::new();
    metrics.running(PROGRAM.version, config.enforced());

    let large_memory = LargeMemory::new(config.limits.large_bytes);
    let answers = readiness.expect("credential specs cannot be looked up yet");
    let trusted = readiness.expect("no certificate to serve with yet, or none that the webhook configurations trust");
    let (api, [for_decisions, for_advice], fault) = if let Some(folder) = &config.typed.standalone {
        answers.set();
        (None, sources::offline(folder)?, Arc::default())
    } else {
        let api = ApiServer::from_environment().await.context("no cluster to serve (--standalone DIR needs none)")?;
        // Shared with the bodies of clients: no address can take all of it.
        let api = Arc::new(api.with_memory(large_memory.share_of(MemoryUser::ApiServer)));
        let fault = own_token::follow(&api, &mut readiness, &mut tasks);
        let sources = sources::cluster(Arc::clone(&api), config, &metrics, answers, &mut tasks);
        (Some(api), sources, fault)
    };
    let tickets = sources::tickets(config, api.clone(), &mut tasks);
    let served = Served::new(edge.clone());
    let anchor = certificates::serve(config, api.as_ref(), &served, &edge, trusted, &mut tasks)?;
    let clients = certificates::clients(config, &mut tasks)?;
    let tls = tls::server_config(&served, clients.clone()).context("cannot set up TLS")?;

    let reviewer = Reviewer {
        for_decisions,
        for_advice,
        random_hostname: config.typed.random_hostname,
        strict_credential_specs: config.typed.strict_credential_specs,
        enforcement: config.typed.enforcement,
        warn_namespaces: config.typed.warn_namespaces.clone().into(),
        tickets,
        metrics,
    };
    warn_where_not_enforced(config);
    let ((connections, waiting), for_probes) =
        within_files(OWN_FILES, (config.limits.connections, config.limits.waiting));
    let limits = Limits { connections, waiting, ..config.limits };
    let serving = Serving {
        tls: Some(Handshakes::new(tls, handshake_threads)),
        clients,
        metrics: Some(edge),
        keeps_decided: true,
        ending: ending.clone(),
        fault,
        ..Serving::new(limits.connections, limits.waiting, IDLE_TIMEOUT)
    };
    let webhook =
        Listener::bind(config.listen, serving).with_context(|| format!("cannot listen on {}", config.listen))?;
    let probes = Listener::bind(config.admin_listen, admin::serving(for_probes))
        .with_context(|| format!("cannot listen on {} (--admin-listen)", config.admin_listen))?;
    tracing::info!(address = %webhook.address(), admin = %probes.address(), version = PROGRAM.version, "serving");
    if let (Some(folder), Some(anchor)) = (&config.typed.standalone, &anchor) {
        tracing::info!("try it: {}", curl::line(folder, webhook.address(), &served, &anchor.path));
    }

    let router = routes::router(reviewer, &limits, large_memory);
    let (main, admin) = ((webhook, router), (probes, admin::router(readiness, registry)));
    let (delay, drain) = (config.shutdown_delay, config.typed.drain_timeout);
    let bound = Bound { program: PROGRAM, main, admin, tasks, signals, ending, delay, drain, log_limits: LOG_LIMITS };
    Ok(bound.serve().await?)
}

/// Logs where denials are not enforced.
fn warn_where_not_enforced(config: &Config) {
    if config.typed.enforcement == Enforcement::Warn {
        tracing::warn!(
            "denials are not enforced: pods that would be denied are admitted with a warning (--enforcement)"
        );
    } else if !config.typed.warn_namespaces.is_empty() {
        tracing::warn!(
            namespaces = config.typed.warn_namespaces.join(", "),
            "denials are not enforced in these namespaces: pods that would be denied are admitted with a warning (--warn-namespaces)"
        );
    }
}
