//! One event as one line of text: `2026-11-21T03:23:14.988002Z  INFO gmsa_webhook: ending signal="SIGTERM"`.
//!
//! What always holds: an event is one line, whatever its values hold, because control characters are escaped; texts from
//! outside are recorded as strings and quoted. Spans are not shown. Written for speed, since every pod that is
//! changed is a line: tracing's own text format costs twice as much.

use std::{
    cell::Cell,
    fmt::{self, Write as _},
    time::SystemTime,
};

use time::OffsetDateTime;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context};

use super::lines::Lines;

/// Logs events as lines of text.
pub(super) struct Text(pub Lines);

impl<S: Subscriber> Layer<S> for Text {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        thread_local! {
            static LINE: Cell<String> = const { Cell::new(String::new()) };
        }
        // Taken out while it is in use: a value that logs while it is printed finds another one.
        let mut line = LINE.take();
        line.clear();
        // What a value cannot print of itself is missing in its line.
        let _ = write_line(&mut line, SystemTime::now().into(), event);
        self.0.add(line.as_bytes());
        LINE.set(line);
    }
}

fn write_line(line: &mut String, at: OffsetDateTime, event: &Event<'_>) -> fmt::Result {
    timestamp(line, at);
    line.push_str(level(*event.metadata().level()));
    line.push_str(event.metadata().target());
    line.push(':');
    let mut fields = Fields { line, result: Ok(()) };
    event.record(&mut fields);
    let result = fields.result;
    line.push('\n');
    result
}

fn level(level: Level) -> &'static str {
    match level {
        Level::ERROR => " ERROR ",
        Level::WARN => "  WARN ",
        Level::INFO => "  INFO ",
        Level::DEBUG => " DEBUG ",
        Level::TRACE => " TRACE ",
    }
}

/// RFC 3339 in UTC, to the microsecond.
fn timestamp(line: &mut String, at: OffsetDateTime) {
    let year = u32::try_from(at.year()).unwrap_or(0);
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    for (mut number, digits) in [
        (year, 0..4),
        (u8::from(at.month()).into(), 5..7),
        (at.day().into(), 8..10),
        (at.hour().into(), 11..13),
        (at.minute().into(), 14..16),
        (at.second().into(), 17..19),
        (at.microsecond(), 20..26),
    ] {
        for digit in text.get_mut(digits).unwrap_or_default().iter_mut().rev() {
            *digit += u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
        }
    }
    line.extend(str::from_utf8(&text));
}

/// Writes ` name=value` for each field, and the message without its name.
struct Fields<'l> {
    line: &'l mut String,
    result: fmt::Result,
}

impl Fields<'_> {
    fn name(&mut self, field: &Field) {
        self.line.push(' ');
        if field.name() != "message" {
            self.line.push_str(field.name());
            self.line.push('=');
        }
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.record_debug(field, &format_args!("{value}"));
        } else if is_plain(value) {
            // Names and words, which are nearly all.
            self.name(field);
            self.line.extend(["\"", value, "\""]);
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.name(field);
        self.result = self.result.and(write!(Escaped(self.line), "{value:?}"));
    }
}

/// Whether a text is printable ASCII, and the same in quotes. All bytes are looked at, so that it is done many at a time.
fn is_plain(text: &str) -> bool {
    text.bytes().fold(true, |plain, byte| plain & matches!(byte, b' ' | b'!' | b'#'..=b'[' | b']'..=b'~'))
}

/// Writes a text with its control characters escaped.
struct Escaped<'l>(&'l mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if is_plain(text) {
            self.0.push_str(text);
            return Ok(());
        }
        for c in text.chars() {
            if c.is_control() { self.0.extend(c.escape_default()) } else { self.0.push(c) }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// What is written while `events` runs.
    fn written(events: impl FnOnce()) -> String {
        let mut file = tempfile::tempfile().unwrap();
        let lines = Lines::default();
        let writing = lines.write_to(file.try_clone().unwrap(), |_| {}).unwrap();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(Text(lines)), events);
        drop(writing);
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn an_event_is_a_line_with_its_time_level_target_message_and_fields() {
        let before = SystemTime::now();
        let line = written(|| {
            tracing::warn!(target: "gmsa", pod = "web-1", quoted = %"a b", code = 403_u16, took = ?std::time::Duration::from_millis(2), "denied");
        });
        let (at, rest) = line.split_once(' ').unwrap();
        assert_eq!(rest, " WARN gmsa: denied pod=\"web-1\" quoted=a b code=403 took=2ms\n");
        let at = OffsetDateTime::parse(at, &time::format_description::well_known::Rfc3339).unwrap();
        let after = OffsetDateTime::from(SystemTime::now());
        assert!(at >= OffsetDateTime::from(before) - time::Duration::microseconds(1) && at <= after, "{at}");
    }

    #[test]
    fn no_value_can_begin_another_line() {
        let hostile = "x\n2026 INFO\u{1b}[31m \"y\"";
        let line = written(|| tracing::info!(target: "t", text = hostile, shown = %hostile, "{hostile}"));
        let (_, rest) = line.split_once("INFO t: ").unwrap();
        assert_eq!(
            rest,
            concat!(
                r#"x\n2026 INFO\u{1b}[31m "y""#,
                r#" text="x\n2026 INFO\u{1b}[31m \"y\"""#,
                r#" shown=x\n2026 INFO\u{1b}[31m "y""#,
                "\n"
            )
        );
    }

    #[test]
    fn a_time_is_printed_with_all_its_digits() {
        let mut text = String::new();
        let at = OffsetDateTime::from_unix_timestamp_nanos(1_709_164_805_000_042_999).unwrap();
        timestamp(&mut text, at);
        assert_eq!(text, "2024-02-29T00:00:05.000042Z");
    }
}
