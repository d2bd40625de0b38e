//! The clients of the API server, one for calls and one for watches: each an HTTP/2 connection with keep-alive pings.
//!
//! Invariants: a connection on which nothing arrives for [`PING_AFTER`] is pinged, and closed when the answer does
//! not come within [`PING_TIMEOUT`], as client-go does it. Without that, a connection that a firewall or a failed node
//! dropped looks like a quiet watch and never ends.
//!
//! kube's own client speaks HTTP/1.1 only, which knows no pings: its parts are put together here with an HTTP/2 connection
//! below them. A server or proxy that negotiates HTTP/1.1 is still served; there TCP keep-alive finds a dead peer in the
//! same time.

use std::time::Duration;

use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use rustls::pki_types::ServerName;
use tower::{BoxError, ServiceExt as _};

/// How long nothing may arrive before a connection is pinged.
const PING_AFTER: Duration = Duration::from_secs(30);
/// How long the answer to a ping may take.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// TCP keep-alive sends this many probes within [`PING_TIMEOUT`].
const PROBES: u32 = 3;
/// How long a TCP connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Two clients for `config`, for calls and for watches. They share credentials, but no connection. Must be called within a tokio
/// runtime.
pub(super) fn connect(config: kube::Config) -> Result<(kube::Client, kube::Client), BoxError> {
    if config.proxy_url.is_some() {
        // kube knows which kinds of proxy this build can use, and says so. Over HTTP/1.1 each request in flight has a connection.
        let client = kube::Client::try_from(config)?;
        return Ok((client.clone(), client));
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_keepalive(Some(PING_AFTER));
    tcp.set_keepalive_interval(Some(PING_TIMEOUT / PROBES));
    tcp.set_keepalive_retries(Some(PROBES));

    let mut tls = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = ServerName::try_from(name.clone())
            .map_err(|_| format!("tls-server-name {name:?} is not a host name or an IP address"))?;
        tls = tls.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let connector = tls.enable_http1().enable_http2().wrap_connector(tcp);
    let (auth, headers) = (config.auth_layer()?, config.extra_headers_layer()?);
    let client = || {
        let http: Client<_, Body> = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .http2_keep_alive_interval(PING_AFTER)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .http2_keep_alive_while_idle(true)
            // An answer that comes after its call has timed out counts as an error of the API server: after 1,024 of them, by
            // default, the connection is closed, and every call on it fails.
            .http2_max_local_error_reset_streams(None)
            .build(connector.clone());
        let base = config.base_uri_layer();
        let client =
            ClientBuilder::new(http.map_err(BoxError::from), config.default_namespace.clone()).with_layer(&headers);
        match &auth {
            Some(auth) => client.with_layer(auth).with_layer(&base).build(),
            None => client.with_layer(&base).build(),
        }
    };
    Ok((client(), client()))
}
