//! A flood: many new connections each second, from one address or from many. Each sends little.

use std::{
    collections::VecDeque,
    io::Write as _,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    thread::sleep,
    time::{Duration, Instant},
};

use socket2::{Domain, Socket, Type};

/// How often connections are opened, per second.
const STEPS: u32 = 500;

/// Opens this many connections per second for as long as `goes_on`, and sends this on each; their source addresses go round. It
/// closes the oldest above `holds`. Returns how many it opened.
pub fn flood(
    to: SocketAddr,
    per_second: u32,
    from: &[Ipv4Addr],
    sends: &[u8],
    holds: usize,
    goes_on: impl Fn() -> bool,
) -> usize {
    let (mut held, mut opened) = (VecDeque::new(), 0_usize);
    let mut sources = from.iter().cycle();
    while goes_on() {
        // What the machine does not reach is left out, rather than done later at once.
        let step = Instant::now();
        for source in sources.by_ref().take((per_second / STEPS) as usize) {
            if let Some(stream) = open(to, *source, sends) {
                held.push_back(stream);
                opened += 1;
            }
            if held.len() > holds {
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
