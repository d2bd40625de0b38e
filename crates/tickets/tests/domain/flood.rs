//! A flood of requests: of forged tokens, of what is not a request, and of a pod that has real tokens.

use std::fs;

use futures::{StreamExt as _, future::join, stream};

use crate::world::{World, service};

const REQUESTS: usize = 1500;
const AT_ONCE: usize = 60;
/// The memory limit of the chart, in KiB.
const LIMIT: u64 = 128 << 10;

/// The most memory that a process had, in KiB.
fn most_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_flood_leaves_another_pod_its_tickets_and_the_broker_its_memory() {
    service("Flood", &["HTTP/flood.contoso.com"]);
    let world = World::start("Flood").await;
    world.web("FloodApp", "HTTP/flood.contoso.com").await;
    let [greedy, quiet] = [world.pod("greedy", "web", "web").await, world.pod("quiet", "web", "web").await];
    let [greedy, quiet] = [world.token_of(&greedy, "web").await, world.token_of(&quiet, "web").await];
    let token = |number: usize| match number % 3 {
        0 => greedy.clone(),
        1 => format!("eyJhbGciOiJSUzI1NiJ9.{number}.{}", "x".repeat(5000)),
        _ => "x".repeat(20_000),
    };
    let statuses = stream::iter(0..REQUESTS).map(|number| {
        let (token, world) = (token(number), &world);
        async move { world.asked(&token, "web").await.map_or(0, |answer| answer.status.as_u16()) }
    });
    let flood = statuses.buffer_unordered(AT_ONCE).collect::<Vec<_>>();
    let others = async {
        let mut given = Vec::new();
        for _ in 0..5 {
            given.push(world.answer(&quiet, "web").await.0);
        }
        given
    };
    let (statuses, given) = join(flood, others).await;
    assert_eq!(given, [200; 5], "{}", world.logs());
    let count = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    // Ten at once, and one more each three seconds.
    assert!((10..100).contains(&count(200)), "{}", count(200));
    assert_eq!(count(200) + count(429), REQUESTS / 3);
    assert!(statuses.iter().all(|status| matches!(status, 200 | 401 | 429 | 431)), "{statuses:?}");
    let most = most_memory(world.broker.id());
    assert!(most < LIMIT, "{most} KiB");
}
