//! A flood beside the storm: connections from an address of its own, each with half a TLS handshake.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt as _,
    net::TcpSocket,
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};

use gmsa_test_support::hostile::HALF_A_HELLO;

use super::FLOOD;

/// How long a connection is held, unless the server ends it.
const HOLD: Duration = Duration::from_secs(5);

/// How often connections are opened.
const STEP: Duration = Duration::from_millis(20);

/// Opens this many connections per second until `over`, and gives how many.
pub async fn halves(target: SocketAddr, per_second: u32, over: &AtomicBool) -> usize {
    if per_second == 0 {
        return 0;
    }
    let (mut open, mut number) = (JoinSet::new(), 0);
    let mut step = interval(STEP);
    step.set_missed_tick_behavior(MissedTickBehavior::Skip);
    while !over.load(Ordering::Relaxed) {
        step.tick().await;
        for _ in 0..per_second / 50 {
            number += 1;
            open.spawn(async move {
                let socket = TcpSocket::new_v4()?;
                socket.bind((FLOOD, 0).into())?;
                let mut stream = socket.connect(target).await?;
                stream.write_all(HALF_A_HELLO).await?;
                sleep(HOLD).await;
                std::io::Result::Ok(())
            });
        }
        while open.try_join_next().is_some() {}
    }
    number
}
