//! The lints of `doctor`, in the order in which their lines are printed.
//!
//! A new lint is:
//! - an entry here: its name, its question, what it reads, and a function from the world to lines, in the file of its topic. A new file
//!   has a `mod` in `doctor.rs`, a lint of the way to the webhook a place in [`ON_THE_WAY`];
//! - the rules of its findings: the head of `shared/rules.rs`;
//! - for new data, what it reads and the fields that a bundle keeps of it, in `shared/world/reads.rs`;
//! - for a new list, also `KINDS` in `tests/cli/cluster.rs` and `tests/fixtures/bundle.yaml`;
//! - a case in `tests/cli/recorded`, and its lines in `tests/cli/cases/doctor-list.txt` (`UPDATE_SNAPSHOTS=1 cargo test -p kubectl-gmsa`).
//!
//! A lint gets what it cannot do without by `?`, so it is skipped where that was not read. If it can say something without a part, it
//! prints that, and the `skip` line of the unread part instead of `pass`. All lints run at the same time.

use futures::future::{LocalBoxFuture, join_all};

use super::{
    call, configuration,
    install::{DoctorInput, is_webhook_away},
    prerequisites, service, specs_and_pods, tickets, workloads,
};
use crate::shared::{
    unread::{Read, not_reached},
    world::{LintReads, World, reads},
};
use gmsa_core::diagnostic::Check;

pub(super) struct Lint {
    pub about: &'static str,
    /// The question that it answers.
    pub what: &'static str,
    /// The only declaration of what it reads: of it follow the rights that the help names. A debug build refuses it anything else.
    pub reads: &'static [&'static LintReads],
    /// Its lines, or the failed read that it depends on.
    pub run: for<'w> fn(&'w World, &'w DoctorInput) -> LocalBoxFuture<'w, Read<Vec<Check>>>,
}

pub(super) static LINTS: [Lint; 13] = [
    Lint {
        about: prerequisites::API_SERVER,
        what: "whether it answers, and its version",
        reads: &[reads::VERSION, reads::WEBHOOKS, reads::DEPLOYMENTS],
        run: |world, _| Box::pin(prerequisites::check_api_server(world, true)),
    },
    Lint {
        about: prerequisites::CRD,
        what: "whether credential specs are served, by this release's definition",
        reads: &[reads::CRD, reads::WEBHOOKS, reads::DEPLOYMENTS],
        run: |world, _| Box::pin(prerequisites::check_crd(world)),
    },
    Lint {
        about: workloads::WEBHOOK,
        what: "the first cause for which the webhook's own pods are not there, or do not run",
        reads: &[reads::WEBHOOKS, reads::NODES, reads::NODE, reads::OWN, reads::OWN_PODS],
        run: |world, _| Box::pin(workloads::of_webhook(world)),
    },
    Lint {
        about: configuration::CONFIGURATION,
        what: "what each webhook receives, its selectors, and the authorities that the API server trusts for it",
        reads: &[reads::WEBHOOKS, reads::DEPLOYMENTS, reads::VERSION],
        run: |world, _| Box::pin(configuration::checks(world)),
    },
    Lint {
        about: call::CALLS,
        what: "whether the API server reaches /mutate and /validate, by a dry run",
        reads: &[reads::WEBHOOKS, reads::POD_PROBE],
        run: |world, _| Box::pin(call::checks(world)),
    },
    Lint {
        about: service::SERVICE,
        what: "the endpoints, and of one replica its certificate, permissions and Secrets",
        reads: &[
            reads::WEBHOOKS,
            reads::DEPLOYMENTS,
            reads::REVIEWS,
            reads::ENDPOINTS,
            reads::REPLICA,
            reads::SECRETS,
            reads::OWN,
        ],
        run: |world, _| Box::pin(service::checks(world)),
    },
    Lint {
        about: tickets::TICKETS,
        what: "whether Linux pods get tickets: the broker, both charts, and the way to the domains",
        reads: &[
            reads::WEBHOOKS,
            reads::VERSION,
            reads::DEPLOYMENTS,
            reads::PODS,
            reads::WORKLOADS,
            reads::NODES,
            reads::NODE,
            reads::ENDPOINTS,
            reads::REPLICA,
            reads::OWN,
            reads::OWN_PODS,
            reads::AUTHORITIES,
            reads::SPECS,
        ],
        run: |world, asked| Box::pin(tickets::check(world, asked)),
    },
    Lint {
        about: configuration::NAMESPACES,
        what: "in which namespaces pods are reviewed",
        reads: &[reads::WEBHOOKS, reads::NAMESPACES],
        run: |world, _| Box::pin(configuration::namespaces(world)),
    },
    Lint {
        about: specs_and_pods::SPECS,
        what: "what the linter finds in the credential specs",
        reads: &[reads::SPECS, reads::CRD],
        run: |world, _| Box::pin(specs_and_pods::check_specs(world)),
    },
    Lint {
        about: specs_and_pods::PODS,
        what: "whether pods carry what their credential specs hold",
        reads: &[reads::SPECS, reads::PODS, reads::WORKLOADS, reads::WEBHOOKS, reads::NAMESPACES],
        run: |world, asked| Box::pin(specs_and_pods::check_pods(world, asked)),
    },
    Lint {
        about: specs_and_pods::DIRECTORY,
        what: "whether the directory agrees with the credential specs (--directory, as a user of the domain)",
        reads: &[reads::SPECS],
        run: |world, asked| Box::pin(specs_and_pods::check_directory(world, asked)),
    },
    Lint {
        about: workloads::WORKLOADS,
        what: "the first cause of each workload that lacks pods, or whose pods do not run",
        reads: &[reads::SPECS, reads::PODS, reads::WORKLOADS, reads::EVENTS, reads::NODES, reads::NODE],
        run: |world, asked| Box::pin(workloads::check(world, asked)),
    },
    Lint {
        about: workloads::NODES,
        what: "which Windows nodes there are, and their builds",
        reads: &[reads::NODES, reads::WEBHOOKS, reads::WORKLOADS, reads::PODS, reads::ENDPOINTS, reads::REPLICA],
        run: |world, asked| Box::pin(workloads::check_nodes(world, asked)),
    },
];

/// The lints of the path from the API server to the pods of the webhook. If it does not run, their failures follow from that.
const ON_THE_WAY: [&str; 3] = [configuration::CONFIGURATION, call::CALLS, service::SERVICE];

/// The lines of all lints. A lint without what it cannot do without has one, with the missing right.
pub(super) async fn lines(world: &World, asked: &DoctorInput) -> Vec<Check> {
    let run = LINTS.iter().map(async |lint| {
        let world = world.scoped(lint.reads);
        (lint.about, (lint.run)(&world, asked).await.unwrap_or_else(|unread| vec![unread.check(lint.about)]))
    });
    let mut all = join_all(run).await;
    if is_webhook_away(world).await {
        for (_, lines) in all.iter_mut().filter(|(about, _)| ON_THE_WAY.contains(about)) {
            for line in lines.iter_mut().filter(|line| line.result.is_err()) {
                *line = not_reached(line.about);
            }
            lines.dedup();
        }
    }
    all.into_iter().flat_map(|(_, lines)| lines).collect()
}

/// The table of lints, each with the rights that it needs.
pub(super) fn list() -> String {
    let width = LINTS.iter().map(|lint| lint.about.len()).max().unwrap_or_default();
    let lines = |Lint { about, what, reads, .. }: &Lint| {
        format!("{about:width$}  {what}\n{:width$}  needs: {}\n", "", reads::rights(reads))
    };
    LINTS.iter().map(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::kinds::Kind;

    #[test]
    fn rights_and_pages_name_every_kind_of_workload() {
        let lint = LINTS.iter().find(|lint| lint.about == workloads::WORKLOADS).unwrap();
        for text in [
            &reads::rights(lint.reads),
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
