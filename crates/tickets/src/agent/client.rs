//! The agent's side of a request to the broker.
//!
//! Invariants: a token goes only to a broker whose certificate is for its name and signed by the CA of the arguments; an answer is read
//! within its limit, and a request ends within [`TIMEOUT`]. The allocator of the program wipes tokens and tickets when they are freed.

use std::{io, path::Path, path::PathBuf, pin::pin, sync::Arc, time::Duration};

use bytes::Bytes;
use gmsa_cluster::body::{self, BodyError};
use gmsa_core::{
    credspec::{Verb, dns_name},
    diagnostic::rules::END_OF_TICKETS,
    quote::remark,
};
use gmsa_edge::tls::{CaBundle, crypto_provider};
use http::{
    HeaderMap, HeaderValue, Request, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST, RETRY_AFTER},
};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;

use super::schedule::RetryAfter;
use crate::api::{Given, MAX_RESPONSE, Reason, RefusalBody, TicketRequest, path};

/// How long a request may take: the time that the broker has for controllers that do not answer, and the way there and back.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The port of the broker's Service.
const PORT: u16 = 443;

/// The broker's address, and its CA.
#[derive(Debug, clap::Args)]
pub struct BrokerArgs {
    /// DNS name of the broker, which its certificate is for.
    #[arg(long, value_name = "NAME", value_parser = dns_name)]
    pub broker: String,

    /// Address of the broker, for pods that cannot resolve its name. [default: the name, port 443]
    #[arg(long, value_name = "HOST:PORT", value_parser = address)]
    pub broker_address: Option<String>,

    /// CA certificates, in PEM, that sign for the broker. No others are trusted.
    #[arg(long, value_name = "PEM", allow_hyphen_values = true)]
    pub broker_ca: String,
}

fn address(text: &str) -> Result<String, &'static str> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err("expected HOST:PORT"),
    }
}

/// The broker, as the arguments name it.
pub struct BrokerClient {
    /// The name that its certificate is for.
    name: ServerName<'static>,
    /// `HOST:PORT`.
    address: String,
    tls: Arc<ClientConfig>,
}

/// Why there are no tickets.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("cannot read the token {0}")]
    Token(PathBuf, #[source] io::Error),
    #[error("the file {0} does not hold a token")]
    NotToken(PathBuf),
    #[error("cannot connect to the broker at {0}")]
    Connect(String, #[source] io::Error),
    #[error("TLS with the broker at {0} failed")]
    Tls(String, #[source] io::Error),
    #[error("the broker at {0} did not answer")]
    Http(String, #[source] hyper::Error),
    #[error("the broker at {0} did not answer within {limit} seconds", limit = TIMEOUT.as_secs())]
    TimedOut(String),
    #[error("the broker's answer {0}")]
    Unreadable(&'static str),
    #[error("the broker refused: {status}{words}", words = words(refusal.as_ref()))]
    Refused {
        status: StatusCode,
        /// The body of the broker's answer, if it can be read.
        refusal: Option<RefusalBody>,
        retry_after: Option<Duration>,
    },
    #[error("cannot write into {0}")]
    Write(PathBuf, #[source] io::Error),
}

/// The broker's reason and message, after the status.
fn words(refusal: Option<&RefusalBody>) -> String {
    refusal.map_or_else(String::new, |body| format!(", {}: {}", remark(&body.reason), remark(&body.message)))
}

impl AskError {
    /// Whether the pod's right to tickets has ended. The broker's reason says so, never the status alone: a proxy answers 403 and 404 too.
    pub fn removes_tickets(&self) -> bool {
        let Self::Refused { refusal: Some(refusal), .. } = self else { return false };
        END_OF_TICKETS.iter().any(|rule| rule.id == refusal.reason)
    }

    /// How long the broker asks to wait.
    pub fn retry_after(&self) -> Option<RetryAfter> {
        let Self::Refused { refusal, retry_after, .. } = self else { return None };
        let reasons = [Reason::TicketBusy, Reason::TicketRate].map(Reason::as_str);
        let is_for_room = refusal.as_ref().is_some_and(|body| reasons.contains(&&*body.reason));
        retry_after.map(|wait| RetryAfter { wait, is_for_room })
    }
}

impl BrokerClient {
    /// # Errors
    /// Where the name is not a DNS name, or the CA is not PEM.
    pub fn new(args: BrokerArgs) -> Result<Self, String> {
        let BrokerArgs { broker: name, broker_address, broker_ca } = args;
        let authorities = CaBundle::from_pem(broker_ca.as_bytes())
            .map_err(|error| format!("--broker-ca is not a list of CA certificates in PEM: {error}"))?;
        let untrusted = |error| format!("--broker-ca holds a certificate that cannot be trusted: {error}");
        let tls = ClientConfig::builder_with_provider(crypto_provider())
            .with_safe_default_protocol_versions()
            .map_err(untrusted)?
            .with_root_certificates(authorities.roots().map_err(untrusted)?)
            .with_no_client_auth();
        let address = broker_address.unwrap_or_else(|| format!("{name}:{PORT}"));
        let unusable = format!("--broker {name:?} is not a DNS name that a certificate can be for");
        let name = ServerName::try_from(name).map_err(|_| unusable)?;
        Ok(Self { name, address, tls: Arc::new(tls) })
    }

    /// Asks for tickets or a keytab with the token in a file.
    ///
    /// # Errors
    /// Where there is no token, no answer, or a refusal.
    pub async fn ask(&self, verb: Verb, credential_spec: &str, token_file: &Path) -> Result<Given, AskError> {
        let exchanged = timeout(TIMEOUT, self.exchange(self.request(verb, credential_spec, token_file)?)).await;
        exchanged.unwrap_or_else(|_| Err(AskError::TimedOut(self.address.clone())))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<Given, AskError> {
        let address = || self.address.clone();
        let stream = TcpStream::connect(&self.address).await.map_err(|error| AskError::Connect(address(), error))?;
        let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(self.name.clone(), stream).await;
        let stream = TokioIo::new(stream.map_err(|error| AskError::Tls(address(), error))?);
        let connected = http1::Builder::new().max_buf_size(MAX_RESPONSE).handshake(stream).await;
        let (mut sender, connection) = connected.map_err(|error| AskError::Http(address(), error))?;
        let mut answered = pin!(async move {
            let answer = sender.send_request(request).await.map_err(|error| AskError::Http(address(), error))?;
            let (head, body) = answer.into_parts();
            let body = body::read(body, MAX_RESPONSE, None).await.map_err(|error| {
                let is_long = matches!(error, BodyError::TooLarge);
                AskError::Unreadable(if is_long { "is longer than 128 KiB" } else { "ends too early" })
            })?;
            given(head.status, &head.headers, &body.bytes)
        });
        tokio::select! {
            answer = &mut answered => answer,
            // The bytes that have arrived may still be an answer.
            _ = connection => answered.await,
        }
    }

    fn request(&self, verb: Verb, credential_spec: &str, token_file: &Path) -> Result<Request<Full<Bytes>>, AskError> {
        let token = std::fs::read(token_file).map_err(|error| AskError::Token(token_file.to_owned(), error))?;
        let not_token = || AskError::NotToken(token_file.to_owned());
        let bearer = HeaderValue::try_from([b"Bearer ", token.trim_ascii()].concat());
        let mut bearer = bearer.map_err(|_| not_token())?;
        bearer.set_sensitive(true);
        let body = TicketRequest { credential_spec: credential_spec.to_owned() };
        Request::post(path(verb))
            .header(HOST, &*self.name.to_str())
            .header(CONTENT_TYPE, "application/json")
            .header(AUTHORIZATION, bearer)
            .body(Full::new(Bytes::from(serde_json::to_vec(&body).unwrap_or_default())))
            .map_err(|_| not_token())
    }
}

fn given(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Result<Given, AskError> {
    if status == StatusCode::OK {
        return serde_json::from_slice(body).map_err(|_| AskError::Unreadable("is not tickets"));
    }
    let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let retry_after = retry_after.map(Duration::from_secs);
    Err(AskError::Refused { status, refusal: serde_json::from_slice(body).ok(), retry_after })
}
