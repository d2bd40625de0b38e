//! KDCs over TCP (RFC 4120, 7.2.2).
//!
//! Invariants: an answer has a bounded size, and each KDC a time limit; a KDC that does not answer, answers above the bound, or says that it is not
//! available (code 29), is followed by the next one; any other answer is the last. From then on the KDC that answered is asked first. A caller that
//! stops waiting leaves the ones that failed behind for the next caller, so a silent KDC costs its time limit once.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use time::UtcDateTime;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::{Error, EtypeInfo2Entry, KdcRequest, Key, Password, Principal, PrincipalName, Ticket};

/// The largest answer, in bytes. A ticket with the groups of an account that is in a thousand of them has a quarter of it.
pub const MAX_ANSWER: u32 = 64 << 10;

/// KDCs of one realm.
#[derive(Debug)]
pub struct Kdcs {
    /// In the order in which they are asked, from `first`.
    pub addresses: Vec<SocketAddr>,
    limit: Duration,
    /// The index of the KDC that answered last, or of the one after those that failed since.
    first: AtomicUsize,
}

impl Kdcs {
    /// `limit` is how long each of them may take for an answer.
    pub fn new(addresses: Vec<SocketAddr>, limit: Duration) -> Self {
        Self { addresses, limit, first: AtomicUsize::new(0) }
    }

    /// How keys of an account are made of its password.
    ///
    /// # Errors
    /// Where no KDC answers, or what [`KdcRequest::salt`] ends with.
    pub async fn salt(&self, client: &Principal) -> Result<EtypeInfo2Entry, Error> {
        let now = UtcDateTime::now();
        let request = KdcRequest::as_req(client, None, now, later(now, Duration::from_secs(60)))?;
        request.salt(&self.ask(&request).await?)
    }

    /// The key of an account with this password.
    ///
    /// # Errors
    /// As [`Self::salt`].
    pub async fn key(&self, client: &Principal, password: &Password) -> Result<Key, Error> {
        password.key(&self.salt(client).await?)
    }

    /// A TGT for an account with this key. The KDC can shorten its life.
    ///
    /// # Errors
    /// Where no KDC answers, or what [`KdcRequest::ticket`] ends with.
    pub async fn tgt(&self, client: &Principal, key: &Key, life: Duration) -> Result<Ticket, Error> {
        let now = UtcDateTime::now();
        let request = KdcRequest::as_req(client, Some(key), now, later(now, life))?;
        request.ticket(&self.ask(&request).await?, key)
    }

    /// A ticket for a service, which ends with the TGT at the latest. With referrals, it can be a TGT of another realm instead.
    ///
    /// # Errors
    /// As [`Self::tgt`].
    pub async fn service_ticket(
        &self,
        tgt: &Ticket,
        service: &PrincipalName,
        with_referrals: bool,
        life: Duration,
    ) -> Result<Ticket, Error> {
        let now = UtcDateTime::now();
        let request = KdcRequest::tgs_req(tgt, service, with_referrals, now, later(now, life))?;
        request.ticket(&self.ask(&request).await?, &tgt.session_key)
    }

    /// The answer of the first KDC that gives one; otherwise why the first did not.
    async fn ask(&self, request: &KdcRequest) -> Result<Vec<u8>, Error> {
        let mut failed = None;
        let start = self.first.load(Ordering::Relaxed);
        for (place, address) in self.addresses.iter().enumerate().cycle().skip(start).take(self.addresses.len()) {
            let answer = timeout(self.limit, exchange(*address, request.bytes())).await;
            let answer = answer.unwrap_or(Err(Error::TimedOut(*address, self.limit)));
            match answer.and_then(|answer| request.available(&answer).map(|()| answer)) {
                Err(error) => {
                    self.first.store((place + 1) % self.addresses.len(), Ordering::Relaxed);
                    failed = failed.or(Some(error));
                }
                answer => {
                    self.first.store(place, Ordering::Relaxed);
                    return answer;
                }
            }
        }
        Err(failed.unwrap_or(Error::NoKdc))
    }
}

fn later(now: UtcDateTime, life: Duration) -> UtcDateTime {
    now.checked_add(life.try_into().unwrap_or(time::Duration::MAX)).unwrap_or(UtcDateTime::MAX)
}

/// Each message has its length in front of it.
async fn exchange(address: SocketAddr, request: &[u8]) -> Result<Vec<u8>, Error> {
    let unreachable = |error| Error::Unreachable(address, error);
    let ended = |_| Error::Ended(address);
    let mut stream = TcpStream::connect(address).await.map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    let length = u32::try_from(request.len()).unwrap_or(u32::MAX);
    stream.write_all(&[&length.to_be_bytes(), request].concat()).await.map_err(ended)?;
    let length = stream.read_u32().await.map_err(ended)?;
    if length > MAX_ANSWER {
        return Err(Error::TooMuch(address, length));
    }
    let mut answer = Vec::new();
    // Only what arrives takes memory.
    stream.take(length.into()).read_to_end(&mut answer).await.map_err(ended)?;
    if u32::try_from(answer.len()) == Ok(length) { Ok(answer) } else { Err(Error::Ended(address)) }
}
