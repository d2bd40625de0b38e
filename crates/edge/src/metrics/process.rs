//! The standard figures of a process (`process_…`), asked of the system at each scrape.

use std::fs;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};
use rustix::process::{Resource, getrlimit};

/// Linux counts a process's times in ticks of this many to the second for every user space (`USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Reads the figures when it is asked. What the system does not give is left out.
#[derive(Debug)]
pub(super) struct Process {
    /// Seconds since 1970.
    pub started: i64,
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        if let Some(seconds) = cpu_seconds() {
            let counter = ConstCounter::new(seconds);
            let help = "Total user and system CPU time spent in seconds";
            counter.encode(encoder.encode_descriptor("process_cpu_seconds", help, None, counter.metric_type())?)?;
        }
        let gauges = [
            ("process_resident_memory_bytes", "Resident memory size in bytes", resident_bytes()),
            ("process_open_fds", "Number of open file descriptors", open_files()),
            ("process_max_fds", "Maximum number of open file descriptors", max_files()),
            ("process_start_time_seconds", "Start time of the process since unix epoch in seconds", Some(self.started)),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                let gauge = ConstGauge::new(value);
                gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
            }
        }
        Ok(())
    }
}

/// A field of `/proc/self/stat`, counted from 1 as in proc(5). The second, the name, may hold spaces: it ends at the last
/// parenthesis.
fn stat(field: usize) -> Option<u64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    let (_, after_name) = text.rsplit_once(") ")?;
    after_name.split_ascii_whitespace().nth(field.checked_sub(3)?)?.parse().ok()
}

#[expect(clippy::cast_precision_loss, reason = "ticks stay below 2^53 for longer than machines last")]
fn cpu_seconds() -> Option<f64> {
    Some((stat(14)? + stat(15)?) as f64 / TICKS_PER_SECOND)
}

fn resident_bytes() -> Option<i64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<i64>().ok()?.checked_mul(1024)
}

fn open_files() -> Option<i64> {
    i64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}

fn max_files() -> Option<i64> {
    i64::try_from(getrlimit(Resource::Nofile).current?).ok()
}
