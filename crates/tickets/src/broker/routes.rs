//! The paths of the broker's TLS port.
//!
//! Invariants: an answer about tickets or a keytab is JSON, what was asked for or a refusal, and of bounded size; each of these requests that was decided leaves one
//! line in the log; no line holds a token, a ticket or a key.

use std::sync::Arc;

use axum::{
    Json, Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use gmsa_cluster::body::{self, BodyError};
use gmsa_core::{
    credspec::{SpecName, Verb},
    quote::Quoted,
};
use gmsa_edge::{
    server::{Place, linger},
    telemetry::{LogLimit, cut_message},
};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode, Uri,
    header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    request::Parts,
};
use tokio::time::{Instant, timeout};

use super::{
    Broker,
    caller::{self, Caller, audience},
    too_large,
};
use crate::{
    api::{Given, MAX_REQUEST, MAX_RESPONSE, Reason, Refusal, TicketRequest, path},
    limits::{BODY_TIMEOUT, LONGEST_RETRY_AFTER, MAX_TOKEN, PAUSE},
};

/// The routes of the TLS port.
pub fn router(broker: Arc<Broker>) -> Router {
    let give = |verb| {
        post(
            move |State(broker): State<Arc<Broker>>, request: Request| async move { give(&broker, verb, request).await },
        )
    };
    Router::new()
        .route(path(Verb::Use), give(Verb::Use))
        .route(path(Verb::Export), give(Verb::Export))
        .route("/health", get(async || StatusCode::NO_CONTENT))
        .route("/info", get(async || Json(serde_json::json!({ "version": env!("CARGO_PKG_VERSION") }))))
        .fallback(async |uri: Uri, body: Body| {
            let message = format!("there is no path {}: tickets are at {}", Quoted::new(uri.path()), path(Verb::Use));
            refused(&Refusal::new(StatusCode::NOT_FOUND, Reason::TicketRequest, message), body).await
        })
        .method_not_allowed_fallback(async |method: Method, uri: Uri, body: Body| {
            let message = format!("{} does not take {}", Quoted::bare(uri.path()), Quoted::bare(method.as_str()));
            refused(&Refusal::new(StatusCode::METHOD_NOT_ALLOWED, Reason::TicketRequest, message), body).await
        })
        .with_state(broker)
}

async fn give(broker: &Broker, verb: Verb, request: Request) -> Response {
    let started = Instant::now();
    let mut audit = Audit::default();
    let (head, mut body) = request.into_parts();
    let answered = answer(broker, verb, &head, &mut body, &mut audit).await;
    let duration = started.elapsed();
    audit.log(verb, answered.as_ref().map(|(given, _)| given), duration.as_secs_f64());
    broker.metrics.request(answered.as_ref().err().map(|refusal| refusal.reason), duration);
    match answered {
        Ok((_, json)) => with_json(StatusCode::OK, json),
        Err(refusal) => refused(&refusal, body).await,
    }
}

/// Answers a request: the product, and its JSON.
async fn answer(
    broker: &Broker,
    verb: Verb,
    head: &Parts,
    body: &mut Body,
    audit: &mut Audit,
) -> Result<(Given, Vec<u8>), Refusal> {
    let deadline = Instant::now() + broker.time_allowed;
    let token = bearer(&head.headers)?;
    let name = requested(&head.headers, body).await?;
    audit.credential_spec = Some(name.clone());
    let place = head.extensions.get::<Arc<Place>>();
    let source = place.map(|place| place.source().to_string());
    let caller = caller::review(&broker.api, token, source.as_deref(), &audience(verb, &name), deadline).await?;
    audit.caller = Some(caller.clone());
    // From here on its connection does not make room for another one.
    let _busy = place.map(Place::busy);
    let given = broker.given(verb, &caller, &name, audit, deadline).await?;
    let json = serde_json::to_vec(&given).map_err(|_| too_large())?;
    if json.len() > MAX_RESPONSE { Err(too_large()) } else { Ok((given, json)) }
}

/// The token of the request.
fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let missing = || Refusal::unauthenticated("the request has no token: send Authorization: Bearer TOKEN");
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().and_then(|value| value.to_str().ok()).ok_or_else(missing)?;
    if values.next().is_some() {
        return Err(Refusal::unauthenticated("the request has more than one Authorization: send one token"));
    }
    let (scheme, token) = value.split_once(' ').ok_or_else(missing)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(missing());
    }
    if token.len() > MAX_TOKEN {
        return Err(Refusal::unauthenticated(format!("the token has more than {MAX_TOKEN} bytes")));
    }
    Ok(token)
}

/// The name of the credential spec in the body.
async fn requested(headers: &HeaderMap, body: &mut Body) -> Result<SpecName, Refusal> {
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !media_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return Err(Refusal::unreadable("the content type must be application/json"));
    }
    let read = timeout(BODY_TIMEOUT, body::read(body, MAX_REQUEST, None)).await;
    let read = read.map_err(|_| Refusal::unreadable("the body did not arrive within the time limit"))?;
    let body = read.map_err(|error| match error {
        BodyError::TooLarge => Refusal::unreadable(format!("the body is larger than {MAX_REQUEST} bytes")),
        BodyError::Cut(_) | BodyError::NoMemory => Refusal::unreadable("the body is not complete"),
    })?;
    // serde takes a list for an object, too.
    let object = Some(&body.bytes).filter(|bytes| bytes.trim_ascii_start().starts_with(b"{"));
    let request: TicketRequest = object
        .and_then(|bytes| serde_json::from_slice(bytes).ok())
        .ok_or_else(|| Refusal::unreadable(r#"the body must be {"credentialSpec": "NAME"} and nothing else"#))?;
    SpecName::parse(&request.credential_spec).ok_or_else(|| {
        let name = Quoted::new(&request.credential_spec);
        Refusal::unreadable(format!("the name {name} is not a lower-case DNS subdomain"))
    })
}

async fn refused(refusal: &Refusal, body: Body) -> Response {
    linger(body).await;
    let json = serde_json::to_vec(&refusal.body()).unwrap_or_default();
    let mut response = with_json(refusal.status, json);
    match refusal.status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            let wait = refusal.retry_after.unwrap_or(PAUSE).min(LONGEST_RETRY_AFTER);
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response.headers_mut().insert(RETRY_AFTER, seconds.max(1).into());
        }
        // RFC 9110, 15.5.2
        StatusCode::UNAUTHORIZED => {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        _ => {}
    }
    response
}

fn with_json(status: StatusCode, json: Vec<u8>) -> Response {
    (status, [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], json).into_response()
}

/// The lines about requests that were not decided.
pub static REFUSED: LogLimit = LogLimit::new("tickets refused");

/// The facts about a request that its line shows.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    pub credential_spec: Option<SpecName>,
    pub caller: Option<Caller>,
    /// `WebApp1@contoso.com`
    pub account: Option<String>,
}

impl Audit {
    /// Writes the line: who asked, for which account and services, until when. It holds names, never a token, a key or a ticket. Refusals that cost their
    /// sender nothing are limited in number: those that no token authenticates, and those of a pod that asks too often.
    fn log(&self, verb: Verb, answered: Result<&Given, &Refusal>, duration_seconds: f64) {
        let (caller, refusal) = (self.caller.as_ref(), answered.err());
        let is_undecided = |refusal: &Refusal| caller.is_none() || refusal.status == StatusCode::TOO_MANY_REQUESTS;
        if refusal.is_some_and(is_undecided) && !REFUSED.admit() {
            return;
        }
        let given = answered.ok().map(|given| given.product.described());
        let (services, expires, kvno) =
            given.map_or((None, None, None), |(services, expires, kvno)| (Some(services), expires, kvno));
        tracing::info!(
            credential_spec = self.credential_spec.as_ref().map(SpecName::as_str),
            namespace = caller.map(|caller| &*caller.account.namespace),
            service_account = caller.map(|caller| &*caller.account.name),
            pod = caller.map(|caller| &*caller.pod),
            pod_uid = caller.map(|caller| cut_message(&caller.uid)),
            token_id = caller.map(|caller| cut_message(&caller.token_id)),
            account = self.account.as_deref().map(cut_message),
            services = services.as_deref().map(cut_message),
            expires,
            kvno,
            code = refusal.map(|refusal| refusal.status.as_u16()),
            reason = refusal.map(|refusal| refusal.reason.as_str()),
            cause = refusal.map(|refusal| cut_message(&refusal.message)),
            duration_seconds,
            "{} {}",
            verb.product().name,
            if refusal.is_some() { "refused" } else { "given" }
        );
    }
}
