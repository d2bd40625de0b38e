//! The checks of `doctor`, in the order in which they are printed.
//!
//! A new check is:
//! - an entry here: what it is about, which parts of the cluster it needs, and a pure function from the parts to lines, in the file of its
//!   subject;
//! - where it needs what is not read yet, in `parts.rs` a variant of `Part` with its rights and its line in `Parts::unread`, and a field of
//!   `Parts`; what a bundle keeps of it, in `shared/snapshot/bundle/fields.rs`;
//! - a folder in `tests/cli/recorded`, and its lines in `tests/cli/doctor-list` (`UPDATE_SNAPSHOTS=1 cargo test -p kubectl-gmsa`).
//!
//! What could not be read is a `Read`, of which a check gets nothing without `?`: so it is skipped, and cannot say `pass` of what nobody saw.

use super::{
    call, configuration, crd, directory, dns, install, namespaces, network, nodes, own,
    parts::{Judged, Part, Parts},
    protection, service, usage, workloads,
};
use gmsa_core::diagnostic::Check;

pub(super) struct Checker {
    pub about: &'static str,
    /// What it finds out.
    pub what: &'static str,
    pub needs: &'static [Part],
    pub run: fn(&Parts) -> Judged<'_>,
}

pub(super) static CHECKS: [Checker; 15] = [
    Checker {
        about: install::VERSION,
        what: "whether it answers, and its version",
        needs: &[Part::Version],
        run: install::version,
    },
    Checker {
        about: crd::CRD,
        what: "whether credential specs are served, by this release's definition",
        needs: &[Part::Crd],
        run: crd::check,
    },
    Checker {
        about: own::WEBHOOK,
        what: "the first cause for which the webhook's own pods are not there, or do not run",
        needs: &[Part::Webhooks, Part::Own],
        run: own::check,
    },
    Checker {
        about: configuration::CONFIGURATION,
        what: "what each webhook receives, its selectors, and the authorities that the API server trusts for it",
        needs: &[Part::Webhooks],
        run: install::configurations,
    },
    Checker {
        about: call::CALLS,
        what: "whether the API server reaches /mutate and /validate, by a dry run",
        needs: &[Part::DryRuns],
        run: call::checks,
    },
    Checker {
        about: protection::PROTECTION,
        what: "whether static policies protect the configurations",
        needs: &[Part::Webhooks, Part::Protection],
        run: protection::check,
    },
    Checker {
        about: service::SERVICE,
        what: "the endpoints, and of one replica its certificate, permissions and Secrets",
        needs: &[Part::Webhooks, Part::Services],
        run: service::checks,
    },
    Checker {
        about: network::NETWORK,
        what: "who can connect to the webhook, by the NetworkPolicies of its namespace",
        needs: &[Part::Webhooks, Part::Services, Part::Policies],
        run: network::check,
    },
    Checker {
        about: namespaces::NAMESPACES,
        what: "in which namespaces pods are reviewed",
        needs: &[Part::Webhooks, Part::Namespaces],
        run: namespaces::check,
    },
    Checker {
        about: usage::SPECS,
        what: "what the linter finds in the credential specs",
        needs: &[Part::Specs],
        run: usage::check_specs,
    },
    Checker {
        about: usage::PODS,
        what: "whether pods carry what their credential specs hold",
        needs: &[Part::Specs, Part::Pods],
        run: usage::check_pods,
    },
    Checker {
        about: directory::DIRECTORY,
        what: "whether the directory agrees with the credential specs (--directory)",
        needs: &[Part::Directory],
        run: directory::check,
    },
    Checker {
        about: workloads::WORKLOADS,
        what: "the first cause of each workload that lacks pods, or whose pods do not run",
        needs: &[Part::Pods, Part::Workloads],
        run: workloads::check,
    },
    Checker {
        about: dns::DNS,
        what: "whether the DNS of the cluster forwards the domains of the credential specs",
        needs: &[Part::Specs, Part::Dns],
        run: dns::check,
    },
    Checker {
        about: nodes::NODES,
        what: "which Windows nodes there are, and of which builds",
        needs: &[Part::Nodes],
        run: nodes::check,
    },
];

impl Checker {
    /// Its lines; one that says what is lacking, where a part that it needs could not be read.
    pub(super) fn lines(&self, parts: &Parts) -> Vec<Check> {
        let lacking = self.needs.iter().find_map(|part| parts.unread(*part));
        let lines = lacking.map_or_else(|| (self.run)(parts), Err);
        lines.unwrap_or_else(|unread| vec![unread.check(self.about)])
    }
}

/// The table of checks, each with the rights that it takes.
pub(super) fn list() -> String {
    let width = CHECKS.iter().map(|check| check.about.len()).max().unwrap_or_default();
    let lines = |Checker { about, what, needs, .. }: &Checker| {
        let rights: Vec<&str> = needs.iter().map(|part| part.rights()).collect();
        format!("{about:width$}  {what}\n{:width$}  takes: {}\n", "", rights.join("; "))
    };
    CHECKS.iter().map(lines).collect()
}
