//! Where credential specs and permissions come from: files or a cluster.

use std::{path::Path, sync::Arc};

use gmsa_cluster::{apiserver::ApiServer, authorizer::Authorizer, resolver::Resolver, standalone::Standalone};
use gmsa_webhook::{admin::Fact, approvals::Remembered, cache::Cache, config::Config, metrics::Metrics};

use crate::Tasks;

/// Finds credential specs, and decides who may use them.
pub type Sources = (Arc<dyn Resolver>, Arc<dyn Authorizer>);

/// Answers from the manifests under a folder.
pub fn offline(folder: &Path) -> anyhow::Result<Sources> {
    let Standalone { specs, rbac } = Standalone::load(folder)?;
    let (roles, bindings) = (rbac.role_count(), rbac.binding_count());
    tracing::info!(folder = %folder.display(), specs = specs.names().len(), roles, bindings, "read manifests");
    Ok((Arc::new(specs), Arc::new(rbac)))
}

/// Answers from the cluster; sets `answers` once it can.
pub fn cluster(api: Arc<ApiServer>, config: &Config, metrics: &Metrics, answers: Fact, tasks: &mut Tasks) -> Sources {
    let (cache, watch) =
        Cache::new(Arc::clone(&api), metrics.clone(), config.limits.credential_specs, move || answers.set());
    tasks.spawn(async move { match watch.await {} });
    (Arc::new(cache), Arc::new(Remembered::new(api, config.authorization_cache_ttl)))
}
