//! What calls the API server: objects are JSON, a refusal is a value.

use std::{future::ready, net::SocketAddr};

use futures::{Stream, StreamExt as _};
use http::{
    Method, Request,
    header::{CONTENT_TYPE, WARNING},
};
use http_body_util::BodyExt as _;
use kube::{
    config::{KubeConfigOptions, Kubeconfig},
    core::WatchEvent,
};
use serde_json::Value;

const JSON: &str = "application/json";

/// Why a call has no result.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status code; 0 where there was no answer.
    pub code: u16,
    pub message: String,
}

impl From<kube::Error> for Refusal {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self { code: status.code, message: status.message },
            error => Self { code: 0, message: error.to_string() },
        }
    }
}

type Answer<T = Value> = Result<T, Refusal>;

/// A client of the API server, with one user's credentials.
#[derive(Clone)]
pub struct Client(kube::Client);

impl Client {
    /// A client with the credentials in a kubeconfig.
    pub async fn new(kubeconfig: Value) -> Self {
        let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig).unwrap();
        Self::with(kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap())
    }

    /// A client with these settings. It tries nothing twice.
    pub fn with(mut config: kube::Config) -> Self {
        config.default_retry = false;
        Self(kube::Client::try_from(config).unwrap())
    }

    /// A client of what speaks plain HTTP here.
    pub fn of_port(address: SocketAddr) -> Self {
        Self::with(kube::Config::new(format!("http://{address}").parse().unwrap()))
    }

    pub async fn text(&self, path: &str) -> Answer<String> {
        Ok(self.0.request_text(Request::get(path).body(Vec::new()).unwrap()).await?)
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call(Method::GET, path, JSON, None).await
    }

    /// What happens to the objects of a collection, beginning with those that are there: whether an object is there, and how it is. It ends where
    /// the API server ends it.
    pub async fn watch(&self, collection: &str) -> Answer<impl Stream<Item = (bool, Value)> + use<>> {
        let request = Request::get(format!("{collection}?watch=true")).body(Vec::new()).unwrap();
        let events = self.0.request_events::<Value>(request).await?;
        Ok(events.filter_map(|event| {
            ready(match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => Some((true, object)),
                Ok(WatchEvent::Deleted(object)) => Some((false, object)),
                _ => None,
            })
        }))
    }

    /// Creates an object in a collection.
    pub async fn create(&self, collection: &str, object: &Value) -> Answer {
        self.call(Method::POST, collection, JSON, Some(object)).await
    }

    /// Creates an object in a collection, and gives the warnings too.
    pub async fn create_warned(&self, collection: &str, object: &Value) -> Answer<(Value, Vec<String>)> {
        let request = Request::post(collection).header(CONTENT_TYPE, JSON);
        let answer = self.0.send(request.body(object.to_string().into_bytes().into()).unwrap()).await?;
        let warnings = answer.headers().get_all(WARNING).iter().map(|warning| warning.to_str().unwrap().to_owned());
        let (code, warnings) = (answer.status(), warnings.collect());
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        if code.is_success() {
            Ok((body, warnings))
        } else {
            Err(Refusal { code: code.as_u16(), message: body["message"].as_str().unwrap_or_default().to_owned() })
        }
    }

    /// Changes the fields that `change` names.
    pub async fn merge(&self, path: &str, change: &Value) -> Answer {
        self.call(Method::PATCH, path, "application/merge-patch+json", Some(change)).await
    }

    /// Changes the fields that `change` names; lists of containers are merged by name.
    pub async fn merge_lists(&self, path: &str, change: &Value) -> Answer {
        self.call(Method::PATCH, path, "application/strategic-merge-patch+json", Some(change)).await
    }

    /// Deletes an object, or a whole collection, without waiting for finalizers.
    pub async fn delete(&self, path: &str) -> Answer {
        self.call(Method::DELETE, &format!("{path}?gracePeriodSeconds=0"), JSON, None).await
    }

    async fn call(&self, method: Method, path: &str, content_type: &str, body: Option<&Value>) -> Answer {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, content_type);
        Ok(self.0.request(request.body(body).unwrap()).await?)
    }
}
