//! Logs: one line per event on standard error, as text or as JSON. Traces, where a collector is named.

use std::{io, sync::OnceLock};

use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::{ErrorCounter, WorkerGuard};
use tracing_subscriber::{Layer as _, filter::Targets, layer::SubscriberExt, util::SubscriberInitExt};

mod log;
mod log_limit;
mod log_once;
pub mod otlp;

use gmsa_core::{causes::chain, quote};

use crate::Program;
pub use log::{LINES, LONGEST, layer};
pub use log_limit::{FIRST, LogLimit, PERIOD};
pub use log_once::LogOnce;
pub use otlp::{Endpoint, Traces};

/// The shape of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// The log's flags and variables of each program.
#[derive(Clone, Debug, clap::Args)]
pub struct LogArgs {
    /// Which events are logged: error, warn, info, debug, trace.
    #[arg(long, value_name = "LEVEL", env = "LOG_LEVEL", default_value = "info", value_parser = levels)]
    pub log_level: Targets,

    /// Shape of a log line.
    #[arg(long, value_enum, env = "LOG_FORMAT", default_value_t, hide_short_help = true)]
    pub log_format: LogFormat,
}

/// The start of the targets of this project's events.
const OWN: &str = "gmsa";

/// Which events are logged: a level, and others for single modules (`info,gmsa_edge::tls=debug`). Takes the level names of the Go webhook too
/// (`warning`, `fatal`, `panic`).
fn levels(text: &str) -> Result<Targets, &'static str> {
    const EXPECTED: &str = "expected error, warn, info, debug or trace";
    let text = text.trim().to_ascii_lowercase();
    let level = match text.as_str() {
        "" | "info" => LevelFilter::INFO,
        "panic" | "fatal" | "error" => LevelFilter::ERROR,
        "warn" | "warning" => LevelFilter::WARN,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        // `Targets` would read a single word as a module.
        list if list.contains('=') => return list.parse().map_err(|_| EXPECTED),
        _ => return Err(EXPECTED),
    };
    // The details of other projects help only their authors.
    Ok(Targets::new().with_default(level.min(LevelFilter::INFO)).with_target(OWN, level))
}

/// Starts logging, and making spans where they are exported. Called once, by a binary, which keeps the guard until it ends:
/// dropping it writes the lines that wait.
pub fn init(program: &Program, log: LogArgs, traces: Option<&Traces>) -> WorkerGuard {
    let (lines, guard, dropped) = layer(log.log_format, io::stderr());
    DROPPED_LINES.get_or_init(|| dropped);
    let levels = log.log_level.with_target(program.spans, LevelFilter::OFF);
    // Each layer has its own filter: a span that no layer wants costs one comparison. A layer of `None` would want them all.
    let mut layers = vec![lines.with_filter(levels).boxed()];
    if let Some(traces) = traces {
        let spans =
            tracing_opentelemetry::layer().with_tracer(traces.tracer()).with_location(false).with_threads(false);
        layers.push(spans.with_filter(Targets::new().with_target(program.spans, LevelFilter::TRACE)).boxed());
    }
    tracing_subscriber::registry().with(layers).init();
    guard
}

/// Counts the lines that this process dropped.
static DROPPED_LINES: OnceLock<ErrorCounter> = OnceLock::new();

/// Logs how many lines were dropped since this process started, where that is not `reported`. Returns what is reported then: the line itself may be
/// dropped.
pub(crate) fn report_dropped(reported: usize) -> usize {
    let count = || DROPPED_LINES.get().map_or(0, ErrorCounter::dropped_lines);
    let dropped = count();
    if dropped != reported {
        tracing::warn!(dropped, "log lines were dropped: the log is not read fast enough");
    }
    if count() == dropped { dropped } else { reported }
}

/// A string from outside, fit for a log line: the log escapes it.
pub fn cut(text: &str) -> &str {
    cut_to(text, quote::NAME)
}

/// A message with several strings from outside, fit for a log line.
pub fn cut_message(text: &str) -> &str {
    cut_to(text, quote::MESSAGE)
}

/// The start of the text that takes at most `most` bytes in a line: either form of the log may escape a character.
fn cut_to(text: &str, most: usize) -> &str {
    let mut taken = 0;
    let end = text.char_indices().find_map(|(at, c)| {
        // JSON has six bytes for a control character, `char::escape_debug` up to ten for what else it escapes.
        taken += if c.is_ascii_control() { 6 } else { c.escape_debug().map(char::len_utf8).sum() };
        (taken > most).then_some(at)
    });
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_as_the_go_webhook_reads_them() {
        let level = |text: &str| levels(text).map(|levels| levels.to_string());
        assert_eq!(level(""), level("info"));
        assert_eq!(level("WARNING"), level("warn"));
        assert_eq!(level("fatal"), level("error"));
        assert_eq!(level("debug"), Ok("gmsa=debug,info".to_owned()));
        assert_eq!(level("loud"), Err("expected error, warn, info, debug or trace"));
        assert_eq!(level("info,gmsa_edge::tls=debug"), Ok("gmsa_edge::tls=debug,info".to_owned()));
    }

    #[test]
    fn a_text_is_cut_by_the_bytes_that_it_takes_in_a_line() {
        assert_eq!((cut(&"x".repeat(253)).len(), cut(&"x".repeat(254)).len()), (253, 253));
        assert_eq!((cut(&"é".repeat(300)).len(), cut(&"\"".repeat(300)).len()), (252, 126));
        assert_eq!((cut(&"\u{0}".repeat(300)).len(), cut(&"\u{10ffff}".repeat(300)).len()), (42, 25 * 4));
    }
}
