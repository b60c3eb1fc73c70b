//! Times and sizes as options say them.

use std::time::Duration;

/// Bytes.
pub(crate) type Size = usize;

/// The units of times and their length in milliseconds. `ms` comes first, since it ends with `s`.
const TIMES: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
/// The units of sizes and their length in bytes.
const SIZES: [(&str, u64); 4] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("B", 1),
];
/// No wait is longer: an unmarked number of milliseconds is no wish to wait for months.
const LONGEST: Duration = Duration::from_hours(24);

/// A time above 0.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let time = time_or_none(text)?;
    if time.is_zero() {
        return Err("a time above 0 is needed".to_owned());
    }
    Ok(time)
}

/// A time that may be 0.
pub(super) fn time_or_none(text: &str) -> Result<Duration, String> {
    let (number, unit) = in_units(text, &TIMES, 1000)
        .ok_or("a time is seconds, such as 10, or a number with its unit: 500ms, 10s, 2m, 1h")?;
    let time = number.checked_mul(unit).map(Duration::from_millis);
    time.filter(|time| *time <= LONGEST)
        .ok_or_else(|| "a time is at most 24h".to_owned())
}

/// A size above 0.
pub(super) fn size(text: &str) -> Result<Size, String> {
    let (number, unit) = in_units(text, &SIZES, 1)
        .ok_or("a size is bytes, such as 65536, or a number with its unit: 64KiB, 32MiB, 1GiB")?;
    let size = number.checked_mul(unit);
    size.and_then(|size| Size::try_from(size).ok())
        .filter(|size| (1..=1 << 40).contains(size))
        .ok_or_else(|| "a size is from 1 byte to 1024GiB".to_owned())
}

/// A whole number and the length of its unit, or of the usual one.
fn in_units(text: &str, units: &[(&str, u64)], usual: u64) -> Option<(u64, u64)> {
    let named = units
        .iter()
        .find_map(|(unit, length)| Some((text.strip_suffix(unit)?.trim_end(), *length)));
    let (number, length) = named.unwrap_or((text, usual));
    let is_plain = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    // More digits than a number can hold are as much as it can hold: too much.
    is_plain.then(|| (number.parse().unwrap_or(u64::MAX), length))
}

#[cfg(test)]
mod tests {
    use super::{size, time, time_or_none};

    #[test]
    fn times() {
        let table = [
            ("10", Ok(10_000)),
            ("500ms", Ok(500)),
            ("10s", Ok(10_000)),
            ("2 m", Ok(120_000)),
            ("24h", Ok(86_400_000)),
            ("25h", Err("at most 24h")),
            ("99999999999999999999999s", Err("at most 24h")),
            ("0", Err("above 0")),
            ("0ms", Err("above 0")),
            ("", Err("a time is seconds")),
            ("s", Err("a time is seconds")),
            ("-1s", Err("a time is seconds")),
            ("1.5s", Err("a time is seconds")),
            ("10 days", Err("a time is seconds")),
        ];
        for (text, expected) in table {
            match (time(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.as_millis(), expected, "{text}"),
                (Err(found), Err(words)) => assert!(found.contains(words), "{text}: {found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        assert!(time_or_none("0").is_ok_and(|time| time.is_zero()));
    }

    #[test]
    fn sizes() {
        let table = [
            ("4096", Ok(4096)),
            ("1B", Ok(1)),
            ("16KiB", Ok(16 << 10)),
            ("32 MiB", Ok(32 << 20)),
            ("1024GiB", Ok(1 << 40)),
            ("1025GiB", Err("to 1024GiB")),
            ("99999999999999999999GiB", Err("to 1024GiB")),
            ("0", Err("from 1 byte")),
            ("16k", Err("a size is bytes")),
            ("1.5MiB", Err("a size is bytes")),
            ("MiB", Err("a size is bytes")),
        ];
        for (text, expected) in table {
            match (size(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
                (Err(found), Err(words)) => assert!(found.contains(words), "{text}: {found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
