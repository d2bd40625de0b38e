//! How often one pod may ask.
//!
//! Invariants: a pod has [`POD_BURST`] requests at once and one more each [`POD_PERIOD`]. The
//! number of pods that are remembered is bounded: one that has not asked for a while has all its requests again, and is forgotten. While
//! [`MAX_PODS`] have asked within that time, every other one is refused.

use std::collections::HashMap;

use http::StatusCode;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::{
    api::{Reason, Refusal},
    limits::{POD_BURST, POD_PERIOD},
};

/// The most pods that are remembered.
const MAX_PODS: usize = 10_000;

/// When each pod, by its uid, has all its requests again.
#[derive(Default)]
pub(super) struct PodLimits(Mutex<HashMap<String, Instant>>);

impl PodLimits {
    /// Counts a request.
    ///
    /// # Errors
    /// 429 if the pod has no request left, or too many pods ask.
    pub fn admit(&self, uid: &str) -> Result<(), Refusal> {
        let now = Instant::now();
        let mut pods = self.0.lock();
        if pods.len() >= MAX_PODS {
            pods.retain(|_, full| *full > now);
        }
        let full = pods.get(uid).copied().unwrap_or(now).max(now) + POD_PERIOD;
        let burst = POD_PERIOD * POD_BURST;
        let (message, left) = if full > now + burst {
            let message = format!(
                "too many requests of this pod: it has {POD_BURST} at once, and one more each {} s",
                POD_PERIOD.as_secs()
            );
            (message, full - (now + burst))
        } else if pods.len() >= MAX_PODS && !pods.contains_key(uid) {
            ("too many pods ask for tickets at the moment".to_owned(), burst)
        } else {
            pods.insert(uid.to_owned(), full);
            return Ok(());
        };
        Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, Reason::TicketRate, message).after(left))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pod_that_asks_too_often_waits_and_no_other_one_does() {
        let limits = PodLimits::default();
        let admitted = |uid: &str| (0..20).filter(|_| limits.admit(uid).is_ok()).count();
        assert_eq!((admitted("a"), admitted("b")), (10, 10));
        tokio::time::advance(POD_PERIOD * 2).await;
        assert_eq!((admitted("a"), admitted("c")), (2, 10));
        let refusal = limits.admit("a").unwrap_err();
        assert_eq!((refusal.status.as_u16(), refusal.reason.as_str()), (429, "ticket-rate"));
        assert_eq!(refusal.message, "too many requests of this pod: it has 10 at once, and one more each 3 s");
        assert_eq!(refusal.retry_after, Some(POD_PERIOD));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(limits.admit("a").unwrap_err().retry_after, Some(Duration::from_secs(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn pods_that_have_not_asked_for_a_while_are_forgotten() {
        let limits = PodLimits::default();
        for number in 0..MAX_PODS {
            limits.admit(&number.to_string()).unwrap();
        }
        let refusal = limits.admit("one more").unwrap_err();
        assert_eq!((refusal.status.as_u16(), refusal.reason.as_str()), (429, "ticket-rate"));
        assert_eq!(refusal.message, "too many pods ask for tickets at the moment");
        limits.admit("0").unwrap();
        tokio::time::advance(POD_PERIOD * 2).await;
        limits.admit("one more").unwrap();
        assert_eq!(limits.0.lock().len(), 1);
    }
}
