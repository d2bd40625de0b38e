//! The command line ([`Args`]) and the settings that follow from it ([`Config`]).
//!
//! Flags, environment and defaults are those of the Go webhook where it had them: `TLS_CRT`, `TLS_KEY`, `HTTPS_PORT`,
//! `LOG_LEVEL`, `RANDOM_HOSTNAME`, `QPS`, `BURST`, `--cert-reload`, `--version`, and no subcommand means `serve`.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use gmsa_core::admission::{Enforcement, Sidecar};
use gmsa_edge::{
    memory_limit,
    object::ObjectName,
    service_names::ServiceNames,
    tls::{files::Files, self_managed::SelfManagedSettings},
};

use crate::{
    PROGRAM,
    limits::{DEFAULT_MEMORY, Limits},
    metrics::Enforced,
    sidecar_settings::TicketsConfig,
};

mod args;

pub use args::{Args, CertsCommand, Command, InspectArgs, IssueArgs, ServeArgs, TestArgs};
use args::{CertificateArgs, TicketArgs};

/// How often the webhook configurations and a self-managed Secret are read. While a `caBundle` is overwritten, no pods with GMSA
/// are admitted.
pub const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Where the serving certificate comes from.
#[derive(Clone, Debug)]
pub enum Certificate {
    Files {
        files: Files,
        /// The file whose CAs are written into these webhook configurations.
        publish: Option<(PathBuf, Vec<ObjectName>)>,
    },
    SelfManaged(Box<SelfManagedSettings>),
    /// Created at start, for standalone use.
    SelfSigned,
}

/// The settings of one run: what was typed, and what follows from it.
#[derive(Debug)]
pub struct Config {
    pub typed: ServeArgs,
    pub certificate: Certificate,
    pub listen: SocketAddr,
    pub admin_listen: SocketAddr,
    /// The sidecar of Linux pods; `None` where they get no tickets.
    pub tickets: Option<TicketsConfig>,
    pub limits: Limits,
    /// How long to serve after readiness is withdrawn: endpoints and API servers must have learned of it.
    pub shutdown_delay: Duration,
    /// Settings that were given but have no effect any more, by name.
    pub without_effect: Vec<&'static str>,
}

/// Settings that do not go together.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(&'static str);

impl ServeArgs {
    /// From what was typed to what holds.
    ///
    /// # Errors
    /// Where settings are missing or do not go together.
    pub fn resolve(self) -> Result<Config, ConfigError> {
        let args = self;
        let standalone = args.standalone.is_some();
        let limits = Limits::of_memory(memory_limit::read().unwrap_or(DEFAULT_MEMORY));
        let (ip, port) =
            if standalone { (IpAddr::V4(Ipv4Addr::LOCALHOST), 8443) } else { (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 443) };
        let tls = args.certificates.clone();
        let cert_reload = tls.cert_reload.is_some();
        let certificate = tls.resolve(standalone)?;
        let given = [
            ("--cert-reload", cert_reload),
            ("QPS", args.qps.as_ref().is_some_and(|qps| !qps.is_empty())),
            ("BURST", args.burst.as_ref().is_some_and(|burst| !burst.is_empty())),
        ];
        Ok(Config {
            certificate,
            listen: args.listen.unwrap_or(SocketAddr::new(ip, args.https_port.flatten().unwrap_or(port))),
            admin_listen: args.admin_listen.unwrap_or(SocketAddr::new(ip, 9090)),
            tickets: args.tickets.clone().resolve(),
            limits: Limits {
                connections: args.max_connections.unwrap_or(limits.connections),
                reviews: args.max_reviews.or(args.max_connections).unwrap_or(limits.reviews),
                ..limits
            },
            shutdown_delay: args.shutdown_delay.unwrap_or(Duration::from_secs(if standalone { 0 } else { 5 })),
            without_effect: given.into_iter().filter_map(|(name, given)| given.then_some(name)).collect(),
            typed: args,
        })
    }
}

impl Config {
    /// Where denials are enforced.
    #[must_use]
    pub fn enforced(&self) -> Enforced {
        match self.typed.enforcement {
            Enforcement::Warn => Enforced::Nowhere,
            Enforcement::Enforce if self.typed.warn_namespaces.is_empty() => Enforced::Everywhere,
            Enforcement::Enforce => Enforced::OutsideNamespaces,
        }
    }
}

impl TicketArgs {
    fn resolve(self) -> Option<TicketsConfig> {
        let (broker, image) = (self.tickets_broker?, self.tickets_image?);
        let broker_address = self.tickets_broker_address?.to_string();
        let options = self.tickets_sidecar.unwrap_or_default();
        let sidecar = Sidecar { image, broker, broker_address, broker_ca: String::new(), options };
        Some(TicketsConfig { broker_ca: self.tickets_broker_ca?, sidecar })
    }
}

impl CertificateArgs {
    fn resolve(self, standalone: bool) -> Result<Certificate, ConfigError> {
        let configurations = self.webhook_configuration;
        if let (Some(secret), Some(ServiceNames(names))) = (self.self_managed_secret, self.self_managed_service) {
            if configurations.is_empty() {
                return Err(ConfigError(
                    "--self-managed-secret needs the webhook configurations that get its CA: --webhook-configuration",
                ));
            }
            return Ok(Certificate::SelfManaged(Box::new(SelfManagedSettings {
                secret,
                configurations,
                program: PROGRAM,
                names,
                ca_lifetime: self.ca_lifetime,
                leaf_lifetime: self.leaf_lifetime,
                renewal_point: self.renewal_point,
                bundle_standing: self.bundle_standing,
                foreign_grace: self.foreign_ca_grace,
                check_interval: CHECK_INTERVAL,
            })));
        }
        if self.publish_ca.is_none() && !configurations.is_empty() {
            return Err(ConfigError(
                "--webhook-configuration needs a CA to write into it: --self-managed-secret or --publish-ca",
            ));
        }
        match (self.tls_cert, self.tls_key) {
            (Some(cert), Some(key)) => {
                let publish = self.publish_ca.map(|file| (file, configurations));
                Ok(Certificate::Files { files: Files { cert, key }, publish })
            }
            _ if standalone => Ok(Certificate::SelfSigned),
            _ => Err(ConfigError(
                "no serving certificate: set --tls-cert and --tls-key (or TLS_CRT and TLS_KEY) to PEM files, or --self-managed-secret and --self-managed-service, or run with --standalone DIR",
            )),
        }
    }
}

#[cfg(test)]
mod tests;
