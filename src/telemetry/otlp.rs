//! Traces: one span per review, sent to an OpenTelemetry collector as protobuf over HTTP.
//!
//! What always holds: without an endpoint nothing is made and every span's callsite is off; a collector that is away or
//! slow costs spans, never a review; spans hold names and outcomes, never a pod's body or contents.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client as Hyper, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry::{propagation::TextMapPropagator as _, trace::TracerProvider as _};
use opentelemetry_http::{HeaderExtractor, HttpClient, HttpError};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{SdkTracer, SdkTracerProvider},
};
use thiserror::Error;
use tokio::{runtime::Handle, time::timeout};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

/// The variable that turns traces on. The exporter reads it, and the others of the OpenTelemetry specification, itself.
pub const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The target of every span that is exported; no log line has it.
pub const TARGET: &str = "gmsa_webhook::trace";
/// How long an export may take.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the last export may take, when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// The largest answer of a collector that is read, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// Why there can be no traces.
#[derive(Debug, Error)]
pub enum OtlpError {
    /// The certificates that the system trusts.
    #[error("cannot read the system's certificate authorities")]
    Roots(#[source] std::io::Error),
    /// TLS itself.
    #[error("cannot set TLS up")]
    Tls(#[source] rustls::Error),
    /// The endpoint, or another of the exporter's variables.
    #[error("cannot set the exporter of traces up")]
    Exporter(#[source] ExporterBuildError),
}

/// What exports the spans. Ends with [`shutdown`](Self::shutdown).
#[derive(Debug)]
pub struct Traces(SdkTracerProvider);

impl Traces {
    /// Starts exporting; requests run on `runtime`.
    ///
    /// # Errors
    /// Where the variables make no exporter.
    pub fn start(runtime: Handle) -> Result<Self, OtlpError> {
        let client = Client::new(runtime)?;
        let exporter =
            SpanExporter::builder().with_http().with_http_client(client).build().map_err(OtlpError::Exporter)?;
        let mut resource = Resource::builder();
        if std::env::var_os("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name(env!("CARGO_PKG_NAME"));
        }
        Ok(Self(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build()))
    }

    /// What makes spans.
    pub(super) fn tracer(&self) -> SdkTracer {
        self.0.tracer(env!("CARGO_PKG_NAME"))
    }

    /// Exports what is left. The runtime must still be there, and this thread must not be one of its workers.
    pub fn shutdown(self) {
        if let Err(error) = self.0.shutdown_with_timeout(FLUSH_TIMEOUT) {
            tracing::warn!(%error, "the last traces may be lost");
        }
    }
}

/// Lets a span continue the trace that the headers name, if they do.
pub fn continue_trace(span: &Span, headers: &HeaderMap) {
    if !span.is_disabled() {
        // It fails only where no layer exports spans, and then there is nothing to continue.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&HeaderExtractor(headers)));
    }
}

/// The exporter has a thread of its own and no runtime: requests are handed to ours.
#[derive(Clone)]
struct Client {
    hyper: Hyper<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
}

impl Client {
    fn new(runtime: Handle) -> Result<Self, OtlpError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(OtlpError::Tls)?
            .with_native_roots()
            .map_err(OtlpError::Roots)?
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        Ok(Self { hyper: Hyper::builder(TokioExecutor::new()).build(connector), runtime })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl HttpClient for Client {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let hyper = self.hyper.clone();
        let sent = self.runtime.spawn(async move {
            let exchange = async {
                let (head, body) = hyper.request(request.map(Full::new)).await?.into_parts();
                let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
                Ok::<_, HttpError>(Response::from_parts(head, body))
            };
            timeout(EXPORT_TIMEOUT, exchange).await?
        });
        Box::pin(async move { sent.await? })
    }
}
