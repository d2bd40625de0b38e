//! Where credential specs and permissions come from: files or a cluster.

use std::{path::Path, sync::Arc};

use gmsa_webhook::{
    admin::Fact,
    apiserver::ApiServer,
    authorizer::{Authorizer, access_review::AccessReviews, remembered::Remembered},
    config::Config,
    metrics::Metrics,
    resolver::{Resolver, cache::Cache},
    standalone::Standalone,
};

use crate::Tasks;

/// Finds credential specs, and says who may use them.
pub type Sources = (Arc<dyn Resolver>, Arc<dyn Authorizer>);

/// Answers from the manifests under a folder.
pub fn offline(folder: &Path) -> anyhow::Result<Sources> {
    let Standalone { specs, rbac } = Standalone::load(folder)?;
    let (roles, bindings) = (rbac.role_count(), rbac.binding_count());
    tracing::info!(folder = %folder.display(), specs = specs.len(), roles, bindings, "read manifests");
    Ok((Arc::new(specs), Arc::new(rbac)))
}

/// Answers from the cluster; `answers` comes true once it can.
pub fn cluster(api: Arc<ApiServer>, config: &Config, metrics: &Metrics, answers: Fact, tasks: &mut Tasks) -> Sources {
    let (cache, watch) = Cache::new(Arc::clone(&api), metrics.clone());
    let mut ready = cache.ready();
    tasks.spawn(async move { match watch.await {} });
    tasks.spawn(async move {
        // The cache, which says so, lives as long as the process.
        if ready.wait_for(|ready| *ready).await.is_ok() {
            answers.set();
        }
        std::future::pending::<()>().await;
    });
    (Arc::new(cache), Arc::new(Remembered::new(AccessReviews::new(api), config.authorization_cache_ttl)))
}
