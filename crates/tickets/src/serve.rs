//! The broker's start: from its flags to its ports and tasks.
//!
//! Invariants: what is configured is read and checked before a port is bound; a task that ends unexpectedly ends the process. Exit codes: 0
//! after a signal, 2 where the broker could not start or a part of it failed.

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::Context as _;
use gmsa_cluster::apiserver::ApiServer;
use gmsa_core::{causes::chain, duration::duration};
use gmsa_edge::{
    admin::{self, Condition, Readiness},
    authorization_cache::{self, AuthorizationCache},
    clock::Moment,
    limits::{OWN_FILES, within_files},
    memory_limit,
    metrics::{EdgeMetrics, register},
    object::ObjectName,
    own_token,
    server::{Handshakes, Listener, Serving, socket_address},
    service_names::ServiceNames,
    shutdown::{Bound, Signals, Tasks},
    telemetry::{LogArgs, LogLimit},
    tls::{
        Served,
        files::Files,
        self_managed::{SelfManaged, SelfManagedSettings},
        server_config,
    },
};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::{
    PROGRAM,
    broker::{
        Broker,
        routes::{self, REFUSED},
    },
    domains::{self, DomainConfig},
    limits::{BrokerLimits, DEFAULT_MEMORY, IDLE_TIMEOUT, Times},
    metrics::BrokerMetrics,
};

pub const EXAMPLES: &str = "Examples:
  # Serve with a certificate from files, which are read again when they change
  gmsa-tickets serve --config tickets.yaml --tls-cert tls.crt --tls-key tls.key

  # Serve with a certificate that the replicas keep in a Secret
  gmsa-tickets serve --config tickets.yaml --self-managed-secret gmsa-tickets/gmsa-tickets-tls --self-managed-service gmsa-tickets.gmsa-tickets";

/// The log lines whose number is limited.
static LOG_LIMITS: &[&LogLimit] = &[&REFUSED];

/// The flags of `serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// YAML file with the domains whose accounts get tickets
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,

    /// Address of the broker
    #[arg(long, value_name = "ADDR:PORT", default_value = "[::]:8443", value_parser = socket_address)]
    pub listen: SocketAddr,

    /// Address of /livez, /readyz and /metrics
    ///
    /// Plain HTTP.
    #[arg(long, value_name = "ADDR:PORT", env = "ADMIN_LISTEN", default_value = "[::]:9090", value_parser = socket_address)]
    pub admin_listen: SocketAddr,

    /// Serving certificate: a PEM file, the leaf first
    #[arg(
        long,
        value_name = "FILE",
        env = "TLS_CRT",
        requires = "tls_key",
        required_unless_present = "self_managed_secret"
    )]
    pub tls_cert: Option<PathBuf>,

    /// Private key of the serving certificate: a PEM file
    #[arg(long, value_name = "FILE", env = "TLS_KEY", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// How often the files of the certificate are read, besides after each change
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration, hide_short_help = true)]
    pub tls_reload_interval: Duration,

    /// Secret in which the replicas keep a CA and a certificate
    ///
    /// They create and renew both. It must exist, and may be empty.
    #[arg(long, value_name = "NAMESPACE/NAME", conflicts_with = "tls_cert", requires = "self_managed_service", value_parser = ObjectName::secret)]
    pub self_managed_secret: Option<ObjectName>,

    /// Service whose names the self-managed certificate is for
    #[arg(long, value_name = "NAME.NAMESPACE", value_parser = ServiceNames::parse, requires = "self_managed_secret")]
    pub self_managed_service: Option<ServiceNames>,

    /// How long an allowed `use` is remembered, and so how long a revoked one may still be honoured; 0s: not at all
    #[arg(long, value_name = "DURATION", default_value = authorization_cache::DEFAULT_TTL, value_parser = duration, hide_short_help = true)]
    pub authorization_cache_ttl: Duration,

    #[command(flatten)]
    pub log: LogArgs,

    /// How long to go on serving after SIGTERM, until no endpoint names this replica
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration, hide_short_help = true)]
    pub shutdown_delay: Duration,

    /// How long requests in flight may take after the port is closed
    #[arg(long, value_name = "DURATION", default_value = "20s", value_parser = duration, hide_short_help = true)]
    pub drain_timeout: Duration,
}

pub fn run(args: Args) -> ExitCode {
    start(args).unwrap_or_else(|error| {
        eprintln!("error: {}", chain(error.as_ref()));
        ExitCode::from(2)
    })
}

/// Serves, and says how that ended. What fails before there is a log is an error.
fn start(args: Args) -> anyhow::Result<ExitCode> {
    let domains = domains::load(&args.config)?;
    let log = args.log.clone();
    let serve = async |handshakes| serve(args, domains, handshakes).await;
    PROGRAM.run(log, None, serve).context("cannot start the runtime")
}

async fn serve(args: Args, domains: Vec<DomainConfig>, handshakes: Handle) -> anyhow::Result<()> {
    let signals = Signals::install().context("cannot handle signals")?;
    let ending = CancellationToken::new();
    let (mut readiness, mut tasks) = (Readiness::new(ending.clone()), Tasks::new());
    let (edge, metrics, registry) = register(&PROGRAM, BrokerMetrics::register);
    let api = Arc::new(ApiServer::from_environment().await.context("no cluster to ask about pods")?);
    let fault = own_token::follow(&api, &mut readiness, &mut tasks);
    let served = Served::new(edge.clone());
    let ready = readiness.expect("no certificate to serve with yet");
    keep_certificate(&args, &api, &served, &edge, ready, &mut tasks)?;

    let in_memory = BrokerLimits::of_memory(memory_limit::read().unwrap_or(DEFAULT_MEMORY));
    let own = OWN_FILES + in_memory.files(domains.len());
    let ((connections, waiting), for_probes) = within_files(own, (in_memory.connections, in_memory.waiting));
    let limits = BrokerLimits { connections, waiting, ..in_memory };
    let authorizer = AuthorizationCache::new(Arc::clone(&api) as _, args.authorization_cache_ttl);
    let names = domains.iter().map(|domain| &*domain.kdcs.name).collect::<Vec<_>>().join(", ");
    let broker = Broker::new(api, Arc::new(authorizer), domains, limits, Times::default(), metrics);

    let tls = server_config(&served, None).context("cannot set up TLS")?;
    let serving = Serving {
        tls: Some(Handshakes::new(tls, handshakes)),
        metrics: Some(edge),
        keeps_decided: true,
        ending: ending.clone(),
        fault,
        ..Serving::new(limits.connections, limits.waiting, IDLE_TIMEOUT)
    };
    let main =
        Listener::bind(args.listen, serving).with_context(|| format!("cannot listen on {} (--listen)", args.listen))?;
    let admin = Listener::bind(args.admin_listen, admin::serving(for_probes))
        .with_context(|| format!("cannot listen on {} (--admin-listen)", args.admin_listen))?;
    tracing::info!(address = %main.address(), admin = %admin.address(), domains = names, version = PROGRAM.version, "serving");

    let (main, admin) = ((main, routes::router(Arc::new(broker))), (admin, admin::router(readiness, registry)));
    let (delay, drain) = (args.shutdown_delay, args.drain_timeout);
    let bound = Bound { program: PROGRAM, main, admin, tasks, signals, ending, delay, drain, log_limits: LOG_LIMITS };
    Ok(bound.serve().await?)
}

/// Serves a certificate from now on, or as soon as there is one.
fn keep_certificate(
    args: &Args,
    api: &Arc<ApiServer>,
    served: &Served,
    metrics: &EdgeMetrics,
    ready: Condition,
    tasks: &mut Tasks,
) -> anyhow::Result<()> {
    if let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) {
        let files = Files { cert: cert.clone(), key: key.clone() };
        served.publish(files.load(SystemTime::now())?);
        ready.set();
        let reload = files.keep_served(served.clone(), args.tls_reload_interval);
        tasks.spawn(async move { match reload.await {} });
    }
    if let (Some(secret), Some(ServiceNames(names))) = (&args.self_managed_secret, &args.self_managed_service) {
        let days = |days: u64| Duration::from_secs(days * 24 * 3600);
        // As the webhook's by default, but for the time that the next CA is in the Secret before it signs: a pod keeps the CAs that it was created with,
        // and one that is younger than this trusts it.
        let settings = SelfManagedSettings {
            secret: secret.clone(),
            configurations: Vec::new(),
            program: PROGRAM,
            names: names.clone(),
            ca_lifetime: days(730),
            leaf_lifetime: days(90),
            renewal_point: 66,
            bundle_standing: days(180),
            foreign_grace: days(1),
            check_interval: Duration::from_secs(10),
        };
        let (clock, ready) = (Arc::new(Moment::now), move || ready.set());
        let managed = SelfManaged::new(Arc::clone(api), settings, served.clone(), clock, metrics.clone(), ready);
        tasks.spawn(async move { match managed.run().await {} });
    }
    Ok(())
}
