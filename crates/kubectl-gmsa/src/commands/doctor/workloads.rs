//! All workloads that use GMSA: those that lack pods, or whose pods do not run, each with the first cause.

use futures::future::join_all;
use k8s_openapi::api::core::v1::Node;
use serde_json::value::RawValue;

use super::{
    cause,
    events::Events,
    found, not_checked,
    scheduling::Nodes,
    workload::{Object, Workload, assemble},
};
use crate::shared::{connection::Cluster, output::first_five, rules, workloads::Kind};
use gmsa_core::diagnostic::{Check, Diagnostic};

pub(super) const WORKLOADS: &str = "workloads";

/// The most workloads that have a line of their own.
const MOST: usize = 100;

/// The objects of all kinds, and of which kinds they could not be read.
pub(super) struct Read {
    objects: Vec<(Kind, Object)>,
    unread: Vec<(Kind, anyhow::Error)>,
}

pub(super) async fn read(cluster: &Cluster) -> Read {
    let reading = Kind::ALL.map(async |kind| (kind, cluster.list::<Object>(&kind.collection(None)).await));
    let mut all = Read { objects: Vec::new(), unread: Vec::new() };
    for (kind, read) in join_all(reading).await {
        match read {
            Ok(objects) => all.objects.extend(objects.into_iter().map(|object| (kind, object))),
            Err(error) => all.unread.push((kind, error)),
        }
    }
    all
}

/// Adds a check for each workload that has a problem, or one for all.
pub(super) async fn add_checks(
    cluster: &Cluster,
    Read { objects, unread }: Read,
    pods: Option<&[Box<RawValue>]>,
    nodes: Option<Vec<Node>>,
    checks: &mut Vec<Check>,
) {
    let before = checks.len();
    if let Some((_, error)) = unread.first() {
        let kinds: Vec<&str> = unread.iter().map(|(kind, _)| kind.as_str()).collect();
        let Check { about, result } = not_checked(WORKLOADS, error);
        let result = result.map_err(|found| Diagnostic { object: first_five(&kinds), ..found });
        checks.push(Check { about, result });
    }
    // Without the pods, whose check says why, nothing is known of their number.
    let Some(pods) = pods else { return };
    let workloads = assemble(objects, pods);
    let mut known = Nodes::of(nodes);
    // Who may not list nodes may rarely read one.
    if known.windows.is_some() {
        known.add(cluster, workloads.iter().flat_map(Workload::pods)).await;
    }
    let mut events = Events::default();
    if workloads.iter().any(|workload| cause::of(workload, &known, &events).is_some()) {
        match Events::read(cluster, None).await {
            Ok(read) => events = read,
            Err(error) => checks.push(not_checked("events", &error)),
        }
    }
    let mut broken: Vec<Diagnostic> = Vec::new();
    for workload in &workloads {
        let found = cause::of(workload, &known, &events);
        broken.extend(found.map(|found| Diagnostic { object: workload.object(), ..found }));
    }
    let more = broken.len().saturating_sub(MOST);
    broken.truncate(MOST);
    checks.extend(broken.into_iter().map(|found| Check::found(WORKLOADS, found)));
    if more > 0 {
        checks.push(found(
            WORKLOADS,
            &rules::PODS_MISSING,
            format!("{more} more workloads lack pods, or have pods that do not run"),
        ));
    }
    if checks.len() == before {
        checks.push(Check::pass(
            WORKLOADS,
            match workloads.len() {
                0 => "no pod template uses GMSA yet".to_owned(),
                1 => "1 uses GMSA, and has its pods".to_owned(),
                count => format!("{count} use GMSA, and have their pods"),
            },
        ));
    }
}
