//! The body of a request or of an answer, read into one buffer.
//!
//! Invariants: no body is held twice, and no more of one than its limit; an announced length costs no permit. A body longer than
//! [`SMALL`] takes permits of a budget for the bytes that arrive, and keeps them until the last of its bytes is dropped. No permit is
//! waited for.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use gmsa_core::causes;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The longest body that takes no permit, in bytes. The limits on calls and connections bound these.
pub const SMALL: usize = 32 * 1024;

/// Bytes, with the permits that they take.
pub struct Held {
    pub bytes: Vec<u8>,
    /// Only for a body longer than [`SMALL`], where there is a budget.
    pub permits: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Held {
    /// Bytes that are there already. Large ones take one permit per byte.
    ///
    /// # Errors
    /// [`BodyError::NoMemory`].
    pub fn new(bytes: Vec<u8>, budget: &Arc<Semaphore>) -> Result<Self, BodyError> {
        let permits = if bytes.len() > SMALL { Some(take(budget, bytes.len())?) } else { None };
        Ok(Self { bytes, permits })
    }
}

/// Why a body was not read.
#[derive(Debug)]
pub enum BodyError {
    /// It ended before its end, for this reason.
    Cut(String),
    TooLarge,
    /// The budget is used up.
    NoMemory,
}

/// Reads a body to its end, at most `most` bytes. For a large body, `cost` turns its bytes into permits.
///
/// # Errors
/// Where the body is too large or cut off, and where the budget is used up.
pub async fn read(
    mut body: impl Body<Data = Bytes, Error: fmt::Display> + Unpin,
    most: usize,
    budget: Option<&Arc<Semaphore>>,
    cost: impl Fn(usize) -> usize,
) -> Result<Held, BodyError> {
    let announced = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    if announced > Some(most) {
        return Err(BodyError::TooLarge);
    }
    let mut bytes = Vec::with_capacity(announced.unwrap_or_default().min(SMALL));
    let mut permits = None::<OwnedSemaphorePermit>;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| BodyError::Cut(causes::own(&error)))?.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > most {
            return Err(BodyError::TooLarge);
        }
        if length > SMALL {
            let new = cost(length).saturating_sub(permits.as_ref().map_or(0, OwnedSemaphorePermit::num_permits));
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
    Ok(Held { bytes, permits })
}

fn take(budget: &Arc<Semaphore>, bytes: usize) -> Result<OwnedSemaphorePermit, BodyError> {
    let permits = u32::try_from(bytes).map_err(|_| BodyError::NoMemory)?;
    Arc::clone(budget).try_acquire_many_owned(permits).map_err(|_| BodyError::NoMemory)
}
