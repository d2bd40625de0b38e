//! The checks of `doctor`, in the order in which they are printed.
//!
//! A new check is:
//! - an entry here (and the length of the list): its name, its question, the rights that it needs, and a pure function from the parts
//!   of the cluster to lines, in the file of its topic. A new file has a `mod` in `doctor.rs`, a check of the way to the webhook a place
//!   in [`ON_THE_WAY`];
//! - the rules of its findings: the head of `shared/rules.rs`;
//! - for new data, a field of `Parts` in `parts.rs`, and the fields that a bundle keeps of it, in `shared/snapshot/bundle/fields.rs`;
//! - for a new list, also `KINDS` in `tests/cli/cluster.rs` and `tests/fixtures/bundle.yaml`;
//! - a folder in `tests/cli/recorded`, and its lines in `tests/cli/doctor-list` (`UPDATE_SNAPSHOTS=1 cargo test -p kubectl-gmsa`).
//!
//! Most parts are a `Read`. A check gets what it cannot do without by `?`, so it is skipped where that was not read. If it can say something
//! without a part, it prints that, and the `skip` line of the unread part instead of `pass`.

use super::{
    api_server, call, configuration, crd, directory, nodes,
    parts::{Judged, Parts},
    replica, service, specs_and_pods, tickets, workloads,
};
use crate::shared::unread::not_reached;
use gmsa_core::diagnostic::Check;

pub(super) struct Checker {
    pub about: &'static str,
    /// The question that it answers.
    pub what: &'static str,
    /// The rights that it needs. Without them it is skipped or less detailed.
    pub needs: &'static [&'static str],
    pub run: fn(&Parts) -> Judged<'_>,
}

// Rights that several checks need.
const WEBHOOKS: &str = "list mutatingwebhookconfigurations and validatingwebhookconfigurations";
const SERVICES: &str = "in the namespace of the webhook: list endpointslices, get pods, pods/proxy and secrets; create subjectaccessreviews";
const SPECS: &str = "list gmsacredentialspecs";
const PODS: &str = "list pods";

pub(super) static CHECKS: [Checker; 15] = [
    Checker {
        about: api_server::API_SERVER,
        what: "whether it answers, and its version",
        needs: &["get /version"],
        run: api_server::check,
    },
    Checker {
        about: crd::CRD,
        what: "whether credential specs are served, by this release's definition",
        needs: &["get customresourcedefinitions"],
        run: crd::check,
    },
    Checker {
        about: workloads::WEBHOOK,
        what: "the first cause for which the webhook's own pods are not there, or do not run",
        needs: &[WEBHOOKS, "in the namespace of the webhook: get deployments; list replicasets, pods and events"],
        run: workloads::of_webhook,
    },
    Checker {
        about: configuration::CONFIGURATION,
        what: "what each webhook receives, its selectors, and the authorities that the API server trusts for it",
        needs: &[WEBHOOKS],
        run: configuration::checks,
    },
    Checker {
        about: call::CALLS,
        what: "whether the API server reaches /mutate and /validate, by a dry run",
        needs: &["create pods in the namespace of the dry run"],
        run: call::checks,
    },
    Checker {
        about: configuration::PROTECTION,
        what: "whether static policies protect the configurations",
        needs: &[WEBHOOKS, "create validatingwebhookconfigurations"],
        run: configuration::protection,
    },
    Checker {
        about: replica::SERVICE,
        what: "the endpoints, and of one replica its certificate, permissions and Secrets",
        needs: &[WEBHOOKS, SERVICES],
        run: service::checks,
    },
    Checker {
        about: service::NETWORK,
        what: "who can connect to the webhook, by the NetworkPolicies of its namespace",
        needs: &[WEBHOOKS, SERVICES, "list networkpolicies in the namespace of the webhook"],
        run: service::network,
    },
    Checker {
        about: tickets::TICKETS,
        what: "whether Linux pods get tickets: the broker, both charts, and the way to the domains",
        needs: &[WEBHOOKS, SERVICES, "the same in the namespace of the broker, list deployments, and get configmaps"],
        run: tickets::check,
    },
    Checker {
        about: configuration::NAMESPACES,
        what: "in which namespaces pods are reviewed",
        needs: &[WEBHOOKS, "list namespaces"],
        run: configuration::namespaces,
    },
    Checker {
        about: specs_and_pods::SPECS,
        what: "what the linter finds in the credential specs",
        needs: &[SPECS],
        run: specs_and_pods::check_specs,
    },
    Checker {
        about: specs_and_pods::PODS,
        what: "whether pods carry what their credential specs hold",
        needs: &[SPECS, PODS],
        run: specs_and_pods::check_pods,
    },
    Checker {
        about: directory::DIRECTORY,
        what: "whether the directory agrees with the credential specs (--directory)",
        needs: &[SPECS, "a user of the domain (--directory)"],
        run: specs_and_pods::check_directory,
    },
    Checker {
        about: workloads::WORKLOADS,
        what: "the first cause of each workload that lacks pods, or whose pods do not run",
        needs: &[
            PODS,
            "list deployments, statefulsets, daemonsets, replicasets, replicationcontrollers, jobs, cronjobs and events; get nodes",
        ],
        run: workloads::check,
    },
    Checker {
        about: nodes::NODES,
        what: "which Windows nodes there are, and their builds",
        needs: &["list nodes"],
        run: nodes::check,
    },
];

/// The checks of the path from the API server to the pods of the webhook.
const ON_THE_WAY: [&str; 4] = [configuration::CONFIGURATION, call::CALLS, replica::SERVICE, service::NETWORK];

impl Checker {
    /// Its lines, or one line with the missing right if a part could not be read. If the webhook does not run, failures on the path to it
    /// follow from that.
    pub(super) fn lines(&self, parts: &Parts) -> Vec<Check> {
        let mut lines = (self.run)(parts).unwrap_or_else(|unread| vec![unread.check(self.about)]);
        if ON_THE_WAY.contains(&self.about) && parts.is_webhook_away() {
            for line in lines.iter_mut().filter(|line| line.result.is_err()) {
                *line = not_reached(line.about);
            }
            lines.dedup();
        }
        lines
    }
}

/// The table of checks, each with the rights that it needs.
pub(super) fn list() -> String {
    let width = CHECKS.iter().map(|check| check.about.len()).max().unwrap_or_default();
    let lines = |Checker { about, what, needs, .. }: &Checker| {
        format!("{about:width$}  {what}\n{:width$}  needs: {}\n", "", needs.join("; "))
    };
    CHECKS.iter().map(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::kinds::Kind;

    #[test]
    fn rights_and_pages_name_every_kind_of_workload() {
        let check = CHECKS.iter().find(|check| check.about == workloads::WORKLOADS).unwrap();
        for text in [
            &check.needs.concat(),
            include_str!("../../../../../docs/rights.md"),
            include_str!("../../../../../docs/pipelines.md"),
            include_str!("../../../../../docs/k9s-plugins.yaml"),
            include_str!("../../../../../tests/install/objects/lister.yaml"),
            include_str!("../../../../../charts/gmsa-webhook/templates/validatingwebhook.yaml"),
        ] {
            for kind in Kind::ALL {
                let mut words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
                assert!(words.any(|word| word == kind.plural()), "{} in {text}", kind.plural());
            }
        }
    }
}
