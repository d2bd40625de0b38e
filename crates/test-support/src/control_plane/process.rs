//! A process with a log file, that ends with its owner.

use std::{
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

/// How much of a log is shown, in lines.
const TAIL: usize = 30;

/// A process that was started here.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`. What it says goes to `NAME.log` in `folder`, behind what is there.
    pub fn start(name: &str, folder: &Path, command: &mut Command) -> Self {
        let log = folder.join(name).with_extension("log");
        let output = OpenOptions::new().create(true).append(true).open(&log).unwrap();
        command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output);
        let child = command.spawn().unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        Self { name: name.to_owned(), child, log }
    }

    /// Fails where it has ended.
    pub fn must_run(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("{} ended: {status}", self.name);
        }
    }

    /// Ends it at once, if it still runs: it gets no chance to clean up.
    pub fn end(&mut self) {
        // Both fail where the process is gone already, which is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// The CPU time that it took so far, in user mode and in the kernel.
    pub fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // Behind its name, which may hold anything, the 12th and the 13th field, in clock ticks (proc(5)).
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let ticks: u64 = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
    }

    /// What it said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
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
