//! Preconditions for checking the slots of a pod: a pod that fails an `expect_` function causes no look-up. `spec_name` checks a
//! single name.

use std::collections::HashSet;

use super::{Denial, MAX_SPECS_PER_POD, Review, operation::Operation, pod::Pod, review::POD};
use crate::{
    credspec::{SpecName, Verb},
    quote::Quoted,
};

/// Denies another kind or operation, a request without the new object, and a pod with too many slots.
pub(super) fn expect_pod(review: &Review) -> Result<&Pod, Denial> {
    if !review.is_pod() {
        return Err(Denial::UnexpectedKind { expected: POD, kind: Quoted::bare(&review.kind) });
    }
    match review.operation {
        Operation::Create | Operation::Update => {
            let pod =
                review.object.as_ref().ok_or(Denial::NoObject { field: "object", operation: review.operation })?;
            let too_many = std::iter::once(pod).chain(&review.old_object).any(Pod::has_too_many_slots);
            if too_many { Err(Denial::TooManySlots) } else { Ok(pod) }
        }
        operation => Err(Denial::UnexpectedOperation(operation)),
    }
}

/// The pod before an update.
pub(super) fn expect_old_pod(review: &Review) -> Result<&Pod, Denial> {
    review.old_object.as_ref().ok_or(Denial::NoObject { field: "oldObject", operation: review.operation })
}

/// Denies a pod that names more than [`MAX_SPECS_PER_POD`] credential specs in its slots and its tokens, before anything is looked up. A
/// credential spec that it wants to use and to export counts twice: each is a look-up.
pub(super) fn expect_few_names(pod: &Pod) -> Result<(), Denial> {
    let in_slots = pod.slots().filter_map(|slot| Some((Verb::Use, slot.name?)));
    let names: HashSet<(Verb, &str)> = in_slots.chain(pod.tokens()).collect();
    if names.len() > MAX_SPECS_PER_POD { Err(Denial::TooManySpecs) } else { Ok(()) }
}

/// The name of a credential spec, or the denial of what stands at `place` in a pod.
pub(super) fn spec_name(name: &str, place: impl FnOnce() -> String) -> Result<SpecName, Denial> {
    SpecName::parse(name).ok_or_else(|| Denial::InvalidSpecName { name: Quoted::new(name), place: place() })
}
