//! Any bytes on a connection of the listener, without TLS: there are only whole answers, none of them an empty 200, and the
//! connection is closed when the client has sent everything.

#![no_main]

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    path::Path,
    sync::{Arc, LazyLock},
    time::Duration,
};

use gmsa_cluster::standalone::Standalone;
use gmsa_core::admission::Enforcement;
use gmsa_edge::server::{Listener, Serving};
use gmsa_webhook::{
    limits::Limits,
    metrics::Metrics,
    server::{Reviewer, Sources, routes},
};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

const IDLE: Duration = Duration::from_secs(60);

static SERVER: LazyLock<(Runtime, SocketAddr)> = LazyLock::new(|| {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let Standalone { specs, rbac } =
        Standalone::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples"))).unwrap();
    let sources = Sources { resolver: Arc::new(specs), authorizer: Arc::new(rbac) };
    let reviewer = Reviewer {
        for_decisions: sources.clone(),
        for_advice: sources,
        random_hostname: true,
        strict_credential_specs: false,
        enforcement: Enforcement::Enforce,
        warn_namespaces: Arc::default(),
        metrics: Metrics::new().1,
    };
    let limits = Limits::default();
    let router = routes::router(reviewer, &limits, LargeMemory::new(limits.large_bytes));
    let address = runtime.block_on(async {
        let listener =
            Listener::bind(([127, 0, 0, 1], 0).into(), Serving::new(limits.connections, limits.waiting, IDLE)).unwrap();
        let address = listener.address();
        tokio::spawn(listener.serve(router, CancellationToken::new(), Duration::ZERO));
        address
    });
    (runtime, address)
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut stream = TcpStream::connect(SERVER.1).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // Where it does not like the beginning, it need not read the rest.
    let _ = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answers = Vec::new();
    if let Err(error) = stream.read_to_end(&mut answers) {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        return;
    }
    let mut rest = answers.as_slice();
    while !rest.is_empty() {
        rest = after_answer(rest).unwrap_or_else(|| panic!("{:?}", String::from_utf8_lossy(&answers)));
    }
});

/// What comes behind one whole answer.
fn after_answer(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..end]).ok()?.to_ascii_lowercase();
    let code: u16 = head.strip_prefix("http/1.1 ").or_else(|| head.strip_prefix("http/1.0 "))?.get(..3)?.parse().ok()?;
    if code == 100 {
        return Some(&bytes[end + 4..]);
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length = length.map_or(Some(0), |length| length.parse().ok())?;
    assert!(code != 200 || length > 0, "an empty 200");
    // The answer to HEAD says how long the body would be.
    Some(bytes.get(end + 4 + length..).unwrap_or_default())
}
