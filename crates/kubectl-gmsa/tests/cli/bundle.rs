//! `doctor --bundle`: what is in the file, and above all what is not.

use std::{fs, path::Path, process::Output};

use serde_json::{Value, json};

use super::{
    cluster::run_in,
    compare, program, shown,
    simulated::{cluster, folder},
    support::{Fault, SimulatedApi, Verb},
    text,
};

async fn bundle(api: &SimulatedApi, folder: &Path) -> Output {
    run_in(folder, api, &["doctor", "--bundle", "gmsa.json"]).await
}

/// The clusters: one with Windows pods, one with Linux pods.
const CLUSTERS: [&str; 2] = ["bundle", "bundle-tickets"];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_secret_is_in_it_and_nothing_else_than_these_fields() {
    for cluster in CLUSTERS {
        holds_these_fields(cluster).await;
    }
}

/// All that it holds of the planted cluster is in its `gmsa.json`.
async fn holds_these_fields(of: &str) {
    let api = cluster(&folder(of)).await;
    let temporary = tempfile::tempdir().unwrap();
    let output = bundle(&api, temporary.path()).await;
    assert_eq!(text(&output.stderr), "gmsa.json written: read it before you share it\n");
    assert_eq!(output.status.code(), Some(1), "both clusters have a fault");
    let file = temporary.path().join("gmsa.json");
    let mut written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    written["taken"] = json!("TIME");
    let written = format!("{written:#}\n");
    for secret in ["PLANTED", "244818ae", "CmsPlugins"] {
        assert!(!written.contains(secret), "{secret}: {written}");
    }
    let wrong = compare(&folder(of).join("gmsa.json"), &written);
    assert!(wrong.is_none(), "{}", wrong.unwrap_or_default());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_is_judged_as_the_cluster_was() {
    for cluster in CLUSTERS {
        is_judged_as_it_was(cluster).await;
    }
}

async fn is_judged_as_it_was(of: &str) {
    let api = cluster(&folder(of)).await;
    api.fault(Verb::List, "/api/v1/nodes", usize::MAX, Fault::forbidden());
    let folder = tempfile::tempdir().unwrap();
    let live = bundle(&api, folder.path()).await;
    let recorded = program(folder.path()).args(["doctor", "--from", "gmsa.json"]).output().unwrap();
    // What is wrong with the contents is said, and nothing of them; the domains in them are what the DNS is asked for.
    let comparable = |output: &Output| {
        let lines = text(&output.stdout).lines();
        lines
            .filter(|line| ["webapp1: ", "  DNS  ", "-> "].iter().all(|of| !line.contains(of)))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert!(comparable(&live).iter().any(|line| line.starts_with("skip  Windows nodes")), "{live:?}");
    let (lines, found) = (comparable(&live), comparable(&recorded));
    let differ: Vec<_> = lines.iter().filter(|line| !found.contains(line)).collect();
    assert!(differ.is_empty(), "{differ:#?}\n{found:#?}");
    assert_eq!(recorded.status.code(), live.status.code());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_of_a_bundle_is_answered_as_by_the_cluster() {
    answers_as_the_cluster("bundle", "why pod/web -n shop").await;
    for pod in ["runs", "older", "api-1-a"] {
        answers_as_the_cluster("bundle-tickets", &format!("why pod/{pod} -n shop")).await;
    }
}

/// Whether it answers this, and the other questions, alike.
async fn answers_as_the_cluster(of: &str, question: &str) {
    let api = cluster(&folder(of)).await;
    let folder = tempfile::tempdir().unwrap();
    bundle(&api, folder.path()).await;
    for command in [
        question,
        "why deploy/api -n shop",
        "outdated -A",
        "check -A",
        "who-can webapp1",
        "who-can --serviceaccount shop:web",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let live = run_in(folder.path(), &api, &words).await;
        let recorded = program(folder.path()).args(words).args(["--from", "gmsa.json"]).output().unwrap();
        // A bundle has no objects that have nothing to do with GMSA.
        let said =
            |output: &Output| shown(output).lines().filter(|line| !line.ends_with(" objects")).collect::<String>();
        assert_eq!(said(&recorded), said(&live), "{command}");
    }
}
