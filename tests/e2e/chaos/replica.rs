//! A replica of the webhook: a process whose log is read, or is not, and whose clock may be wrong.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    thread,
};

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::control_plane::{Client, Process, free_addresses, log_of, until};

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
    pub process: Process,
    pub address: SocketAddr,
    pub admin: Client,
    /// Locked while its log is not read.
    log: Arc<Mutex<()>>,
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
        let not_read = Arc::<Mutex<()>>::default();
        match start.log {
            Log::Read => {
                let (pipe, writer) = io::pipe().unwrap();
                command.stderr(writer);
                let (log, held) = (File::create(log_of(name, &start.folder)).unwrap(), Arc::clone(&not_read));
                thread::spawn(move || copy(pipe, log, &held));
            }
            Log::FullDisk => {
                command.stderr(OpenOptions::new().write(true).open("/dev/full").unwrap());
            }
        }
        let mut process = Process::spawn(name, &start.folder, &mut command);
        let admin = Client::of_port(admin);
        until("the replica is ready", async || {
            process.must_run();
            admin.text("/readyz").await.ok()
        })
        .await;
        Self { process, address, admin, log: not_read }
    }

    /// Asks it to end, and waits until it has.
    pub async fn end(mut self) {
        self.process.terminate();
        until("the replica has ended", async || self.process.has_ended().then_some(())).await;
    }

    /// Its log is not read while this is held.
    pub async fn hold_log(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.log).lock_owned().await
    }
}

/// Reads a log while it is not held.
fn copy(mut pipe: io::PipeReader, mut log: File, held: &Mutex<()>) {
    let (mut bytes, mut room) = ([0; 4096], MAX_LOG);
    while let Ok(read @ 1..) = pipe.read(&mut bytes) {
        let _not_held = held.blocking_lock();
        room = room.saturating_sub(read);
        if room > 0 {
            log.write_all(&bytes[..read]).unwrap();
        }
    }
}
