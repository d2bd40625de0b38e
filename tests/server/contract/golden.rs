//! The golden cases through the decision core, and over TLS against the program in standalone mode.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use futures::FutureExt as _;
use gmsa_cluster::{authorizer::Authorizer as _, standalone::Standalone};
use gmsa_core::admission::{
    Decision, Enforcement, Fact, Known, Question, Review, Settings, Source, TicketSettings, Webhook, pod::Pod,
};
use gmsa_test_support::golden::{self as cases, Setup};
use tokio::time::Instant;

use crate::serve::Serving;

fn webhook(name: &str) -> Webhook {
    Webhook::ALL.into_iter().find(|webhook| webhook.as_str() == name).unwrap()
}

#[test]
fn the_core_answers_every_case() {
    let mut clusters: HashMap<PathBuf, Standalone> = HashMap::new();
    cases::check(|case, name, Setup { enforcement, has_tickets }| {
        let cluster = clusters.entry(case.cluster.clone()).or_insert_with(|| Standalone::load(&case.cluster).unwrap());
        let review = Review::parse(&case.review, webhook(name)).unwrap();
        let asks = review.object.as_ref().is_some_and(Pod::asks_for_random_hostname);
        let hostname = asks.then(|| "h0123456789abcd".to_owned());
        // Files answer at once: no runtime is needed to ask them.
        let on = has_tickets.then(|| TicketSettings::On(Arc::new(cases::sidecar())));
        let settings = Settings { enforcement, hostname, tickets: on.unwrap_or_default(), ..Settings::default() };
        let review = Arc::new(review);
        let step = Decision::begin(Arc::clone(&review), webhook(name), settings);
        review.answer(
            &step
                .answered_by(async |question| match question {
                    Question::Contents(spec, _) => {
                        Fact::Contents(Known { fact: cluster.specs.fact(spec), source: Source::Files })
                    }
                    Question::Use(account, verb, spec) => {
                        Fact::Use(cluster.rbac.may(account, *verb, spec, Instant::now()).now_or_never().unwrap())
                    }
                })
                .now_or_never()
                .unwrap(),
        )
    });
}

/// The bodies of all cases.
pub fn reviews() -> &'static [Vec<u8>] {
    static REVIEWS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    REVIEWS.get_or_init(|| cases::cases().into_iter().map(|case| case.review).collect())
}

#[test]
fn the_program_answers_every_case_in_standalone_mode() {
    let mut programs: HashMap<(PathBuf, Setup), Serving> = HashMap::new();
    let tickets = cases::sidecar_flags();
    cases::check(|case, name, setup| {
        let program = programs.entry((case.cluster.clone(), setup)).or_insert_with(|| {
            let enforcement = if setup.enforcement == Enforcement::Warn { "warn" } else { "Enforce" };
            let mut flags = vec!["--standalone", case.cluster.to_str().unwrap(), "--enforcement", enforcement];
            flags.extend(tickets.iter().filter(|_| setup.has_tickets).map(String::as_str));
            Serving::start(&flags)
        });
        program.post(&format!("/{name}?timeout=10s"), &case.review).into_bytes()
    });
}
