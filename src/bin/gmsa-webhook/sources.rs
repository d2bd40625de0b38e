//! Where credential specs and permissions come from, files or a cluster, and what the sidecar of Linux pods needs.

use std::{path::Path, sync::Arc};

use gmsa_cluster::{apiserver::ApiServer, authorizer::access_review::Advisor, standalone::Standalone};
use gmsa_core::admission::{Failure, TicketSettings};
use gmsa_edge::{admin::Condition, authorization_cache::AuthorizationCache, shutdown::Tasks};
use gmsa_webhook::{cache::Cache, config::Config, metrics::Metrics, server::LookUpSources};
use tokio::sync::watch;

/// Answers from the manifests under a folder, for decisions and for advice.
pub fn offline(folder: &Path) -> anyhow::Result<[LookUpSources; 2]> {
    let Standalone { specs, rbac } = Standalone::load(folder)?;
    let (roles, bindings) = (rbac.role_count(), rbac.binding_count());
    tracing::info!(folder = %folder.display(), specs = specs.names().len(), roles, bindings, "read manifests");
    let sources = LookUpSources { resolver: Arc::new(specs), authorizer: Arc::new(rbac) };
    Ok([sources.clone(), sources])
}

/// Answers from the cluster, for decisions and for advice; sets `answers` once it can.
pub fn cluster(
    api: Arc<ApiServer>,
    config: &Config,
    metrics: &Metrics,
    answers: Condition,
    tasks: &mut Tasks,
) -> [LookUpSources; 2] {
    let (cache, watch) =
        Cache::new(Arc::clone(&api), metrics.clone(), config.limits.credential_specs, move || answers.set());
    tasks.spawn(async move { match watch.await {} });
    let advisor = Arc::new(Advisor(Arc::clone(&api)));
    let authorizer = AuthorizationCache::new(api, config.typed.authorization_cache_ttl);
    let for_advice =
        LookUpSources { resolver: Arc::new(cache.for_advice()), authorizer: Arc::new(authorizer.asking(advisor)) };
    [LookUpSources { resolver: Arc::new(cache), authorizer: Arc::new(authorizer) }, for_advice]
}

/// How Linux pods get tickets, from now on.
pub fn tickets(config: &Config, api: Option<Arc<ApiServer>>, tasks: &mut Tasks) -> watch::Receiver<TicketSettings> {
    let Some(tickets) = config.tickets.clone() else { return watch::channel(TicketSettings::Off).1 };
    let unknown = TicketSettings::Unknown(Failure::new(
        "the webhook has just started, and what the sidecar needs is not read yet",
    ));
    let (settings, current) = watch::channel(tickets.read().ok().filter(|_| api.is_none()).unwrap_or(unknown));
    let reload = tickets.keep(api, config.typed.certificates.tls_reload_interval, settings);
    tasks.spawn(async move { match reload.await {} });
    current
}
