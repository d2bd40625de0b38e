//! Traces: one span per request, sent to an OpenTelemetry collector as protobuf over HTTP.
//!
//! Invariants: without an endpoint nothing is created and every span's callsite is off; a collector that is down or
//! slow costs spans and one log line while that lasts, never a request.

use std::{collections::HashMap, future::Future, pin::Pin, str::FromStr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client as Hyper, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry::{
    KeyValue,
    propagation::TextMapPropagator as _,
    trace::{Status, TracerProvider as _},
};
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    resource::{EnvResourceDetector, TelemetryResourceDetector},
    trace::{SdkTracer, SdkTracerProvider},
};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::{runtime::Handle, time::timeout};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use super::LogOnce;
use crate::{Program, tls::crypto_provider};

/// The header that names the caller's span.
const TRACEPARENT: &str = "traceparent";
/// How long an export may take.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the last export may take, when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// The largest answer of a collector that is read, in bytes.
const MAX_ANSWER: usize = 64 * 1024;

/// Where a collector takes traces: `/v1/traces` below an `http` or `https` URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint(String);

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<Uri>() {
            Ok(uri) if matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none() => {
                Ok(Self(format!("{}/v1/traces", uri.to_string().trim_end_matches('/'))))
            }
            _ => Err("expected the URL of an OTLP collector, such as http://collector:4318".to_owned()),
        }
    }
}

/// Why there can be no traces.
#[derive(Debug, Error)]
#[error("cannot set up {0}")]
pub struct OtlpError(&'static str, #[source] HttpError);

/// The exporter of the spans. Ends with [`shutdown`](Self::shutdown).
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
    program: Program,
}

impl Traces {
    /// Starts exporting to a collector; requests run on `runtime`. It reads its other settings, such as
    /// headers, from the environment variables of the OpenTelemetry specification.
    ///
    /// # Errors
    /// Where the variables make no exporter.
    pub fn start(program: Program, endpoint: &Endpoint, runtime: Handle) -> Result<Self, OtlpError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Client::new(runtime)?)
            .with_endpoint(&endpoint.0)
            .build()
            .map_err(|error| OtlpError("the exporter of traces", error.into()))?;
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource(&program));
        Ok(Self { provider: provider.build(), program })
    }

    /// The maker of spans.
    pub(super) fn tracer(&self) -> SdkTracer {
        self.provider.tracer(self.program.name)
    }

    /// Exports the remaining spans. The runtime must still be there, and this thread must not be one of its workers.
    pub fn shutdown(self) {
        if let Err(error) = self.provider.shutdown_with_timeout(FLUSH_TIMEOUT) {
            tracing::warn!(%error, "the last traces may be lost");
        }
    }
}

/// The resource of the spans. `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME` take precedence, so that a Pod's fields can be given. Without
/// them, an instance is a random UUID, as the semantic conventions have it: `host.name` is the Pod's name.
fn resource(program: &Program) -> Resource {
    let own = [
        ("service.name", Some(program.name.to_owned())),
        ("service.version", Some(program.version.to_owned())),
        ("service.instance.id", instance_id()),
        ("host.name", std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned())),
    ];
    let own = own.into_iter().filter_map(|(name, value)| Some(KeyValue::new(name, value?)));
    let resource = Resource::builder_empty()
        .with_attributes(own)
        .with_detectors(&[Box::new(TelemetryResourceDetector), Box::new(EnvResourceDetector::new())]);
    match std::env::var("OTEL_SERVICE_NAME") {
        Ok(name) if !name.is_empty() => resource.with_service_name(name).build(),
        _ => resource.build(),
    }
}

/// A random UUID (RFC 9562, version 4); `None` where the system has no random bytes.
fn instance_id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(uuid::Builder::from_random_bytes(bytes).into_uuid().to_string())
}

/// Marks a span as failed. The conventions for servers leave what clients did wrong unmarked.
pub fn fail(span: &Span, description: &'static str) {
    span.set_status(Status::error(description));
}

/// Lets a span continue the trace that `traceparent` names, if it does. `tracestate` is left: a span keeps it, and a client may send
/// as much as a head holds.
pub fn continue_trace(span: &Span, headers: &HeaderMap) {
    if span.is_disabled() {
        return;
    }
    if let Some(parent) = headers.get(TRACEPARENT).and_then(|parent| parent.to_str().ok()) {
        let parent = HashMap::from([(TRACEPARENT.to_owned(), parent.to_owned())]);
        // It fails only where no layer exports spans, and then there is nothing to continue.
        let _ = span.set_parent(TraceContextPropagator::new().extract(&parent));
    }
}

/// The exporter has a thread of its own and no runtime: requests are handed to ours. `opentelemetry_http::hyper::HyperClient` would have to be
/// wrapped for that too, and reads answers of up to 4 MiB.
#[derive(Clone, Debug)]
struct Client {
    hyper: Hyper<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
    problem: Arc<Mutex<LogOnce>>,
}

impl Client {
    fn new(runtime: Handle) -> Result<Self, OtlpError> {
        // The image has no certificate authorities: built-in ones replace the system's.
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(crypto_provider())
            .or_else(|_| HttpsConnectorBuilder::new().with_provider_and_webpki_roots(crypto_provider()));
        let connector = connector.map_err(|error| OtlpError("TLS", error.into()))?;
        let connector = connector.https_or_http().enable_http1().build();
        Ok(Self { hyper: Hyper::builder(TokioExecutor::new()).build(connector), runtime, problem: Arc::default() })
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
        let (hyper, problem) = (self.hyper.clone(), Arc::clone(&self.problem));
        let sent = self.runtime.spawn(async move {
            let exchange = async {
                let (head, body) = hyper.request(request.map(Full::new)).await?.into_parts();
                if !head.status.is_success() {
                    return Err(HttpError::from(format!("the collector answered {}", head.status.as_u16())));
                }
                let body = Limited::new(body, MAX_ANSWER).collect().await?.to_bytes();
                Ok(Response::from_parts(head, body))
            };
            let answer = timeout(EXPORT_TIMEOUT, exchange).await.unwrap_or_else(|late| Err(late.into()));
            let mut problem = problem.lock();
            match &answer {
                Ok(_) => _ = problem.resolve(),
                // Attempts that follow each other may fail in different ways.
                Err(_) if problem.reason().is_some() => {}
                Err(error) => {
                    let log = |cause: &str| tracing::warn!(cause, "cannot export traces: they are lost");
                    problem.fail(error.as_ref(), log);
                }
            }
            answer
        });
        Box::pin(async move { sent.await? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_named_by_a_url() {
        let traces = |text: &str| text.parse::<Endpoint>().map(|endpoint| endpoint.0);
        assert_eq!(traces("http://collector:4318"), Ok("http://collector:4318/v1/traces".to_owned()));
        assert_eq!(traces("https://collector/below/"), Ok("https://collector/below/v1/traces".to_owned()));
        for wrong in ["collector:4318", "grpc://collector:4317", "/v1/traces", "http://collector/?a=b", "http://"] {
            let expected = "expected the URL of an OTLP collector, such as http://collector:4318";
            assert_eq!(traces(wrong), Err(expected.to_owned()), "{wrong}");
        }
    }
}
