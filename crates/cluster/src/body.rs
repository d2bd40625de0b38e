//! The body of a request or of an answer, read into one buffer.
//!
//! Invariants: no body is in memory twice, nor beyond its limit; an announced length takes no memory. A body longer than
//! [`SMALL`] takes its bytes of a [`LargeMemory`](crate::large_memory::LargeMemory) as they arrive, and keeps them until the last one
//! is dropped.

use std::fmt;

use bytes::Bytes;
use gmsa_core::causes;
use http_body_util::BodyExt as _;
use hyper::body::Body;

use crate::large_memory::{Share, Taken};

/// The longest body that is not counted, in bytes. The limits on calls and connections bound these.
pub const SMALL: usize = 32 * 1024;

/// Bytes, with the memory that they take.
pub struct Held {
    pub bytes: Vec<u8>,
    /// Only for a body longer than [`SMALL`], where those are counted.
    pub taken: Option<Taken>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Held {
    /// Bytes that are there already.
    ///
    /// # Errors
    /// [`BodyError::NoMemory`].
    pub fn new(bytes: Vec<u8>, memory: &Share) -> Result<Self, BodyError> {
        let take = || memory.take(bytes.len()).ok_or(BodyError::NoMemory);
        let taken = (bytes.len() > SMALL).then(take).transpose()?;
        Ok(Self { bytes, taken })
    }
}

/// Why a body was not read.
#[derive(Debug)]
pub enum BodyError {
    /// It ended before its end, for this reason.
    Cut(String),
    TooLarge,
    /// Its user would hold more than its share.
    NoMemory,
}

/// Reads a body to its end, at most `most` bytes. A large one takes its bytes of `memory`.
///
/// # Errors
/// Where the body is too large or cut off, and where there is no memory for it.
pub async fn read(
    mut body: impl Body<Data = Bytes, Error: fmt::Display> + Unpin,
    most: usize,
    memory: Option<&Share>,
) -> Result<Held, BodyError> {
    let announced = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    if announced > Some(most) {
        return Err(BodyError::TooLarge);
    }
    let mut bytes = Vec::with_capacity(announced.unwrap_or_default().min(SMALL));
    let mut taken = None::<Taken>;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| BodyError::Cut(causes::own(&error)))?.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > most {
            return Err(BodyError::TooLarge);
        }
        if length > SMALL {
            match (&mut taken, memory) {
                (Some(taken), _) => taken.grow_to(length).ok_or(BodyError::NoMemory)?,
                (None, Some(memory)) => taken = Some(memory.take(length).ok_or(BodyError::NoMemory)?),
                (None, None) => {}
            }
            // Its pages are not held before bytes are in them. A buffer that grows would be copied, and both held meanwhile.
            bytes.reserve_exact(announced.unwrap_or(most).saturating_sub(bytes.len()));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Held { bytes, taken })
}
