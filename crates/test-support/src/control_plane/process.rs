//! A process with a log file, that ends with its owner, and what the kernel says of it.

use std::{
    fs::{self, OpenOptions},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use super::until;
use crate::cgroup::Cgroup;

/// How much of a log is shown, in lines.
const TAIL: usize = 30;

/// A process that was started here.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    // Removed when the process has ended.
    cgroup: Option<Cgroup>,
}

impl Process {
    /// Starts `command`. What it says goes to `NAME.log` in `folder`, behind what is there.
    pub fn start(name: &str, folder: &Path, command: &mut Command) -> Self {
        let log = OpenOptions::new().create(true).append(true).open(log_of(name, folder)).unwrap();
        Self::spawn(name, folder, command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log))
    }

    /// The same for a `command` that writes its output elsewhere.
    pub fn spawn(name: &str, folder: &Path, command: &mut Command) -> Self {
        let child = command.spawn().unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        Self { name: name.to_owned(), child, log: log_of(name, folder), cgroup: None }
    }

    /// Keeps the group that it was started in.
    #[must_use]
    pub fn within(mut self, cgroup: Option<Cgroup>) -> Self {
        self.cgroup = cgroup;
        self
    }

    /// Fails where it has ended.
    pub fn must_run(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("{} ended: {status}", self.name);
        }
    }

    /// Waits until it listens on this address.
    pub async fn until_it_listens(&mut self, address: SocketAddr) {
        until(&format!("{} listens", self.name.clone()), async || {
            self.must_run();
            TcpStream::connect(address).ok()
        })
        .await;
    }

    /// Ends it at once, if it still runs: it gets no chance to clean up.
    pub fn end(&mut self) {
        // Both fail where the process is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// What signals it after it has been moved away, while it runs.
    pub fn signaller(&self) -> impl Fn(Signal) + Send + use<> {
        let process = Pid::from_child(&self.child);
        move |signal| kill_process(process, signal).unwrap()
    }

    pub fn has_ended(&mut self) -> bool {
        self.ended().is_some()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// The CPU time that it took so far, in user mode and in the kernel. It is there until the process is waited for.
    pub fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(self.proc("stat")).unwrap();
        // Behind its name, which may hold anything, the 12th and the 13th field, in clock ticks (proc(5)).
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let ticks: u64 = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
    }

    /// A number of `/proc/PID/status`; 0 where it has ended.
    pub fn status(&self, field: &str) -> f64 {
        let status = fs::read_to_string(self.proc("status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.map_or(0.0, |line| line.trim().trim_end_matches(" kB").parse().unwrap())
    }

    /// Its resident memory, in MiB.
    pub fn resident(&self) -> f64 {
        self.status("VmRSS") / 1024.0
    }

    /// The most memory that it used so far, in MiB: its group's account, or what was resident where that is more. The group
    /// counts the kernel's share; pages of the binary count where they were read first, which may be elsewhere.
    pub fn peak(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "memory is far below 2^53 bytes")]
        let group = self.cgroup.as_ref().and_then(Cgroup::peak).unwrap_or_default() as f64 / f64::from(1 << 20);
        group.max(self.status("VmHWM") / 1024.0)
    }

    /// How many file descriptors are open.
    pub fn open_files(&self) -> usize {
        fs::read_dir(self.proc("fd")).map_or(0, Iterator::count)
    }

    fn proc(&self, file: &str) -> PathBuf {
        Path::new("/proc").join(self.child.id().to_string()).join(file)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// The file with the log of a process.
pub fn log_of(name: &str, folder: &Path) -> PathBuf {
    folder.join(name).with_extension("log")
}

/// Raises the limit of open files of this process and its children to `wanted`, or to the system's maximum.
pub fn raise_open_files(wanted: u64) {
    let files = getrlimit(Resource::Nofile);
    let wanted = files.maximum.map_or(wanted, |most| most.min(wanted)).max(files.current.unwrap_or(u64::MAX));
    setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..files }).unwrap();
}

/// The last lines of every log in a folder.
pub fn tails(folder: &Path) -> String {
    let mut logs: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.sort();
    logs.iter().map(|log| tail(log)).collect()
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len().saturating_sub(TAIL)..].join("\n");
    format!("--- the end of {}\n{last}\n", log.file_name().unwrap().display())
}
