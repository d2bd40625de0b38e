//! How many files, and with them connections, the process may have open.
//!
//! Many container runtimes start processes with a soft limit of 1024, far below the limit of connections, and expect the
//! process to raise it. Invariants: the limit is never lowered.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files besides the webhook's connections: listeners, probes, the API server, certificates, the runtime itself.
const OTHERS: u64 = 256;

/// Raises the limit for `connections` as far as the system allows. Returns how many files may be open, where that is less
/// than what is needed.
///
/// # Errors
/// Where the system refuses a limit that should be allowed.
pub fn make_room(connections: usize) -> io::Result<Option<u64>> {
    let needed = (connections as u64).saturating_add(OTHERS);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // `None` is no limit.
    if current.is_none_or(|current| current >= needed) {
        return Ok(None);
    }
    let allowed = maximum.map_or(needed, |maximum| maximum.min(needed));
    if current.is_some_and(|current| current < allowed) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(allowed), maximum })?;
    }
    Ok((allowed < needed).then_some(allowed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_needed_and_no_further() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let room = maximum.unwrap_or(u64::MAX);
        // Tests share the process: 300 is below whatever it starts with.
        assert_eq!(make_room(44).unwrap(), None);
        if room < 1_000_000 {
            assert_eq!(make_room(1_000_000).unwrap(), Some(room));
            assert_eq!(getrlimit(Resource::Nofile).current, Some(room));
        }
    }
}
