//! From a review to its decision, one question at a time: [`Decision::begin`] decides or asks, and [`Undecided::tell`] takes the fact
//! that was asked for. [`Step::answered_by`] is the loop around both, and never waits itself; the server has one that also moves
//! large reviews to other threads.
//!
//! Invariants: a claim that is denied already needs no fact; facts are asked for in the order of the slots; where the first denial
//! decides, after one that denies only the other question about the same credential spec is asked; a denial that rests on
//! the cached contents of one credential spec is decided once more, with live ones.

use std::{collections::VecDeque, sync::Arc};

use super::{
    AllowReason, Decision, Facts, Known, Review, ServiceAccount, Settings, Source, SpecFact, UseFact, Webhook,
    case::Case,
    claims::{Claim, SpecClaims},
    mutate, validate, validate_workload,
};
use crate::credspec::{SpecName, Verb};

/// How fresh a fact must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// A cached answer is enough.
    Any,
    /// The object must be read: the cache may be behind.
    Live,
}

/// The next fact to look up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// The contents of a credential spec.
    Contents(SpecName, Freshness),
    /// Whether a service account may use a credential spec, or export it.
    Use(ServiceAccount, Verb, SpecName),
}

impl Question {
    /// The credential spec that it is about.
    pub fn spec(&self) -> &SpecName {
        match self {
            Self::Contents(spec, _) | Self::Use(_, _, spec) => spec,
        }
    }
}

/// The answer to a [`Question`] of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    Contents(Known<SpecFact>),
    Use(Known<UseFact>),
}

/// A decision, or what it still needs.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a step is matched at once, and most are decisions")]
pub enum Step {
    Ask(Box<Undecided>),
    Done(Decision),
}

/// A review that waits for the answer to a question.
#[derive(Debug)]
pub struct Undecided {
    case: Case,
    asked: Question,
    /// The questions after it, which its answer can make unnecessary.
    rest: VecDeque<Question>,
    /// Whether it was decided once, and only cached contents that denied it are read again.
    is_confirming: bool,
}

impl Decision {
    /// Begins to decide a review in which `webhook` was called.
    pub fn begin(review: impl Into<Arc<Review>>, webhook: Webhook, settings: Settings) -> Step {
        let review = review.into();
        let claims = match webhook {
            Webhook::Mutate => mutate::claims(&review, &settings.tickets),
            Webhook::Validate => validate::claims(&review),
            Webhook::ValidateWorkload => Ok(validate_workload::claims(&review, &settings.tickets)),
            Webhook::ValidateCredspec => Ok(AllowReason::Clean.into()),
        };
        let claims =
            claims.unwrap_or_else(|denial| SpecClaims { all: vec![denial.into()], ..AllowReason::NoGmsa.into() });
        let questions = questions(&claims, webhook, settings.first_denial_decides(webhook));
        let case = Case { review, webhook, settings, claims, facts: Facts::default() };
        Step::next(case, questions, false)
    }
}

impl Step {
    fn next(case: Case, mut questions: VecDeque<Question>, is_confirming: bool) -> Self {
        if let Some(asked) = questions.pop_front() {
            return Self::Ask(Box::new(Undecided { case, asked, rest: questions, is_confirming }));
        }
        let (decision, unconfirmed) = case.decide();
        if is_confirming || unconfirmed.is_empty() {
            return Self::Done(decision);
        }
        let questions = unconfirmed.into_iter().map(|spec| Question::Contents(spec, Freshness::Live)).collect();
        Self::next(case, questions, true)
    }

    /// The decision, where `answer` looks up the facts.
    pub async fn answered_by(self, mut answer: impl AsyncFnMut(&Question) -> Fact) -> Decision {
        let mut step = self;
        loop {
            match step {
                Self::Ask(undecided) => {
                    let fact = answer(undecided.question()).await;
                    step = undecided.tell(fact);
                }
                Self::Done(decision) => return decision,
            }
        }
    }
}

impl Undecided {
    pub fn question(&self) -> &Question {
        &self.asked
    }

    /// Takes the answer to the question. An answer of another kind counts as missing, which denies.
    pub fn tell(self: Box<Self>, fact: Fact) -> Step {
        let Self { mut case, asked, mut rest, is_confirming } = *self;
        let denies = match (&asked, fact) {
            (Question::Contents(spec, _), Fact::Contents(known)) => {
                // Not contents, and not from the cache; or the live contents equal the cached ones that denied.
                let is_unusable = !matches!(known.fact, SpecFact::Contents(_)) && known.source != Source::Cache;
                let is_as_before = case.facts.spec(spec).is_some_and(|before| before.fact == known.fact);
                case.facts.put_spec(spec, known);
                is_unusable || is_as_before
            }
            (Question::Use(_, verb, spec), Fact::Use(known)) => {
                let denies = known.fact != UseFact::Allowed;
                case.facts.put_use(*verb, spec, known);
                denies
            }
            _ => true,
        };
        if denies && case.settings.first_denial_decides(case.webhook) {
            rest.retain(|question| question.spec() == asked.spec());
        }
        Step::next(case, rest, is_confirming)
    }
}

/// The facts that the claims need, each once, in slot order: for at most [`super::MAX_SPECS_PER_POD`] credential specs, and two more for a workload
/// with annotations.
fn questions(claims: &SpecClaims, webhook: Webhook, first_denial_decides: bool) -> VecDeque<Question> {
    let mut needs: Vec<(Verb, &SpecName, bool)> = Vec::new();
    for claim in &claims.all {
        let (verb, spec, contents, is_denied) = match claim {
            Claim::Named { spec, needs_contents, .. } => (Verb::Use, spec, *needs_contents, !needs_contents),
            // The broker reads the credential spec when it is asked for tickets; about a workload it is said early.
            Claim::Token(verb, spec) => (*verb, spec, webhook == Webhook::ValidateWorkload, false),
            Claim::Denied(_) if first_denial_decides => break,
            Claim::Denied(_) => continue,
        };
        let contents = contents && !needs.iter().any(|need| need.1 == spec && need.2);
        match needs.iter_mut().find(|need| (need.0, need.1) == (verb, spec)) {
            Some((_, _, known)) => *known |= contents,
            None => needs.push((verb, spec, contents)),
        }
        if first_denial_decides && is_denied {
            break;
        }
    }
    // Contents are asked for first, and `use` is denied first (`check` in `validate.rs`): both are known by then.
    let both = |(verb, spec, contents): (Verb, &SpecName, bool)| {
        let contents = contents.then(|| Question::Contents(spec.clone(), Freshness::Any));
        let may_use = claims.service_account.clone().map(|account| Question::Use(account, verb, spec.clone()));
        contents.into_iter().chain(may_use)
    };
    needs.into_iter().flat_map(both).collect()
}
