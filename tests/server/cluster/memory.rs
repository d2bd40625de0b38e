//! What ten thousand credential specs cost in memory. The cache is measured in a process of its own: this very test, run
//! again with the server's address.

use std::{env, fs, process::Command, sync::Arc};

use gmsa_cluster::{
    apiserver::ApiServer,
    resolver::{Freshness, Resolver as _},
};
use gmsa_core::admission::Source;
use gmsa_webhook::{cache::Cache, metrics::Metrics};
use serde_json::Value;
use tokio::task::JoinSet;

use super::{BUDGET, SOON, spec_name, within};
use crate::support::{SimulatedApi, Verb, control_plane::until};

const SPECS: usize = 10_000;
/// What may be allocated of the 40 MiB: the rest is for the program's own pages; a debug build has too many.
const LIMIT_KIB: usize = 30 * 1024;
/// The test below, as the test runner knows it.
const TEST: &str = "cluster::memory::ten_thousand_specs_take_less_than_forty_mebibytes_even_when_they_are_listed_again";
const ADDRESS: &str = "GMSA_WEBHOOK_TEST_SIMULATED_API";

/// A credential spec whose contents take about 600 bytes, with what the API server adds on its own.
fn numbered(name: usize, account: usize) -> Value {
    let text = include_str!("memory.json").replace("NAME", &format!("webapp-{name}"));
    serde_json::from_str(&text.replace("ACCOUNT", &format!("WebApp{account}"))).unwrap()
}

#[test]
fn ten_thousand_specs_take_less_than_forty_mebibytes_even_when_they_are_listed_again() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match env::var(ADDRESS) {
        Ok(address) => println!("allocated KiB: {}", runtime.block_on(measure(&address))),
        Err(_) => runtime.block_on(serve()),
    }
}

async fn serve() {
    let api = SimulatedApi::start().await;
    for n in 0..SPECS {
        api.apply(numbered(n, n));
    }
    let child = Command::new(env::current_exe().unwrap())
        .args([TEST, "--exact", "--nocapture"])
        .env(ADDRESS, api.url())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The first list and its watch, then the past is forgotten: a second list.
    api.wait_for(Verb::Watch, "gmsacredentialspecs", 1).await;
    api.apply(numbered(1, SPECS));
    api.compact();
    api.cut_watches();
    api.wait_for(Verb::List, "gmsacredentialspecs", 2 * SPECS.div_ceil(250)).await;
    // Only now what the other process waits for.
    api.apply(numbered(0, SPECS));
    let output = tokio::task::spawn_blocking(|| child.wait_with_output()).await.unwrap().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let lists = api.count(Verb::List, "gmsacredentialspecs");
    assert_eq!(lists, 2 * SPECS.div_ceil(250), "{output}");
    let allocated = output.lines().find_map(|line| line.strip_prefix("allocated KiB: "));
    let allocated: usize = allocated.unwrap_or_else(|| panic!("{output}")).parse().unwrap();
    assert!(allocated < LIMIT_KIB, "{allocated} KiB");
}

/// The memory that this process has allocated and touched, once the cache has come to know the last change.
async fn measure(address: &str) -> usize {
    let mut config = kube::Config::new(address.parse().unwrap());
    config.root_cert = Some(Vec::new());
    let (cache, watch) = Cache::new(Arc::new(ApiServer::new(config).unwrap()), Metrics::new().1, BUDGET, || ());
    let mut owner = JoinSet::new();
    owner.spawn(watch);
    until("memory knows the last change", async || {
        let answer = cache.resolve(&spec_name("webapp-0"), Freshness::Any, within(SOON)).await;
        (answer.source == Source::Cache && format!("{:?}", answer.fact).contains("WebApp10000")).then_some(())
    })
    .await;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let allocated = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    allocated.trim().trim_end_matches(" kB").parse().unwrap()
}
