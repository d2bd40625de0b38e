//! One pass over a review with the facts that are known so far: what it lacks, and what is denied.
//!
//! Invariants: a pass that lacks a fact gives no decision. Where denials are enforced, a pass ends at the first slot that is denied or
//! about which a fact is lacking, so one name is asked about after the other and none after the first that is denied; the
//! decision is the one that all facts give, because none that comes later matters. Otherwise every slot is asked about.

use std::{collections::HashMap, sync::Arc};

use super::{AllowReason, Denial, Facts, Needs, Patch, SlotDenial, SpecFact, Subject, UseFact, pod::Slot};
use crate::credspec::{
    Contents, SpecName,
    compare::{Difference, Expected},
};

/// How a request to which no denial applies is answered.
#[derive(Debug)]
pub(super) struct Admitted {
    pub reason: AllowReason,
    pub patch: Option<Patch>,
}

impl From<AllowReason> for Admitted {
    fn from(reason: AllowReason) -> Self {
        Self { reason, patch: None }
    }
}

/// Why a pass, or the check of a slot, ends early.
#[derive(Debug)]
pub(super) enum Stop {
    Denied(Denial),
    /// A fact is lacking: it is among the needs.
    Lacking,
}

impl From<Denial> for Stop {
    fn from(denial: Denial) -> Self {
        Self::Denied(denial)
    }
}

/// Each slot that was checked, with what was found or why it is denied.
pub(super) type Checked<S, T> = Vec<(S, Result<T, Denial>)>;

pub(super) struct Inquiry<'f> {
    pub facts: &'f Facts,
    /// Whether every slot is asked about, and every denial collected.
    pub is_exhaustive: bool,
    pub needs: Needs,
    /// The denials that did not end the pass.
    pub denials: Vec<SlotDenial>,
    expected: HashMap<SpecName, Expected<'f>>,
}

impl<'f> Inquiry<'f> {
    pub fn new(facts: &'f Facts, is_exhaustive: bool) -> Self {
        Self { facts, is_exhaustive, needs: Needs::default(), denials: Vec::new(), expected: HashMap::new() }
    }

    /// The contents of a credential spec.
    pub fn contents(&mut self, name: &SpecName) -> Result<&'f Arc<Contents>, Stop> {
        let Some(known) = self.facts.spec(name) else {
            Needs::add(&mut self.needs.specs, name);
            return Err(Stop::Lacking);
        };
        Err(Stop::Denied(match &known.fact {
            SpecFact::Contents(contents) => return Ok(contents),
            SpecFact::Missing => Denial::SpecMissing(name.clone()),
            SpecFact::Unusable => Denial::SpecUnusable(name.clone()),
            SpecFact::Failed(failure) => Denial::SpecUnreadable { spec: name.clone(), failure: failure.clone() },
        }))
    }

    /// Whether the subject may use a credential spec.
    pub fn may_use(&mut self, subject: &Subject, name: &SpecName) -> Result<(), Stop> {
        let Some(known) = self.facts.may_use(name) else {
            self.needs.subject.get_or_insert_with(|| subject.clone());
            Needs::add(&mut self.needs.uses, name);
            return Err(Stop::Lacking);
        };
        let (service_account, spec) = (subject.service_account.as_ref().to_owned(), name.clone());
        Err(Stop::Denied(match &known.fact {
            UseFact::Allowed => return Ok(()),
            UseFact::Denied { reason } => Denial::NotAuthorized { service_account, spec, reason: reason.clone() },
            UseFact::Failed(failure) => Denial::AuthorizationFailed { service_account, spec, failure: failure.clone() },
        }))
    }

    /// Compares what a pod carries with the contents of a credential spec, which are parsed once for all slots.
    pub fn compare(&mut self, own: &str, name: &SpecName, contents: &'f Contents) -> Result<(), Difference> {
        self.expected.entry(name.clone()).or_insert_with(|| Expected::new(contents)).compare(own)
    }

    /// Checks slots in order, as far as this pass goes; gives no result where a fact is lacking.
    pub fn each<S, T>(
        &mut self,
        slots: impl IntoIterator<Item = S>,
        mut check: impl FnMut(&mut Self, &S) -> Result<T, Stop>,
    ) -> Result<Checked<S, T>, Stop> {
        let mut results = Vec::new();
        let mut is_lacking = false;
        for slot in slots {
            let result = match check(self, &slot) {
                Err(Stop::Lacking) if self.is_exhaustive => {
                    is_lacking = true;
                    continue;
                }
                Err(Stop::Lacking) => return Err(Stop::Lacking),
                Err(Stop::Denied(denial)) => Err(denial),
                Ok(result) => Ok(result),
            };
            let is_last = result.is_err() && !self.is_exhaustive;
            results.push((slot, result));
            if is_last {
                break;
            }
        }
        if is_lacking { Err(Stop::Lacking) } else { Ok(results) }
    }

    /// Takes a denial, of a slot or of the pod, which ends the pass unless every denial is collected.
    pub fn deny(&mut self, slot: Option<&Slot<'_>>, denial: Denial) -> Result<(), Denial> {
        if !self.is_exhaustive {
            return Err(denial);
        }
        self.denials.push(SlotDenial { slot: slot.map(|slot| (slot.kind, slot.index)), denial });
        Ok(())
    }
}
