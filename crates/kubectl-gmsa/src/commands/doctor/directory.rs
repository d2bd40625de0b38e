//! The credential specs of the cluster against the directory.

use gmsa_core::diagnostic::Check;

use super::parts::{Judged, Parts};
use crate::shared::output::plural;

pub(super) const DIRECTORY: &str = "directory";

pub(super) fn check(parts: &Parts) -> Judged<'_> {
    let Some(directory) = &parts.directory else { return Ok(Vec::new()) };
    let (found, count) = (directory.as_ref()?.clone(), parts.specs.as_ref()?.len());
    if found.is_empty() {
        return Ok(vec![Check::pass(DIRECTORY, format!("agrees with {}", plural(count, "credential spec")))]);
    }
    Ok(found.into_iter().map(|found| Check::found(DIRECTORY, found)).collect())
}
