//! The log: tracing-subscriber's formatters over tracing-appender's thread.
//!
//! Invariants: code that logs never waits for the reader of the log; at most [`LINES`] lines of at most [`LONGEST`]
//! bytes wait to be written, further ones are dropped and counted; an event is always one line, because control
//! characters in its values are escaped; when the guard is dropped, the lines that wait are written, or given up after
//! a second if nothing reads them.

use std::{
    fmt,
    io::{self, BufWriter, Write},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use tracing::{Subscriber, field::Field};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    Layer,
    field::MakeExt as _,
    fmt::format::{Writer, debug_fn},
    registry::LookupSpan,
};

use super::{LogFormat, cut_to};

/// The most lines that wait to be written: with [`LONGEST`], at most 4 MiB.
pub const LINES: usize = 1024;

/// The longest line, in bytes. The strings from outside that make up the line of a review are each cut so that it has fewer.
pub const LONGEST: usize = 4096;

/// How long lines are collected after a write. Many lines are one write, which matters when every pod is a line.
const PAUSE: Duration = Duration::from_millis(10);

/// A layer that writes events to `out`, by a thread of its own; and how many lines were dropped so far.
pub fn layer<S, W>(format: LogFormat, out: W) -> (Box<dyn Layer<S> + Send + Sync>, WorkerGuard, ErrorCounter)
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + Send + 'static,
{
    let out = Out(BufWriter::new(out));
    let (waiting, guard) =
        NonBlockingBuilder::default().lossy(true).buffered_lines_limit(LINES).thread_name("log").finish(out);
    let dropped = waiting.error_counter();
    let writer = LogWriter { format, waiting };
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(move || writer.clone());
    let layer = match format {
        LogFormat::Text => layer.fmt_fields(debug_fn(write_field).delimited(" ")).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
    };
    (layer, guard, dropped)
}

/// The lines that wait for the thread. None is longer than [`LONGEST`].
#[derive(Clone)]
struct LogWriter {
    format: LogFormat,
    waiting: NonBlocking,
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

/// The output of the thread, which flushes it when no line waits.
struct Out<W: Write>(BufWriter<W>);

impl<W: Write> Write for Out<W> {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.0.write(lines)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()?;
        thread::sleep(PAUSE);
        Ok(())
    }
}

/// Writes a field as `name=value`, and the message without its name, with control characters escaped. tracing-subscriber escapes what colours
/// a terminal, but not the end of a line.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let text = match field.name() {
        "message" => format!("{value:?}"),
        name => format!("{name}={value:?}"),
    };
    text.chars()
        .try_for_each(|c| if c.is_control() { write!(out, "{}", c.escape_default()) } else { out.write_char(c) })
}

#[cfg(test)]
mod tests;
