//! That the bounds fit together, and the page that lists them.

use std::net::Ipv4Addr;

use gmsa_cluster::{
    apiserver::{CallKind, HTTP2_WINDOW},
    large_memory::{LargeMemory, MemoryUser},
};
use gmsa_core::admission::{MOST_BYTES_TO_ANSWER, review::most_bytes_to_parse};
use gmsa_edge::authorization_cache::MAX_REMEMBERED;

use super::*;

mod page;

/// A call to the API server that waits for its permit: its request, its future and the callers that wait for its
/// answer.
const WAITING_CALL: usize = 8 * 1024;
/// The longest namespace, service account and name, and their places.
const APPROVAL: usize = 63 + 253 + 253 + 192;
const TELEMETRY: usize = 5 * MIB;
const PROGRAM: usize = 5 * MIB;

/// The most that each kind of memory can take: the table of [`Limits::of_memory`].
fn worst_cases(limits: &Limits, cores: usize) -> [(&'static str, usize); 13] {
    let calls = [CallKind::AccessReview, CallKind::Advice, CallKind::KnownSpec, CallKind::UnknownSpec];
    let calls = calls.map(CallKind::limit);
    // Bodies that are parsed are held: half of what there is by one address, half of the rest by the next one.
    let for_large = cores.div_ceil(2);
    let most_parsed = (limits.large_bytes - (limits.large_bytes >> for_large)) / for_large;
    let each = most_bytes_to_parse(MAX_BODY.min(most_parsed)).max(MOST_BYTES_TO_ANSWER);
    [
        ("connections that are served", limits.connections * PER_CONNECTION),
        ("connections that wait", limits.waiting * PER_WAITING),
        ("small reviews", limits.reviews * SMALL),
        ("large bodies and answers", limits.large_bytes),
        ("credential specs", limits.credential_specs),
        ("look-ups that wait", limits.reviews * WAITING_CALL),
        ("small answers of the API server", calls.iter().sum::<usize>() * SMALL),
        ("threads that read or decide", cores * MOST_BYTES_TO_ANSWER + for_large * each),
        ("HTTP/2 buffers", 2 * HTTP2_WINDOW as usize),
        ("a page of the list", MAX_PAGE),
        ("approvals", MAX_REMEMBERED * APPROVAL),
        ("telemetry", TELEMETRY),
        ("the program", PROGRAM),
    ]
}

#[test]
fn the_worst_cases_of_all_kinds_of_memory_fit_together() {
    for (mib, cores, percent) in [(64, 2, 135), (128, 2, 100), (128, 4, 115), (256, 4, 100), (1024, 4, 100)] {
        let limits = Limits::of_memory(mib * MIB);
        let kinds = worst_cases(&limits, cores);
        let sum = kinds.iter().map(|(_, bytes)| bytes).sum::<usize>();
        assert!(sum <= mib * MIB / 100 * percent, "{mib} MiB, {cores} cores: {} KiB of {kinds:?}", sum >> 10);
    }
}

#[test]
fn every_bound_follows_from_the_memory_limit() {
    let limits = |mib: usize| Limits::of_memory(mib * MIB);
    let expected = Limits {
        connections: 189,
        waiting: 2080,
        reviews: 189,
        large_bytes: 128 * MIB / 15 * 2,
        credential_specs: 128 * MIB / 13,
    };
    assert_eq!(limits(128), expected);
    assert_eq!(Limits::of_memory(DEFAULT_MEMORY), expected);
    assert_eq!(limits(256).connections, 379);
    assert_eq!(limits(16), limits(64));
    assert_eq!(limits(1 << 20), limits(1024));
    // One address may post the largest body.
    assert!(limits(120).large_bytes / 2 >= MAX_BODY);
    // All credential specs that are read at once by names that are not known, as large as etcd takes them.
    let memory = LargeMemory::new(limits(128).large_bytes);
    let answers = memory.share_of(MemoryUser::ApiServer);
    let largest: Vec<_> = (0..CallKind::UnknownSpec.limit()).map(|_| answers.take(3 * MIB / 2)).collect();
    assert!(largest.iter().all(Option::is_some));
    // Beside them and a flood from an address, another one has what docs/security.md promises.
    let address = |last| memory.share_of(MemoryUser::Address(Ipv4Addr::new(192, 0, 2, last).into()));
    let flood = address(1);
    let flood: Vec<_> = std::iter::from_fn(|| flood.take(SMALL)).collect();
    assert!(!flood.is_empty() && address(2).take(MIB).is_some());
}
