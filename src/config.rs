//! What was typed ([`Args`]) and what holds ([`Config`]).
//!
//! Flags, environment and defaults are those of the Go webhook where it had them: `TLS_CRT`, `TLS_KEY`, `HTTPS_PORT`,
//! `LOG_LEVEL`, `RANDOM_HOSTNAME`, `QPS`, `BURST`, `--cert-reload`, `--version`, and no subcommand means `serve`.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::{ArgAction, Args as ClapArgs, Parser, Subcommand};

use crate::telemetry::{Format, Levels};

/// Admission webhook for Windows Group Managed Service Accounts (GMSA) in Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "gmsa-webhook", version, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the webhook (also what happens without a subcommand).
    Serve(ServeArgs),
}

/// What `serve` takes.
#[derive(Debug, ClapArgs)]
struct ServeArgs {
    /// Answer from the YAML files under DIR (credential specs, roles, role bindings) instead of a cluster.
    #[arg(long, value_name = "DIR")]
    standalone: Option<PathBuf>,

    /// Address of the webhook. [default: [::]:443; with --standalone 127.0.0.1:8443]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,

    /// Port of the webhook on the default address; --listen goes before it.
    #[arg(long, value_name = "PORT", env = "HTTPS_PORT", value_parser = optional_port)]
    https_port: Option<OptionalPort>,

    /// Address of /livez and /readyz, in plain HTTP. [default: [::]:9090; with --standalone 127.0.0.1:9090]
    #[arg(long, value_name = "ADDR:PORT", env = "ADMIN_LISTEN")]
    admin_listen: Option<SocketAddr>,

    /// Serving certificate: a PEM file, the leaf first.
    #[arg(long, value_name = "FILE", env = "TLS_CRT", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Private key of the serving certificate: a PEM file.
    #[arg(long, value_name = "FILE", env = "TLS_KEY", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// How often certificate files are compared with what is served, besides when their folder changes.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    tls_reload_interval: Duration,

    /// Only serve clients whose certificate comes from an authority in this PEM file.
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,

    /// Only serve clients whose certificate has this common name or DNS name; may be given several times.
    #[arg(long, value_name = "NAME", requires = "client_ca")]
    client_name: Vec<String>,

    /// Accepted for compatibility: certificate files are always reloaded.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = go_bool)]
    cert_reload: Option<bool>,

    /// Give pods that use GMSA and have no host name a random one.
    #[arg(long, value_name = "BOOL", env = "RANDOM_HOSTNAME", num_args = 0..=1, require_equals = true, default_value = "false", action = ArgAction::Set, default_missing_value = "true", value_parser = go_bool)]
    random_hostname: bool,

    /// Refuse credential specs that cannot work, rather than warn of them.
    #[arg(long, env = "STRICT_CREDENTIAL_SPECS", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", action = ArgAction::Set, default_missing_value = "true", value_parser = go_bool)]
    strict_credential_specs: bool,

    /// How long an allowed `use` is remembered, and so how long a revoked one may still be honoured; 0s: not at all.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    authorization_cache_ttl: Duration,

    /// Which events are logged: error, warn, info, debug, trace.
    #[arg(long, value_name = "LEVEL", env = "LOG_LEVEL", default_value = "info")]
    log_level: Levels,

    /// Shape of a log line.
    #[arg(long, value_enum, env = "LOG_FORMAT", default_value = "text")]
    log_format: Format,

    /// Open connections at once; over it, none is accepted until one ends.
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections, value_parser = at_least_one)]
    max_connections: usize,

    /// Reviews in flight at once; over it, a review is answered with 503.
    #[arg(long, value_name = "N", default_value_t = Limits::default().reviews, value_parser = at_least_one)]
    max_reviews: usize,

    /// How long to go on serving after SIGTERM, until no endpoint names this replica. [default: 5s; with --standalone 0s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    shutdown_delay: Option<Duration>,

    /// How long requests in flight may take after that.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    drain_timeout: Duration,

    /// Accepted for compatibility: there is no client-side throttling.
    #[arg(long, env = "QPS", hide = true)]
    qps: Option<String>,

    /// Accepted for compatibility: there is no client-side throttling.
    #[arg(long, env = "BURST", hide = true)]
    burst: Option<String>,
}

/// An empty variable counts as one that is not set.
type OptionalPort = Option<u16>;

fn optional_port(text: &str) -> Result<OptionalPort, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| "expected a port: a number from 0 to 65535".to_owned())
}

/// The spellings of Go's `strconv.ParseBool`; empty is false, as an unset variable is.
fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" | "" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<usize, String> {
    // tokio's semaphores count to usize::MAX / 8; a million is more than a process has file descriptors.
    match text.parse() {
        Ok(number @ 1..=1_000_000) => Ok(number),
        _ => Err("expected a number from 1 to 1000000".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    go_duration(text).ok_or_else(|| "expected a duration with units, such as 10s, 1m30s or 500ms".to_owned())
}

/// Reads what Go's `Duration.String` prints: numbers, with or without a fraction, each with a unit.
pub(crate) fn go_duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 7] =
        [("h", 3600.0), ("ms", 1e-3), ("m", 60.0), ("s", 1.0), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9)];
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(end)?;
        let (unit, seconds) = UNITS.into_iter().find(|(unit, _)| tail.starts_with(unit))?;
        let part = number.parse::<f64>().ok()? * seconds;
        total = total.checked_add(Duration::try_from_secs_f64(part).ok()?)?;
        rest = tail.strip_prefix(unit)?;
    }
    (!text.is_empty()).then_some(total)
}

/// How much may be going on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections. Over it, no further one is accepted until one ends.
    pub connections: usize,
    /// Reviews in flight. Over it, a review is answered with 503.
    pub reviews: usize,
}

impl Default for Limits {
    /// An API server has up to 600 requests in flight by default, each of which may hold a connection to a webhook: this
    /// leaves room for several API servers.
    fn default() -> Self {
        Self { connections: 4096, reviews: 2048 }
    }
}

/// Where credential specs and permissions come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The cluster that the in-cluster credentials, or else `KUBECONFIG`, lead to.
    Cluster,
    /// YAML files under a folder.
    Standalone(PathBuf),
}

/// Where the serving certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// A pair of PEM files.
    Files {
        /// The chain, the leaf first.
        cert: PathBuf,
        /// The leaf's key.
        key: PathBuf,
    },
    /// Made at start, signed by a CA that is written to a folder: for standalone use.
    SelfSigned,
}

/// What holds for one run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where credential specs and permissions come from.
    pub backend: Backend,
    /// Where the serving certificate comes from.
    pub certificate: Certificate,
    /// How often certificate files are compared with what is served.
    pub tls_reload_interval: Duration,
    /// The authorities of the clients that may call, and the names that they must have; all clients may where it is `None`.
    pub clients: Option<(PathBuf, Vec<String>)>,
    /// The webhook's address.
    pub listen: SocketAddr,
    /// The address of the probes.
    pub admin_listen: SocketAddr,
    /// Whether pods get random host names.
    pub random_hostname: bool,
    /// Whether credential specs that cannot work are refused rather than warned of.
    pub strict_credential_specs: bool,
    /// How long an allowed `use` is remembered.
    pub authorization_cache_ttl: Duration,
    /// Which events are logged.
    pub log_levels: Levels,
    /// The shape of a log line.
    pub log_format: Format,
    /// How much may be going on at once.
    pub limits: Limits,
    /// How long to go on serving after readiness is withdrawn: endpoints and API servers must have heard of it.
    pub shutdown_delay: Duration,
    /// How long requests in flight may take after the socket is closed.
    pub drain_timeout: Duration,
    /// Settings that were given but have no effect any more, by name.
    pub without_effect: Vec<&'static str>,
}

/// Settings that do not go together.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A webhook in a cluster needs a certificate that the API server trusts.
    #[error(
        "no serving certificate: set --tls-cert and --tls-key (or TLS_CRT and TLS_KEY) to PEM files, or run with --standalone DIR"
    )]
    NoCertificate,
}

impl Args {
    /// From what was typed to what holds.
    ///
    /// # Errors
    /// Where settings are missing or do not go together.
    pub fn resolve(self) -> Result<Config, ConfigError> {
        let args = match self.command {
            Some(Command::Serve(args)) => args,
            None => self.serve,
        };
        let standalone = args.standalone.is_some();
        let (ip, port) =
            if standalone { (IpAddr::V4(Ipv4Addr::LOCALHOST), 8443) } else { (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 443) };
        let certificate = match (args.tls_cert, args.tls_key) {
            (Some(cert), Some(key)) => Certificate::Files { cert, key },
            _ if standalone => Certificate::SelfSigned,
            _ => return Err(ConfigError::NoCertificate),
        };
        let given = [
            ("--cert-reload", args.cert_reload.is_some()),
            ("QPS", args.qps.is_some_and(|qps| !qps.is_empty())),
            ("BURST", args.burst.is_some_and(|burst| !burst.is_empty())),
        ];
        Ok(Config {
            backend: args.standalone.map_or(Backend::Cluster, Backend::Standalone),
            certificate,
            tls_reload_interval: args.tls_reload_interval,
            clients: args.client_ca.map(|file| (file, args.client_name)),
            listen: args.listen.unwrap_or(SocketAddr::new(ip, args.https_port.flatten().unwrap_or(port))),
            admin_listen: args.admin_listen.unwrap_or(SocketAddr::new(ip, 9090)),
            random_hostname: args.random_hostname,
            strict_credential_specs: args.strict_credential_specs,
            authorization_cache_ttl: args.authorization_cache_ttl,
            log_levels: args.log_level,
            log_format: args.log_format,
            limits: Limits { connections: args.max_connections, reviews: args.max_reviews },
            shutdown_delay: args.shutdown_delay.unwrap_or(Duration::from_secs(if standalone { 0 } else { 5 })),
            drain_timeout: args.drain_timeout,
            without_effect: given.into_iter().filter_map(|(name, given)| given.then_some(name)).collect(),
        })
    }
}
