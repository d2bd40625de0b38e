//! The webhooks' decision about a pod, made by their own code, from the facts of a cluster, a bundle or manifests.

use std::{borrow::Cow, rc::Rc, sync::Arc};

use anyhow::Context as _;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{Base, World};
use crate::shared::{
    admission::{NewPod, Reviewed},
    unread::{OTHER_BUNDLE, Remedy, Unread},
};
use gmsa_cluster::{
    authorizer::{
        Authorizer as _,
        access_review::{AccessReviewAnswer, review},
        rbac::Rbac,
    },
    resolver::{
        live::{collection, found, not_installed},
        manifests::CredentialSpecs,
    },
};
use gmsa_core::{
    admission::{
        Decision, Denial, Enforcement, Fact, Failure, Known, Question, ServiceAccount, Settings, Sidecar, SlotDenial,
        Source, SpecFact, TicketSettings, UseFact,
    },
    credspec::{SpecName, Verb},
};

/// Whether a look-up failed here: only failures have a code from 500 on. The webhook looks up as another user from another place, so it
/// may succeed.
pub fn is_unchecked(denial: &Denial) -> bool {
    denial.code() >= 500
}

/// Whether it is about the permission to use a credential spec.
pub fn is_about_use(denial: &Denial) -> bool {
    matches!(denial, Denial::NotAuthorized { .. } | Denial::AuthorizationFailed { .. })
}

impl World {
    /// The world of manifests, in which nothing but these facts is known.
    pub fn of_files(specs: CredentialSpecs, rbac: Rbac, namespace: String) -> Self {
        Self::new(Base::Files(Rc::new(specs), Rc::new(rbac)), namespace)
    }

    /// The cause and the remedy if a fact for the decision could not be read. `None` for other denials.
    pub fn unread_fact<'d>(&self, denial: &'d Denial, namespace: &str) -> Option<(&'d str, Remedy)> {
        let (cause, remedy) = Remedy::of_denial(denial, namespace)?;
        Some((cause, if matches!(self.seen.base, Base::Bundle(_)) { Remedy::new(OTHER_BUNDLE) } else { remedy }))
    }

    /// Sends a pod through the webhooks that review it, as the API server does, but without a random host name. Returns every denial, refusals
    /// before failed look-ups; that a slot is empty only if it has no other denial.
    pub async fn admit(&self, pod: &NewPod, reviewed: &Reviewed) -> anyhow::Result<Vec<SlotDenial>> {
        // Assumes that tickets are enabled. This sidecar has neither image nor broker, so a pod that has it must not be printed.
        let tickets = TicketSettings::On(Arc::new(Sidecar::default()));
        let settings = Settings { enforcement: Enforcement::Warn, tickets, ..Settings::default() };
        // Only logs name the source.
        let source = Source::Api;
        let mut pod = Cow::Borrowed(pod);
        let mut denials: Vec<SlotDenial> = Vec::new();
        for webhook in reviewed.webhooks.iter().copied() {
            let review = pod.review()?;
            let step = Decision::begin(Arc::clone(review), webhook, settings.clone());
            let answered = step.answered_by(async |question| match question {
                Question::Contents(name, _) => Fact::Contents(Known { fact: self.spec(name).await, source }),
                Question::Use(account, verb, name) => {
                    Fact::Use(Known { fact: self.may(account, *verb, name).await, source })
                }
            });
            let decision = answered.await;
            for found in decision.denials {
                let is_empty = matches!(found.denial, Denial::NameWithoutContents { .. });
                if denials.iter().all(|known| *known != found && !(is_empty && known.slot == found.slot)) {
                    denials.push(found);
                }
            }
            if let Some(patch) = decision.patch {
                let patch: json_patch::Patch =
                    serde_json::from_slice(&patch).context("the patch is not a JSON Patch")?;
                let mut stored = pod.json.clone();
                json_patch::patch(&mut stored, &patch).context("the patch does not fit the pod")?;
                pod = Cow::Owned(NewPod::new(&review.namespace, stored));
            }
        }
        denials.sort_by_key(|found| is_unchecked(&found.denial));
        Ok(denials)
    }

    /// The contents of a credential spec.
    pub async fn spec(&self, name: &SpecName) -> SpecFact {
        if let Base::Files(specs, _) = &self.seen.base {
            return specs.fact(name);
        }
        match self.find_in_cluster::<Box<RawValue>>(&format!("{}/{name}", collection())).await {
            Ok(None) => SpecFact::Missing,
            Ok(Some(object)) => found(name, object.get().as_bytes()).map_or_else(SpecFact::Failed, |read| read.fact),
            Err(unread) if unread.is_missing() => {
                SpecFact::Failed(Failure { cause: not_installed(), ..failure(&unread) })
            }
            Err(unread) => SpecFact::Failed(failure(&unread)),
        }
    }

    /// Whether a service account may use a credential spec, or export it. For a bundle this follows from its roles and bindings.
    async fn may(&self, account: &ServiceAccount, verb: Verb, name: &SpecName) -> UseFact {
        let rbac = match &self.seen.base {
            Base::Files(_, rbac) => Ok(&**rbac),
            Base::Bundle(_) => {
                let read = async || Ok(Rbac::from_documents(&self.roles_and_bindings().await?.documents).0);
                self.seen.rbac.get_or_init(read).await.as_ref().map_err(Unread::clone)
            }
            Base::Live(_) => {
                let (path, review) = match review(account, verb, name) {
                    Ok(asked) => asked,
                    Err(failure) => return UseFact::Failed(failure),
                };
                let answer = self.ask(&path, &review).await.map(AccessReviewAnswer::fact);
                return answer.unwrap_or_else(|unread| UseFact::Failed(failure(&unread)));
            }
        };
        match rbac {
            Ok(rbac) => rbac.may(account, verb, name, Instant::now()).await.fact,
            Err(unread) => UseFact::Failed(failure(&unread)),
        }
    }
}

/// Why a fact is not known.
fn failure(unread: &Unread) -> Failure {
    Failure { refused: unread.code, ..Failure::new(&*unread.cause) }
}
