//! The command line: flags, environment variables, and their descriptions in `--help`.
//!
//! A new setting of `serve` is:
//! - a flag in `ServeArgs`, with its default and, for some, an environment variable;
//! - what it means in `Config`, in `config.rs`. A default that depends on `--standalone` or the memory is there, and the flag's text says it:
//!   `[default: …]`;
//! - where it changes a decision, a field of `gmsa_core::admission::Settings`;
//! - a value of the chart (the list is in `tests/chart/schema.rs`), and its flag in `templates/_pod.tpl`;
//! - a case in `config/tests.rs`.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{
    ArgAction, Args as ClapArgs, CommandFactory, FromArgMatches as _, Parser, Subcommand,
    builder::{RangedU64ValueParser, Resettable},
};

use serde_json::Value;

use gmsa_core::{
    admission::{Enforcement, SidecarOptions},
    credspec::dns_name,
    duration::{duration, go_duration},
};
use gmsa_edge::{
    authorization_cache,
    object::ObjectName,
    server::socket_address,
    service_names::ServiceNames,
    telemetry::{Endpoint, LogArgs},
};

const EXAMPLES: &str = "Examples:
  # Try it without a cluster
  gmsa-webhook serve --standalone examples

  # Serve with a certificate from files, which are read again when they change
  gmsa-webhook serve --tls-cert tls.crt --tls-key tls.key";

const OF_SERVE: &str = "gmsa-webhook serve --help lists the options; they are taken without the word serve too.";

const TEST_EXAMPLES: &str = "Examples:
  # Whether pods of a namespace are reviewed
  gmsa-webhook test --namespace shop

  # The same where the webhook only warns
  gmsa-webhook test --namespace shop --enforcement Warn";

const CRD_EXAMPLES: &str = "Examples:
  # After an upgrade, as Helm leaves a CRD alone
  gmsa-webhook upgrade-crd";

const INSPECT_EXAMPLES: &str = "Examples:
  # A certificate in files
  gmsa-webhook certs inspect --tls-cert tls.crt --tls-key tls.key --ca ca.crt

  # One in a Secret, and whether the API server would accept it
  gmsa-webhook certs inspect --secret gmsa-webhook/gmsa-webhook-tls --webhook-configuration validating/gmsa-webhook";

const ISSUE_EXAMPLES: &str = "Examples:
  # For a Service, by a new CA or the one in the folder
  gmsa-webhook certs issue certs --service gmsa-webhook.gmsa-webhook

  # For a trial on this machine
  gmsa-webhook certs issue certs --name localhost --name 127.0.0.1";

/// Admission webhook for Windows Group Managed Service Accounts (GMSA) in Kubernetes.
#[derive(Debug, Parser)]
#[command(name = "gmsa-webhook", version, args_conflicts_with_subcommands = true)]
#[command(override_usage = "gmsa-webhook [serve] [OPTIONS]\n       gmsa-webhook <COMMAND>")]
pub struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

impl Args {
    /// Reads a command line. The environment of `serve` counts for `serve` alone.
    ///
    /// # Errors
    /// If it is not one, or asks for help.
    pub fn read(line: impl IntoIterator<Item = impl Into<OsString>>) -> Result<Self, clap::Error> {
        let line: Vec<OsString> = line.into_iter().map(Into::into).collect();
        let mut command = <Self as CommandFactory>::command();
        // The flags without a subcommand are in the help of `serve`.
        command = command.after_help(OF_SERVE).after_long_help(format!("{EXAMPLES}\n\n{OF_SERVE}"));
        command = command.mut_args(|flag| flag.hide(true));
        if line.get(1).is_some_and(|word| command.find_subcommand(word).is_some()) {
            // Top-level flags belong to `serve`: other subcommands must not read their variables.
            command = command.mut_args(|flag| flag.env(Resettable::Reset));
        }
        Self::from_arg_matches(&command.try_get_matches_from(line)?)
    }

    /// The command to run.
    #[must_use]
    pub fn command(self) -> Command {
        self.command.unwrap_or_else(|| Command::Serve(Box::new(self.serve)))
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the webhook (also what happens without a subcommand).
    #[command(after_long_help = EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// Find out by dry runs whether the API server asks the webhook.
    ///
    /// Creates nothing. Exits with 1 if the API server does not ask it.
    #[command(after_long_help = TEST_EXAMPLES)]
    Test(TestArgs),
    /// Upgrade the cluster's CRD to this release.
    ///
    /// In place. A newer one stays as it is.
    #[command(after_long_help = CRD_EXAMPLES)]
    UpgradeCrd,
    /// Inspect and issue serving certificates.
    #[command(subcommand, after_long_help = ISSUE_EXAMPLES)]
    Certs(CertsCommand),
}

#[derive(Debug, Subcommand)]
pub enum CertsCommand {
    /// Show and check a serving certificate.
    ///
    /// Its key, CA and dates, and whether webhook configurations accept it. Exits with 1 where a check fails.
    #[command(after_long_help = INSPECT_EXAMPLES)]
    Inspect(InspectArgs),
    /// Issue a serving certificate into a folder.
    ///
    /// By the CA in the folder, or a new one.
    #[command(after_long_help = ISSUE_EXAMPLES)]
    Issue(IssueArgs),
}

#[derive(Debug, ClapArgs)]
pub struct InspectArgs {
    /// The certificate: a PEM file, the leaf first.
    #[arg(long, value_name = "FILE", required_unless_present = "secret", conflicts_with = "secret")]
    pub tls_cert: Option<PathBuf>,

    /// Its private key: a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// The CA that should have signed it: a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub ca: Option<PathBuf>,

    /// The Secret that holds all three.
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = ObjectName::secret)]
    pub secret: Option<ObjectName>,

    /// Webhook configuration that should accept it: mutating/NAME or validating/NAME; may be given several times.
    #[arg(long, value_name = "KIND/NAME", value_parser = ObjectName::configuration)]
    pub webhook_configuration: Vec<ObjectName>,
}

#[derive(Clone, Debug, ClapArgs)]
pub struct IssueArgs {
    /// The folder for ca.crt, ca.key, tls.crt and tls.key.
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,

    /// Service whose names the certificate is for.
    #[arg(long, value_name = "NAME.NAMESPACE", value_parser = ServiceNames::parse)]
    pub service: Option<ServiceNames>,

    /// DNS name or IP address that the certificate is for; may be given several times.
    #[arg(long, value_name = "NAME", required_unless_present = "service")]
    pub name: Vec<String>,

    /// Lifetime of a new CA.
    #[arg(long, value_name = "DURATION", default_value = "17520h", value_parser = duration)]
    pub ca_lifetime: Duration,

    /// Lifetime of the certificate.
    #[arg(long, value_name = "DURATION", default_value = "2160h", value_parser = duration)]
    pub leaf_lifetime: Duration,
}

/// The flags of `test`.
#[derive(Debug, ClapArgs)]
pub struct TestArgs {
    /// Namespace of the pods that are sent; the account needs the right to create pods there.
    #[arg(long, value_name = "NAME", value_parser = dns_name)]
    pub namespace: String,

    /// What the webhook does about pods that break the rules.
    #[arg(long, value_name = "Enforce|Warn", default_value = "Enforce", value_parser = enforcement)]
    pub enforcement: Enforcement,
}

/// The flags of `serve`.
#[derive(Debug, ClapArgs)]
pub struct ServeArgs {
    /// Answer from the YAML files of DIR, no cluster.
    ///
    /// They hold credential specs, roles and role bindings.
    #[arg(long, value_name = "DIR")]
    pub standalone: Option<PathBuf>,

    /// Address of the webhook.
    ///
    /// [default: port 443 on all addresses; with --standalone 127.0.0.1:8443]
    #[arg(long, value_name = "ADDR:PORT", value_parser = socket_address)]
    pub(super) listen: Option<SocketAddr>,

    /// Port of the webhook on the default address; --listen takes precedence.
    #[arg(long, value_name = "PORT", env = "HTTPS_PORT", value_parser = optional_port, hide_short_help = true)]
    pub(super) https_port: Option<OptionalPort>,

    /// Address of /livez, /readyz and /metrics.
    ///
    /// Plain HTTP. [default: port 9090 on all addresses; with --standalone 127.0.0.1:9090]
    #[arg(long, value_name = "ADDR:PORT", env = "ADMIN_LISTEN", value_parser = socket_address)]
    pub(super) admin_listen: Option<SocketAddr>,

    #[command(flatten)]
    pub certificates: CertificateArgs,

    /// Give pods that use GMSA and have no host name a random one.
    #[arg(long, value_name = "BOOL", env = "RANDOM_HOSTNAME", num_args = 0..=1, require_equals = true, default_value = "false", action = ArgAction::Set, default_missing_value = "true", value_parser = go_bool, help_heading = "Decisions")]
    pub random_hostname: bool,

    /// Refuse credential specs that cannot work.
    ///
    /// Otherwise it warns of them.
    #[arg(long, env = "STRICT_CREDENTIAL_SPECS", value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value = "false", action = ArgAction::Set, default_missing_value = "true", value_parser = go_bool, help_heading = "Decisions")]
    pub strict_credential_specs: bool,

    /// What happens to a pod that breaks a rule.
    ///
    /// Enforce denies it, Warn admits it with a warning.
    #[arg(long, env = "ENFORCEMENT", value_name = "Enforce|Warn", default_value = "Enforce", value_parser = enforcement, help_heading = "Decisions")]
    pub enforcement: Enforcement,

    /// Namespaces in which pods that break a rule are admitted with a warning.
    ///
    /// Elsewhere they are denied.
    #[arg(long, value_name = "NAMESPACE,...", value_delimiter = ',', value_parser = dns_name, help_heading = "Decisions")]
    pub warn_namespaces: Vec<String>,

    #[command(flatten)]
    pub(super) tickets: TicketArgs,

    /// How long an allowed `use` is remembered, and so how long a revoked one may still be honoured; 0s: not at all.
    #[arg(long, value_name = "DURATION", default_value = authorization_cache::DEFAULT_TTL, value_parser = duration, help_heading = "Decisions", hide_short_help = true)]
    pub authorization_cache_ttl: Duration,

    #[command(flatten, next_help_heading = "Log and traces")]
    pub log: LogArgs,

    /// OpenTelemetry collector that gets a trace of each review, as protobuf over HTTP: a URL, below which /v1/traces is.
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_parser = optional_endpoint, help_heading = "Log and traces", hide_short_help = true)]
    pub otlp_endpoint: Option<OptionalEndpoint>,

    /// Connections that are served at once; others wait. [default: a fifth of the memory limit, at 138 KiB each; 189 with 128 MiB]
    #[arg(long, value_name = "N", value_parser = at_least_one(), help_heading = "Limits and shutdown", hide_short_help = true)]
    pub(super) max_connections: Option<usize>,

    /// Reviews in flight at once; others wait, and are rejected with 503 at their time-out. [default: --max-connections]
    #[arg(long, value_name = "N", value_parser = at_least_one(), help_heading = "Limits and shutdown", hide_short_help = true)]
    pub(super) max_reviews: Option<usize>,

    /// How long to go on serving after SIGTERM, until no endpoint names this replica; a second SIGTERM ends it. [default: 5s; with --standalone 0s]
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Limits and shutdown", hide_short_help = true)]
    pub(super) shutdown_delay: Option<Duration>,

    /// How long requests in flight may take after the port is closed.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration, help_heading = "Limits and shutdown", hide_short_help = true)]
    pub drain_timeout: Duration,

    /// Accepted for compatibility: there is no client-side throttling.
    #[arg(long, env = "QPS", hide = true)]
    pub(super) qps: Option<String>,

    /// Accepted for compatibility: there is no client-side throttling.
    #[arg(long, env = "BURST", hide = true)]
    pub(super) burst: Option<String>,
}

/// How Linux pods get tickets: all of these, or none; the last one has defaults.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Tickets for Linux pods")]
#[expect(clippy::struct_field_names, reason = "the flags have these names")]
pub(super) struct TicketArgs {
    /// Inject the sidecar that gets tickets from this broker: the DNS name of its certificate.
    #[arg(long, value_name = "NAME", value_parser = dns_name, requires = "tickets_broker_address", hide_short_help = true)]
    pub(super) tickets_broker: Option<String>,

    /// IP address and port of the broker.
    #[arg(long, value_name = "ADDR:PORT", value_parser = socket_address, requires = "tickets_broker_ca", hide_short_help = true)]
    pub(super) tickets_broker_address: Option<SocketAddr>,

    /// PEM file with the CAs of the broker's certificate.
    ///
    /// It is read again after each change. A pod keeps the CAs that it was created with.
    #[arg(long, value_name = "FILE", requires = "tickets_image", hide_short_help = true)]
    pub(super) tickets_broker_ca: Option<PathBuf>,

    /// Image of the sidecar.
    #[arg(long, value_name = "IMAGE", requires = "tickets_broker", value_parser = image, hide_short_help = true)]
    pub(super) tickets_image: Option<String>,

    /// How the sidecar runs, as JSON: its resources, startupProbe (timeoutSeconds, failureThreshold) and checkInterval.
    ///
    /// Settings that are left out have a default.
    #[arg(long, value_name = "JSON", requires = "tickets_broker", value_parser = sidecar_options, hide_short_help = true)]
    pub(super) tickets_sidecar: Option<SidecarOptions>,
}

/// Where the serving certificate comes from, and which clients may connect.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Certificates")]
pub struct CertificateArgs {
    /// Serving certificate: a PEM file, the leaf first.
    #[arg(long, value_name = "FILE", env = "TLS_CRT", requires = "tls_key")]
    pub(super) tls_cert: Option<PathBuf>,

    /// Private key of the serving certificate: a PEM file.
    #[arg(long, value_name = "FILE", env = "TLS_KEY", requires = "tls_cert")]
    pub(super) tls_key: Option<PathBuf>,

    /// Secret in which the replicas keep a CA and a certificate.
    ///
    /// They create and renew both. It must exist, and may be empty.
    #[arg(long, value_name = "NAMESPACE/NAME", conflicts_with_all = ["tls_cert", "standalone"], requires = "self_managed_service", value_parser = ObjectName::secret)]
    pub(super) self_managed_secret: Option<ObjectName>,

    /// Service whose names the self-managed certificate is for.
    #[arg(long, value_name = "NAME.NAMESPACE", value_parser = ServiceNames::parse, requires = "self_managed_secret")]
    pub(super) self_managed_service: Option<ServiceNames>,

    /// Webhook configuration whose caBundle gets the CA.
    ///
    /// mutating/NAME or validating/NAME; may be given several times.
    #[arg(long, value_name = "KIND/NAME", value_parser = ObjectName::configuration)]
    pub(super) webhook_configuration: Vec<ObjectName>,

    /// PEM file with the CA of --tls-cert, which is written into the webhook configurations.
    #[arg(long, value_name = "FILE", requires_all = ["tls_cert", "webhook_configuration"], hide_short_help = true)]
    pub(super) publish_ca: Option<PathBuf>,

    /// Lifetime of a self-managed CA.
    #[arg(long, value_name = "DURATION", default_value = "17520h", value_parser = duration, hide_short_help = true)]
    pub(super) ca_lifetime: Duration,

    /// Lifetime of a self-managed serving certificate.
    #[arg(long, value_name = "DURATION", default_value = "2160h", value_parser = duration, hide_short_help = true)]
    pub(super) leaf_lifetime: Duration,

    /// Percentage of its lifetime after which a self-managed certificate is renewed.
    #[arg(long, value_name = "1-99", default_value_t = 66, value_parser = clap::value_parser!(u8).range(1..=99), hide_short_help = true)]
    pub(super) renewal_point: u8,

    /// How long a new CA must be in every caBundle before it signs: API servers learn of it by watching.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration, hide_short_help = true)]
    pub(super) bundle_standing: Duration,

    /// How long foreign CAs stay in a caBundle: until the pods that serve with them are gone.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration, hide_short_help = true)]
    pub foreign_ca_grace: Duration,

    /// How often files with certificates and CAs are read, besides after each change.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration, hide_short_help = true)]
    pub tls_reload_interval: Duration,

    /// Only serve clients with a certificate of a CA in this PEM file.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub client_ca: Option<PathBuf>,

    /// Only serve clients whose certificate has this common name, or with dns:NAME this DNS name; may be given several times.
    #[arg(long, value_name = "NAME", requires = "client_ca", hide_short_help = true)]
    pub client_name: Vec<String>,

    /// Accepted for compatibility: certificate files are always reloaded.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = go_bool, hide_short_help = true)]
    pub(super) cert_reload: Option<bool>,
}

/// tokio's semaphores count to `usize::MAX / 8`; a million is more than a process has file descriptors.
fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=1_000_000)
}

/// An empty variable counts as one that is not set.
pub(super) type OptionalPort = Option<u16>;

fn optional_port(text: &str) -> Result<OptionalPort, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| "expected a port: a number from 0 to 65535".to_owned())
}

/// An empty variable counts as one that is not set.
pub type OptionalEndpoint = Option<Endpoint>;

fn optional_endpoint(text: &str) -> Result<OptionalEndpoint, String> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some) }
}

/// The spellings of Go's `strconv.ParseBool`; empty is false, as an unset variable is.
fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" | "" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

fn image(text: &str) -> Result<String, String> {
    let is_of_image = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@[]".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_of_image) {
        return Ok(text.to_owned());
    }
    Err("expected an image, such as registry.example.com/gmsa-tickets:1".to_owned())
}

/// Settings that the API server would refuse are refused here, not with each pod.
fn sidecar_options(text: &str) -> Result<SidecarOptions, String> {
    let options: SidecarOptions = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let SidecarOptions { resources, startup_probe, check_interval } = &options;
    for (name, quantity) in resources.requests.iter().chain(&resources.limits) {
        if !is_quantity(quantity) {
            return Err(format!("resources: {name} is {quantity}, expected a quantity, such as 50m or 32Mi"));
        }
    }
    if !(3..=60).contains(&startup_probe.timeout_seconds) || !(1..=86_400).contains(&startup_probe.failure_threshold) {
        return Err(
            "startupProbe: expected timeoutSeconds from 3 to 60, and failureThreshold from 1 to 86400".to_owned()
        );
    }
    if go_duration(check_interval).is_none_or(|interval| interval < Duration::from_secs(1)) {
        return Err(format!("checkInterval: {check_interval:?} is not a duration from 1s, such as 5m"));
    }
    Ok(options)
}

/// Whether it is a number with a suffix of Kubernetes (`k8s.io/apimachinery/pkg/api/resource`).
fn is_quantity(value: &Value) -> bool {
    let Value::String(text) = value else { return value.is_number() };
    let suffix = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let number = text.strip_suffix(suffix).unwrap_or(text);
    let suffixes = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    number.parse::<f64>().is_ok() && suffixes.contains(&suffix)
}

/// An empty variable counts as one that is not set.
fn enforcement(text: &str) -> Result<Enforcement, String> {
    match text.to_ascii_lowercase().as_str() {
        "enforce" | "" => Ok(Enforcement::Enforce),
        "warn" => Ok(Enforcement::Warn),
        _ => Err("expected Enforce or Warn".to_owned()),
    }
}
