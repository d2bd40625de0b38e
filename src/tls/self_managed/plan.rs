//! What to do next with the Secret, and how.
//!
//! Pure: everything that the decision rests on comes in as a value. What always holds: a new authority signs nothing
//! before it has stood in every configuration for a while, and an old one is forgotten only when everything that it signed
//! has expired; so whatever a replica serves, the bundle of that moment trusts it. Each step leaves a state that is
//! good to serve with for months: a step that cannot be taken now is taken later.
//!
//! ```text
//!  Empty ─Fill─► signing                      Damaged ─Rebuild─► (what is whole is kept)
//!  signing ─Announce─► signing + next ─(next has stood in every bundle)─ Promote ─► next signs, the old one is retired
//!  retired ─(its last certificate has expired, no bundle carries it)─ Forget ─►
//! ```

use std::{
    str::FromStr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use thiserror::Error;

use super::stored::{Authorities, Authority, Content, Leaf, Retired, Stored};
use crate::tls::{
    CaBundle, KeyPairError,
    issue::{BACKDATED, Ca, IssueError},
    key_pair::CLOCK_SKEW,
};

/// How long certificates live, and when they are renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The names that the serving certificate is for: those of the Service.
    pub names: Vec<String>,
    /// How long an authority lives.
    pub ca_lifetime: Duration,
    /// How long a serving certificate lives.
    pub leaf_lifetime: Duration,
    /// When a certificate is renewed.
    pub renewal: RenewalPoint,
    /// How long a new authority must have stood in every configuration before it signs. API servers learn of it by
    /// watching.
    pub bundle_standing: Duration,
}

/// How much of its lifetime a certificate has behind it when it is renewed, in hundredths: from 1 to 99.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalPoint(u8);

impl Default for RenewalPoint {
    /// A third of the lifetime is left for whatever keeps the renewal from happening.
    fn default() -> Self {
        Self(66)
    }
}

impl FromStr for RenewalPoint {
    type Err = NotARenewalPoint;

    fn from_str(text: &str) -> Result<Self, NotARenewalPoint> {
        match text.parse() {
            Ok(percent @ 1..=99) => Ok(Self(percent)),
            _ => Err(NotARenewalPoint),
        }
    }
}

/// The text is not a share of a lifetime.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected a number from 1 to 99, in hundredths of a lifetime")]
pub struct NotARenewalPoint;

/// What a decision rests on, beside the Secret.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// The time.
    pub now: SystemTime,
    /// For how long the next authority has stood in every configuration; `None` where it does not, or nobody knows.
    pub next_standing: Option<Duration>,
    /// Everything that stands in any configuration; `None` where nobody knows.
    pub carried: Option<&'a CaBundle>,
    /// What somebody asks a rotation by, or an empty text.
    pub rotation: &'a str,
}

/// One change of the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The Secret is empty: a new authority and a serving certificate.
    Fill,
    /// The Secret is damaged: what is whole is kept, the rest is made anew.
    Rebuild,
    /// The authority has expired, and nobody renewed it in time: a new one, and a new serving certificate.
    Restart,
    /// A new serving certificate.
    Reissue,
    /// A new authority, to be trusted before it signs.
    Announce,
    /// The new authority signs from now on.
    Promote,
    /// Retired authorities of which nothing is left are dropped.
    Forget,
}

/// Why a step could not be taken.
#[derive(Debug, Error)]
pub enum StepError {
    /// A certificate could not be made.
    #[error("cannot make a certificate")]
    Issue(#[from] IssueError),
    /// The certificate that was made cannot be served.
    #[error("cannot use the certificate that was made")]
    KeyPair(#[from] KeyPairError),
}

/// Decides what to do next; `None` where everything is as it should be.
#[must_use]
pub fn next_step(content: &Content, view: &View<'_>, terms: &Terms) -> Option<Step> {
    let Stored { authorities, leaf } = match content {
        Content::Empty => return Some(Step::Fill),
        Content::Damaged { .. } => return Some(Step::Rebuild),
        Content::Whole(stored) => stored,
    };
    let (now, signing) = (view.now, &authorities.signing.ca);
    if signing.not_after() <= now {
        return Some(Step::Restart);
    }
    let leaf = leaf.pair.summary();
    let named = terms.names.iter().all(|name| leaf.names.contains(name));
    if !named || is_due(leaf.not_before, leaf.not_after, terms.leaf_lifetime, terms, now) {
        return Some(Step::Reissue);
    }
    match &authorities.next {
        Some(next) if next.ca.not_after() > now => {
            let stood = view.next_standing.is_some_and(|standing| standing >= terms.bundle_standing);
            return stood.then_some(Step::Promote);
        }
        Some(_) => return Some(Step::Announce),
        None => {}
    }
    let asked = !view.rotation.is_empty() && view.rotation != authorities.heeded;
    if asked || is_due(signing.not_before(), signing.not_after(), terms.ca_lifetime, terms, now) {
        return Some(Step::Announce);
    }
    let forgettable = |retired: &Retired| is_forgettable(retired, view);
    authorities.retired.iter().any(forgettable).then_some(Step::Forget)
}

/// Whether a certificate has lived long enough: so much of its own lifetime, or of the one that new ones get.
fn is_due(from: SystemTime, to: SystemTime, lifetime: Duration, terms: &Terms, now: SystemTime) -> bool {
    let issued = (from + BACKDATED).min(to);
    let lives = to.duration_since(issued).unwrap_or_default().min(lifetime);
    now >= issued + lives * u32::from(terms.renewal.0) / 100
}

fn is_forgettable(retired: &Retired, view: &View<'_>) -> bool {
    retired.leaves_until + CLOCK_SKEW <= view.now
        && view.carried.is_some_and(|carried| !carried.contains(&retired.cert))
}

/// Takes a step: makes what the Secret is to hold after it.
///
/// # Errors
/// Where a certificate could not be made.
pub fn take(step: Step, content: Content, view: &View<'_>, terms: &Terms) -> Result<Stored, StepError> {
    let (authorities, leaf) = match content {
        Content::Empty => (None, None),
        Content::Damaged { authorities, leaf, .. } => (authorities, leaf),
        Content::Whole(Stored { authorities, leaf }) => (Some(authorities), Some(leaf)),
    };
    let kept = match step {
        Step::Fill | Step::Restart => (None, None),
        Step::Rebuild | Step::Forget | Step::Announce => (authorities, leaf),
        Step::Reissue | Step::Promote => (authorities, None),
    };
    let mut authorities = match kept.0 {
        Some(authorities) => authorities,
        None => Authorities {
            signing: new_authority(view.now, terms)?,
            next: None,
            retired: Vec::new(),
            heeded: view.rotation.to_owned(),
        },
    };
    match step {
        Step::Announce => {
            authorities.next = Some(new_authority(view.now, terms)?);
            view.rotation.clone_into(&mut authorities.heeded);
        }
        Step::Promote => promote(&mut authorities),
        Step::Forget => authorities.retired.retain(|retired| !is_forgettable(retired, view)),
        Step::Fill | Step::Rebuild | Step::Restart | Step::Reissue => {}
    }
    let leaf = match kept.1 {
        Some(leaf) => leaf,
        None => new_leaf(&mut authorities.signing, view.now, terms)?,
    };
    Ok(Stored { authorities, leaf })
}

fn promote(authorities: &mut Authorities) {
    let Some(next) = authorities.next.take() else { return };
    let old = std::mem::replace(&mut authorities.signing, next);
    if let Some(leaves_until) = old.leaves_until {
        authorities.retired.push(Retired { cert: old.ca.cert_der().clone(), leaves_until });
    }
}

fn new_authority(now: SystemTime, terms: &Terms) -> Result<Authority, StepError> {
    let made = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let ca = Ca::generate(&format!("gmsa-webhook CA {made}"), now, terms.ca_lifetime)?;
    Ok(Authority { ca: Arc::new(ca), leaves_until: None })
}

fn new_leaf(signing: &mut Authority, now: SystemTime, terms: &Terms) -> Result<Leaf, StepError> {
    let leaf = Leaf::of(signing.ca.issue(&terms.names, now, terms.leaf_lifetime)?)?;
    // A shorter lifetime must not hide an older certificate that lives longer.
    signing.leaves_until = signing.leaves_until.max(Some(leaf.pair.not_after()));
    Ok(leaf)
}

#[cfg(test)]
mod tests;
