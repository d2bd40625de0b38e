//! One event as one line of text: `2026-11-21T03:23:14.988002Z  INFO gmsa_webhook: ending signal="SIGTERM"`.
//!
//! What always holds: an event is one line, whatever its values hold, because control characters are escaped; texts from
//! outside are recorded as strings and stand in quotes. Spans are not shown. Written for speed, since every pod that is
//! changed is a line: tracing's own text format costs twice as much.

use std::{
    fmt::{self, Write as _},
    time::SystemTime,
};

use time::OffsetDateTime;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{FmtContext, FormatEvent, FormatFields, format::Writer},
    registry::LookupSpan,
};

/// Formats events as lines of text.
pub(super) struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        timestamp(&mut out, SystemTime::now().into())?;
        out.write_str(level(*event.metadata().level()))?;
        out.write_str(event.metadata().target())?;
        out.write_char(':')?;
        let mut fields = Fields { out, result: Ok(()) };
        event.record(&mut fields);
        fields.result?;
        fields.out.write_char('\n')
    }
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
fn timestamp(out: &mut impl fmt::Write, at: OffsetDateTime) -> fmt::Result {
    let year = u32::try_from(at.year()).unwrap_or(0);
    for (number, width, after) in [
        (year, 4, '-'),
        (u8::from(at.month()).into(), 2, '-'),
        (at.day().into(), 2, 'T'),
        (at.hour().into(), 2, ':'),
        (at.minute().into(), 2, ':'),
        (at.second().into(), 2, '.'),
        (at.microsecond(), 6, 'Z'),
    ] {
        for place in (0..width).rev() {
            out.write_char(char::from_digit(number / 10_u32.pow(place) % 10, 10).unwrap_or('0'))?;
        }
        out.write_char(after)?;
    }
    Ok(())
}

/// Writes ` name=value` for each field, and the message without its name.
struct Fields<W> {
    out: W,
    result: fmt::Result,
}

impl<W: fmt::Write> Fields<W> {
    fn field(&mut self, field: &Field, value: impl FnOnce(&mut Escaped<'_, W>) -> fmt::Result) {
        self.result = self.result.and_then(|()| {
            self.out.write_char(' ')?;
            if field.name() != "message" {
                self.out.write_str(field.name())?;
                self.out.write_char('=')?;
            }
            value(&mut Escaped(&mut self.out))
        });
    }
}

impl<W: fmt::Write> Visit for Fields<W> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.field(field, |Escaped(out)| {
            // Names and words, which are nearly all, need no look at each of their characters.
            if field.name() == "message" {
                Escaped(*out).write_str(value)
            } else if value.bytes().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) {
                out.write_char('"')?;
                out.write_str(value)?;
                out.write_char('"')
            } else {
                write!(out, "{value:?}")
            }
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.field(field, |out| write!(out, "{value:?}"));
    }
}

/// Writes a text with its control characters escaped.
struct Escaped<'w, W>(&'w mut W);

impl<W: fmt::Write> fmt::Write for Escaped<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if !text.contains(char::is_control) {
            return self.0.write_str(text);
        }
        text.chars().try_for_each(|c| {
            if c.is_control() { write!(self.0, "{}", c.escape_default()) } else { self.0.write_char(c) }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Seek as _},
        sync::Arc,
    };

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// What is written while `events` runs.
    fn written(events: impl FnOnce()) -> String {
        let mut file = tempfile::tempfile().unwrap();
        let layer =
            tracing_subscriber::fmt::layer().event_format(Line).with_writer(Arc::new(file.try_clone().unwrap()));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), events);
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
        timestamp(&mut text, at).unwrap();
        assert_eq!(text, "2024-02-29T00:00:05.000042Z");
    }
}
