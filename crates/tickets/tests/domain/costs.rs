//! What a request for tickets costs the broker, the API server and the domain. `just e2e-tickets costs:: --write` runs this alone, and puts the figures
//! into docs/measurements.md.

use std::{env, fs, time::Instant};

use futures::{StreamExt as _, stream};
use gmsa_test_support::page::{machine, publish, table};

use crate::world::{World, service};

const PODS: usize = 100;
/// What a pod may ask at once.
const REQUESTS: usize = 10 * PODS;
const AT_ONCE: usize = 16;
const CLOCK_TICKS: f64 = 100.0;

/// Calls to the API server: what they are called in its metrics, and in the table.
const CALLS: [([&str; 2], &str); 4] = [
    (["tokenreviews", "POST"], "TokenReview"),
    (["pods", "GET"], "the pod"),
    (["localsubjectaccessreviews", "POST"], "LocalSubjectAccessReview, remembered for 10 s"),
    (["gmsacredentialspecs", "GET"], "the credential spec: reads at the same time are one"),
];

/// Processes, by the names of their programs.
const PROCESSES: [(&str, &str); 4] =
    [("gmsa-tickets", "the broker"), ("kube-apiserver", "kube-apiserver"), ("etcd", "etcd"), ("samba", "Samba")];

/// How often this was called since the API server's start, and the seconds that it took.
fn called(metrics: &str, [resource, verb]: [&str; 2]) -> [f64; 2] {
    ["count", "sum"].map(|kind| {
        let series = format!("apiserver_request_duration_seconds_{kind}{{");
        let [resource, verb] = [format!("resource=\"{resource}\""), format!("verb=\"{verb}\"")];
        let lines = metrics.lines().filter(|line| line.starts_with(&series));
        let lines = lines.filter(|line| line.contains(&resource) && line.contains(&verb));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    })
}

/// The processor time of all processes of this program, in seconds.
fn processor_seconds(program: &str) -> f64 {
    let folders = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let ticks = folders.filter_map(|folder| {
        fs::read_link(folder.join("exe")).ok().filter(|path| path.file_name().is_some_and(|name| name == program))?;
        let stat = fs::read_to_string(folder.join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let field = |at: usize| fields[at].parse::<f64>().unwrap();
        Some(field(11) + field(12))
    });
    ticks.sum::<f64>() / CLOCK_TICKS
}

#[tokio::test]
async fn a_request_costs_three_calls_and_a_share_of_a_read() {
    service("Cost", &["HTTP/cost.contoso.com", "MSSQLSvc/cost.contoso.com:1433"]);
    let world = World::start("Cost").await;
    world.web("CostApp", "HTTP/cost.contoso.com, MSSQLSvc/cost.contoso.com:1433").await;
    let first = world.pod("first", "web", "web").await;
    let since = Instant::now();
    drop(world.agent(&first, "web").await);
    let first = since.elapsed();
    let mut tokens = Vec::new();
    for number in 0..PODS {
        let pod = world.pod(&format!("web-{number}"), "web", "web").await;
        tokens.push(world.token_of(&pod, "web").await);
    }

    let costs = async || {
        let metrics = world.plane.client.text("/metrics").await.unwrap();
        (CALLS.map(|(call, _)| called(&metrics, call)), PROCESSES.map(|(name, _)| processor_seconds(name)))
    };
    let (calls, seconds) = costs().await;
    let since = Instant::now();
    let given = stream::iter(0..REQUESTS).map(|number| world.answer(&tokens[number % PODS], "web"));
    let given = given.buffer_unordered(AT_ONCE).filter(|(status, _)| std::future::ready(*status == 200)).count().await;
    let took = since.elapsed().as_secs_f64();
    assert_eq!(given, REQUESTS, "{}", world.logs());
    let after = costs().await;

    let a_request = |whole: f64| whole / REQUESTS as f64;
    let made: Vec<[f64; 2]> =
        calls.iter().zip(after.0).map(|(before, after)| [after[0] - before[0], after[1] - before[1]]).collect();
    let rows = CALLS.iter().zip(&made).map(|((_, name), [count, sum])| {
        let each = if *count > 0.0 { format!("{:.1}", sum / count * 1000.0) } else { "–".to_owned() };
        vec![(*name).to_owned(), format!("{:.2}", a_request(*count)), each, String::new()]
    });
    let rows = rows.chain([vec!["service tickets".to_owned(), "2.00".to_owned(), "–".to_owned(), String::new()]]);
    let processes = PROCESSES.iter().zip(seconds.iter().zip(after.1)).map(|((_, name), (before, after))| {
        let whole = format!("{:.2}", a_request(after - before) * 1000.0);
        vec![(*name).to_owned(), String::new(), String::new(), whole]
    });
    let report = format!(
        "{}\n{REQUESTS} requests of {PODS} pods for tickets of two services, {AT_ONCE} at once: {:.0} tickets a second; the first ticket {} ms after \
         the start of its agent. A watch of credential specs would save {:.0} % of the time of the API server's answers.{}\n\n{}",
        table(&["", "calls a request", "ms a call", "processor time a request, ms"], rows.chain(processes)),
        2.0 * REQUESTS as f64 / took,
        first.as_millis(),
        made[3][1] / made.iter().map(|[_, sum]| sum).sum::<f64>() * 100.0,
        if cfg!(debug_assertions) { " The broker is a debug build, which takes several times as long." } else { "" },
        machine(Some(&world.plane.version)),
    );
    publish("tickets, domain", "e2e-tickets costs::", &report, env::var_os("DIRECTORY_WRITE").is_some());
    let counts: Vec<f64> = made.iter().map(|[count, _]| *count).collect();
    assert!(counts[0] >= REQUESTS as f64 && counts[1] >= REQUESTS as f64, "{counts:?}");
    assert!(counts[2] < REQUESTS as f64 / 10.0 && counts[3] < REQUESTS as f64, "{counts:?}");
}
