//! The table of limits in `docs/security.md`, made from the constants: `UPDATE_SNAPSHOTS=1 cargo test --lib limits`.

use std::time::Duration;

use gmsa_cluster::apiserver::CallKind;
use gmsa_core::{
    admission::{MAX_PATCH_BYTES, MAX_SPECS_PER_POD, pod::MAX_SLOTS},
    credspec::MAX_CONTENTS_BYTES,
};
use gmsa_directory::limits as directory;
use gmsa_edge::{
    admin,
    authorization_cache::MAX_REMEMBERED,
    limits::{
        CONTESTED_HANDSHAKE, CONTESTED_IDLE, CONTESTED_STAY, HANDSHAKE_TIMEOUT, HANDSHAKES_PER_CORE, MAX_HEAD,
        SILENT_TIMEOUT, UNREAD_TIMEOUT, WAIT_TIMEOUT,
    },
    server::MAX_THREADS,
    telemetry,
    tls::{MAX_BYTES, MAX_CERTIFICATES, self_managed::contents},
};
use gmsa_kerberos::limits as kerberos;
use gmsa_test_support::page;
use gmsa_tickets::{
    api::{MAX_REQUEST, MAX_RESPONSE},
    limits as tickets,
};

use super::*;
use crate::{cache::watch, server::deadline};

/// What is bounded, by how much, and what happens beyond it.
type LimitRow = (&'static str, String, &'static str);

fn number(count: usize) -> String {
    let digits = count.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

fn bytes(count: usize) -> String {
    match count {
        MIB.. if count.is_multiple_of(MIB) => format!("{} MiB", count / MIB),
        MIB.. => format!("{}.{} MiB", count / MIB, count % MIB * 10 / MIB),
        _ => format!("{} KiB", count / 1024),
    }
}

fn time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 300.. => format!("{} min", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

/// How long memory answers without news: a list, the response of the next watch and that watch each hang to their limit.
fn age_of_contents() -> Duration {
    watch::LIST_LIMIT + watch::HEAD_TIMEOUT + watch::TERM + watch::GRACE
}

/// A bound that follows from the memory limit.
fn part(part: &str, with_the_chart: &str) -> String {
    format!("{part} of memory: {with_the_chart} of {}", bytes(DEFAULT_MEMORY))
}

fn of_pods() -> Vec<LimitRow> {
    vec![
        ("credential specs that a pod names", number(MAX_SPECS_PER_POD), "denied, 422"),
        ("a pod and its containers of all kinds", number(MAX_SLOTS), "the rest is not kept; denied, 422"),
        ("contents of a credential spec", bytes(MAX_CONTENTS_BYTES), "its pods are denied; it is not read again"),
        ("contents that are added to one pod", bytes(MAX_PATCH_BYTES), "denied, 422"),
        ("request body", bytes(MAX_BODY), "413"),
        ("request head", bytes(MAX_HEAD), "431"),
        (
            "time for a review (`?timeout=`)",
            format!(
                "{} to {}, {} without one",
                time(deadline::MIN_TIMEOUT),
                time(deadline::MAX_TIMEOUT),
                time(deadline::DEFAULT_TIMEOUT)
            ),
            "denied, 504; a shorter or longer one counts as the nearest",
        ),
        ("time for a body", format!("{}, or the review's time", time(BODY_TIMEOUT)), "408"),
        ("time for look-ups of warnings", time(ADVICE_TIMEOUT), "the warning says: not checked"),
    ]
}

fn of_connections() -> Vec<LimitRow> {
    let limits = Limits::of_memory(DEFAULT_MEMORY);
    let admin = admin::serving(usize::MAX);
    vec![
        (
            "connections that are served (`--max-connections`)",
            part("a fifth", &format!("{}, at {} each,", number(limits.connections), bytes(PER_CONNECTION))),
            "the next one waits",
        ),
        (
            "connections that wait",
            part("a seventh", &format!("{}, at {} each,", number(limits.waiting), bytes(PER_WAITING))),
            "one of the address with the most is dropped",
        ),
        ("reviews in flight (`--max-reviews`)", number(limits.reviews), "wait, then 503 at their deadline"),
        ("a connection that waits and sends nothing", time(SILENT_TIMEOUT), "closed"),
        ("wait of a connection", time(WAIT_TIMEOUT), "closed"),
        (
            "a place without a request, while others wait",
            format!(
                "{}; {} for a new connection of an address with requests",
                time(CONTESTED_IDLE),
                time(CONTESTED_HANDSHAKE)
            ),
            "closed",
        ),
        ("a place with requests, while an address without a place waits", time(CONTESTED_STAY), "closed by an answer"),
        (
            "TLS handshakes that are computed at once, or are next",
            format!("{HANDSHAKES_PER_CORE} for each core, half of them of one address"),
            "wait; they go round by address",
        ),
        (
            "threads for TLS handshakes",
            format!("half of the cores, at most {}; behind the others", MAX_THREADS.div_ceil(2)),
            "wait",
        ),
        ("TLS handshake", time(HANDSHAKE_TIMEOUT), "closed"),
        ("connection without a whole head", time(IDLE_TIMEOUT), "closed"),
        ("time to take what is sent", time(UNREAD_TIMEOUT), "closed"),
        (
            "bodies and answers over the size of a small review",
            part("two fifteenths", &bytes(limits.large_bytes)),
            "503; a look-up fails, and its pod is denied with 500",
        ),
        (
            "the same of one address; of the API server's answers",
            "as much as stays free; three times that".to_owned(),
            "the same",
        ),
        ("small review: takes none of it, and no thread of its own", bytes(SMALL), "counted, and parsed apart"),
        ("threads for large reviews", format!("half of the cores, at most {}", MAX_THREADS.div_ceil(2)), "wait"),
        ("admin port: connections that are served", number(admin.places), "the next one waits"),
        ("admin port: connections that wait", number(admin.waiting), "one is dropped"),
        ("admin port: connection without a whole head", time(admin.idle), "closed"),
    ]
}

fn of_calls() -> Vec<LimitRow> {
    let calls = |kind: CallKind| format!("{} in flight, {} wait", kind.limit(), number(kind.queue()));
    vec![
        ("access reviews", calls(CallKind::AccessReview), "denied, 500"),
        (
            "access reviews for one service account",
            format!(
                "{} in flight, {} with those that wait",
                CallKind::AccessReview.share(),
                CallKind::AccessReview.share_with_queue()
            ),
            "denied, 500; other accounts do not wait for them",
        ),
        ("reads of credential specs that are known", calls(CallKind::KnownSpec), "denied, 500"),
        ("reads of names that may not exist", calls(CallKind::UnknownSpec), "denied, 500"),
        ("look-ups for warnings", calls(CallKind::Advice), "the warning says: not checked"),
        ("remembered approvals", number(MAX_REMEMBERED), "asked again"),
        (
            "credential specs in memory",
            part("a thirteenth", &bytes(Limits::of_memory(DEFAULT_MEMORY).credential_specs)),
            "read for each review",
        ),
        ("page of a list, line of a watch", bytes(MAX_PAGE), "smaller pages; the watch begins again"),
        ("time for a list", time(watch::LIST_LIMIT), "tried again; until then live reads"),
        ("age of a watch", time(watch::TERM + watch::GRACE), "given up, and listed again"),
        ("age of contents from memory, while list and watch hang", time(age_of_contents()), "read for each review"),
        ("time between two lists", time(watch::LIST_EVERY), "–"),
    ]
}

fn of_the_rest() -> Vec<LimitRow> {
    vec![
        (
            "CAs of a `self-managed` Secret",
            format!("{}, {}", contents::MAX_CAS, bytes(contents::MAX_AUTHORITIES)),
            "the Secret is filled with a new CA",
        ),
        ("CAs of a `caBundle`", format!("{}, {}", MAX_CERTIFICATES, bytes(MAX_BYTES)), "those of others go first"),
        ("log line", bytes(telemetry::LONGEST), "cut"),
        ("log lines that wait to be written", number(telemetry::LINES), "dropped and counted; no review waits"),
        (
            "`request refused`, `connection dropped`, `TLS handshake failed`: lines each",
            format!("{} in {}", telemetry::FIRST, time(telemetry::PERIOD)),
            "one line with their number",
        ),
        ("`--directory`: one message", bytes(directory::MAX_MESSAGE), "the command ends with an error"),
        (
            "`--directory`: one search",
            format!(
                "{}, {} entries, {}",
                bytes(directory::MAX_SEARCH),
                number(directory::MAX_ENTRIES),
                time(directory::OPERATION)
            ),
            "the same",
        ),
        (
            "`--directory`: one command",
            format!(
                "{}, {} searches, {}",
                bytes(directory::MAX_BYTES),
                number(directory::MAX_SEARCHES),
                time(directory::MAX_TIME)
            ),
            "the same: name single accounts, or another domain controller",
        ),
        (
            "`--ticket`: an answer of the domain controller",
            format!(
                "{}, {} iterations for a key",
                bytes(kerberos::MAX_ANSWER as usize),
                number(kerberos::MAX_ITERATIONS as usize)
            ),
            "the command ends with an error",
        ),
    ]
}

/// Those of the broker for Linux pods, beside those of connections.
fn of_tickets() -> Vec<LimitRow> {
    let limits = tickets::BrokerLimits::of_memory(tickets::DEFAULT_MEMORY);
    let waiting = format!("{}, at {} each,", number(limits.tickets), bytes(tickets::PER_TICKETS));
    let tokens = CallKind::TokenReview;
    let tickets::Times { request, logon, kdc, .. } = tickets::Times::default();
    let times = [request, logon, kdc].map(time);
    vec![
        (
            "`gmsa-tickets`: requests that are given tickets",
            part("a fifth", &waiting),
            "they wait until their deadline, then 503; domains share them equally, at least 2 each",
        ),
        (
            "`gmsa-tickets`: of those, one namespace's",
            "fewer than are left free; with those that wait, half of the connections".to_owned(),
            "they wait until their deadline, then 503; above the half 503 at once",
        ),
        (
            "`gmsa-tickets`: requests of one pod",
            format!("{} at once, one more each {}", tickets::POD_BURST, time(tickets::POD_PERIOD)),
            "429",
        ),
        (
            "`gmsa-tickets`: reviews of tokens",
            format!(
                "{} in flight, {} wait; of one address {}, {} with those that wait",
                tokens.limit(),
                tokens.queue(),
                tokens.share(),
                tokens.share_with_queue()
            ),
            "503",
        ),
        ("`gmsa-tickets`: accounts whose keys are kept", number(tickets::MAX_ACCOUNTS), "503"),
        ("`gmsa-tickets`: services of a credential spec", number(tickets::MAX_SERVICES), "403"),
        (
            "`gmsa-tickets`: domains, controllers of each",
            format!("{}, {}", tickets::MAX_DOMAINS, tickets::MAX_CONTROLLERS),
            "it does not start",
        ),
        ("`gmsa-tickets`: referrals that are followed for a service", number(tickets::MAX_REFERRALS), "502"),
        (
            "`gmsa-tickets`: token, body of a request",
            [tickets::MAX_TOKEN, MAX_REQUEST].map(bytes).join(", "),
            "401, 400",
        ),
        ("`gmsa-tickets`: answer", bytes(MAX_RESPONSE), "502"),
        ("`gmsa-tickets`: time for a request, a logon, an answer of a KDC", times.join(", "), "503"),
        ("`gmsa-tickets`: wait after a failed logon", time(tickets::PAUSE), "the same refusal meanwhile"),
        (
            "`gmsa-tickets`: tries of a key that the KDC calls wrong",
            format!(
                "1 in {}; {} where it has yielded a ticket; {} keys in a logon",
                time(tickets::WRONG_FOR),
                tickets::RETRIES.len() + 1,
                tickets::TRIES
            ),
            "409",
        ),
        (
            "`gmsa-tickets`: tries of the user's password that the domain refused",
            format!("1 in {}, or when its file changes", time(tickets::REFUSED_FOR)),
            "502",
        ),
    ]
}

#[test]
fn the_page_has_every_limit_and_how_old_contents_may_be() {
    let rows = [of_pods(), of_connections(), of_calls(), of_the_rest(), of_tickets()].concat();
    let rows: Vec<_> = rows.iter().map(|(what, limit, beyond)| format!("| {what} | {limit} | {beyond} |\n")).collect();
    let table = format!("| What | Limit | Beyond it |\n|---|---|---|\n{}", rows.concat());
    page::assert_section("docs/security.md", "limits", "UPDATE_SNAPSHOTS=1 cargo test --lib limits", &table);
    // In the same test: one beside it would read the page while this one writes it.
    let page = std::fs::read_to_string(gmsa_test_support::repository().join("docs/security.md")).unwrap();
    assert!(page.contains(&format!("| old contents for [{}](#limits), or ten minutes;", time(age_of_contents()))));
}
