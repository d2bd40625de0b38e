//! Certificate files that change while they are served.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use gmsa_webhook::tls::{
    KeyPair, Served,
    files::Files,
    issue::{Ca, Issued},
};
use prometheus_client::registry::Registry;
use tempfile::TempDir;
use tokio::task::{JoinHandle, JoinSet};

use super::{DAY, NAME, authority, client::Client, leaf, nothing_served, sample, webhook};
use crate::support::eventually;

/// Longer than any test: what happens then happens because of the watch.
const NEVER: Duration = Duration::from_secs(3600);

/// A folder as the kubelet mounts a Secret: the files are links into `..data`, which is a link to a folder with a date.
struct Mounted {
    root: TempDir,
    generation: usize,
}

impl Mounted {
    fn new(pair: &Issued) -> Self {
        let mut mounted = Self { root: TempDir::new().unwrap(), generation: 0 };
        mounted.swap(pair);
        for file in ["tls.crt", "tls.key"] {
            symlink(Path::new("..data").join(file), mounted.path(file)).unwrap();
        }
        mounted
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn files(&self) -> Files {
        Files { cert: self.path("tls.crt"), key: self.path("tls.key") }
    }

    /// As the kubelet does it: a new folder, a new link beside the old one, one rename, and the old folder goes.
    fn swap(&mut self, pair: &Issued) {
        let old = fs::read_link(self.path("..data")).ok();
        self.generation += 1;
        let folder = format!("..2024_01_01_00_00_00.{}", self.generation);
        fs::create_dir(self.path(&folder)).unwrap();
        fs::write(self.path(&folder).join("tls.crt"), &pair.cert).unwrap();
        fs::write(self.path(&folder).join("tls.key"), &pair.key).unwrap();
        symlink(&folder, self.path("..data_tmp")).unwrap();
        fs::rename(self.path("..data_tmp"), self.path("..data")).unwrap();
        if let Some(old) = old {
            fs::remove_dir_all(self.path(old.to_str().unwrap())).unwrap();
        }
    }
}

/// Serves files until it is dropped.
struct Keeper(JoinHandle<()>);

impl Keeper {
    fn start(files: Files, served: &Served, interval: Duration) -> Self {
        let kept = files.keep_served(served.clone(), interval);
        Self(tokio::spawn(async move { match kept.await {} }))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn serial(pair: &Issued) -> String {
    let pair = KeyPair::from_pem(pair.cert.as_bytes(), pair.key.as_bytes(), SystemTime::now()).unwrap();
    pair.summary().serial.clone()
}

/// How often a clock ticks.
const TICK: Duration = Duration::from_millis(10);

/// A clock that goes slower where other processes leave this one little to compute with: it counts the ticks that a task of
/// this runtime gets.
struct Ticks {
    count: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Ticks {
    fn start() -> Self {
        let count = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&count);
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(TICK).await;
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { count, task }
    }

    /// How long it has gone.
    fn elapsed(&self) -> Duration {
        TICK * u32::try_from(self.count.load(Ordering::Relaxed)).unwrap()
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn until_served(served: &Served, serial: &str) {
    eventually("the certificate is served", || served.current().is_some_and(|current| current.serial == serial)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_swaps_under_load_fail_nothing() {
    let ca = authority();
    let first = leaf(&ca);
    let mut mounted = Mounted::new(&first);
    let (served, registry) = nothing_served();
    let _keeper = Keeper::start(mounted.files(), &served, NEVER);
    until_served(&served, &serial(&first)).await;
    let running = webhook(&served, None);
    let address = running.address;
    let client = Client::trusting(ca.cert_pem());
    let stop = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicUsize::new(0));
    let mut load = JoinSet::new();
    for lane in ["new", "new", "kept", "kept"] {
        let (client, stop, answered) = (client.clone(), Arc::clone(&stop), Arc::clone(&answered));
        load.spawn(async move {
            let mut kept = client.keep_alive(address).await.unwrap();
            while !stop.load(Ordering::Relaxed) {
                let reviewed = if lane == "new" { client.review(address).await } else { kept.review().await };
                reviewed.unwrap_or_else(|error| panic!("{lane}: {error}"));
                answered.fetch_add(1, Ordering::Relaxed);
                // Several reviews of each lane fall into each swap, and leave it the time to compute.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }
    let mut slowest = Duration::ZERO;
    let ticks = Ticks::start();
    for _ in 0..200 {
        let next = leaf(&ca);
        let (serial, swapped) = (serial(&next), ticks.elapsed());
        mounted.swap(&next);
        until_served(&served, &serial).await;
        slowest = slowest.max(ticks.elapsed().saturating_sub(swapped));
        assert_eq!(client.serial(address).await.unwrap(), serial);
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = load.join_next().await {
        ended.unwrap();
    }
    assert!(slowest < Duration::from_secs(1), "one swap took {slowest:?} to be served");
    assert_eq!(reloads(&registry), (201, 0));
    assert!(answered.load(Ordering::Relaxed) > 200, "there was no load");
}

#[tokio::test]
async fn whatever_is_wrong_with_the_files_the_old_pair_serves_on() {
    let ca = authority();
    let good = leaf(&ca);
    let mut mounted = Mounted::new(&good);
    let (served, registry) = nothing_served();
    let _keeper = Keeper::start(mounted.files(), &served, NEVER);
    until_served(&served, &serial(&good)).await;
    let running = webhook(&served, None);
    let address = running.address;
    let client = Client::trusting(ca.cert_pem());

    let (cert, key) = (mounted.path("tls.crt"), mounted.path("tls.key"));
    let pair = format!("{} and {} cannot be served: ", cert.display(), key.display());
    let with = |cert: &str, key: &str| Issued { cert: cert.to_owned(), key: key.to_owned() };
    let old = Ca::generate("old", SystemTime::now() - 3 * DAY, 100 * DAY).unwrap();
    let expired = old.issue(&[NAME.to_owned()], SystemTime::now() - 2 * DAY, DAY).unwrap();
    let expiry = expiry(&expired);
    let next = leaf(&ca);
    let cases = [
        (with("", &next.key), "the certificate is empty".to_owned()),
        (
            with(&next.cert, &next.key[..next.key.len() / 2]),
            "the private key is not valid PEM, or is not complete".to_owned(),
        ),
        (with(&next.cert, &good.key), "the private key is not the key of the certificate".to_owned()),
        (expired, format!("the certificate expired at {expiry}")),
    ];
    for (count, (bad, reason)) in cases.iter().enumerate() {
        mounted.swap(bad);
        eventually(reason, || served.refusal() == Some(format!("{pair}{reason}"))).await;
        assert_eq!(reloads(&registry), (1, count as u64 + 1), "{reason}");
        assert_eq!(sample(&registry, REFUSED), 1, "{reason}");
        assert_eq!(client.serial(address).await.unwrap(), serial(&good), "{reason}");
        client.review(address).await.unwrap();
    }

    fs::remove_file(&key).unwrap();
    let gone = format!("cannot read {}: No such file or directory (os error 2)", key.display());
    eventually(&gone, || served.refusal().as_ref() == Some(&gone)).await;
    client.review(address).await.unwrap();

    symlink("..data/tls.key", &key).unwrap();
    mounted.swap(&next);
    until_served(&served, &serial(&next)).await;
    assert_eq!((served.refusal(), sample(&registry, REFUSED)), (None, 0));
    assert_eq!(client.serial(address).await.unwrap(), serial(&next));

    // The gauge falls too when the files hold again what is served.
    mounted.swap(&cases[0].0);
    eventually("it is refused", || sample(&registry, REFUSED) == 1).await;
    mounted.swap(&next);
    eventually("it is accepted again", || sample(&registry, REFUSED) == 0).await;
    assert_eq!(reloads(&registry), (2, cases.len() as u64 + 2));
}

/// Whether the certificate that was offered last is refused, as metrics show it.
const REFUSED: &str = "certificate_refused";

/// How many certificates were served and refused.
fn reloads(registry: &Registry) -> (u64, u64) {
    let count = |outcome: &str| sample(registry, &format!("certificate_reloads_total{{outcome=\"{outcome}\"}}"));
    (count("served"), count("refused"))
}

fn expiry(pair: &Issued) -> String {
    let (_, pem) = x509_parser::pem::parse_x509_pem(pair.cert.as_bytes()).unwrap();
    let summary = gmsa_webhook::tls::Summary::of(&pem.parse_x509().unwrap());
    gmsa_webhook::tls::Timestamp(summary.not_after).to_string()
}

#[tokio::test]
async fn a_folder_that_is_replaced_is_found_by_the_timer_and_watched_again() {
    let ca = authority();
    let pairs = [leaf(&ca), leaf(&ca), leaf(&ca)];
    let root = TempDir::new().unwrap();
    for (number, pair) in pairs.iter().enumerate() {
        let folder = root.path().join(number.to_string());
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("tls.crt"), &pair.cert).unwrap();
        fs::write(folder.join("tls.key"), &pair.key).unwrap();
    }
    let current = root.path().join("current");
    let switch = |number: &str| {
        symlink(number, root.path().join("new")).unwrap();
        fs::rename(root.path().join("new"), &current).unwrap();
    };
    switch("0");
    let (served, _) = nothing_served();
    let files = Files { cert: current.join("tls.crt"), key: current.join("tls.key") };
    let _keeper = Keeper::start(files, &served, Duration::from_millis(100));
    until_served(&served, &serial(&pairs[0])).await;
    switch("1");
    until_served(&served, &serial(&pairs[1])).await;
    // A pair that is written in place, one file after the other.
    fs::write(root.path().join("1/tls.crt"), &pairs[2].cert).unwrap();
    fs::write(root.path().join("1/tls.key"), &pairs[2].key).unwrap();
    until_served(&served, &serial(&pairs[2])).await;
}

#[tokio::test]
async fn files_that_come_later_are_served_when_they_come() {
    let ca = authority();
    let pair = leaf(&ca);
    let root = TempDir::new().unwrap();
    let folder = root.path().join("later");
    let (served, registry) = nothing_served();
    let files = Files { cert: folder.join("tls.crt"), key: folder.join("tls.key") };
    let _keeper = Keeper::start(files, &served, Duration::from_millis(50));
    eventually("it is missed", || reloads(&registry) == (0, 1)).await;
    let running = webhook(&served, None);
    let address = running.address;
    let client = Client::trusting(ca.cert_pem());
    client.serial(address).await.unwrap_err();
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("tls.crt"), &pair.cert).unwrap();
    fs::write(folder.join("tls.key"), &pair.key).unwrap();
    until_served(&served, &serial(&pair)).await;
    assert_eq!(client.serial(address).await.unwrap(), serial(&pair));
}

/// Keys of every kind, in every form in which they come; `tests/server/certificates/pairs` says which.
#[test]
fn every_kind_of_key_can_be_served() {
    // The clock of the machine that made them was ahead.
    let now = SystemTime::UNIX_EPOCH + 22_000 * DAY;
    let mut seen = 0;
    for entry in fs::read_dir("tests/server/certificates/pairs").unwrap() {
        let path = entry.unwrap().path();
        let pem = fs::read(&path).unwrap();
        let pair = KeyPair::from_pem(&pem, &pem, now).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(pair.summary().names, [NAME, "10.0.0.1"], "{}", path.display());
        seen += 1;
    }
    assert_eq!(seen, 6);
}
