//! The released binary under attack: a process in a memory cgroup, and what can be seen of it from outside.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use serde_json::Value;

use gmsa_test_support::cgroup::Cgroup;

use super::reviews::TRIAL;

/// The memory that it may use, in bytes: the chart's limit.
pub const MEMORY_LIMIT: u64 = 128 << 20;

/// How long it may take to listen.
const START_LIMIT: Duration = Duration::from_secs(30);

/// What came through the log so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Log {
    pub lines: usize,
    /// Bytes of the longest line.
    pub longest: usize,
}

/// A server that listens. It ends when it is dropped.
pub struct Server {
    // The process ends before its group is removed.
    child: Child,
    cgroup: Option<Cgroup>,
    log: Arc<Mutex<Log>>,
    pub address: SocketAddr,
    pub admin: SocketAddr,
}

impl Server {
    /// Starts the server with the credentials and the certificate in `folder`.
    pub fn start(binary: &Path, folder: &Path) -> Self {
        let cgroup = Cgroup::create(MEMORY_LIMIT);
        let mut command = cgroup.as_ref().map_or_else(|| Command::new(binary), |cgroup| cgroup.command(binary));
        // The image sets it too.
        command
            .env_clear()
            .env("MIMALLOC_PURGE_DELAY", "0")
            .env("KUBECONFIG", folder.join("kubeconfig"))
            .env("LOG_FORMAT", "json");
        command.arg("--tls-cert").arg(folder.join("tls.crt")).arg("--tls-key").arg(folder.join("tls.key"));
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--warn-namespaces", TRIAL]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (log, (say, listens)) = (Arc::default(), mpsc::channel());
        let (output, into) = (child.stderr.take().unwrap(), Arc::clone(&log));
        thread::spawn(move || read_log(output, &into, &say));
        let Ok((address, admin)) = listens.recv_timeout(START_LIMIT) else {
            let _ = child.kill();
            panic!("the server does not listen");
        };
        Self { child, cgroup, log, address, admin }
    }

    /// Whether a memory cgroup limits it.
    pub fn is_limited(&self) -> bool {
        self.cgroup.is_some()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Its resident memory, in MiB.
    pub fn resident(&self) -> f64 {
        self.status("VmRSS:") / 1024.0
    }

    /// The most memory that it used so far, in MiB: its group's account, or what was resident where that is more. The group
    /// counts the kernel's share; pages of the binary count where they were read first, which may be elsewhere.
    pub fn peak(&self) -> f64 {
        let group = self.cgroup.as_ref().and_then(Cgroup::peak).map_or(0.0, mib);
        group.max(self.status("VmHWM:") / 1024.0)
    }

    /// A line of `/proc/PID/status`, in KiB.
    fn status(&self, name: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map_or(0.0, |value| value.trim().trim_end_matches(" kB").parse().unwrap())
    }

    /// The CPU time that it took so far, in user mode and in the kernel, in seconds.
    pub fn cpu(&self) -> f64 {
        // Its entry stays, whether it runs or not, until it is waited for.
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // Behind its name, which may hold anything, the 12th and the 13th field, in clock ticks (proc(5)).
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let ticks: u32 = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u32>().unwrap()).sum();
        f64::from(ticks) / f64::from(u32::try_from(rustix::param::clock_ticks_per_second()).unwrap())
    }

    /// What it logged so far.
    pub fn log(&self) -> Log {
        *self.log.lock().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail where the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Counts lines until the log ends, and sends where the server listens.
fn read_log(output: impl Read, log: &Mutex<Log>, say: &mpsc::Sender<(SocketAddr, SocketAddr)>) {
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        let mut seen = log.lock().unwrap();
        seen.lines += 1;
        seen.longest = seen.longest.max(line.len());
        drop(seen);
        if let Some(addresses) = addresses(&line) {
            // Only the first is waited for.
            let _ = say.send(addresses);
        }
    }
}

fn addresses(line: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let line: Value = serde_json::from_slice(line).ok().filter(|line: &Value| line["message"] == "serving")?;
    let address = |field: &str| line[field].as_str()?.parse().ok();
    Some((address("address")?, address("admin")?))
}

#[expect(clippy::cast_precision_loss, reason = "memory is far below 2^53 bytes")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
