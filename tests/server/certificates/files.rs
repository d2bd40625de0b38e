//! Certificate files that change while they are served.

use std::{
    convert::Infallible,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use gmsa_edge::tls::{KeyPair, Served, files::Files, issue::Issued};
use gmsa_webhook::metrics::Metrics;
use prometheus_client::registry::Registry;
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{sample, webhook};
use crate::{
    https::{DAY, authority, key_pair, leaf},
    support::{
        eventually,
        https::{Client, NAME},
    },
};

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

    /// As the kubelet does it: a new folder, a new link beside the old one, one rename, and the old folder goes.
    fn swap(&mut self, pair: &Issued) {
        let old = fs::read_link(self.path("..data")).ok();
        self.generation += 1;
        let folder = format!("..2024_01_01_00_00_00.{}", self.generation);
        fs::create_dir(self.path(&folder)).unwrap();
        write(&self.path(&folder), pair);
        symlink(&folder, self.path("..data_tmp")).unwrap();
        fs::rename(self.path("..data_tmp"), self.path("..data")).unwrap();
        if let Some(old) = old {
            fs::remove_dir_all(self.path(old.to_str().unwrap())).unwrap();
        }
    }
}

/// Writes a pair in place, one file after the other.
fn write(folder: &Path, pair: &Issued) {
    fs::write(folder.join("tls.crt"), &pair.cert).unwrap();
    fs::write(folder.join("tls.key"), &pair.key).unwrap();
}

/// What is served of the files in a folder, until it is dropped.
struct Kept {
    served: Served,
    registry: Registry,
    _keeper: JoinSet<Infallible>,
}

impl Kept {
    fn start(folder: &Path, interval: Duration) -> Self {
        let (metrics, _, registry) = Metrics::new();
        let served = Served::new(metrics);
        let files = Files { cert: folder.join("tls.crt"), key: folder.join("tls.key") };
        let mut keeper = JoinSet::new();
        keeper.spawn(files.keep_served(served.clone(), interval));
        Self { served, registry, _keeper: keeper }
    }

    async fn serves(&self, pair: &Issued) {
        let serial = serial(pair);
        let is_served = || self.served.current().is_some_and(|current| current.serial == serial);
        eventually("the certificate is served", is_served).await;
    }

    /// How many certificates were served and refused.
    fn reloads(&self) -> (u64, u64) {
        let count = |outcome| sample(&self.registry, &format!("certificate_reloads_total{{outcome=\"{outcome}\"}}"));
        (count("served"), count("refused"))
    }
}

fn serial(pair: &Issued) -> String {
    key_pair(pair).summary.serial
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_swaps_under_load_fail_nothing() {
    let ca = authority();
    let mut mounted = Mounted::new(&leaf(&ca, NAME));
    let kept = Kept::start(mounted.root.path(), NEVER);
    eventually("the first one is served", || kept.served.current().is_some()).await;
    let server = webhook(&kept.served);
    let address = server.address;
    let client = Client::trusting(ca.cert_pem());
    let answered = Arc::new(AtomicUsize::new(0));
    let mut load = JoinSet::new();
    for is_new in [true, true, false, false] {
        let (client, answered) = (client.clone(), Arc::clone(&answered));
        load.spawn(async move {
            let mut kept = client.keep_alive(address).await.unwrap();
            loop {
                if is_new {
                    client.review(address).await.unwrap();
                } else {
                    kept.review().await.unwrap();
                }
                answered.fetch_add(1, Ordering::Relaxed);
                // Several reviews of each lane fall into each swap, and leave it the time to compute.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
    }
    for _ in 0..200 {
        let next = leaf(&ca, NAME);
        mounted.swap(&next);
        kept.serves(&next).await;
        assert_eq!(client.serial(address).await.unwrap(), serial(&next));
    }
    assert_eq!(load.len(), 4);
    assert!(load.try_join_next().is_none(), "a review failed");
    assert_eq!(kept.reloads(), (201, 0));
    assert!(answered.load(Ordering::Relaxed) > 200, "there was no load");
}

#[tokio::test]
async fn whatever_is_wrong_with_the_files_the_old_pair_serves_on() {
    let ca = authority();
    let (good, next) = (leaf(&ca, NAME), leaf(&ca, NAME));
    let mut mounted = Mounted::new(&good);
    let kept = Kept::start(mounted.root.path(), NEVER);
    kept.serves(&good).await;
    let address = webhook(&kept.served).address;
    let client = Client::trusting(ca.cert_pem());

    let (cert, key) = (mounted.path("tls.crt"), mounted.path("tls.key"));
    let pair = format!("{} and {} cannot be served: ", cert.display(), key.display());
    let with = |cert: &str, key: &str| Issued { cert: cert.to_owned(), key: key.to_owned() };
    for (bad, reason) in [
        (with("", &next.key), "the certificate is empty"),
        (with(&next.cert, &next.key[..100]), "the private key is not valid PEM, or is not complete"),
        (with(&next.cert, &good.key), "the private key is not the key of the certificate"),
    ] {
        mounted.swap(&bad);
        eventually(reason, || kept.served.refusal() == Some(format!("{pair}{reason}"))).await;
        assert_eq!(client.serial(address).await.unwrap(), serial(&good), "{reason}");
        client.review(address).await.unwrap();
    }
    fs::remove_file(&key).unwrap();
    let gone = format!("cannot read {}: No such file or directory (os error 2)", key.display());
    eventually(&gone, || kept.served.refusal().as_ref() == Some(&gone)).await;
    client.review(address).await.unwrap();

    mounted.swap(&next);
    symlink("..data/tls.key", &key).unwrap();
    kept.serves(&next).await;
    assert_eq!((kept.served.refusal(), kept.reloads()), (None, (2, 4)));
    assert_eq!(client.serial(address).await.unwrap(), serial(&next));
}

/// The clock of the machine that issued it is ahead by less than clocks may differ.
#[tokio::test]
async fn a_pair_that_is_not_valid_yet_waits_until_it_is() {
    let ca = authority();
    let good = leaf(&ca, NAME);
    let mut mounted = Mounted::new(&good);
    let kept = Kept::start(mounted.root.path(), NEVER);
    kept.serves(&good).await;
    // Certificates begin an hour before they are made, at a whole second.
    let made = SystemTime::now() + Duration::from_secs(3606);
    let early = ca.issue("gmsa-webhook", &[NAME.to_owned()], made, DAY).unwrap().0;
    mounted.swap(&early);
    eventually("it is refused", || kept.reloads() == (1, 1)).await;
    assert_eq!(kept.served.current().unwrap().serial, serial(&good));
    kept.serves(&early).await;
    assert!(kept.served.current().unwrap().not_before <= SystemTime::now());
    assert_eq!((kept.served.refusal(), kept.reloads()), (None, (2, 1)));
}

#[tokio::test]
async fn a_folder_that_comes_later_or_is_replaced_is_found_by_the_timer_and_watched_again() {
    let ca = authority();
    let pairs = [(); 3].map(|()| leaf(&ca, NAME));
    let root = TempDir::new().unwrap();
    let current = root.path().join("current");
    let switch = |number: &str, pair: &Issued| {
        fs::create_dir(root.path().join(number)).unwrap();
        write(&root.path().join(number), pair);
        symlink(number, root.path().join("new")).unwrap();
        fs::rename(root.path().join("new"), &current).unwrap();
    };
    let kept = Kept::start(&current, Duration::from_millis(50));
    eventually("it is missed", || kept.reloads() == (0, 1)).await;
    let address = webhook(&kept.served).address;
    let client = Client::trusting(ca.cert_pem());
    client.serial(address).await.unwrap_err();
    for (number, pair) in [("0", &pairs[0]), ("1", &pairs[1])] {
        switch(number, pair);
        kept.serves(pair).await;
        assert_eq!(client.serial(address).await.unwrap(), serial(pair));
    }
    write(&current, &pairs[2]);
    kept.serves(&pairs[2]).await;
}

/// Keys of every kind, in every form in which they come; `tests/server/certificates/pairs` says which.
#[test]
fn every_kind_of_key_can_be_served() {
    // The clock of the machine that made them was ahead.
    let now = SystemTime::UNIX_EPOCH + 22_000 * DAY;
    let pairs = fs::read_dir("tests/server/certificates/pairs").unwrap().map(|entry| entry.unwrap().path());
    let seen = pairs.map(|path| {
        let pem = fs::read(&path).unwrap();
        let pair = KeyPair::from_pem(&pem, &pem, now).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(pair.summary.names, [NAME, "10.0.0.1"], "{}", path.display());
    });
    assert_eq!(seen.count(), 7);
}
