//! Floods that go on: so many new connections each second, from one address or from many.

use std::{
    collections::VecDeque,
    io::Write as _,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    thread::sleep,
    time::{Duration, Instant},
};

use socket2::{Domain, Socket, Type};
use tokio::task::spawn_blocking;

use super::{Figure, Target};

/// How long a flood lasts.
const LASTS: Duration = Duration::from_secs(15);

/// Connections that the flood holds; over it, the oldest goes.
const HELD: usize = 8000;

/// How often connections are opened, per second.
const STEPS: u32 = 500;

/// The start of a request, whose end does not come.
pub const HALF_A_HEAD: &[u8] = b"GET /readyz HT";

/// Nothing.
pub const SILENCE: &[u8] = &[];

/// Opens this many connections per second, and sends this on each; their source addresses go round.
pub async fn connections(
    _: &Target<'_>,
    to: SocketAddr,
    per_second: u32,
    from: Vec<Ipv4Addr>,
    sends: &'static [u8],
) -> Vec<Figure> {
    let opened = spawn_blocking(move || flood(to, per_second, &from, sends)).await.unwrap();
    vec![Figure::new(format!("{} opened in {} s", opened, LASTS.as_secs()))]
}

/// Addresses that are neither the bystander's nor each other's.
pub fn addresses(number: u8) -> Vec<Ipv4Addr> {
    (0..number).map(|n| Ipv4Addr::new(127, 0, 1, n + 1)).collect()
}

fn flood(to: SocketAddr, per_second: u32, from: &[Ipv4Addr], sends: &[u8]) -> usize {
    let (began, mut held, mut opened) = (Instant::now(), VecDeque::new(), 0_usize);
    let mut sources = from.iter().cycle();
    while began.elapsed() < LASTS {
        // What the machine does not reach is left out, rather than done later at once.
        let step = Instant::now();
        for _ in 0..per_second / STEPS {
            let Some(source) = sources.next() else { return opened };
            if let Some(stream) = open(to, *source, sends) {
                held.push_back(stream);
                opened += 1;
            }
            if held.len() > HELD {
                held.pop_front();
            }
        }
        sleep((Duration::from_secs(1) / STEPS).saturating_sub(step.elapsed()));
    }
    opened
}

/// A connection on its way, with what it sends; `None` where there is none at once.
fn open(to: SocketAddr, from: Ipv4Addr, sends: &[u8]) -> Option<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    socket.bind(&SocketAddr::from((from, 0)).into()).ok()?;
    // No port waits after its connection has ended.
    socket.set_linger(Some(Duration::ZERO)).ok()?;
    socket.set_nonblocking(true).ok()?;
    // On loopback the handshake is over when this returns, unless the queue is full.
    let _ = socket.connect(&to.into());
    let mut stream = TcpStream::from(socket);
    let _ = stream.write_all(sends);
    Some(stream)
}
