//! Decides which accepted connections are served, and which wait. A program can share places of its own in the same way, by other names than
//! addresses.
//!
//! A *place* is a slot for one served connection. A connection *waits* as a socket and nothing else, until it has sent something and a place is free: an honest client that is
//! closed instead takes that for a denial, and a place is free again after milliseconds.
//!
//! Invariants: an address takes a place only while it holds fewer than `share` times as many as are free, so a flood from one
//! address leaves places to all others. The waiting address with the fewest places is next, and within it the first connection. A connection
//! ends for another in three cases alone:
//! - Too many wait, or the process runs out of files or memory: the address with the longest queue loses one, where each of an address without
//!   a decided request counts more ([`State::drop_one`]).
//! - A connection has held a place for [`CONTESTED_IDLE`] without a request to decide, and another one waits, of the same address or of one with
//!   fewer places ([`Places::make_room`]). [`CONTESTED_HANDSHAKE`] counts for a new connection of an address with a decided request.
//! - A request has just been answered, and a connection that comes before it waits for the place ([`Place::is_wanted`]).

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Debug,
    hash::Hash,
    io,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    limits::{CONTESTED_HANDSHAKE, CONTESTED_IDLE, CONTESTED_STAY, SILENT_TIMEOUT},
    metrics::Unserved,
};

/// The weight of a waiting connection whose address holds no connection that has completed a review. During a burst an API server has more waiting
/// connections than each address of a flood, and must not lose them; a new client has one or a few, and must not lose them to a flood from an
/// address that has completed a review.
const UNPROVEN: usize = 32;

/// A party that places are shared between: an address, or another name.
pub trait Claimant: Clone + Debug + Eq + Hash {}

impl<S: Clone + Debug + Eq + Hash> Claimant for S {}

/// The places of a listener, the turns of its handshakes, or those of a program, and the connections or requests that hold one or wait for one.
#[derive(Debug)]
pub struct Places<S: Claimant = IpAddr>(Mutex<State<S>>);

#[derive(Debug)]
struct State<S: Claimant> {
    free: usize,
    /// How many times the free places an address may hold when it takes another one.
    share: usize,
    most_waiting: usize,
    /// Connections that came so far, which is the number of the last one.
    entered: u64,
    /// Only addresses with connections.
    sources: HashMap<S, Connections<S>>,
    /// Connections that wait: silent ones sent nothing yet, ready ones did.
    silent: usize,
    ready: usize,
}

/// The connections of a source, by their numbers: the first came first.
#[derive(Debug)]
struct Connections<S: Claimant> {
    silent: Queue<S>,
    ready: Queue<S>,
    held: BTreeMap<u64, HeldPlace>,
}

type Queue<S> = BTreeMap<u64, oneshot::Sender<Place<S>>>;

impl<S: Claimant> Default for Connections<S> {
    fn default() -> Self {
        Self { silent: Queue::new(), ready: Queue::new(), held: BTreeMap::new() }
    }
}

/// A connection with a place.
#[derive(Debug)]
struct HeldPlace {
    /// Whether one of its requests is being decided.
    is_busy: bool,
    /// The start of its idle time; `None` while it is busy, and once it has to make room.
    idle: Option<Instant>,
    /// Whether it has brought a request that was decided.
    is_proven: bool,
    close: CancellationToken,
}

impl<S: Claimant> Connections<S> {
    /// How many of those with a place have brought a request that was decided.
    fn proven(&self) -> usize {
        self.held.values().filter(|held| held.is_proven).count()
    }

    /// The idle connection that makes room first, if its time has come: of those that never brought a request, or else
    /// of all, the longest idle one.
    fn first_to_go(&self) -> Option<u64> {
        let idle = self.held.iter().filter_map(|(number, held)| Some((held.is_proven, held.idle?, *number)));
        let (is_proven, since, number) = idle.min()?;
        let patience = if !is_proven && self.proven() > 0 { CONTESTED_HANDSHAKE } else { CONTESTED_IDLE };
        (since.elapsed() >= patience).then_some(number)
    }
}

/// Where a connection comes from: an IPv4 address, or an IPv6 network of 64 bits. A host can use every address in its network, so single
/// addresses would give a flood as many turns as it likes. The price: API servers share places with what else is in theirs, such as
/// nodes in a cloud's subnet. A network policy keeps a flood from there out.
pub(super) fn source_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

impl<S: Claimant> Places<S> {
    /// An address takes one of these places while it holds fewer than `share` times as many as are free.
    pub fn new(places: usize, share: usize, most_waiting: usize) -> Arc<Self> {
        let sources = HashMap::new();
        Arc::new(Self(Mutex::new(State {
            free: places,
            share,
            most_waiting,
            entered: 0,
            sources,
            silent: 0,
            ready: 0,
        })))
    }

    /// Waits for a place for a connection: first until `sent` has found how many bytes there are to read, then until it is this one's turn.
    ///
    /// # Errors
    /// Where the client has closed the connection or sends nothing within [`SILENT_TIMEOUT`], where there is no place until `deadline`, and where
    /// too many wait.
    pub async fn place(
        self: &Arc<Self>,
        source: S,
        sent: impl Future<Output = io::Result<usize>>,
        deadline: Instant,
    ) -> Result<Arc<Place<S>>, Unserved> {
        let came = Instant::now();
        let (tell, mut told) = oneshot::channel();
        let number = {
            let mut state = self.0.lock();
            state.entered += 1;
            let number = state.entered;
            state.sources.entry(source.clone()).or_default().silent.insert(number, tell);
            state.silent += 1;
            if state.silent + state.ready > state.most_waiting {
                state.drop_one();
            }
            number
        };
        let waiting = Waiting { places: self, source, number };
        let peeked = tokio::select! {
            peeked = timeout_at(came + SILENT_TIMEOUT, sent) => peeked.map_err(|_| Unserved::Silent)?,
            // `drop_one` took it from the queue.
            _ = &mut told => return Err(Unserved::Silent),
        };
        if !peeked.is_ok_and(|bytes| bytes > 0) {
            return Err(Unserved::Gone);
        }
        self.hand_out(|state| {
            let Some(connections) = state.sources.get_mut(&waiting.source) else { return };
            if let Some(tell) = connections.silent.remove(&number) {
                connections.ready.insert(number, tell);
                state.silent -= 1;
                state.ready += 1;
            }
        });
        timeout_at(deadline, told).await.ok().and_then(Result::ok).map(Arc::new).ok_or(Unserved::NoPlace)
    }

    /// How many connections wait that have sent something.
    pub fn ready(&self) -> usize {
        self.0.lock().ready
    }

    /// How many places are held.
    pub fn held(&self) -> usize {
        self.0.lock().sources.values().map(|connections| connections.held.len()).sum()
    }

    /// How many connections of an address hold a place, or have sent something and wait for one.
    pub fn of(&self, source: &S) -> usize {
        self.0.lock().sources.get(source).map_or(0, |connections| connections.held.len() + connections.ready.len())
    }

    /// Drops a connection that waits, if there is one: the process has run out of something.
    pub fn drop_one(&self) {
        self.0.lock().drop_one();
    }

    /// Closes connections that hold a place that others wait for, and have brought no request for a while. A request that has
    /// arrived whole is answered before. One on its way is lost, as on any connection that is closed when it is idle.
    pub fn make_room(&self) {
        let mut state = self.0.lock();
        for _ in 0..state.ready {
            let Some(most_idle) = state.most_idle() else { break };
            most_idle.cancel();
        }
    }

    fn hand_out(self: &Arc<Self>, change: impl FnOnce(&mut State<S>)) {
        let mut granted = Vec::new();
        let mut state = self.0.lock();
        change(&mut state);
        while let Some((source, number, tell)) = state.next_ready() {
            let (since, close) = (Instant::now(), CancellationToken::new());
            state.free -= 1;
            let held = HeldPlace { is_busy: false, idle: Some(since), is_proven: false, close: close.clone() };
            state.sources.entry(source.clone()).or_default().held.insert(number, held);
            granted.push((tell, Place { places: Arc::clone(self), source, number, since, close }));
        }
        drop(state);
        for (tell, place) in granted {
            // A closed receiver means that the waiter has given up: then the place is free again.
            drop(tell.send(place));
        }
    }
}

impl<S: Claimant> State<S> {
    /// Removes the next connection that gets a place from the queues.
    fn next_ready(&mut self) -> Option<(S, u64, oneshot::Sender<Place<S>>)> {
        if self.ready == 0 {
            return None;
        }
        let most = self.share * self.free;
        let waiting = self.sources.iter_mut().filter(|(_, connections)| connections.held.len() < most);
        let next = waiting.filter_map(|(source, connections)| {
            Some(((connections.held.len(), *connections.ready.keys().next()?), (source, connections)))
        });
        let (_, (source, connections)) = next.min_by_key(|(order, _)| *order)?;
        let (number, tell) = connections.ready.pop_first()?;
        self.ready -= 1;
        Some((source.clone(), number, tell))
    }

    /// Drops the oldest waiting connection of the address with the most, where one of an address without a decided request counts as [`UNPROVEN`].
    /// Silent connections go first where they are at least as many: an honest client sends something at once. Of ready connections the
    /// oldest is missed least: Go's client connects for each request, and sends the request that waits longest on the next connection that
    /// is free.
    fn drop_one(&mut self) {
        let are_silent = self.silent >= self.ready;
        let queues = self.sources.values_mut();
        let queues = queues.map(|connections| {
            let weight = if connections.proven() == 0 { UNPROVEN } else { 1 };
            (weight, if are_silent { &mut connections.silent } else { &mut connections.ready })
        });
        let longest = queues.max_by_key(|(weight, queue)| weight * queue.len());
        if longest.and_then(|(_, queue)| queue.pop_first()).is_some() {
            *(if are_silent { &mut self.silent } else { &mut self.ready }) -= 1;
        }
    }

    /// Whether an address that satisfies `of_address` has a connection that is ready.
    fn has_ready(&self, of_address: impl Fn(&Connections<S>) -> bool) -> bool {
        self.ready > 0
            && self.sources.values().any(|connections| !connections.ready.is_empty() && of_address(connections))
    }

    /// Has the idle connection that makes room first go, of the address that holds the most places.
    fn most_idle(&mut self) -> Option<CancellationToken> {
        let with_one = self.sources.iter().filter(|(_, connections)| connections.first_to_go().is_some());
        let (source, held) = with_one
            .map(|(source, connections)| (source.clone(), connections.held.len()))
            .max_by_key(|(_, held)| *held)?;
        if !self.has_ready(|connections| connections.held.len() < held) && self.sources.get(&source)?.ready.is_empty() {
            return None;
        }
        let connections = self.sources.get_mut(&source)?;
        let first = connections.held.get_mut(&connections.first_to_go()?)?;
        first.idle = None;
        Some(first.close.clone())
    }

    fn forget_empty(&mut self, source: &S) {
        let is_empty = |connections: &Connections<S>| {
            connections.held.is_empty() && connections.silent.is_empty() && connections.ready.is_empty()
        };
        if self.sources.get(source).is_some_and(is_empty) {
            self.sources.remove(source);
        }
    }
}

/// A connection that waits, until this is dropped.
struct Waiting<'p, S: Claimant> {
    places: &'p Places<S>,
    source: S,
    number: u64,
}

impl<S: Claimant> Drop for Waiting<'_, S> {
    fn drop(&mut self) {
        let mut state = self.places.0.lock();
        if let Some(connections) = state.sources.get_mut(&self.source) {
            let silent = connections.silent.remove(&self.number).is_some();
            let ready = connections.ready.remove(&self.number).is_some();
            state.silent -= usize::from(silent);
            state.ready -= usize::from(ready);
            state.forget_empty(&self.source);
        }
    }
}

/// A place, until this is dropped. Each request has the one of its connection among its extensions, as `Arc<Place>`.
#[derive(Debug)]
pub struct Place<S: Claimant = IpAddr> {
    places: Arc<Places<S>>,
    source: S,
    number: u64,
    since: Instant,
    /// Cancelled when the connection has to make room.
    pub(super) close: CancellationToken,
}

impl<S: Claimant> Place<S> {
    /// Where the connection comes from: an IPv4 address, or an IPv6 network of 64 bits.
    pub fn source(&self) -> S {
        self.source.clone()
    }

    fn with_held<T>(&self, change: impl FnOnce(&mut HeldPlace) -> T) -> Option<T> {
        let mut state = self.places.0.lock();
        state.sources.get_mut(&self.source)?.held.get_mut(&self.number).map(change)
    }

    /// The connection has a request that is being decided, until what is returned is dropped: meanwhile it makes no room.
    #[must_use]
    pub fn busy(self: &Arc<Self>) -> Busy<S> {
        self.with_held(|held| (held.is_busy, held.idle) = (true, None));
        Busy(Arc::clone(self))
    }

    /// Whether the connection has a request that is being decided.
    pub(super) fn is_busy(&self) -> bool {
        self.with_held(|held| held.is_busy).unwrap_or_default()
    }

    /// Whether the connection should end with its answer: a connection with more right to its place waits. It is from
    /// an address that holds less than half as many: between addresses that hold about the same, places would only
    /// change hands, each at the price of a handshake. To an address that holds none, each connection yields after
    /// [`CONTESTED_STAY`]: otherwise as many addresses as there are places would keep all others out. While others of its
    /// own address wait, three quarters are kept: an API server uses a kept connection at once for what waits there, and
    /// clients behind one address that have brought a request stay connected.
    pub(super) fn is_wanted(&self) -> bool {
        if self.close.is_cancelled() {
            return true;
        }
        let state = self.places.0.lock();
        let Some(own) = state.sources.get(&self.source) else { return false };
        let has_stayed = self.since.elapsed() >= CONTESTED_STAY;
        let half = own.held.len() / 2;
        state.has_ready(|other| other.held.len() < half || (has_stayed && other.held.is_empty()))
            || (!own.ready.is_empty() && own.proven() > own.held.len() * 3 / 4)
    }
}

impl<S: Claimant> Drop for Place<S> {
    fn drop(&mut self) {
        self.places.hand_out(|state| {
            state.free += 1;
            if let Some(connections) = state.sources.get_mut(&self.source) {
                connections.held.remove(&self.number);
            }
            state.forget_empty(&self.source);
        });
    }
}

/// A connection whose request is being decided.
#[derive(Debug)]
pub struct Busy<S: Claimant = IpAddr>(Arc<Place<S>>);

impl<S: Claimant> Drop for Busy<S> {
    fn drop(&mut self) {
        self.0.with_held(|held| {
            (held.is_busy, held.idle, held.is_proven) = (false, Some(Instant::now()), true);
        });
    }
}

#[cfg(test)]
mod tests;
