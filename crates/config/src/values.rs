//! Common types of fields: durations and sizes, and lists and texts with a short form.

use core::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// The units of durations, in seconds. `ms` comes first, since it ends with `s`.
const TIMES: [(&str, f64); 4] = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
/// The units of sizes in bytes. `B` comes last, since the others end with it.
const SIZES: [(&str, u64); 4] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("B", 1),
];
/// The maximum duration: about a century.
const LONGEST: Duration = Duration::from_hours(24 * 36_525);

const TIME: &str = "a duration above 0: seconds, such as 10, or a number with a unit, such as \"500ms\", \"1.5s\", \"2m\", \"1h\"";
const TIME_OR_ZERO: &str = "a duration: seconds, such as 10, or a number with a unit, such as \"500ms\", \"1.5s\", \"2m\", \"1h\"";
const SIZE: &str =
    "a size above 0: bytes, such as 4096, or a number with a unit, such as \"64 KiB\", \"1 MiB\"";

/// A text. Other scalar values, such as a port number, are accepted as they are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename = "$AsText")]
#[schemars(inline, rename = "AsText", extend("type" = ["string", "number", "boolean"]))]
pub struct AsText(pub String);

/// A text or a list of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename = "$OneOrMore")]
#[schemars(inline, rename = "OneOrMore", extend("type" = ["string", "array"]))]
pub struct OneOrMore(pub Vec<String>);

/// A positive duration: seconds, or a decimal number with `ms`, `s`, `m` or `h`, such as `10`, `"300ms"`, `"1.5s"`, `"2m"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "AsText")]
#[schemars(inline, with = "AsText", extend(
    "type" = ["string", "number"],
    "format" = "time",
    "pattern" = "^[0-9]+(\\.[0-9]+)? *(ms|s|m|h)?$"
))]
pub struct Time(pub Duration);

/// A duration like [`Time`], or 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "AsText")]
#[schemars(inline, with = "AsText", extend("type" = ["string", "number"], "format" = "time"))]
pub struct TimeOrZero(pub Duration);

/// A positive size: bytes, or an integer with `KiB`, `MiB`, `GiB` or `B`, such as `200000`, `"64 KiB"`, `"1MiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "AsText")]
#[schemars(inline, with = "AsText", extend("type" = ["string", "integer"], "format" = "size"))]
pub struct Size(pub usize);

/// An IP address and a port, such as `127.0.0.1:8080`. Host names are invalid, because they may have several addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "AsText")]
#[schemars(inline, with = "String")]
pub struct SocketAddress(pub SocketAddr);

/// Splits off the unit and returns the number and the factor. Without a unit, the factor is `base`.
fn split<'t, F: Copy>(text: &'t str, units: &[(&str, F)], base: F) -> (&'t str, F) {
    let unit = |(unit, factor): &(&str, F)| Some((text.strip_suffix(unit)?.trim_end(), *factor));
    units.iter().find_map(unit).unwrap_or((text, base))
}

fn time(text: &str) -> Option<Duration> {
    let (number, factor) = split(text, &TIMES, 1.0);
    let is_digit_or_point = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let is_plain =
        number.starts_with(|c: char| c.is_ascii_digit()) && number.bytes().all(is_digit_or_point);
    let number: f64 = number.parse().ok().filter(|_| is_plain)?;
    let time = Duration::try_from_secs_f64(number * factor).ok()?;
    // Most decimal numbers have no exact binary representation.
    let micros = (time.as_nanos() + 500) / 1000;
    let time = Duration::from_micros(u64::try_from(micros).ok()?);
    Some(time).filter(|time| *time <= LONGEST)
}

fn size(text: &str) -> Option<usize> {
    let (number, factor) = split(text, &SIZES, 1);
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| is_plain)?;
    usize::try_from(number.checked_mul(factor)?).ok()
}

/// Parses a type from options and files.
macro_rules! from_text {
    ($type:ident, $wanted:expr, $read:expr) => {
        impl FromStr for $type {
            type Err = &'static str;

            /// # Errors
            /// Returns the phrase after "it must be".
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $read(text).map(Self).ok_or($wanted)
            }
        }

        impl TryFrom<AsText> for $type {
            type Error = &'static str;

            fn try_from(text: AsText) -> Result<Self, Self::Error> {
                text.0.parse()
            }
        }
    };
}

from_text!(Time, TIME, |text| time(text).filter(|time| !time.is_zero()));
from_text!(TimeOrZero, TIME_OR_ZERO, time);
from_text!(Size, SIZE, |text| size(text).filter(|size| *size > 0));

impl FromStr for SocketAddress {
    type Err = String;

    /// # Errors
    /// Returns the phrase after "it must be".
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self).map_err(|_| {
            let port = text.rsplit(':').next().unwrap_or_default();
            let port = port.parse::<u16>().unwrap_or(8080);
            format!("an IP address and a port, such as 127.0.0.1:{port}")
        })
    }
}

impl TryFrom<AsText> for SocketAddress {
    type Error = String;

    fn try_from(text: AsText) -> Result<Self, Self::Error> {
        text.0.parse()
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        TimeOrZero(self.0).serialize(serializer)
    }
}

impl Serialize for TimeOrZero {
    /// Formats the value with the longest unit that fits.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let time = self.0.as_millis();
        let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s")];
        let unit = units.into_iter().find(|it| time.is_multiple_of(it.0));
        let (length, unit) = unit.unwrap_or((1, "ms"));
        serializer.collect_str(&format_args!("{}{unit}", time / length))
    }
}
