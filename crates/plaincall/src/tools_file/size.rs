//! Sizes: bytes as a number, or a number with its unit.

use toml::de::DeValue;

use super::mistake::Mistakes;
use super::table::Entry;

/// The units and their length in bytes.
const UNITS: [(&str, u64); 3] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

pub(super) fn size(entry: &Entry<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<usize> {
    let bytes = match entry.value() {
        DeValue::String(text) => with_unit(text),
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    let size = bytes
        .filter(|bytes| *bytes > 0)
        .and_then(|bytes| usize::try_from(bytes).ok());
    if size.is_none() {
        entry.refuse(
            "a size above 0: bytes, such as 4096, or a number with its unit, such as \"64 KiB\", \"1 MiB\"",
            mistakes,
        );
    }
    size
}

fn with_unit(text: &str) -> Option<u64> {
    UNITS.iter().find_map(|(unit, length)| {
        let number = text.strip_suffix(unit)?.trim_end();
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = number.parse().ok().filter(|_| is_plain)?;
        number.checked_mul(*length)
    })
}
