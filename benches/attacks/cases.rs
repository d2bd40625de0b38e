//! The attacks, in the order of the table.

use std::{net::Ipv4Addr, time::Duration};

use continuing::addresses;
use futures::{FutureExt as _, future::BoxFuture};
use gmsa_test_support::hostile::HALF_A_HELLO;

use super::{
    bystander::Question,
    client::Client,
    report::Figure,
    reviews::{self, MAX_BODY},
    server::Server,
    support::SimulatedApi,
};

mod bodies;
mod continuing;
mod floods;
mod held;
mod lookups;
mod sockets;
mod specs;

/// Milliseconds that a bystander's review may take while clients without credentials open thousands of connections: it gets through.
const FLOODED_AIM: f64 = 2000.0;

/// The same while they go on doing so from one address.
const CONTINUING_AIM: f64 = 500.0;

/// The bystander's address, where the attack has another one.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// What an attack runs against.
pub struct Target<'s> {
    pub client: Client,
    pub server: &'s Server,
    pub api: &'s SimulatedApi,
    /// How long the server took to become ready.
    pub ready: Duration,
}

/// An attack, the requests of a bystander meanwhile, and what both may cost.
pub struct Attack {
    pub name: &'static str,
    /// What the cluster has before the server starts.
    pub prepare: fn(&SimulatedApi),
    pub run: Run,
    pub question: Question,
    /// The bystander's address: that of the attack where both come through an API server.
    pub bystander_at: Ipv4Addr,
    /// Milliseconds that a bystander's request may take; infinite where none is promised.
    pub bystander_aim: f64,
    /// The part of the bystander's requests that may not take longer.
    pub bystander_part: f64,
    /// Seconds of CPU time.
    pub cpu_aim: Option<f64>,
}

type Run = for<'t> fn(&'t Target<'_>) -> BoxFuture<'t, Vec<Figure>>;

impl Attack {
    /// By a client without credentials that opens many connections.
    fn flood(name: &'static str, run: Run) -> Self {
        Self { bystander_aim: FLOODED_AIM, ..Self::new(name, run) }
    }

    /// By an author whose reviews ask for warnings alone.
    fn for_advice(name: &'static str, run: Run) -> Self {
        let question = Question::NewAccount;
        Self { question, bystander_aim: 250.0, bystander_part: 0.99, ..Self::by_authors(name, run) }
    }

    /// By a client without credentials that goes on opening connections from one address: no request of another address fails, and
    /// 99 of 100 are answered within the aim.
    fn continuing(name: &'static str, question: Question, run: Run) -> Self {
        Self { question, bystander_aim: CONTINUING_AIM, bystander_part: 0.99, ..Self::new(name, run) }
    }

    /// By more than one host, or from where honest clients are: the table says what is left.
    fn without_aim(self) -> Self {
        Self { bystander_aim: f64::INFINITY, ..self }
    }

    fn new(name: &'static str, run: Run) -> Self {
        let prepare = |_: &SimulatedApi| {};
        let (question, bystander_at, bystander_aim, bystander_part) = (Question::Review, ELSEWHERE, 100.0, 1.0);
        Self { name, prepare, run, question, bystander_at, bystander_aim, bystander_part, cpu_aim: None }
    }

    /// By authors, through the API server of the bystander.
    fn by_authors(name: &'static str, run: Run) -> Self {
        Self { bystander_at: Ipv4Addr::LOCALHOST, ..Self::new(name, run) }
    }
}

/// Every attack.
#[expect(clippy::too_many_lines, reason = "a table: a line or two for each attack")]
pub fn all() -> Vec<Attack> {
    vec![
        Attack::new("none", |target| sockets::quiet(target).boxed()),
        Attack::by_authors("8 MiB of empty containers on `/mutate`, one at a time", |target| {
            bodies::at_once(target, "/mutate", reviews::empty_containers(), 1).boxed()
        }),
        Attack::by_authors("8 MiB of empty containers on `/mutate`, 24 at once", |target| {
            bodies::at_once(target, "/mutate", reviews::empty_containers(), 24).boxed()
        }),
        Attack::by_authors("a million empty affinity values (3 MB) on `/mutate`, 16 at once", |target| {
            bodies::at_once(target, "/mutate", reviews::empty_affinity_values(), 16).boxed()
        }),
        Attack::by_authors("a million empty affinity values (3 MB) on `/validate`, 16 at once", |target| {
            bodies::at_once(target, "/validate", reviews::empty_affinity_values(), 16).boxed()
        }),
        Attack::by_authors("8 MiB of nested lists on `/validate-credspec`, four at once", |target| {
            bodies::at_once(target, "/validate-credspec", reviews::nested_lists(), 4).boxed()
        }),
        Attack::by_authors("8 MiB of nested lists on `/validate-credspec`, 24 at once", |target| {
            bodies::at_once(target, "/validate-credspec", reviews::nested_lists(), 24).boxed()
        }),
        Attack {
            cpu_aim: Some(bodies::LEFT_CPU_AIM),
            ..Attack::by_authors(
                "60,000 names in a Deployment on `/validate-workload`, four clients that go away",
                |target| bodies::left(target, "/validate-workload", reviews::many_names(), 4).boxed(),
            )
        },
        Attack::by_authors("bodies over the limit, from a client that writes all before it reads", |target| {
            bodies::over_the_limit(target, MAX_BODY + (1 << 20)).boxed()
        }),
        Attack::new("33 connections that announce 8 MiB and send nothing", |target| {
            sockets::announce(target, 33).boxed()
        }),
        Attack::new("one HTTP/2 connection with 100 streams that announce 8 MiB and send nothing", |target| {
            sockets::announce_on_one(target, 100).boxed()
        }),
        Attack::new("2,000 idle TLS connections", |target| sockets::idle(target, 2000, false).boxed()),
        Attack::new("2,000 idle TLS connections, after a review on each", |target| {
            sockets::idle(target, 2000, true).boxed()
        }),
        Attack::flood("2,048 halves of a `ClientHello` of 65,535 bytes", |target| {
            held::half_hellos(target, 2048).boxed()
        }),
        Attack::flood("2,048 halves of a handshake message of 65,535 bytes, after the handshake", |target| {
            held::half_messages(target, 2048).boxed()
        }),
        Attack::flood("2,400 connections of pipelined `GET /info` whose answers are not read", |target| {
            held::unread(target, held::info(), 2400).boxed()
        }),
        Attack::flood("2,400 connections of pipelined reviews whose answers are not read", |target| {
            held::unread(target, held::review(), 2400).boxed()
        }),
        Attack::flood("2,000 heads of 15.5 KB", |target| held::heads(target, 15_500, 2000).boxed()),
        Attack {
            question: Question::Ready,
            ..Attack::new("128 connections of 60 pipelined `GET /metrics` on the admin port, not read", |target| {
                held::scrapes(target.server.admin, 60, 128).boxed()
            })
        },
        Attack::by_authors("400 plain reviews at once, each on a new connection", |target| {
            held::burst(target, 400).boxed()
        }),
        Attack::flood("4,500 silent sockets on the TLS port", |target| {
            sockets::silent(target, target.client.address, 4500).boxed()
        }),
        Attack {
            question: Question::Ready,
            ..Attack::new("400 silent sockets on the admin port", |target| {
                sockets::silent(target, target.server.admin, 400).boxed()
            })
        },
        Attack::continuing("10,000 connections a second that send nothing", Question::Review, |target| {
            continuing::connections(target, target.client.address, 10_000, addresses(1), continuing::SILENCE).boxed()
        }),
        Attack::continuing("10,000 connections a second that send half a handshake", Question::Review, |target| {
            continuing::connections(target, target.client.address, 10_000, addresses(1), HALF_A_HELLO).boxed()
        }),
        Attack::continuing(
            "10,000 connections a second that send nothing, on the admin port",
            Question::Ready,
            |target| {
                continuing::connections(target, target.server.admin, 10_000, addresses(1), continuing::SILENCE).boxed()
            },
        ),
        Attack::continuing(
            "10,000 connections a second that send half a head, on the admin port",
            Question::Ready,
            |target| {
                continuing::connections(target, target.server.admin, 10_000, addresses(1), continuing::HALF_A_HEAD)
                    .boxed()
            },
        ),
        Attack::new("the same from 64 addresses: half a handshake", |target| {
            continuing::connections(target, target.client.address, 10_000, addresses(64), HALF_A_HELLO).boxed()
        })
        .without_aim(),
        Attack {
            question: Question::Ready,
            ..Attack::new("the same from 64 addresses: half a head, on the admin port", |target| {
                continuing::connections(target, target.server.admin, 10_000, addresses(64), continuing::HALF_A_HEAD)
                    .boxed()
            })
            .without_aim()
        },
        Attack {
            bystander_at: Ipv4Addr::LOCALHOST,
            ..Attack::continuing(
                "the same from the address of a client that keeps its connection",
                Question::KeptReview,
                |target| {
                    let same = vec![Ipv4Addr::LOCALHOST];
                    continuing::connections(target, target.client.address, 10_000, same, HALF_A_HELLO).boxed()
                },
            )
        },
        Attack::by_authors("the same from the address of a client that does not", |target| {
            let same = vec![Ipv4Addr::LOCALHOST];
            continuing::connections(target, target.client.address, 10_000, same, HALF_A_HELLO).boxed()
        })
        .without_aim(),
        Attack::new("1,000 half-open TLS connections, renewed, and 50 with garbage a second", |target| {
            sockets::half_open(target, 1000, 50).boxed()
        }),
        Attack::new("2,000 HTTP/2 frames a second that mean nothing", |target| floods::frames(target, 2000).boxed()),
        Attack::by_authors("texts of 900,000 characters, 3 in each place", |target| {
            floods::long_texts(target, 900_000, 3).boxed()
        }),
        Attack::new("300 broken handshakes, 300 wrong paths, 300 bodies that are no reviews", |target| {
            floods::complaints(target, 300).boxed()
        }),
        Attack {
            question: Question::NewAccount,
            ..Attack::by_authors("1,000 reviews with 24 unknown names each, 200 at once", |target| {
                floods::unknown_names(target, 1000, 200).boxed()
            })
        },
        Attack {
            question: Question::NewAccount,
            bystander_aim: 250.0,
            ..Attack::by_authors("800 connections, on each a pod with 24 made-up names on `/validate`", |target| {
                lookups::made_up(target, 800, 1, 24).boxed()
            })
        },
        Attack::for_advice("60 Deployments at once with 24 made-up names each, for 8 s", |target| {
            lookups::for_advice(target, "/validate-workload?timeout=2s", 60, reviews::workload).boxed()
        }),
        Attack::for_advice("150 Deployments at once with 24 made-up names each, for 8 s", |target| {
            lookups::for_advice(target, "/validate-workload?timeout=2s", 150, reviews::workload).boxed()
        }),
        Attack::for_advice(
            "150 pods at once with 24 made-up names each where denials are not enforced, for 8 s",
            |target| lookups::for_advice(target, "/validate", 150, reviews::of_trial).boxed(),
        ),
        Attack {
            question: Question::NewAccount,
            bystander_aim: 250.0,
            ..Attack::by_authors("1,000 pods of one account with made-up names on `/validate`, 200 at once", |target| {
                lookups::made_up(target, 200, 5, 1).boxed()
            })
        },
        Attack {
            question: Question::NewAccount,
            bystander_aim: 250.0,
            ..Attack::by_authors("4,000 look-ups on 32 connections with time limits of 5 to 50 ms", |target| {
                lookups::hasty(target, 4000, 32).boxed()
            })
        },
        Attack {
            question: Question::NewAccount,
            bystander_aim: 250.0,
            ..Attack::by_authors("4,000 look-ups of clients that disconnect, 32 at once", |target| {
                lookups::gone(target, 4000, 32).boxed()
            })
        },
        Attack {
            prepare: |api| specs::large(api, 30),
            ..Attack::by_authors("a start with 30 credential specs of 1.4 MB, and pods that name them", |target| {
                specs::started(target, 30).boxed()
            })
        },
        Attack {
            prepare: |api| specs::large(api, 100),
            ..Attack::by_authors("a start with 100 credential specs of 1.4 MB, and pods that name them", |target| {
                specs::started(target, 100).boxed()
            })
        },
        Attack {
            prepare: |api| specs::valid(api, 2000, 60_000),
            ..Attack::by_authors(
                "a start with 2,000 valid credential specs of 60 KB, and pods that name them",
                |target| specs::started(target, 2000).boxed(),
            )
        },
        Attack {
            prepare: specs::many_entries,
            ..Attack::by_authors("a start with a credential spec of 170,000 entries, and pods that name it", |target| {
                specs::started(target, 1).boxed()
            })
        },
        Attack {
            prepare: |api| specs::valid(api, 50_000, 1000),
            ..Attack::by_authors("a start with 50,000 credential specs of 1 KB", |target| {
                specs::started(target, 1).boxed()
            })
        },
        Attack {
            prepare: specs::by_authors,
            ..Attack::by_authors(
                "by authors: 20 Deployments that name 24 of 48 credential specs of 1.55 MB, and 20 of 420 of 60 KB",
                |target| specs::named_by(target, 20, 0).boxed(),
            )
        },
        Attack {
            prepare: specs::by_authors,
            ..Attack::flood(
                "by clients: 220 connections, on each a Deployment with 1,998 empty containers and a slow look-up",
                |target| specs::named_by(target, 0, 220).boxed(),
            )
        },
        Attack {
            prepare: specs::by_authors,
            ..Attack::flood(
                "by authors and clients: both, with 10 Deployments of each kind and 200 connections",
                |target| specs::named_by(target, 10, 200).boxed(),
            )
        },
        Attack {
            prepare: specs::endless_answers,
            ..Attack::new("lists, then watches without an end, by a broken proxy", |target| {
                specs::endless_lines(target).boxed()
            })
        },
    ]
}
