//! Durations of flags and of `?timeout=`, as Go prints them. The plugin's time-outs are client-go's instead: a bare number is seconds, and 0 has no limit.

use std::time::Duration;

/// A duration in a flag.
///
/// # Errors
/// What was expected.
pub fn duration(text: &str) -> Result<Duration, String> {
    go_duration(text).ok_or_else(|| "expected a duration with units, such as 10s, 1m30s or 500ms".to_owned())
}

/// Reads what Go's `Duration.String` prints: numbers, with or without a fraction, each with a unit. `kube::core::Duration` reads it
/// too, but panics where the number is too large, and this one comes in a request's query.
#[must_use]
pub fn go_duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 7] =
        [("h", 3600.0), ("ms", 1e-3), ("m", 60.0), ("s", 1.0), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9)];
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at_checked(end)?;
        let (unit, seconds) = UNITS.into_iter().find(|(unit, _)| tail.starts_with(unit))?;
        let part = number.parse::<f64>().ok()? * seconds;
        total = total.checked_add(Duration::try_from_secs_f64(part).ok()?)?;
        rest = tail.strip_prefix(unit)?;
    }
    (!text.is_empty()).then_some(total)
}
