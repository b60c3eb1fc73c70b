//! Times: seconds as a number, or a number with its unit.

use std::time::Duration;

use toml::de::DeValue;

use super::mistake::Mistakes;
use super::table::Entry;

/// The units and their length in milliseconds. `ms` comes first, since it ends with `s`.
const UNITS: [(&str, f64); 4] = [("ms", 1.0), ("s", 1e3), ("m", 6e4), ("h", 3.6e6)];

/// How a time is written.
const FORMS: &str =
    "seconds, such as 10, or a number with its unit, such as \"500ms\", \"10s\", \"2m\", \"1h\"";

/// The longest time that means anything: about a century.
const LONGEST: Duration = Duration::from_hours(24 * 36_525);

/// A time above 0.
pub(super) fn time(entry: &Entry<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<Duration> {
    let time = read(entry.value()).filter(|time| !time.is_zero());
    if time.is_none() {
        entry.refuse(&format!("a time above 0: {FORMS}"), mistakes);
    }
    time
}

/// A time that may be 0.
pub(super) fn time_or_none(entry: &Entry<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<Duration> {
    let time = read(entry.value());
    if time.is_none() {
        entry.refuse(&format!("a time: {FORMS}"), mistakes);
    }
    time
}

fn read(value: &DeValue<'_>) -> Option<Duration> {
    let milliseconds = match value {
        DeValue::String(text) => with_unit(text),
        DeValue::Integer(number) => {
            let seconds = i64::from_str_radix(number.as_str(), number.radix());
            seconds
                .ok()
                .and_then(|seconds| number_of(&seconds.to_string()))
                .map(|seconds| seconds * 1e3)
        }
        DeValue::Float(number) => number_of(number.as_str()).map(|seconds| seconds * 1e3),
        _ => None,
    };
    milliseconds.and_then(of_milliseconds)
}

/// A time as a text: seconds, or a number with its unit. For other files that people write.
#[doc(hidden)]
pub fn read_time(text: &str) -> Option<Duration> {
    let seconds = || number_of(text).map(|seconds| seconds * 1e3);
    with_unit(text).or_else(seconds).and_then(of_milliseconds)
}

fn of_milliseconds(milliseconds: f64) -> Option<Duration> {
    let time = Duration::try_from_secs_f64(milliseconds / 1e3).ok();
    time.filter(|time| *time <= LONGEST)
}

fn with_unit(text: &str) -> Option<f64> {
    UNITS.iter().find_map(|(unit, length)| {
        let number = text.strip_suffix(unit)?;
        Some(number_of(number.trim_end())? * length)
    })
}

/// A decimal number: digits, perhaps with a point between them.
fn number_of(text: &str) -> Option<f64> {
    let is_plain = text.starts_with(|c: char| c.is_ascii_digit())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|_| is_plain)
}
