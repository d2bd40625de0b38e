//! Publishes the CAs in a file into webhook configurations: for a certificate from a Secret that another tool fills, where
//! no tool fills in the `caBundle`.
//!
//! What always holds: an invalid file changes nothing, and the CAs that it held before stay published. A tool that replaces
//! a CA must add the new one beside the old one first: `caBundle` and serving certificate do not change at the same time.

use std::{convert::Infallible, path::PathBuf, time::Duration};

use super::{CaPolicy, Clock, Publication, files::load_cas, reload::Reload};

/// Publishes after each change of the file, and every `interval` in any case, because others may write the
/// configurations too.
pub async fn keep_published(
    file: PathBuf,
    mut publication: Publication,
    interval: Duration,
    clock: Clock,
) -> Infallible {
    let path = file.clone();
    let mut bundles = Reload::new(&[&file], interval, move || load_cas(&path));
    let mut policy = None;
    loop {
        if let Some(bundle) = bundles.next_valid().await {
            policy = Some(CaPolicy { desired: bundle, ..CaPolicy::default() });
        }
        if let Some(policy) = &policy {
            publication.publish(policy, clock.now()).await;
        }
    }
}
