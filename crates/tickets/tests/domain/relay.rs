//! A relay before a server: it passes on what both sides send, or does something else with it.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// What becomes of the next piece that one side sends.
#[derive(Clone, Debug)]
pub enum Conduct {
    Pass,
    /// So many pieces are passed on, whichever side sends them. The next one is held, with all that follow on its connection.
    HoldAfter(usize),
    /// The client gets this answer.
    Answer(Vec<u8>),
    /// In answers, the first bytes become the second, which are as many.
    Replace([u8; 6], [u8; 6]),
}

struct State {
    conduct: Conduct,
    is_holding: bool,
}

/// A relay that lasts as long as the tests.
pub struct Relay {
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Relay {
    /// Listens at a free port of this host.
    pub fn start(host: &str, server: SocketAddr) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { conduct: Conduct::Pass, is_holding: false }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().map(Result::unwrap) {
                // A server that is away: the connection ends.
                let Ok(server) = TcpStream::connect(server) else { continue };
                for (from, to, is_answer) in [(&client, &server, false), (&server, &client, true)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let state = Arc::clone(&shared);
                    thread::spawn(move || pass(from, to, is_answer, &state));
                }
            }
        });
        Self { address, state }
    }

    /// From now on.
    pub fn conduct(&self, conduct: Conduct) {
        *self.state.lock().unwrap() = State { conduct, is_holding: false };
    }

    pub fn is_holding(&self) -> bool {
        self.state.lock().unwrap().is_holding
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_answer: bool, state: &Mutex<State>) {
    let mut piece = vec![0; 1 << 16];
    let mut is_held = false;
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let bytes = &mut piece[..length];
        is_held = is_held || state.lock().unwrap().holds();
        if is_held {
            continue;
        }
        let conduct = state.lock().unwrap().conduct.clone();
        let written = match conduct {
            Conduct::Answer(answer) if !is_answer => from.write_all(&answer),
            Conduct::Answer(_) => Ok(()),
            Conduct::Replace(old, new) => {
                if let Some(at) = bytes.windows(old.len()).position(|window| is_answer && window == old) {
                    bytes[at..at + new.len()].copy_from_slice(&new);
                }
                to.write_all(bytes)
            }
            Conduct::Pass | Conduct::HoldAfter(_) => to.write_all(bytes),
        };
        if written.is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

impl State {
    /// Whether the next piece is held.
    fn holds(&mut self) -> bool {
        let Conduct::HoldAfter(pieces) = &mut self.conduct else { return false };
        self.is_holding = self.is_holding || *pieces == 0;
        *pieces = pieces.saturating_sub(1);
        self.is_holding
    }
}
