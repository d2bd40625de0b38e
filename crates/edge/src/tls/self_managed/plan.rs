//! Decides the next change of the Secret, and makes it.
//!
//! Pure: time and observations are values. Invariants: the next CA signs nothing before it has been in every `caBundle`
//! for `bundle_standing`, and an old one is dropped only when everything that it signed has expired; so the `caBundle` trusts
//! every certificate that a replica serves. The CA of a Fill signs at once, and that of a Rebuild where no
//! usable one signs. Each change leaves
//! a state that can be served for months: a change that is not possible now is made later.
//!
//! ```text
//!  Empty ─Fill─► signing                      Damaged, or the CA is not valid ─Rebuild─► (a usable signing CA is kept, with the others)
//!  signing ─(its certificate is due, or misses a name)─ Reissue ─► signing
//!  signing ─Announce─► signing + next ─(next has been in every caBundle)─ Promote ─► next signs, the old one is retired
//!  retired ─(its last certificate has expired, no caBundle has it)─ Forget ─►
//! ```

use std::time::{Duration, SystemTime};

use super::{
    SelfManagedSettings,
    contents::{Cas, Leaf, MAX_CAS, RetiredCa, SecretContents},
};
use crate::tls::{
    CLOCK_SKEW, CaBundle,
    issue::{BACKDATED, Ca, IssueError},
};

/// The observations besides the Secret's data.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    pub now: SystemTime,
    /// For how long the next CA has been in every `caBundle`, or without configurations in the Secret; `None` where it is not, or where that
    /// is unknown.
    pub next_published_for: Option<Duration>,
    /// Every CA that is in any `caBundle`; `None` where that is unknown.
    pub present: Option<&'a CaBundle>,
    /// The value of the annotation that asks for a rotation, or an empty string.
    pub rotation: &'a str,
}

/// A change of the Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The Secret is empty: create a CA and a serving certificate.
    Fill,
    /// The Secret is damaged, or its CA has expired or is from the future: keep a usable signing CA with the next and the retired ones, or
    /// replace all.
    Rebuild,
    /// Create a new serving certificate.
    Reissue,
    /// Create the next CA, which must be trusted before it signs.
    Announce,
    /// The next CA signs from now on.
    Promote,
    /// Drop retired CAs that are not needed any more.
    Forget,
}

/// Decides what to do next; `None` where there is nothing to do.
pub fn next_change(contents: &SecretContents, observed: &Observed<'_>, policy: &SelfManagedSettings) -> Option<Change> {
    let now = observed.now;
    let (cas, leaf) = match contents {
        SecretContents { cas: None, leaf: None, damage: None } => return Some(Change::Fill),
        SecretContents { cas: Some(cas), leaf: Some(leaf), damage: None } if is_usable(&cas.signing, now) => {
            (cas, leaf)
        }
        _ => return Some(Change::Rebuild),
    };
    let leaf = &leaf.pair.summary;
    let named = policy.names.iter().all(|name| leaf.names.contains(name));
    if !named || is_due(leaf.not_before, leaf.not_after, policy.leaf_lifetime, policy, now) {
        return Some(Change::Reissue);
    }
    match &cas.next {
        Some(next) if is_usable(next, now) => {
            let trusted = observed.next_published_for.is_some_and(|time| time >= policy.bundle_standing);
            return trusted.then_some(Change::Promote);
        }
        Some(_) => return Some(Change::Announce),
        None => {}
    }
    // A request waits where there is no room for another CA.
    let has_room = cas.retired.len() + 2 < MAX_CAS;
    let requested = has_room && !observed.rotation.is_empty() && observed.rotation != cas.last_rotation;
    let signing = &cas.signing.summary;
    if requested || is_due(signing.not_before, signing.not_after, policy.ca_lifetime, policy, now) {
        return Some(Change::Announce);
    }
    cas.retired.iter().any(|retired| is_unused(retired, observed)).then_some(Change::Forget)
}

/// Whether a CA is valid. Not yet valid (clock skew) counts as invalid, and so does what such a CA signs.
fn is_usable(ca: &Ca, now: SystemTime) -> bool {
    ca.summary.not_before <= now + CLOCK_SKEW && now < ca.summary.not_after
}

/// Whether a certificate must be renewed: its lifetime counts, or a new one's where that is shorter. One from the
/// future is due too.
fn is_due(from: SystemTime, to: SystemTime, lifetime: Duration, policy: &SelfManagedSettings, now: SystemTime) -> bool {
    let issued = (from + BACKDATED).min(to);
    let lifetime = to.duration_since(issued).unwrap_or_default().min(lifetime);
    from > now + CLOCK_SKEW || now >= issued + lifetime * u32::from(policy.renewal_point) / 100
}

fn is_unused(retired: &RetiredCa, observed: &Observed<'_>) -> bool {
    retired.leaves_until + CLOCK_SKEW <= observed.now
        && observed.present.is_some_and(|present| !present.contains(&retired.cert))
}

/// Creates what the Secret holds after a change.
pub fn apply(
    change: Change,
    contents: SecretContents,
    observed: &Observed<'_>,
    policy: &SelfManagedSettings,
) -> Result<(Cas, Leaf), IssueError> {
    let now = observed.now;
    let (mut cas, mut leaf) = match contents.cas {
        Some(cas) if is_usable(&cas.signing, now) => (cas, contents.leaf),
        // Certificates of an unusable CA are not valid either.
        _ => {
            let (signing, last_rotation) = (new_ca(now, policy)?, observed.rotation.to_owned());
            (Cas { signing, next: None, retired: Vec::new(), last_rotation }, None)
        }
    };
    match change {
        Change::Fill | Change::Rebuild => {}
        Change::Reissue => leaf = None,
        Change::Announce => {
            cas.next = Some(new_ca(now, policy)?);
            observed.rotation.clone_into(&mut cas.last_rotation);
        }
        Change::Promote => {
            if let Some(next) = cas.next.take() {
                let Ca { der: cert, leaves_until, .. } = std::mem::replace(&mut cas.signing, next);
                cas.retired.extend(leaves_until.map(|leaves_until| RetiredCa { cert, leaves_until }));
            }
            leaf = None;
        }
        Change::Forget => cas.retired.retain(|retired| !is_unused(retired, observed)),
    }
    if let Some(leaf) = leaf {
        return Ok((cas, leaf));
    }
    let (pem, pair) = cas.signing.issue(policy.program.name, &policy.names, now, policy.leaf_lifetime)?;
    // Where the lifetime was shortened, an older certificate may expire later than the new one.
    cas.signing.leaves_until = cas.signing.leaves_until.max(Some(pair.summary.not_after));
    Ok((cas, Leaf { pair, pem }))
}

fn new_ca(now: SystemTime, policy: &SelfManagedSettings) -> Result<Ca, IssueError> {
    let created = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    Ca::generate(&format!("{} CA {created}", policy.program.name), now, policy.ca_lifetime)
}

#[cfg(test)]
mod tests;
