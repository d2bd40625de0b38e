//! Where the facts of decisions about a cluster come from: the cluster itself, or what a bundle has of it.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _, ready};
use tokio::time::Instant;

use super::FactFinder;
use crate::shared::{not_checked::Unread, rbac::roles_and_bindings, snapshot::Snapshot};
use gmsa_cluster::{
    authorizer::{Authorization, Authorizer, rbac::Rbac},
    manifests::Document,
    resolver::{Freshness, Resolved, Resolver, live::collection, manifests::CredentialSpecs},
};
use gmsa_core::{
    admission::{Failure, Known, Source, Subject},
    credspec::{GROUP, KIND, SpecName, VERSION},
};

/// Looks facts up where the snapshot is of: of a bundle, permissions follow from its roles and bindings.
pub async fn fact_finder(snapshot: &Snapshot) -> FactFinder {
    if let Some(api) = snapshot.api() {
        return FactFinder::new(api.clone(), api.clone(), snapshot.timeout());
    }
    let version = format!("{GROUP}/{VERSION}");
    let specs: Arc<dyn Resolver> = match snapshot.list(&collection()).await {
        Ok(specs) => {
            let documents: Vec<Document> =
                specs.into_iter().map(|spec| Document::of_api(KIND, &version, KIND, spec)).collect();
            Arc::new(CredentialSpecs::from_documents(&documents).0)
        }
        Err(unread) => Arc::new(LeftOut(unread)),
    };
    let rbac: Arc<dyn Authorizer> = match roles_and_bindings(snapshot).await {
        Ok(found) => Arc::new(Rbac::from_documents(&found.documents).0),
        Err(unread) => Arc::new(LeftOut(unread)),
    };
    FactFinder::new(specs, rbac, snapshot.timeout())
}

/// What a bundle does not say.
struct LeftOut(Unread);

impl LeftOut {
    fn known<F: From<Failure>>(&self) -> Known<F> {
        let failure = Failure { refused: self.0.code, ..Failure::new(&*self.0.cause) };
        Known { fact: failure.into(), source: Source::Files }
    }
}

impl Resolver for LeftOut {
    fn resolve<'a>(&'a self, _: &'a SpecName, _: Freshness, _: Instant) -> BoxFuture<'a, Resolved> {
        ready(self.known()).boxed()
    }
}

impl Authorizer for LeftOut {
    fn may_use<'a>(&'a self, _: &'a Subject, _: &'a SpecName, _: Instant) -> BoxFuture<'a, Authorization> {
        ready(self.known()).boxed()
    }
}
