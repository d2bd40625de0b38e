//! The clients of the API server, one for calls and one for watches: each an HTTP/2 connection with keep-alive pings.
//!
//! Invariants: a connection on which nothing arrives for [`PING_AFTER`] is pinged, and closed when the answer does
//! not come within [`PING_TIMEOUT`], as client-go does it. Without that, a connection that a firewall or a failed node
//! dropped looks like a quiet watch and never ends.
//!
//! kube's own client speaks HTTP/1.1 only, which knows no pings: its parts are put together here with an HTTP/2 connection
//! below them. A server or proxy that negotiates HTTP/1.1 is still served; there TCP keep-alive finds a dead peer in the
//! same time. A proxy is a connector below all of this, so the same holds through it.
//!
//! A token that is in a file is read again for every request: kube's own client remembers it for up to a minute, and meanwhile every call
//! with a token that ended before its time is refused. The CAs of the API server are read again by kube's verifier, once a minute.

use std::{
    array, fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{
    HeaderValue, Request, Uri,
    header::AUTHORIZATION,
    uri::{Authority, Scheme},
};
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::{
    client::{
        legacy::{
            Client,
            connect::{
                Connection, HttpConnector,
                proxy::{SocksV5, Tunnel},
            },
        },
        proxy::matcher::Matcher,
    },
    rt::{TokioExecutor, TokioTimer},
};
use kube::client::{Body, ClientBuilder, ConfigExt as _, retry::RetryPolicy};
use rustls::pki_types::ServerName;
use tower::{
    BoxError, Service, ServiceExt as _,
    retry::RetryLayer,
    util::{MapRequestLayer, option_layer},
};

/// How long nothing may arrive before a connection is pinged.
const PING_AFTER: Duration = Duration::from_secs(30);
/// How long the answer to a ping may take.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// TCP keep-alive sends this many probes within [`PING_TIMEOUT`].
const PROBES: u32 = 3;
/// How long a TCP connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The receive window of an HTTP/2 connection, in bytes.
pub const HTTP2_WINDOW: u32 = 1 << 20;

/// The versions of HTTP that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Http {
    /// HTTP/2, or HTTP/1.1 where the server does not know it.
    Negotiated,
    /// HTTP/1.1, whose connections can become web sockets.
    One,
}

/// Clients for `config`. They share credentials, but no connection. Must be called within a tokio runtime.
pub(super) fn connect<const N: usize>(mut config: kube::Config, http: Http) -> Result<[kube::Client; N], BoxError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(PING_AFTER));
    tcp.set_keepalive_interval(Some(PING_TIMEOUT / PROBES));
    tcp.set_keepalive_retries(Some(PROBES));
    let Some(proxy) = config.proxy_url.take() else { return clients(&config, tcp, http) };

    with_port(&mut config.cluster_url)?;
    // It reads the user and the password out of the address.
    let proxy = Matcher::builder().all(proxy.to_string()).build().intercept(&config.cluster_url);
    let proxy = proxy.ok_or("the address of the proxy cannot be used")?;
    let address = proxy.uri().clone();
    let name =
        format!("{}://{}", address.scheme_str().unwrap_or_default(), address.authority().map_or("", Authority::as_str));
    let through = move |error| BoxError::from(ProxyError { proxy: name.clone(), source: error });
    if address.scheme_str().is_some_and(|scheme| scheme.starts_with("http")) {
        // With TLS to the proxy where its address says so.
        let tls = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
        let mut tunnel = Tunnel::new(address, tls.enable_http1().wrap_connector(tcp));
        if let Some(header) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(header.clone());
        }
        return clients(&config, tunnel.map_err(move |error| through(error.into())), http);
    }
    let mut socks = SocksV5::new(address, tcp);
    if let Some((user, password)) = proxy.raw_auth() {
        socks = socks.with_auth(user.to_owned(), password.to_owned());
    }
    clients(&config, socks.map_err(move |error| through(error.into())), http)
}

/// A connection that failed between this process and the proxy, or beyond it.
#[derive(Debug, thiserror::Error)]
#[error("through the proxy {proxy}")]
struct ProxyError {
    /// Without user and password.
    proxy: String,
    source: BoxError,
}

/// Names the port, which the connectors for proxies take for 443 otherwise.
fn with_port(server: &mut Uri) -> Result<(), BoxError> {
    if server.scheme() == Some(&Scheme::HTTP) && server.port().is_none() {
        let mut parts = server.clone().into_parts();
        parts.authority = Some(format!("{}:80", server.host().unwrap_or_default()).parse()?);
        *server = Uri::from_parts(parts)?;
    }
    Ok(())
}

/// Clients whose TCP connections are made by `tcp`.
fn clients<const N: usize, C>(config: &kube::Config, tcp: C, http: Http) -> Result<[kube::Client; N], BoxError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let mut tls = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone())
            .map_err(|_| format!("tls-server-name {name:?} is not a host name or an IP address"))?;
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let tls = tls.enable_http1();
    let connector = match http {
        Http::Negotiated => tls.enable_http2().wrap_connector(tcp),
        Http::One => tls.wrap_connector(tcp),
    };
    let credentials = &config.auth_info;
    // In this order, which is kube's, the file comes last.
    let is_other = credentials.auth_provider.is_some() || credentials.username.is_some() || credentials.token.is_some();
    let token = credentials.token_file.as_ref().filter(|_| !is_other).map(TokenFile::open).transpose()?;
    let token = token.map(|file| MapRequestLayer::new(move |request| file.authorize(request)));
    let auth = option_layer(if token.is_some() { None } else { config.auth_layer()? });
    let token = option_layer(token);
    let headers = config.extra_headers_layer()?;
    // As kube's own client does it; other calls have the retry of [`super::ApiServer::exchange`].
    let retry = option_layer((http == Http::One).then(|| RetryLayer::new(RetryPolicy::server_retry())));
    Ok(array::from_fn(|_| {
        let http: Client<_, Body> = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_keep_alive_interval(PING_AFTER)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .http2_keep_alive_while_idle(true)
            .http2_initial_stream_window_size(HTTP2_WINDOW)
            .http2_initial_connection_window_size(HTTP2_WINDOW)
            // An answer that comes after its call has timed out counts as an error of the API server: after 1,024 of them, by
            // default, the connection is closed, and every call on it fails.
            .http2_max_local_error_reset_streams(None)
            .build(connector.clone());
        let base = config.base_uri_layer();
        let client =
            ClientBuilder::new(http.map_err(BoxError::from), config.default_namespace.clone()).with_layer(&headers);
        client.with_layer(&token).with_layer(&auth).with_layer(&retry).with_layer(&base).build()
    }))
}

/// A bearer token in a file, which the kubelet replaces.
#[derive(Clone)]
struct TokenFile {
    path: PathBuf,
    /// The last token. It stays in use while the file is missing or empty.
    last: Arc<Mutex<HeaderValue>>,
}

impl TokenFile {
    fn open(path: impl AsRef<Path>) -> Result<Self, BoxError> {
        let path = path.as_ref().to_owned();
        let read = bearer(&path).map_err(|error| format!("the token file {}: {error}", path.display()))?;
        Ok(Self { path, last: Arc::new(Mutex::new(read)) })
    }

    fn authorize<B>(&self, mut request: Request<B>) -> Request<B> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(read) = bearer(&self.path) {
            *last = read;
        }
        request.headers_mut().insert(AUTHORIZATION, last.clone());
        request
    }
}

/// The header for the token that this file holds now.
fn bearer(path: &Path) -> Result<HeaderValue, BoxError> {
    let text = fs::read_to_string(path)?;
    let token = text.trim();
    if token.is_empty() {
        return Err("it is empty".into());
    }
    let mut header = HeaderValue::try_from(format!("Bearer {token}"))?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One second later, kube's own client would still use the token that it has read.
    #[test]
    fn a_token_is_that_of_the_file_at_each_request_and_stays_where_the_file_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        assert!(TokenFile::open(&path).is_err());
        fs::write(&path, "one\n").unwrap();
        let file = TokenFile::open(&path).unwrap();
        let asked = || {
            let request = file.authorize(Request::new(()));
            request.headers()[AUTHORIZATION].to_str().unwrap().to_owned()
        };
        assert_eq!(asked(), "Bearer one");
        fs::write(&path, "two").unwrap();
        assert_eq!(asked(), "Bearer two");
        fs::remove_file(&path).unwrap();
        assert_eq!(asked(), "Bearer two");
        for replaced in ["not\na header", "", " \n"] {
            fs::write(&path, replaced).unwrap();
            assert_eq!(asked(), "Bearer two", "{replaced:?}");
        }
        let error = TokenFile::open(&path).err().unwrap().to_string();
        assert_eq!(error, format!("the token file {}: it is empty", path.display()));
    }
}
