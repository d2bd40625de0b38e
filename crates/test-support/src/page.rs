//! Generated sections of the pages, between two marks; and the machine that the benchmarks' reports name.

use std::{env, fs, process::Command, thread};

use crate::repository;

/// The machine that the benchmark ran on.
pub fn machine() -> String {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = field("/proc/meminfo", "MemTotal").and_then(|size| size.split(' ').next()?.parse::<u64>().ok());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("--version").output().unwrap();
    format!(
        "{} cores ({}), {} GiB of memory, Linux {}, Rust {}",
        thread::available_parallelism().unwrap(),
        field("/proc/cpuinfo", "model name").unwrap_or_else(|| env::consts::ARCH.to_owned()),
        (memory.unwrap_or_default() + (1 << 19)) >> 20,
        release.trim(),
        String::from_utf8_lossy(&rustc.stdout).split(' ').nth(1).unwrap_or_default(),
    )
}

/// Puts a report between its two marks on a page.
pub fn write(page: &str, begin: &str, end: &str, report: &str) {
    let page = repository().join(page);
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    fs::write(&page, format!("{before}{begin}\n\n{report}\n\n{end}{after}")).unwrap();
}

/// Fails where a page does not have this text between its marks; writes it instead where `UPDATE_SNAPSHOTS` is set, as `command` does.
pub fn assert_section(page: &str, name: &str, command: &str, text: &str) {
    let (begin, end) = (format!("<!-- {name}: written by `{command}` -->"), format!("<!-- {name}: end -->"));
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        return write(page, &begin, &end, text.trim());
    }
    let whole = fs::read_to_string(repository().join(page)).unwrap();
    let (_, rest) = whole.split_once(&begin).unwrap();
    assert_eq!(rest.split_once(&end).unwrap().0.trim(), text.trim(), "run {command}");
}
