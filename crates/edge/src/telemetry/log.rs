//! The log: tracing-subscriber's formatters over tracing-appender's thread.
//!
//! Invariants: code that logs never waits for the reader of the log; at most [`LINES`] lines of at most [`LONGEST`]
//! bytes wait to be written, further ones are dropped and counted; an event is always one line, because control
//! characters in its values are escaped; when the guard is dropped, the lines that wait are written, or given up after
//! a second if nothing reads them.

use std::{
    fmt::{self, Write as _},
    io::{self, BufWriter, Write},
    mem,
    sync::{Arc, OnceLock},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tracing::{Subscriber, field::Field, level_filters::LevelFilter, subscriber};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    Layer,
    field::MakeExt as _,
    fmt::{
        MakeWriter,
        format::{Writer, debug_fn},
    },
    layer::SubscriberExt as _,
    registry,
    registry::LookupSpan,
};

use super::{LogFormat, cut_to};

/// The most lines that wait to be written: with [`LONGEST`], at most 4 MiB.
pub const LINES: usize = 1024;

/// The longest line, in bytes. The strings from outside that make up the line of a review are each cut so that it has fewer.
pub const LONGEST: usize = 4096;

/// How long lines are collected after a write. Many lines are one write, which matters when every pod is a line.
const PAUSE: Duration = Duration::from_millis(10);

/// A layer that writes events to what `open` gives, by a thread of its own.
pub fn layer<S, W, F>(format: LogFormat, open: F) -> (Box<dyn Layer<S> + Send + Sync>, WorkerGuard)
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + Send + 'static,
    F: Fn() -> W + Clone + Send + Sync + 'static,
{
    let dropped = Arc::new(OnceLock::new());
    let buffer = BufWriter::new(open());
    let out = Out { buffer, open, format, dropped: Arc::clone(&dropped), reported: 0, since_report: 0 };
    let (lines, guard) =
        NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES).thread_name("log").finish(out);
    dropped.get_or_init(|| lines.error_counter());
    (formatter(format, LogWriter { format, waiting: lines }), guard)
}

/// The lines that wait for the thread. None is longer than [`LONGEST`].
#[derive(Clone)]
struct LogWriter {
    format: LogFormat,
    waiting: NonBlocking,
}

impl MakeWriter<'_> for LogWriter {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

impl Write for LogWriter {
    /// Takes a whole line, as tracing-subscriber writes it.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if line.len() <= LONGEST {
            return self.waiting.write(line);
        }
        let text = String::from_utf8_lossy(line);
        // Room for the other fields of such a line.
        let head = cut_to(&text, LONGEST - 256);
        let cut = match self.format {
            LogFormat::Text => format!("{head}…\n"),
            LogFormat::Json => {
                let whole: Value = serde_json::from_str(&text).unwrap_or_default();
                let (timestamp, level) = (whole.get("timestamp"), whole.get("level"));
                let cut =
                    json!({"timestamp": timestamp, "level": level, "message": "a longer line was cut", "line": head});
                format!("{cut}\n")
            }
        };
        self.waiting.write_all(cut.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.waiting.flush()
    }
}

fn formatter<S, W>(format: LogFormat, out: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(out);
    match format {
        LogFormat::Text => layer.fmt_fields(debug_fn(write_field).delimited(" ")).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    }
}

/// The output of the thread, which flushes it when no line waits.
struct Out<W: Write, F> {
    buffer: BufWriter<W>,
    /// Opens the log's file, as [`io::stderr`] does.
    open: F,
    format: LogFormat,
    /// How many lines were dropped so far. It is set once there is a thread.
    dropped: Arc<OnceLock<ErrorCounter>>,
    reported: usize,
    /// The lines that were written since the last report.
    since_report: usize,
}

impl<W: Write + 'static, F: Fn() -> W + Clone + Send + Sync + 'static> Out<W, F> {
    /// Writes how many lines were dropped, past the queue of lines: the queue may be full.
    fn report(&mut self) -> io::Result<()> {
        self.since_report = 0;
        let dropped = self.dropped.get().map_or(0, ErrorCounter::dropped_lines);
        let new = dropped - mem::replace(&mut self.reported, dropped);
        if new > 0 {
            self.buffer.flush()?;
            let direct = formatter(self.format, self.open.clone()).with_filter(LevelFilter::WARN);
            subscriber::with_default(registry().with(direct), || {
                tracing::warn!(dropped = new, "log lines were dropped: the log is not read fast enough");
            });
        }
        Ok(())
    }
}

impl<W: Write + 'static, F: Fn() -> W + Clone + Send + Sync + 'static> Write for Out<W, F> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.buffer.write_all(line)?;
        self.since_report += 1;
        if self.since_report == LINES {
            self.report()?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.buffer.flush()?;
        self.report()?;
        thread::sleep(PAUSE);
        Ok(())
    }
}

/// Writes a field as `name=value`, and the message without its name. tracing-subscriber escapes what colours a terminal, but not
/// the end of a line.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    match field.name() {
        "message" => write!(Escaped(out), "{value:?}"),
        name => write!(Escaped(out), "{name}={value:?}"),
    }
}

/// Writes a string with its control characters escaped.
struct Escaped<'o, 'w>(&'o mut Writer<'w>);

impl fmt::Write for Escaped<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Nearly every text: looked through byte by byte, which is fast.
        if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return self.0.write_str(text);
        }
        for piece in text.split_inclusive(char::is_control) {
            let plain = piece.trim_end_matches(char::is_control);
            self.0.write_str(plain)?;
            write!(self.0, "{}", piece.get(plain.len()..).unwrap_or_default().escape_default())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
