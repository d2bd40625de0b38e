//! From a request to its answer.

use std::{
    convert::Infallible,
    sync::{Arc, atomic::Ordering},
};

use axum::body::{Body, HttpBody as _};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::{
    Recorded, Verb, World, access,
    faults::Fault,
    store::{Key, Kind, Refusal, key},
    watches,
    wire::{json_answer, parameter, status_object},
};

/// The parts of a URL that name a resource.
struct Target {
    api_version: String,
    namespace: Option<String>,
    plural: String,
    name: Option<String>,
}

impl Target {
    fn parse(path: &str) -> Option<Self> {
        let mut parts = path.trim_matches('/').split('/');
        let api_version = match parts.next()? {
            "api" => parts.next()?.to_owned(),
            "apis" => format!("{}/{}", parts.next()?, parts.next()?),
            _ => return None,
        };
        let rest: Vec<&str> = parts.collect();
        let (namespace, rest) = match rest.as_slice() {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
            rest => (None, rest),
        };
        let (plural, name) = match rest {
            [plural] => (*plural, None),
            [plural, name] => (*plural, Some((*name).to_owned())),
            _ => return None,
        };
        Some(Self { api_version, namespace, plural: plural.to_owned(), name })
    }

    fn key(&self) -> Key {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        key(&self.plural, namespace, self.name.as_deref().unwrap_or_default())
    }
}

fn verb(method: &Method, uri: &Uri, target: Option<&Target>) -> Verb {
    match *method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ if parameter(uri, "watch") == Some("true") => Verb::Watch,
        _ if target.is_some_and(|target| target.name.is_none()) => Verb::List,
        _ => Verb::Get,
    }
}

/// Records a request, and takes the fault that is scripted for it.
fn record(world: &World, verb: Verb, path: String, headers: &HeaderMap, body: &Value) -> Option<Fault> {
    let header = |name| headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    world.requests.lock().unwrap().push(Recorded {
        verb,
        path: path.clone(),
        body: body.clone(),
        authorization: header("authorization"),
        impersonates: ["impersonate-user", "impersonate-group"].map(header),
    });
    world.changed();
    world.script.lock().unwrap().next(verb, &path, body)
}

pub(super) async fn answer(world: Arc<World>, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let by = world.upgrade.lock().unwrap().clone().filter(|_| request.headers().contains_key(header::UPGRADE));
    if let Some(by) = by {
        return Ok(match record(&world, Verb::Get, request.uri().to_string(), request.headers(), &Value::Null) {
            Some(Fault::Refuse { code, reason, message, .. }) => status(code, reason, message, Value::Null),
            _ => by(request),
        });
    }
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let target = Target::parse(head.uri.path());
    let verb = verb(&head.method, &head.uri, target.as_ref());
    let _answering = Arc::clone(&world.answering);
    let fault = record(&world, verb, head.uri.to_string(), &head.headers, &body);
    let proper = || match &target {
        None => page_not_found(),
        Some(target) => route(&world, verb, &head, target, &body),
    };
    let answer = match fault {
        None => proper(),
        Some(Fault::Delay(delay)) => {
            tokio::time::sleep(delay).await;
            proper()
        }
        Some(Fault::Hold(gate)) => {
            let answer = proper();
            gate.passed().await;
            answer
        }
        Some(Fault::Refuse { code, reason, message, retry_after }) => {
            let mut answer = status(code, reason, message, Value::Null);
            if let Some(seconds) = retry_after {
                answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            answer
        }
        Some(Fault::Text(code, text)) => {
            Response::builder().status(code).header(header::CONTENT_TYPE, "text/plain").body(text.into()).unwrap()
        }
        Some(Fault::Object(object)) => json_answer(200, &object),
        Some(Fault::Cut) => Response::new(watches::cut_body()),
        Some(Fault::CutAfter) => {
            proper();
            Response::new(watches::cut_body())
        }
        Some(Fault::Silence) if verb == Verb::Watch => Response::new(watches::silent_body(&world)),
        Some(Fault::Silence) => std::future::pending().await,
    };
    world.sent.fetch_add(answer.body().size_hint().exact().unwrap_or(0), Ordering::SeqCst);
    Ok(answer)
}

/// How a client asks for a list of metadata.
const METADATA_ONLY: &[u8] = b"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

fn metadata_only(list: &mut Value) {
    list["apiVersion"] = json!("meta.k8s.io/v1");
    list["kind"] = json!("PartialObjectMetadataList");
    for item in list["items"].as_array_mut().unwrap() {
        let metadata = item["metadata"].take();
        *item = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": metadata});
    }
}

fn route(world: &Arc<World>, verb: Verb, head: &http::request::Parts, target: &Target, body: &Value) -> Response<Body> {
    if target.api_version == "authorization.k8s.io/v1" && target.plural == "localsubjectaccessreviews" {
        return review(world, target, body);
    }
    if target.api_version == "authentication.k8s.io/v1" && target.plural == "tokenreviews" {
        let mut answer = body.clone();
        answer["status"] = access::token_status(&world.tokens.lock().unwrap(), &body["spec"]);
        return json_answer(201, &answer);
    }
    let Some(kind) = world.store().kind(&target.api_version, &target.plural) else { return page_not_found() };
    if verb == Verb::Watch {
        return watches::watch(world, &kind, target.namespace.clone(), &head.uri);
    }
    if verb == Verb::List {
        let limit = parameter(&head.uri, "limit").map_or(usize::MAX, |limit| limit.parse().unwrap());
        let list = world.store().list(&kind, target.namespace.as_deref(), limit, parameter(&head.uri, "continue"));
        let Some(mut list) = list else {
            return status(410, "Expired", "The provided continue parameter is too old", Value::Null);
        };
        if head.headers.get(header::ACCEPT).is_some_and(|accept| accept.as_bytes().starts_with(METADATA_ONLY)) {
            metadata_only(&mut list);
        }
        return json_answer(200, &list);
    }
    let outcome = change(world, verb, head, &target.key(), body);
    world.changed();
    let name = target.name.as_deref().or_else(|| body["metadata"]["name"].as_str()).unwrap_or_default();
    match outcome {
        Ok(object) => json_answer(if verb == Verb::Create { 201 } else { 200 }, &object),
        Err(refusal) => refused(&kind, name, refusal),
    }
}

fn change(
    world: &World,
    verb: Verb,
    head: &http::request::Parts,
    key: &Key,
    body: &Value,
) -> Result<Arc<Value>, Refusal> {
    let mut store = world.store();
    let stored =
        |store: &super::store::Store| store.object(&key.plural, &key.namespace, &key.name).ok_or(Refusal::NotFound);
    match verb {
        Verb::Create => {
            let name = body["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            store.create(&Key { name, ..key.clone() }, body.clone())
        }
        Verb::Update => store.update(key, body.clone()),
        Verb::Delete => store.remove(key),
        Verb::Patch => {
            let mut object = stored(&store)?;
            if head.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json-patch+json") {
                let patch: json_patch::Patch = serde_json::from_value(body.clone()).unwrap();
                // A failed `test` is what the API server calls invalid; it stands for any conflict here.
                json_patch::patch(&mut object, &patch).map_err(|_| Refusal::Conflict)?;
            } else {
                json_patch::merge(&mut object, body);
            }
            store.update(key, object)
        }
        Verb::Get | Verb::List | Verb::Watch => stored(&store).map(Arc::new),
    }
}

fn review(world: &World, target: &Target, body: &Value) -> Response<Body> {
    let namespace = target.namespace.as_deref().unwrap_or_default();
    match access::status(&world.grants.lock().unwrap(), namespace, &body["spec"]) {
        Err(message) => status(422, "Invalid", &message, Value::Null),
        Ok(status) => {
            let mut answer = body.clone();
            answer["status"] = status;
            json_answer(201, &answer)
        }
    }
}

/// What the API server says of a path that it does not serve.
fn page_not_found() -> Response<Body> {
    let answer = Response::builder().status(StatusCode::NOT_FOUND).header(header::CONTENT_TYPE, "text/plain");
    answer.body("404 page not found\n".into()).unwrap()
}

fn status(code: u16, reason: &str, message: &str, details: Value) -> Response<Body> {
    json_answer(code, &status_object(code, reason, message, details))
}

fn refused(kind: &Kind, name: &str, refusal: Refusal) -> Response<Body> {
    let resource = kind.resource();
    let (code, reason, message) = match refusal {
        Refusal::NotFound => (404, "NotFound", format!("{resource} \"{name}\" not found")),
        Refusal::AlreadyExists => (409, "AlreadyExists", format!("{resource} \"{name}\" already exists")),
        Refusal::Conflict => (
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {resource} \"{name}\": the object has been modified"),
        ),
    };
    status(code, reason, &message, json!({"name": name, "group": kind.group(), "kind": kind.plural}))
}
