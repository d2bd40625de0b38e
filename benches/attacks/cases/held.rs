//! Connections that stay open: without a request, or with what makes the server hold as much as it can for each of them.

use std::{io, net::SocketAddr, time::Duration};

use futures::{
    StreamExt as _,
    future::{self, join},
    poll, stream,
};
use gmsa_test_support::hostile::HALF_A_HELLO;
use rustls::{
    ConnectionTrafficSecrets, ContentType, ProtocolVersion, SupportedCipherSuite,
    crypto::cipher::{AeadKey, Iv, MessageEncrypter, OutboundChunks, OutboundPlainMessage},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, Interest},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at},
};

use super::{Figure, HOLD, Target};
use crate::{
    client::{head, request},
    reviews::{self, MAX_BODY},
    support::https::read_answer,
};

/// How long a connection may take to be opened and written to.
const OPEN_LIMIT: Duration = Duration::from_secs(5);

/// Connections that are opened at the same time, and those whose handshakes must not hold the bystander up.
const AT_ONCE: usize = 128;
const GENTLY: usize = 32;

/// Opens this many connections, and gives the ones that stay.
async fn open<T, F: Future<Output = io::Result<T>>>(number: usize, at_once: usize, open: impl Fn() -> F) -> Vec<T> {
    let opening = (0..number).map(|_| async { timeout(OPEN_LIMIT, open()).await.ok()?.ok() });
    stream::iter(opening).buffer_unordered(at_once).filter_map(future::ready).collect().await
}

/// Opens this many, and holds them; one that the server closes is not replaced.
async fn hold<T, F: Future<Output = io::Result<T>>>(number: usize, what: &str, one: impl Fn() -> F) -> Vec<Figure> {
    let held = open(number, AT_ONCE, one).await;
    sleep(HOLD).await;
    vec![Figure::new(format!("{} {what}", held.len()))]
}

pub async fn silent(address: SocketAddr, number: usize) -> Vec<Figure> {
    hold(number, "opened", || TcpStream::connect(address)).await
}

/// Announces a large body on each of this many connections.
pub async fn announced(target: &Target<'_>, number: usize) -> Vec<Figure> {
    let head = head("/validate", MAX_BODY - 1);
    hold(number, "announced", || target.client.send(head.as_bytes())).await
}

/// Opens this many TLS connections, and counts those that stay open.
pub async fn idle(target: &Target<'_>, number: usize, reviewed: bool) -> Vec<Figure> {
    let review = if reviewed { request("/validate", &reviews::plain(0)) } else { Vec::new() };
    let idle = async || {
        let mut stream = target.client.send(&review).await?;
        if reviewed {
            read_answer(&mut stream).await?;
        }
        Ok(stream)
    };
    let mut streams = open(number, GENTLY, idle).await;
    sleep(Duration::from_secs(1)).await;
    let mut still_open = 0_u32;
    for stream in &mut streams {
        still_open += u32::from(poll!(std::pin::pin!(stream.read_u8())).is_pending());
    }
    vec![Figure::new(format!("{still_open} stay open"))]
}

/// A handshake message of 65,535 bytes without its last 535: the longest that rustls takes.
fn half_a_message() -> Vec<u8> {
    [1, 0, 0xff, 0xfb].into_iter().chain(vec![0; 64_996]).collect()
}

/// Half a `ClientHello` on each of this many connections.
pub async fn half_hellos(target: &Target<'_>, number: usize) -> Vec<Figure> {
    let records: Vec<u8> = half_a_message()
        .chunks(1 << 14)
        .flat_map(|part| [&[22, 3, 1], &u16::try_from(part.len()).unwrap().to_be_bytes()[..], part].concat())
        .collect();
    hold(number, "sent", async || {
        let mut stream = TcpStream::connect(target.client.address).await?;
        stream.write_all(&records).await?;
        Ok(stream)
    })
    .await
}

/// The same on connections whose handshake is complete.
pub async fn half_messages(target: &Target<'_>, number: usize) -> Vec<Figure> {
    let message = half_a_message();
    hold(number, "sent", async || {
        let (mut stream, connection) = target.client.connect().await?.into_inner();
        let suite = connection.negotiated_cipher_suite();
        let secrets = connection.dangerous_extract_secrets().map_err(io::Error::other)?;
        let (first, mut encrypter) = (secrets.tx.0, encrypter(suite, secrets.tx.1).ok_or(io::ErrorKind::Unsupported)?);
        for (sequence, part) in (first..).zip(message.chunks(1 << 14)) {
            let plain = OutboundPlainMessage {
                typ: ContentType::Handshake,
                version: ProtocolVersion::TLSv1_2,
                payload: OutboundChunks::Single(part),
            };
            let record = encrypter.encrypt(plain, sequence).map_err(io::Error::other)?;
            stream.write_all(&record.encode()).await?;
        }
        Ok(stream)
    })
    .await
}

fn encrypter(
    suite: Option<SupportedCipherSuite>,
    secrets: ConnectionTrafficSecrets,
) -> Option<Box<dyn MessageEncrypter>> {
    let (key, iv): (AeadKey, Iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key, iv),
        _ => return None,
    };
    Some(suite?.tls13()?.aead_alg.encrypter(key, iv))
}

/// As many requests as can be written, on each of this many connections, and no answer is read.
pub async fn unread(target: &Target<'_>, request: &[u8], number: usize) -> Vec<Figure> {
    const WRITE: Duration = Duration::from_millis(500);
    let requests = request.repeat((64 << 10) / request.len() + 1);
    hold(number, "sent", async || {
        let mut stream = target.client.connect().await?;
        let write = async { while stream.write_all(&requests).await.is_ok() {} };
        let _ = timeout(WRITE, write).await;
        Ok(stream)
    })
    .await
}

/// A head without its end, of this many bytes, on each of this many connections.
pub async fn heads(target: &Target<'_>, length: usize, number: usize) -> Vec<Figure> {
    let head = format!("GET /info HTTP/1.1\r\nx: {}", "a".repeat(length));
    hold(number, "sent", || target.client.send(head.as_bytes())).await
}

/// Keeps this many connections open until `end`, each with what it sends, and opens another one where the server closes one, which
/// `closed` tells; gives how many it opened.
async fn renewed(
    address: SocketAddr,
    number: usize,
    end: Instant,
    pause: Duration,
    closed: Interest,
    sends: impl Fn(usize) -> Vec<u8>,
) -> usize {
    let mut clients = JoinSet::new();
    for position in 0..number {
        let sends = sends(position);
        clients.spawn(async move {
            let mut opened = 0;
            while Instant::now() < end {
                let Ok(Ok(mut stream)) = timeout_at(end, TcpStream::connect(address)).await else { continue };
                opened += 1;
                let _ = timeout_at(end, stream.write_all(&sends)).await;
                let _ = timeout_at(end, stream.ready(closed)).await;
                if !pause.is_zero() {
                    sleep(pause).await;
                }
            }
            opened
        });
    }
    clients.join_all().await.into_iter().sum()
}

/// Sends this many requests for metrics on each of this many connections.
pub async fn scrapes(target: &Target<'_>, requests: usize, number: usize) -> Vec<Figure> {
    let (address, end) = (target.server.admin_address, Instant::now() + HOLD);
    let sends = |_| b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(requests);
    // The answers stay unread.
    let opened = renewed(address, number, end, Duration::ZERO, Interest::ERROR, sends).await;
    vec![Figure::new(format!("{opened} connections"))]
}

/// Keeps this many connections open that never finish their handshake, half of them with half a `ClientHello`, and sends random
/// bytes on others.
pub async fn half_open(target: &Target<'_>, number: usize, garbage_per_second: u32) -> Vec<Figure> {
    const PAUSE: Duration = Duration::from_millis(50);
    let (address, end) = (target.client.address, Instant::now() + HOLD + Duration::from_secs(2));
    let sends = |position| if position % 2 == 1 { HALF_A_HELLO.to_vec() } else { Vec::new() };
    let garbage = async {
        let mut pace = interval(Duration::from_secs(1) / garbage_per_second);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while Instant::now() < end {
            pace.tick().await;
            garbage(address).await;
        }
    };
    let (opened, ()) = join(renewed(address, number, end, PAUSE, Interest::READABLE, sends), garbage).await;
    vec![Figure::new(format!("{opened} half-open"))]
}

/// Sends bytes that are no handshake, and waits until the server closes.
pub async fn garbage(address: SocketAddr) {
    let mut bytes = [0; 512];
    // Without randomness it is garbage too.
    let _ = getrandom::fill(&mut bytes);
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(&bytes).await?;
        stream.read_u8().await
    };
    // However it ends.
    let _ = timeout(Duration::from_secs(1), exchange).await;
}
