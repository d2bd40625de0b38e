//! The form of a line, and what a slow reader of the log costs.

use std::sync::mpsc::{self, Receiver, Sender};

use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tracing::dispatcher::{self, Dispatch};
use tracing_subscriber::{layer::SubscriberExt as _, registry};

use super::*;

const LIMIT: Duration = Duration::from_secs(60);

/// Hands over what is written, and writes only while the gate lets it.
struct Reader {
    begun: Sender<()>,
    gate: Receiver<()>,
    writes: Sender<String>,
}

impl Write for Reader {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.begun.send(()).map_err(io::Error::other)?;
        self.gate.recv().map_err(io::Error::other)?;
        self.writes.send(String::from_utf8(text.to_vec()).unwrap()).map_err(io::Error::other)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Log {
    events: Dispatch,
    guard: WorkerGuard,
    dropped: ErrorCounter,
    begun: Receiver<()>,
    gate: Sender<()>,
    writes: Receiver<String>,
}

impl Log {
    fn new(format: LogFormat) -> Self {
        let ((enter, begun), (gate, wait), (sent, writes)) = (mpsc::channel(), mpsc::channel(), mpsc::channel());
        let reader = Reader { begun: enter, gate: wait, writes: sent };
        let (layer, guard, dropped) = layer(format, reader);
        Self { events: registry().with(layer).into(), guard, dropped, begun, gate, writes }
    }

    /// Lets the next writes through.
    fn read(&self, writes: usize) {
        (0..writes).for_each(|_| self.gate.send(()).unwrap());
    }

    /// Ends the log; gives back what was written since the start, write by write.
    fn end(self) -> Vec<String> {
        drop(self.guard);
        self.writes.try_iter().collect()
    }
}

/// What is written while `events` runs.
fn written(format: LogFormat, events: impl FnOnce()) -> String {
    let log = Log::new(format);
    log.read(100);
    dispatcher::with_default(&log.events, events);
    log.end().concat()
}

#[test]
fn an_event_is_a_line_with_its_time_level_target_message_and_fields() {
    let before = OffsetDateTime::now_utc();
    let line = written(LogFormat::Text, || {
        tracing::warn!(target: "gmsa", pod = "web-1", quoted = %"a b", code = 403_u16, took = ?Duration::from_millis(2), "denied");
    });
    let (at, rest) = line.split_once(' ').unwrap();
    assert_eq!(rest, " WARN gmsa: denied pod=\"web-1\" quoted=a b code=403 took=2ms\n");
    assert_eq!(at.len(), "2026-11-21T03:23:14.988002Z".len());
    let at = OffsetDateTime::parse(at, &Rfc3339).unwrap();
    assert!(at >= before - time::Duration::microseconds(1) && at <= OffsetDateTime::now_utc(), "{at}");
}

#[test]
fn no_value_can_begin_another_line() {
    let hostile = "x\n2026 INFO\u{1b}[31m \"y\"\r\u{85}ä";
    let events = || tracing::info!(target: "t", text = hostile, shown = %hostile, "{hostile}");
    let line = written(LogFormat::Text, events);
    assert_eq!(
        line.split_once("INFO t: ").unwrap().1,
        concat!(
            r#"x\n2026 INFO\u{1b}[31m "y"\r\u{85}ä"#,
            r#" text="x\n2026 INFO\u{1b}[31m \"y\"\r\u{85}ä""#,
            r#" shown=x\n2026 INFO\u{1b}[31m "y"\r\u{85}ä"#,
            "\n"
        )
    );
    let line = written(LogFormat::Json, events);
    assert!(!line.strip_suffix('\n').unwrap().contains(|c: char| c.is_ascii_control()), "{line:?}");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!([&line["message"], &line["text"], &line["shown"]], [hostile; 3]);
}

#[test]
fn no_line_is_longer_than_its_bound() {
    let hostile = "\\\"\u{10ffff}é\u{0}".repeat(LONGEST);
    let events = || tracing::error!(target: "t", cause = %hostile, "failed");
    let line = written(LogFormat::Text, events);
    assert!(line.len() <= LONGEST && line.contains("ERROR t: failed cause=\\\"") && line.ends_with("…\n"), "{line}");
    assert_eq!(line.lines().count(), 1);
    let line = written(LogFormat::Json, events);
    assert!(line.len() <= LONGEST && line.ends_with("}\n"), "{line}");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["message"], &line["level"]), (&"a longer line was cut".into(), &"ERROR".into()));
    assert!(OffsetDateTime::parse(line["timestamp"].as_str().unwrap(), &Rfc3339).is_ok(), "{line}");
    let head = line["line"].as_str().unwrap();
    assert!(head.starts_with("{\"timestamp\":") && head.contains(r#""message":"failed","cause":"\\\""#), "{head}");
}

#[test]
fn lines_come_whole_and_in_order_and_many_at_once() {
    let log = Log::new(LogFormat::Text);
    log.read(160);
    thread::scope(|scope| {
        for thread in 0..4 {
            let events = &log.events;
            scope.spawn(move || {
                dispatcher::with_default(events, || (0..200).for_each(|n| tracing::info!(target: "t", "{thread} {n}")));
            });
        }
    });
    let writes = log.end();
    let text = writes.concat();
    for thread in 0..4 {
        let mark = format!("t: {thread} ");
        let numbers: Vec<_> = text.lines().filter_map(|line| Some(line.split_once(&mark)?.1.to_owned())).collect();
        assert_eq!(numbers, (0..200).map(|n| n.to_string()).collect::<Vec<_>>());
    }
    assert_eq!(text.lines().count(), 800);
    assert!(writes.len() <= 160, "{} writes", writes.len());
}

#[test]
fn a_line_that_comes_alone_is_written_soon() {
    let log = Log::new(LogFormat::Text);
    log.read(1);
    dispatcher::with_default(&log.events, || tracing::info!(target: "t", "alone"));
    assert!(log.writes.recv_timeout(LIMIT).unwrap().ends_with(" INFO t: alone\n"));
}

#[test]
fn a_reader_that_does_not_read_costs_lines_not_time_or_memory() {
    let log = Log::new(LogFormat::Text);
    dispatcher::with_default(&log.events, || {
        tracing::info!(target: "t", "first");
        // From here on the thread is in the middle of its first write.
        log.begun.recv_timeout(LIMIT).unwrap();
        (0..LINES + 7).for_each(|n| tracing::info!(target: "t", "{n}"));
    });
    log.read(1000);
    // The end waits for a short time only.
    let mut text = String::new();
    while !text.ends_with(&format!(": {}\n", LINES - 1)) {
        text += &log.writes.recv_timeout(LIMIT).unwrap();
    }
    assert_eq!(log.dropped.dropped_lines(), 7);
    text += &log.end().concat();
    let found: Vec<_> = text.lines().map(|line| line.split_once(": ").unwrap().1.to_owned()).collect();
    let kept = (0..LINES).map(|n| n.to_string());
    assert_eq!(found, ["first".to_owned()].into_iter().chain(kept).collect::<Vec<_>>());
}

#[test]
fn the_end_does_not_wait_for_ever() {
    let log = Log::new(LogFormat::Text);
    dispatcher::with_default(&log.events, || tracing::info!(target: "t", "never read"));
    assert_eq!(log.end(), [""; 0]);
}
