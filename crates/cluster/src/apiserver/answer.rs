//! The body of an answer, read into one buffer.
//!
//! Invariants: no body is held twice, and no more of one than its limit. What is longer than [`SMALL`] takes a permit of the budget for
//! each byte that arrives, and keeps them until the last of its bytes is dropped. No permit is waited for.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use kube::client::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::CallError;

/// The longest answer that takes no permit, in bytes: the number of calls in flight bounds those.
pub const SMALL: usize = 32 * 1024;

/// Bytes, with the permits that they take.
struct BudgetedBytes {
    bytes: Vec<u8>,
    _permits: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for BudgetedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a body to its end, at most `most` bytes.
///
/// # Errors
/// [`CallError::Cut`], [`CallError::TooLarge`] and [`CallError::NoMemory`].
pub async fn read(mut body: Body, most: usize, budget: Option<&Arc<Semaphore>>) -> Result<Bytes, CallError> {
    let announced = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    if announced > Some(most) {
        return Err(CallError::TooLarge(most));
    }
    let mut bytes = Vec::with_capacity(announced.unwrap_or_default().min(SMALL));
    let mut permits = None::<OwnedSemaphorePermit>;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| CallError::Cut)?.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > most {
            return Err(CallError::TooLarge(most));
        }
        if length > SMALL {
            let new = length - permits.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            if let Some(taken) = budget.map(|budget| take(budget, new)).transpose()? {
                match &mut permits {
                    Some(permits) => permits.merge(taken),
                    None => permits = Some(taken),
                }
            }
            // Its pages are not held before bytes are in them. A buffer that grows would be copied, and both held meanwhile.
            bytes.reserve_exact(announced.unwrap_or(most).saturating_sub(bytes.len()));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Bytes::from_owner(BudgetedBytes { bytes, _permits: permits }))
}

fn take(budget: &Arc<Semaphore>, bytes: usize) -> Result<OwnedSemaphorePermit, CallError> {
    let permits = u32::try_from(bytes).map_err(|_| CallError::NoMemory)?;
    Arc::clone(budget).try_acquire_many_owned(permits).map_err(|_| CallError::NoMemory)
}
