//! What must be found out before a review can be decided.
//!
//! Invariants: a claim that is denied already needs no fact; each name is asked about once, in the order of the slots,
//! and where the first denial decides, none after it.

use super::{
    AllowReason, Enforcement, Facts, Known, Review, Settings, SpecFact, Subject, UseFact, Webhook,
    claims::{Claim, Claims},
    mutate, validate, validate_workload,
};
use crate::credspec::SpecName;

/// What is asked about a credential spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub spec: SpecName,
    /// Whether its contents are asked for.
    pub contents: bool,
    /// Whether it is asked if the subject may use it.
    pub may_use: bool,
}

/// What must be found out to decide about a review.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Questions {
    /// Who wants to use credential specs; set where a question is about that.
    pub subject: Option<Subject>,
    /// Each about another credential spec, in the order of the slots: at most [`super::MAX_SPECS_PER_POD`].
    pub all: Vec<Question>,
    /// Whether the first fact that denies decides ([`Facts::deny`]), so that nothing is asked after it.
    pub first_denial_decides: bool,
}

impl Review {
    /// What the slots ask for where `webhook` was called.
    pub(super) fn claims(&self, webhook: Webhook) -> Claims<'_> {
        match webhook {
            Webhook::Mutate => mutate::claims(self),
            Webhook::Validate => validate::claims(self),
            Webhook::ValidateWorkload => Ok(validate_workload::claims(self)),
            Webhook::ValidateCredspec => Ok(AllowReason::Clean.into()),
        }
        .unwrap_or_else(|denial| Claims::from(AllowReason::NoGmsa).deny(denial))
    }

    /// What must be found out before this review, in which `webhook` was called, is decided.
    pub fn questions(&self, webhook: Webhook, settings: Settings) -> Questions {
        let first_denial_decides = settings.first_denial_decides(webhook);
        let Claims { all, subject, .. } = self.claims(webhook);
        let mut questions = Questions { subject, all: Vec::new(), first_denial_decides };
        for claim in all {
            let (slot, spec) = match claim {
                Claim::Names(slot, spec) => (slot, spec),
                Claim::Denied(_) if first_denial_decides => break,
                Claim::Denied(_) => continue,
            };
            // /validate denies a name without contents: what the contents should be does not matter.
            let contents = webhook != Webhook::Validate || slot.contents.is_some();
            match questions.all.iter_mut().find(|known| known.spec == spec) {
                Some(known) => known.contents |= contents,
                None => questions.all.push(Question { spec, contents, may_use: webhook != Webhook::Mutate }),
            }
            if first_denial_decides && !contents {
                break;
            }
        }
        questions
    }
}

impl Settings {
    /// Whether the first denial of a review is the answer, so that no other is asked for.
    pub(super) fn first_denial_decides(self, webhook: Webhook) -> bool {
        self.enforcement == Enforcement::Enforce && webhook != Webhook::ValidateWorkload
    }
}

impl Questions {
    /// The facts where all answers are at hand.
    pub fn facts(
        &self,
        mut spec: impl FnMut(&SpecName) -> Known<SpecFact>,
        mut may_use: impl FnMut(&Subject, &SpecName) -> Known<UseFact>,
    ) -> Facts {
        let mut facts = Facts::default();
        for question in &self.all {
            if self.first_denial_decides && facts.deny() {
                break;
            }
            let name = &question.spec;
            facts.specs.extend(question.contents.then(|| (name.clone(), spec(name))));
            let subject = self.subject.as_ref().filter(|_| question.may_use);
            facts.uses.extend(subject.map(|subject| (name.clone(), may_use(subject, name))));
        }
        facts
    }
}
