//! `who-can --workloads`: the workloads whose pod template names a credential spec, and uncontrolled pods that name it. These must
//! change before the credential spec is deleted.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::shared::{
    Outcome,
    kinds::Kind,
    output::{Shape, plural, print_as, table::table},
    pods::{ClusterPod, unparsable},
    rules,
    unread::Unread,
    walk::workload::{WorkloadTree, Workloads},
    world::World,
};
use gmsa_core::{credspec::SpecName, diagnostic::Diagnostic, quote::one_line};

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct NamingWorkload {
    namespace: String,
    kind: &'static str,
    name: String,
    /// The number of its pods that have not ended; `None` if pods or their owners could not be read.
    pods: Option<usize>,
}

/// The workloads that name a credential spec, and failed reads.
#[derive(Serialize)]
pub(super) struct Users {
    pub workloads: BTreeSet<NamingWorkload>,
    /// Such as `jobs: the API server answered 403`.
    #[serde(rename = "notRead")]
    not_read: Vec<String>,
    /// What to say of a credential spec that does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub absent: Option<String>,
}

impl Users {
    pub(super) async fn read(world: &World, name: &SpecName, namespace: Option<&str>, absent: Option<String>) -> Self {
        let workloads = Workloads::read(world, namespace).await;
        let pods = world.pods(namespace, true).await;
        let not_read = |what: &str, unread: &Unread| format!("{what}: {unread}");
        let mut unread: Vec<String> =
            workloads.unread.iter().map(|(kind, unread)| not_read(&kind.plural(), unread)).collect();
        unread.extend(pods.as_ref().err().map(|error| not_read("pods", error)));
        let names = |workload: &&WorkloadTree| workload.credential_specs().contains(name.as_str());
        let is_read = |kind: Kind| workloads.unread.iter().all(|(unread, _)| *unread != kind);
        let is_counted = |workload: &WorkloadTree| pods.is_ok() && workload.kind.below().is_none_or(is_read);
        let of = |workload: &WorkloadTree| NamingWorkload::of(workload, is_counted(workload));
        let mut users: BTreeSet<NamingWorkload> = workloads.known.iter().filter(names).map(of).collect();
        let controlled: BTreeSet<&str> = workloads.known.iter().flat_map(WorkloadTree::pods).filter_map(uid).collect();
        unread.extend(workloads.known.iter().filter_map(WorkloadTree::unparsed));
        let mut read = Vec::new();
        for json in pods.iter().flat_map(|pods| pods.iter()) {
            match ClusterPod::read(json) {
                Ok(pod) => read.push(pod),
                Err(error) if json.get().contains("gmsaCredentialSpec") => {
                    let Diagnostic { object, message, .. } = unparsable(json, &error);
                    unread.push(format!("{object} {message}"));
                }
                Err(_) => {}
            }
        }
        let own = read.iter().filter(|pod| {
            let mut names = pod.admission.slots().filter_map(|slot| slot.name).chain(pod.admission.asks_tickets_of());
            let is_named = names.any(|named| named == name.as_str());
            is_named && !pod.has_ended() && uid(pod).is_none_or(|uid| !controlled.contains(uid))
        });
        users.extend(own.map(NamingWorkload::of_pod));
        Self { workloads: users, not_read: unread, absent }
    }

    pub(super) fn print(&self, name: &SpecName, shape: Shape) -> anyhow::Result<Outcome> {
        let outcome = match (self.not_read.as_slice(), &self.absent) {
            ([], None) => Outcome::Clean,
            ([], Some(_)) => Outcome::Findings,
            _ => Outcome::Incomplete,
        };
        print_as(shape, outcome, || self.table(name), self)
    }

    fn table(&self, name: &SpecName) -> String {
        let absent = self.absent.iter().map(|absent| format!("{}: {absent}\n", rules::SPEC_MISSING.id));
        let unread = self.not_read.iter().map(|what| format!("not-checked: {}\n", one_line(what)));
        let rows = self.workloads.iter().map(|user| {
            let pods = user.pods.map_or_else(|| "not checked".to_owned(), |pods| plural(pods, "pod"));
            [user.namespace.clone(), format!("{} {}", user.kind, user.name), pods]
        });
        let users = if self.workloads.is_empty() && self.not_read.is_empty() {
            format!("no workload and no pod names {name}\n")
        } else if self.workloads.is_empty() {
            format!("nothing of what could be read names {name}\n")
        } else {
            table(["NAMESPACE", "WHO", "HAS"], &rows.collect())
        };
        absent.chain(unread).chain([users]).collect()
    }
}

impl NamingWorkload {
    fn of(workload: &WorkloadTree, is_counted: bool) -> Self {
        let pods = is_counted.then(|| workload.pods().filter(|pod| !pod.has_ended()).count());
        Self { namespace: workload.namespace.clone(), kind: workload.kind.as_str(), name: workload.name.clone(), pods }
    }

    fn of_pod(pod: &ClusterPod) -> Self {
        let (namespace, name) = pod.place();
        Self { namespace: namespace.to_owned(), kind: "Pod", name: name.to_owned(), pods: Some(1) }
    }
}

fn uid(pod: &ClusterPod) -> Option<&str> {
    pod.object.metadata.uid.as_deref()
}
