//! The attacks: what attacks.yaml may say, and what each does. An attack like another is a row there; another kind of attack is a
//! variant of [`Does`].

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use gmsa_edge::tls::issue::{Ca, Issued};
use gmsa_test_support::{
    control_plane::{LIFETIME, Webhook},
    flood::flood,
    hostile::HALF_A_HELLO,
};
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::version::{TLS12, TLS13};
use serde::Deserialize;
use tokio::{task::spawn_blocking, time::sleep};

use super::{
    bystander::{Plan, Question},
    client::{Client, hello, request},
    report::Figure,
    reviews,
    support::SimulatedApi,
};

mod bodies;
mod floods;
mod held;
mod lookups;
mod specs;

/// How long connections are held.
const HOLD: Duration = Duration::from_secs(6);
/// How long a flood lasts, its connections per second, and how many of them it holds.
const FLOOD_LASTS: Duration = Duration::from_secs(15);
const FLOOD_RATE: u32 = 10_000;
const FLOOD_HOLDS: usize = 8000;

/// What an attack runs against.
pub struct Target<'s> {
    pub client: Client,
    pub server: &'s Webhook,
    pub api: &'s SimulatedApi,
    /// How long the server took to become ready.
    pub ready: Duration,
}

impl Target<'_> {
    fn address(&self, port: Port) -> SocketAddr {
        match port {
            Port::Tls => self.client.address,
            Port::Admin => self.server.admin_address,
        }
    }
}

/// An attack, the requests of bystanders meanwhile, and what they may cost.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attack {
    pub name: String,
    does: Does,
    /// The key of the server's certificate.
    #[serde(default)]
    pub key: Key,
    pub bystander: Plan,
    #[serde(default)]
    others: Vec<Plan>,
    /// Seconds of CPU time.
    pub cpu_aim: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Does {
    // Nothing: what the machine itself does to a bystander.
    Quiet,
    Bodies { path: String, body: What, at_once: usize },
    Left { path: String, body: What, clients: usize },
    OverTheLimit,
    // All but the last byte of a body of each of these lengths, again when it is refused.
    SlowBodies { lengths: Vec<usize> },
    Announced { connections: usize },
    // Over HTTP/2, which the server does not offer: no more than the connection that an attack would begin with.
    Http2,
    Idle { connections: usize, reviewed: bool },
    HalfHellos { connections: usize },
    HalfMessages { connections: usize },
    Unread { request: What, connections: usize },
    Heads { bytes: usize, connections: usize },
    Scrapes { requests: usize, connections: usize },
    Burst { reviews: usize },
    Silent { port: Port, sockets: usize },
    // From this many addresses besides the bystander's; with 0, from the one that both may have. It holds `holds` connections, and
    // opens `rate` a second. Where it is `reviewed`, one more stays open that has brought a review.
    Flood { port: Port, sends: What, addresses: u8, holds: Option<usize>, rate: Option<u32>, reviewed: Option<bool> },
    HalfOpen { connections: usize, garbage_per_second: u32 },
    LongTexts { characters: usize, each: usize },
    Complaints { each: usize },
    // For a while where no number of reviews is given.
    Lookups { review: lookups::Review, connections: usize, reviews: Option<usize> },
    Gone { at_once: usize, reviews: usize },
    // Each spec has this many bytes or entries; `named` of them are named, or all.
    Started { specs: usize, bytes: Option<usize>, entries: Option<usize>, named: Option<usize> },
    NamedBy { deployments: usize, connections: usize },
    EndlessLines,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Port {
    Tls,
    Admin,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
    // Bodies.
    EmptyContainers,
    EmptyAffinityValues,
    NestedLists,
    ManyNames,
    // Requests, and parts of them.
    Info,
    Review,
    Nothing,
    HalfAHello,
    HalfAHead,
    // A whole `ClientHello`, the same each time.
    Tls12Hello,
    Tls13Hello,
}

impl What {
    fn bytes(self) -> Bytes {
        match self {
            Self::EmptyContainers => reviews::empty_containers(),
            Self::EmptyAffinityValues => reviews::empty_affinity_values(),
            Self::NestedLists => reviews::nested_lists(),
            Self::ManyNames => reviews::many_names(),
            Self::Info => Bytes::from_static(b"GET /info HTTP/1.1\r\nhost: localhost\r\n\r\n"),
            Self::Review => request("/validate", &reviews::plain(0)).into(),
            Self::Nothing => Bytes::new(),
            Self::HalfAHello => Bytes::from_static(HALF_A_HELLO),
            Self::HalfAHead => Bytes::from_static(b"GET /readyz HT"),
            Self::Tls12Hello => hello(&TLS12),
            Self::Tls13Hello => hello(&TLS13),
        }
    }
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    #[default]
    P256,
    Rsa2048,
}

impl Key {
    /// A certificate for the address of the server.
    pub fn certificate(self, ca: &Ca) -> Issued {
        let mut issued = ca.issue("gmsa-webhook", &["127.0.0.1".to_owned()], SystemTime::now(), LIFETIME).unwrap().0;
        if let Self::Rsa2048 = self {
            let key =
                KeyPair::from_pem(include_str!("../../tests/server/certificates/pairs/rsa-2048-pkcs8.pem")).unwrap();
            let authority = Issuer::from_ca_cert_pem(ca.cert_pem(), KeyPair::from_pem(&ca.key_pem()).unwrap()).unwrap();
            let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
            issued = Issued { cert: params.signed_by(&key, &authority).unwrap().pem(), key: key.serialize_pem() };
        }
        issued
    }
}

impl Attack {
    pub fn creates_pods(&self) -> bool {
        self.bystanders().any(|plan| plan.asks == Question::Pod)
    }

    pub fn bystanders(&self) -> impl Iterator<Item = &Plan> {
        [&self.bystander].into_iter().chain(&self.others)
    }

    pub fn all() -> Vec<Self> {
        serde_saphyr::from_str(include_str!("attacks.yaml")).unwrap()
    }

    /// Gives the cluster what it has before the server starts.
    pub fn prepare(&self, api: &SimulatedApi) {
        match self.does {
            Does::Started { specs, bytes: Some(bytes), .. } => specs::of_bytes(api, "hostile", specs, bytes),
            Does::Started { entries: Some(entries), .. } => specs::of_entries(api, entries),
            Does::NamedBy { .. } => specs::by_authors(api),
            Does::EndlessLines => specs::endless_answers(api),
            _ => {}
        }
    }

    pub async fn run(&self, target: &Target<'_>) -> Vec<Figure> {
        match &self.does {
            Does::Quiet => {
                sleep(HOLD).await;
                vec![Figure::new("–")]
            }
            Does::Bodies { path, body, at_once } => bodies::at_once(target, path, body.bytes(), *at_once).await,
            Does::Left { path, body, clients } => bodies::left(target, path, &body.bytes(), *clients).await,
            Does::OverTheLimit => bodies::over_the_limit(target).await,
            Does::SlowBodies { lengths } => bodies::slow(target, lengths).await,
            Does::Announced { connections } => held::announced(target, *connections).await,
            Does::Http2 => vec![http2(target).await],
            Does::Idle { connections, reviewed } => held::idle(target, *connections, *reviewed).await,
            Does::HalfHellos { connections } => held::half_hellos(target, *connections).await,
            Does::HalfMessages { connections } => held::half_messages(target, *connections).await,
            Does::Unread { request, connections } => held::unread(target, &request.bytes(), *connections).await,
            Does::Heads { bytes, connections } => held::heads(target, *bytes, *connections).await,
            Does::Scrapes { requests, connections } => held::scrapes(target, *requests, *connections).await,
            Does::Burst { reviews } => floods::burst(target, *reviews).await,
            Does::Silent { port, sockets } => held::silent(target.address(*port), *sockets).await,
            Does::Flood { port, sends, addresses, holds, rate, reviewed } => {
                let from: Vec<_> = match addresses {
                    0 => vec![Ipv4Addr::LOCALHOST],
                    number => (1..=*number).map(|n| Ipv4Addr::new(127, 0, 1, n)).collect(),
                };
                let mut kept = None;
                if reviewed.unwrap_or_default() {
                    target.client.clone().from(from[0]).post_on(&mut kept, "/validate", &reviews::plain(0)).await;
                }
                let (to, sends, began) = (target.address(*port), sends.bytes(), Instant::now());
                let goes_on = move || began.elapsed() < FLOOD_LASTS;
                let (rate, holds) = (rate.unwrap_or(FLOOD_RATE), holds.unwrap_or(FLOOD_HOLDS));
                let opened = spawn_blocking(move || flood(to, rate, &from, &sends, holds, goes_on));
                vec![Figure::new(format!("{} opened in {} s", opened.await.unwrap(), FLOOD_LASTS.as_secs()))]
            }
            Does::HalfOpen { connections, garbage_per_second } => {
                held::half_open(target, *connections, *garbage_per_second).await
            }
            Does::LongTexts { characters, each } => floods::long_texts(target, *characters, *each).await,
            Does::Complaints { each } => floods::complaints(target, *each).await,
            Does::Lookups { review, connections, reviews } => {
                lookups::lookups(target, *review, *connections, *reviews).await
            }
            Does::Gone { at_once, reviews } => lookups::gone(target, *reviews, *at_once).await,
            Does::Started { specs, named, .. } => specs::started(target, named.unwrap_or(*specs)).await,
            Does::NamedBy { deployments, connections } => specs::named_by(target, *deployments, *connections).await,
            Does::EndlessLines => specs::endless_lines(target).await,
        }
    }
}

async fn http2(target: &Target<'_>) -> Figure {
    let connects = target.client.clone().over(b"h2").connect().await.is_ok();
    let word = if connects { "an HTTP/2 connection" } else { "no HTTP/2 connection" };
    Figure::new(word).aim("none", !connects)
}
