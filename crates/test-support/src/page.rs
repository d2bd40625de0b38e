//! Generated sections of the pages, between two marks; and the tables and the machine of the benchmarks' reports.

use std::{env, fs, process::Command, thread};

use crate::repository;

pub fn table<H: AsRef<str>>(head: &[H], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let cell = |text: &str| if text.is_empty() { " |".to_owned() } else { format!(" {text} |") };
    let line = |cells: String| format!("|{cells}\n");
    let rows = rows.into_iter().map(|row| line(row.iter().map(|text| cell(text)).collect()));
    let head = [line(head.iter().map(|text| cell(text.as_ref())).collect()), line("---|".repeat(head.len()))];
    head.into_iter().chain(rows).collect()
}

/// Prints a report, and writes it between its marks on the page where that is wanted.
pub fn publish(name: &str, recipe: &str, report: &str, write: bool) {
    println!("{report}\n");
    if !write {
        return;
    }
    let begin = format!("<!-- {name}: written by `just {recipe} --write` -->");
    write_section("docs/measurements.md", &begin, &format!("<!-- {name}: end -->"), report);
}

/// The last line of a report: what it ran on, with the version of the API server where there was one.
pub fn machine(api_server: Option<&str>) -> String {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = field("/proc/meminfo", "MemTotal").and_then(|size| size.split(' ').next()?.parse::<u64>().ok());
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("--version").output().unwrap();
    format!(
        "- Machine: {} cores ({}), {} GiB of memory, Linux {}, Rust {}{}.",
        thread::available_parallelism().unwrap(),
        field("/proc/cpuinfo", "model name").unwrap_or_else(|| env::consts::ARCH.to_owned()),
        (memory.unwrap_or_default() + (1 << 19)) >> 20,
        release.trim(),
        String::from_utf8_lossy(&rustc.stdout).split(' ').nth(1).unwrap_or_default(),
        api_server.map_or_else(String::new, |version| format!(", kube-apiserver {version}, etcd without fsync")),
    )
}

/// Puts a report between its two marks on a page.
fn write_section(page: &str, begin: &str, end: &str, report: &str) {
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
        return write_section(page, &begin, &end, text.trim());
    }
    let whole = fs::read_to_string(repository().join(page)).unwrap();
    let (_, rest) = whole.split_once(&begin).unwrap();
    assert_eq!(rest.split_once(&end).unwrap().0.trim(), text.trim(), "run {command}");
}
