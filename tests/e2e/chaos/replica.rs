//! A replica of the webhook: a process whose log is read, or is not, and whose clock may be wrong.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read as _, Write as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::control_plane::{Client, free_addresses, until};

/// How much of a log is kept, in bytes.
const MAX_LOG: usize = 16 << 20;

/// Where a replica writes its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// To a pipe that is read.
    Read,
    /// To a disk that is full.
    FullDisk,
}

/// How a replica is started.
#[derive(Clone)]
pub struct Start {
    pub binary: PathBuf,
    pub folder: PathBuf,
    pub flags: Vec<String>,
    pub log: Log,
    /// A library that shows another time, and the file that says which.
    pub clock: Option<(PathBuf, PathBuf)>,
}

/// It ends when it is dropped.
pub struct Replica {
    child: Child,
    pub address: SocketAddr,
    pub admin: Client,
    hold_log: Arc<AtomicBool>,
}

impl Replica {
    /// Starts a replica, and waits until it is ready. Its log goes to `NAME.log`.
    pub async fn start(start: &Start, name: &str) -> Self {
        let [address, admin] = free_addresses();
        let mut command = Command::new(&start.binary);
        command.env_clear().env("KUBECONFIG", start.folder.join("replica.kubeconfig")).env("LOG_FORMAT", "json");
        // The image sets it too.
        command.env("MIMALLOC_PURGE_DELAY", "0");
        command.args(&start.flags);
        command.args(["--listen", &address.to_string(), "--admin-listen", &admin.to_string()]);
        if let Some((library, time)) = &start.clock {
            command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", time);
            command.env("FAKETIME_CACHE_DURATION", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(match start.log {
            Log::Read => Stdio::piped(),
            Log::FullDisk => Stdio::from(OpenOptions::new().write(true).open("/dev/full").unwrap()),
        });
        let mut child = command.spawn().unwrap();
        let hold_log = Arc::<AtomicBool>::default();
        if let Some(mut pipe) = child.stderr.take() {
            let mut log = File::create(start.folder.join(name).with_extension("log")).unwrap();
            let held = Arc::clone(&hold_log);
            thread::spawn(move || {
                let (mut bytes, mut room) = ([0; 4096], MAX_LOG);
                loop {
                    while held.load(Ordering::Relaxed) {
                        thread::sleep(Duration::from_millis(20));
                    }
                    match pipe.read(&mut bytes) {
                        Ok(0) | Err(_) => return,
                        Ok(read) => {
                            room = room.saturating_sub(read);
                            if room > 0 {
                                log.write_all(&bytes[..read]).unwrap();
                            }
                        }
                    }
                }
            });
        }
        let admin = Client::with(kube::Config::new(format!("http://{admin}").parse().unwrap()));
        let mut replica = Self { child, address, admin, hold_log };
        until("the replica is ready", async || {
            assert!(replica.child.try_wait().unwrap().is_none(), "{name} ended");
            replica.admin.text("/readyz").await.ok()
        })
        .await;
        replica
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Asks it to end, and waits until it has.
    pub async fn end(mut self) {
        self.signal(Signal::TERM);
        until("the replica has ended", async || self.child.try_wait().unwrap()).await;
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Whether its log is no longer read.
    pub fn hold_log(&self, hold: bool) {
        self.hold_log.store(hold, Ordering::Relaxed);
    }

    /// A number in `/proc/PID/status`.
    pub fn status(&self, field: &str) -> f64 {
        let status = fs::read_to_string(self.proc().join("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or_default()
    }

    /// How many file descriptors are open.
    pub fn open_files(&self) -> usize {
        fs::read_dir(self.proc().join("fd")).map_or(0, Iterator::count)
    }

    fn proc(&self) -> PathBuf {
        Path::new("/proc").join(self.child.id().to_string())
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // Both fail where the process is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
