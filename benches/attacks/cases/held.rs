//! Connections that make the server hold as much as it can for each of them.

use std::{io, net::SocketAddr, time::Duration};

use futures::{StreamExt as _, future, stream};
use rustls::{
    ConnectionTrafficSecrets, ContentType, ProtocolVersion, SupportedCipherSuite,
    crypto::cipher::{AeadKey, Iv, MessageEncrypter, OutboundChunks, OutboundPlainMessage},
};
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};

use super::{Figure, Target, bodies::Words};
use crate::{
    client::{Client, head},
    reviews,
};

/// How long connections are held.
const HOLD: Duration = Duration::from_secs(6);

/// How long a connection may take to be opened and written to.
const OPEN_LIMIT: Duration = Duration::from_secs(5);

/// Connections that are opened at the same time.
const AT_ONCE: usize = 128;

/// A handshake message of 65,535 bytes without its last 535: the longest that rustls takes.
fn half_a_message() -> Vec<u8> {
    [1, 0, 0xff, 0xfb].into_iter().chain(vec![0; 64_996]).collect()
}

/// Opens this many connections at once, sends something on each, and holds those that stay.
async fn hold<T, F: Future<Output = io::Result<T>>>(number: usize, open: impl Fn() -> F) -> Vec<Figure> {
    let opening = (0..number).map(|_| async { timeout(OPEN_LIMIT, open()).await.ok()?.ok() });
    let held: Vec<T> = stream::iter(opening).buffer_unordered(AT_ONCE).filter_map(future::ready).collect().await;
    sleep(HOLD).await;
    vec![Figure::new(format!("{} sent", held.len()))]
}

/// Half a `ClientHello` on each of this many connections.
pub async fn half_hellos(target: &Target<'_>, number: usize) -> Vec<Figure> {
    let records: Vec<u8> = half_a_message()
        .chunks(1 << 14)
        .flat_map(|part| [&[22, 3, 1], &u16::try_from(part.len()).unwrap().to_be_bytes()[..], part].concat())
        .collect();
    hold(number, || async {
        let mut stream = TcpStream::connect(target.client.address).await?;
        stream.write_all(&records).await?;
        Ok(stream)
    })
    .await
}

/// The same on connections whose handshake is complete.
pub async fn half_messages(target: &Target<'_>, number: usize) -> Vec<Figure> {
    let message = half_a_message();
    hold(number, || async {
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
pub async fn unread(target: &Target<'_>, request: Vec<u8>, number: usize) -> Vec<Figure> {
    const WRITE: Duration = Duration::from_millis(500);
    let requests = request.repeat((64 << 10) / request.len() + 1);
    hold(number, || async {
        let mut stream = target.client.connect().await?;
        let write = async { while stream.write_all(&requests).await.is_ok() {} };
        let _ = timeout(WRITE, write).await;
        Ok(stream)
    })
    .await
}

/// A request for the version.
pub fn info() -> Vec<u8> {
    b"GET /info HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec()
}

/// A review.
pub fn review() -> Vec<u8> {
    let body = reviews::plain(0);
    [head("/validate", body.len()).as_bytes(), &body].concat()
}

/// A head without its end, of this many bytes, on each of this many connections.
pub async fn heads(target: &Target<'_>, length: usize, number: usize) -> Vec<Figure> {
    let head = format!("GET /info HTTP/1.1\r\nx: {}", "a".repeat(length));
    hold(number, || async {
        let mut stream = target.client.connect().await?;
        stream.write_all(head.as_bytes()).await?;
        stream.flush().await?;
        Ok(stream)
    })
    .await
}

/// Sends this many requests for metrics on each of this many connections, and opens another one where the server closes one.
pub async fn scrapes(address: SocketAddr, requests: usize, number: usize) -> Vec<Figure> {
    let requests = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(requests);
    let (end, mut clients) = (Instant::now() + HOLD, JoinSet::new());
    for _ in 0..number {
        let requests = requests.clone();
        clients.spawn(async move {
            let mut opened = 0;
            while Instant::now() < end {
                let Ok(Ok(mut stream)) = timeout_at(end, TcpStream::connect(address)).await else { continue };
                opened += 1;
                let _ = timeout_at(end, stream.write_all(&requests)).await;
                // Until the server closes it: the answers stay unread.
                let _ = timeout_at(end, stream.ready(tokio::io::Interest::ERROR)).await;
            }
            opened
        });
    }
    let opened: usize = clients.join_all().await.into_iter().sum();
    vec![Figure::new(format!("{opened} connections"))]
}

/// Posts this many plain reviews at once, each on a connection of its own.
pub async fn burst(target: &Target<'_>, number: usize) -> Vec<Figure> {
    let mut posts = JoinSet::new();
    for position in 0..number {
        let client: Client = target.client.clone();
        posts.spawn(async move { client.post("/validate", reviews::plain(position)).await.word() });
    }
    let mut words = Words::default();
    posts.join_all().await.into_iter().for_each(|word| words.add(word));
    let all = words.are_all("allowed");
    vec![Figure::new(words.to_string()).aim("allowed", all)]
}
