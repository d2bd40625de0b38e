//! A cluster in which nothing changes, on a control plane of its own, beside the other scenarios: it takes minutes, because
//! what it looks for shows only then.

use std::{path::Path, time::Duration};

use serde_json::json;
use tokio::time::sleep;

use crate::{
    control_plane::{Binaries, Scrape},
    pods::{self, filled, gmsa, pod, slots},
    world::{USER, WEB, World},
};

/// The name by which it is picked.
pub const NAME: &str = "quiet::eight_minutes_cost_at_most_one_read";

/// A review every twenty seconds, for eight minutes.
const REVIEWS: usize = 24;
const BETWEEN: Duration = Duration::from_secs(20);

/// Eight quiet minutes cost the API server at most one read of a credential spec.
pub async fn eight_minutes_cost_at_most_one_read(binaries: Binaries, folder: &Path) {
    let world = World::start(binaries, folder).await;
    let before = reads(&world).await;
    let dry_run = format!("{}?dryRun=All", pods::PATH);
    for number in 0..REVIEWS {
        sleep(BETWEEN).await;
        let pod = pod(&format!("quiet-{number}"), USER, &json!({"securityContext": gmsa("web")}));
        let created = world.client().create(&dry_run, &pod).await.unwrap();
        assert_eq!(slots(&created), json!({"pod": filled("web", WEB)}));
    }
    let reads = reads(&world).await - before;
    let scrape = world.webhook.scrape().await;
    let state = |state: &str| scrape.sum("gmsa_webhook_spec_watch_state", &[state]);
    assert_eq!((state(r#"state="synced""#), state(r#"state="stale""#)), (1.0, 0.0));
    assert!(reads <= 1.0, "{reads} reads");
    // Both webhooks looked the credential spec up for each pod.
    let cached = scrape.sum("gmsa_webhook_spec_lookups_total", &[r#"source="cache""#, r#"outcome="found""#]);
    assert!(cached >= 2.0 * 24.0 - reads, "{cached} look-ups in memory");
}

/// The reads of single credential specs that the API server has counted.
async fn reads(world: &World) -> f64 {
    let metrics = Scrape::of(world.client().text("/metrics").await.unwrap());
    let labels = [r#"verb="GET""#, r#"resource="gmsacredentialspecs""#];
    let reads = metrics.sum("apiserver_request_total", &labels);
    // Its start has read some: that the number is found at all is seen by that.
    assert!(reads >= 1.0, "the API server counts no reads");
    reads
}
