//! Limits of the broker: how much it takes at once, and for how long.
//!
//! Invariants: each bound is a constant, or follows from the memory limit of the process ([`BrokerLimits`]); none grows with what a client or a
//! controller sends.

use std::time::Duration;

pub use gmsa_core::credspec::services::MAX_SERVICES;
use gmsa_edge::limits::{PER_CONNECTION, PER_WAITING};

const MIB: usize = 1 << 20;

/// The memory that is assumed where the system sets no limit: the chart's.
pub const DEFAULT_MEMORY: usize = 128 * MIB;

/// The memory limits below and above which nothing changes any more.
const USEFUL: std::ops::RangeInclusive<usize> = 64 * MIB..=1024 * MIB;

/// The memory of a request while it is given tickets: an answer of a KDC and what is read of it (64 KiB each), its tickets in each of their
/// forms (an answer's 128 KiB each), a token, and what else it holds.
pub const PER_TICKETS: usize = 640 << 10;

/// The largest ticket-granting ticket that is kept, in bytes. Windows makes none above 48,000, for an account in 1,000 groups.
pub const MAX_KEPT_TICKET: usize = 16 << 10;

/// The most accounts whose keys are kept. With the largest tickets they take 32 MiB, otherwise 4 MiB.
pub const MAX_ACCOUNTS: usize = 2048;

/// The most domains.
pub const MAX_DOMAINS: usize = 32;

/// The most controllers of a domain.
pub const MAX_CONTROLLERS: usize = 16;

/// The most referrals that are followed for a service.
pub const MAX_REFERRALS: usize = 5;

/// Requests of a pod that asked for none before. An agent asks every five minutes.
pub const POD_BURST: u32 = 10;

/// How long until a pod has one request more.
pub const POD_PERIOD: Duration = Duration::from_secs(3);

/// The longest token, in bytes. Those of kube-apiserver have 1 to 2 KiB.
pub const MAX_TOKEN: usize = 6 << 10;

/// How long a request's body may take.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection may stay open without a request. An agent asks every few minutes, each time on a new one.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// After a failed logon, how long its refusal is the answer; the usual `Retry-After`.
pub const PAUSE: Duration = Duration::from_secs(10);

/// How long a wrong key is remembered: longer than the window in which domains count wrong passwords, by default 30 minutes.
pub const WRONG_FOR: Duration = Duration::from_secs(35 * 60);

/// The pauses after which a key that has yielded a ticket, and was then called wrong, is tried again.
pub const RETRIES: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(600)];

/// The most keys that one logon tries.
pub const TRIES: usize = 2;

/// How long a refused password of the user is not tried again: the time in which domains count wrong passwords, by default.
pub const REFUSED_FOR: Duration = Duration::from_secs(30 * 60);

/// The longest `Retry-After`.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(60);

/// The bounds that follow from the memory of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerLimits {
    /// Connections that are served. The others wait.
    pub connections: usize,
    /// Connections that wait to be served.
    pub waiting: usize,
    /// Requests that are given tickets at once. The others wait.
    pub tickets: usize,
}

impl BrokerLimits {
    /// The bounds of a process that may use this many bytes. All that takes memory is in this table, with its worst case:
    ///
    /// | what | worst case | of 128 MiB |
    /// |---|---|---|
    /// | connections that are served | a fifth: [`PER_CONNECTION`] each | 25.6 |
    /// | connections that wait | a seventh: [`PER_WAITING`] each | 18.3 |
    /// | requests that are given tickets | a fifth: [`PER_TICKETS`] each | 25.6 |
    /// | reads of a password | 1 MiB for each domain ([`Budget::of_one_account`](gmsa_directory::Budget::of_one_account)) | 1 a domain |
    /// | kept accounts | [`MAX_KEPT_TICKET`] each, [`MAX_ACCOUNTS`] of them | 32.0 |
    /// | answers of the API server, HTTP/2 buffers, log lines, metrics, remembered approvals | as in the webhook | 14.0 |
    /// | the program, and what the allocator holds | | 5.0 |
    ///
    /// With more than seven domains, or less than 128 MiB, each part borrows from parts that are not full.
    pub fn of_memory(bytes: usize) -> Self {
        let bytes = bytes.clamp(*USEFUL.start(), *USEFUL.end());
        Self {
            connections: bytes / 5 / PER_CONNECTION,
            waiting: bytes / 7 / PER_WAITING,
            tickets: bytes / 5 / PER_TICKETS,
        }
    }

    /// The files that requests may have open for this many domains: each has one connection, to a controller or a KDC, or it looks up an address.
    pub fn files(self, domains: usize) -> usize {
        domains * self.of_domain(domains)
    }

    /// The requests of one namespace that are given tickets of a domain or wait for them: half of the connections. Over it, a request is answered with 503.
    pub fn of_namespace(self) -> usize {
        (self.connections / 2).max(1)
    }

    /// The share of each domain in the requests that are given tickets, at least two: one whose controllers are silent cannot use up the rest.
    pub fn of_domain(self, domains: usize) -> usize {
        (self.tickets / domains.max(1)).max(2)
    }
}

/// How long controllers may take.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// For one answer of a KDC.
    pub kdc: Duration,
    /// For a logon, the read of the password included.
    pub logon: Duration,
    /// After a failure, how long its refusal is the answer.
    pub pause: Duration,
    /// For a whole request: the calls to the API server, and controllers that do not answer.
    pub request: Duration,
}

impl Default for Times {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { kdc: seconds(3), logon: seconds(15), pause: PAUSE, request: seconds(25) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_cases_of_seven_domains_fit_into_the_memory_of_the_chart() {
        let limits = BrokerLimits::of_memory(DEFAULT_MEMORY);
        let connections = limits.connections * PER_CONNECTION + limits.waiting * PER_WAITING;
        // Without domains there are no requests.
        assert_eq!([0, 1, 7, 32].map(|domains| limits.files(domains)), [0, 40, 35, 64]);
        // For a domain: its share of the requests, and the read of one password.
        let domains = 7 * (limits.of_domain(7) * PER_TICKETS + MIB);
        let [as_in_the_webhook, program] = [14 * MIB, 5 * MIB];
        let all = connections + domains + MAX_ACCOUNTS * MAX_KEPT_TICKET + as_in_the_webhook + program;
        assert!((120 * MIB..=DEFAULT_MEMORY).contains(&all), "{all}");
    }
}
