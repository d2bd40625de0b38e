//! The webhook's side of a cluster, against the simulated API server and through a real client: what is asked, how often,
//! and what is made of each answer and of each way to fail.

use std::{sync::Arc, time::Duration};

use gmsa_cluster::apiserver::ApiServer;
use gmsa_core::{
    admission::{Failure, FailureKind, ServiceAccount},
    credspec::SpecName,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{SimulatedApi, credential_spec};

mod cache;
mod decisions;
mod limits;
mod live;
mod memory;
mod setup;
mod silence;
mod tickets;
mod void_token;
mod watch;

/// The collection of credential specs, as URLs name it.
const SPECS: &str = "/apis/windows.k8s.io/v1/gmsacredentialspecs";
/// A part of the URL of every access review.
const REVIEWS: &str = "/localsubjectaccessreviews";
/// A deadline that is far away.
const SOON: Duration = Duration::from_secs(10);
/// What the credential specs in memory may take, in bytes.
const BUDGET: usize = 24 << 20;

/// The cause where an answer of the API server is too large for what is held already.
const NO_MEMORY: &str =
    "the API server's answer is large, and this replica holds as many large objects as it may at once: try again";

/// The cause where the API server has no resource of credential specs.
const NO_DEFINITION: &str = "the API server does not know GMSACredentialSpec: its CustomResourceDefinition \
                             gmsacredentialspecs.windows.k8s.io, version v1, is not installed";

fn connect(api: &SimulatedApi) -> Arc<ApiServer> {
    Arc::new(ApiServer::new(api.config()).unwrap())
}

/// A credential spec whose contents are this text.
fn spec(name: &str, is: &str) -> Value {
    credential_spec(name, json!({"is": is}))
}

fn spec_name(name: &str) -> SpecName {
    SpecName::parse(name).unwrap()
}

fn service_account(namespace: &str, name: &str) -> ServiceAccount {
    ServiceAccount { namespace: namespace.into(), name: name.into() }
}

fn within(time: Duration) -> Instant {
    Instant::now() + time
}

fn failed(cause: &str) -> Failure {
    Failure::new(cause)
}

fn refused(code: u16, cause: &str) -> Failure {
    Failure { refused: Some(code), ..Failure::new(cause) }
}

fn timed_out(cause: &str) -> Failure {
    Failure { kind: FailureKind::TimedOut, ..Failure::new(cause) }
}
