//! Connections that stay open without a request.

use std::{io, net::SocketAddr, time::Duration};

use futures::{
    StreamExt as _,
    future::{self, join_all},
    poll, stream,
};
use gmsa_test_support::hostile::HALF_A_HELLO;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval, sleep, timeout, timeout_at},
};
use tokio_rustls::client::TlsStream;

use super::{Figure, Target};
use crate::{
    client::{Client, NO_HTTP2, head, read_answer},
    http2,
    reviews::{self, MAX_BODY},
};

/// How long connections are held.
const HOLD: Duration = Duration::from_secs(6);

/// How long a connection may take to be opened.
const OPEN_LIMIT: Duration = Duration::from_secs(5);

/// Nothing: what the machine itself does to a bystander.
pub async fn quiet(_: &Target<'_>) -> Vec<Figure> {
    sleep(HOLD).await;
    vec![Figure::new("–")]
}

/// Opens this many connections at once and holds them; those that the server closes are not replaced.
pub async fn silent(_: &Target<'_>, address: SocketAddr, number: usize) -> Vec<Figure> {
    let opened = join_all((0..number).map(|_| timeout(OPEN_LIMIT, TcpStream::connect(address)))).await;
    let opened: Vec<TcpStream> = opened.into_iter().filter_map(|stream| stream.ok()?.ok()).collect();
    sleep(HOLD).await;
    vec![Figure::new(format!("{} opened", opened.len()))]
}

/// Announces a large body on each of this many connections.
pub async fn announce(target: &Target<'_>, number: usize) -> Vec<Figure> {
    let mut open = Vec::new();
    for _ in 0..number {
        if let Ok(mut stream) = target.client.connect().await {
            let head = head("/validate", MAX_BODY - 1);
            if stream.write_all(head.as_bytes()).await.is_ok() && stream.flush().await.is_ok() {
                open.push(stream);
            }
        }
    }
    sleep(HOLD).await;
    vec![Figure::new(format!("{} announced", open.len()))]
}

/// Announces this many large bodies on one HTTP/2 connection.
pub async fn announce_on_one(target: &Target<'_>, streams: u32) -> Vec<Figure> {
    let Ok(mut stream) = target.client.connect_http2().await else { return vec![Figure::new(NO_HTTP2)] };
    let heads = (0..streams).flat_map(|number| http2::head(2 * number + 1, "/validate?timeout=10s", MAX_BODY - 1));
    let bytes: Vec<u8> = http2::begin().into_iter().chain(heads).collect();
    let sent = stream.write_all(&bytes).await.is_ok() && stream.flush().await.is_ok();
    sleep(HOLD).await;
    vec![Figure::new(if sent { "announced" } else { "refused" })]
}

/// Opens this many TLS connections, and counts those that stay open.
pub async fn idle(target: &Target<'_>, number: usize, reviewed: bool) -> Vec<Figure> {
    const AT_ONCE: usize = 32;
    let opening =
        (0..number).map(|_| async { timeout(OPEN_LIMIT, open_idle(&target.client, reviewed)).await.ok()?.ok() });
    let streams = stream::iter(opening).buffer_unordered(AT_ONCE).filter_map(future::ready);
    let mut streams: Vec<_> = streams.collect().await;
    sleep(Duration::from_secs(1)).await;
    let mut open = 0_u32;
    for stream in &mut streams {
        open += u32::from(poll!(std::pin::pin!(stream.read_u8())).is_pending());
    }
    vec![Figure::new(format!("{open} stay open"))]
}

async fn open_idle(client: &Client, reviewed: bool) -> io::Result<TlsStream<TcpStream>> {
    let mut stream = client.connect().await?;
    if reviewed {
        let body = reviews::plain(0);
        stream.write_all(head("/validate", body.len()).as_bytes()).await?;
        stream.write_all(&body).await?;
        stream.flush().await?;
        read_answer(&mut stream).await?;
    }
    Ok(stream)
}

/// Keeps this many connections open that never finish their handshake, half of them with half a `ClientHello`, and sends random
/// bytes on others.
pub async fn half_open(target: &Target<'_>, number: usize, garbage_per_second: u32) -> Vec<Figure> {
    let (address, end) = (target.client.address, Instant::now() + HOLD + Duration::from_secs(2));
    let mut clients = JoinSet::new();
    for position in 0..number {
        clients.spawn(async move {
            let mut opened = 0;
            while Instant::now() < end {
                let Ok(Ok(mut stream)) = timeout_at(end, TcpStream::connect(address)).await else { continue };
                opened += 1;
                if position % 2 == 1 {
                    let _ = stream.write_all(HALF_A_HELLO).await;
                }
                // Until the server closes it.
                let _ = timeout_at(end, stream.read_u8()).await;
                sleep(Duration::from_millis(50)).await;
            }
            opened
        });
    }
    let mut pace = interval(Duration::from_secs(1) / garbage_per_second);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while Instant::now() < end {
        pace.tick().await;
        garbage(address).await;
    }
    let opened: usize = clients.join_all().await.into_iter().sum();
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
