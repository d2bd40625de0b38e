//! The memory of large reviews: their bodies, what parsing those costs, and large answers.
//!
//! Invariants: what is counted is what is held, from the bytes as they arrive; an announced length costs nothing. A body or
//! an answer of at most [`SMALL`] bytes takes no permit: the limit of connections bounds them. Beyond it, permits are
//! taken of one semaphore, which large answers of the API server share, and never waited for: where there is none left, the review
//! is refused. No body makes room for another one.

use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody as _};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::refusal::Refusal;
use crate::limits::{MAX_BODY, SMALL};

/// What the bytes of a large body take: themselves, and one and a half times as much where they are parsed
/// ([`most_bytes_to_parse`](gmsa_core::admission::review::most_bytes_to_parse)).
fn with_parsing(bytes: usize) -> usize {
    bytes / 2 * 5
}

/// The memory that large reviews may take together. A permit is a byte.
#[derive(Clone)]
pub(super) struct LargeMemory(Arc<Semaphore>);

/// Bytes, with the permits that they take.
pub(super) struct Held {
    bytes: Vec<u8>,
    permits: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl LargeMemory {
    pub(super) fn new(permits: Arc<Semaphore>) -> Self {
        Self(permits)
    }

    fn take(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let permits = u32::try_from(bytes).map_err(|_| Refusal::TooLarge)?;
        Arc::clone(&self.0).try_acquire_many_owned(permits).map_err(|_| Refusal::Busy)
    }

    /// Reads a body to its end.
    pub(super) async fn read(&self, body: &mut Body) -> Result<Held, Refusal> {
        // The length that the client announces. One over the limit is refused before the body is read.
        let announced = body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
        if announced > Some(MAX_BODY) {
            return Err(Refusal::TooLarge);
        }
        let mut held = Held { bytes: Vec::new(), permits: None };
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Refusal::BadRequest(format!("the body could not be read: {error}")))?;
            let Some(bytes) = frame.data_ref() else { continue };
            let length = held.bytes.len() + bytes.len();
            if length > MAX_BODY {
                return Err(Refusal::TooLarge);
            }
            if let Some(permits) = &mut held.permits {
                permits.merge(self.take(with_parsing(bytes.len()))?);
            } else if length > SMALL {
                held.permits = Some(self.take(with_parsing(length))?);
                // One buffer for all of a large body: its pages are not held before bytes are in them. One that grows would be
                // copied, and both held meanwhile.
                held.bytes.reserve_exact(announced.unwrap_or(MAX_BODY) - held.bytes.len());
            }
            held.bytes.extend_from_slice(bytes);
        }
        Ok(held)
    }

    /// An answer, which holds its permits until it is written.
    pub(super) fn answer(&self, bytes: Vec<u8>) -> Result<Bytes, Refusal> {
        let permits = if bytes.len() > SMALL { Some(self.take(bytes.len())?) } else { None };
        Ok(Bytes::from_owner(Held { bytes, permits }))
    }
}

impl Held {
    pub(super) fn is_large(&self) -> bool {
        self.permits.is_some()
    }

    /// Drops the bytes of a body. What was parsed of it, which is no larger, has permits until what is returned is dropped.
    pub(super) fn parsed(self) -> Option<OwnedSemaphorePermit> {
        let mut permits = self.permits?;
        let excess = permits.num_permits().saturating_sub(self.bytes.len());
        drop(permits.split(excess));
        Some(permits)
    }
}
