//! The promises that `--check` verifies.

use std::fmt;

use crate::replies;
use crate::table::{Flatness, Row, size_title};

/// The minimum share of the copy loop's speed for a payload, by its name and the chunk size.
const OF_LOOP: &[(&str, usize, f64)] =
    &[("heavy", 4, 0.4), ("heavy", 64, 0.07), ("value", 64, 0.4)];

/// The goal, for every payload and size that has a promise.
const AIM: f64 = 0.4;

/// The payloads that must be parsed in one chunk at [`SPEED`], or at [`OF_SEARCH`] of the search for the start marker
/// if that is less.
const PROSE: &[&str] = &["words", "prose"];
/// In millions of bytes per second.
const SPEED: f64 = 5_000.0;
const OF_SEARCH: f64 = 0.25;

/// The minimum speed of the longest value, as a share of the fastest.
const LONGEST: f64 = 0.8;
/// The minimum of the slowest value, in chunks of 4 bytes. In larger chunks the markers around a short value take
/// most of the time.
const SLOWEST: f64 = 0.5;

/// The payloads that the reader of replies must read at [`REPLY_SPEED`] in large chunks. In the others, calls take most of
/// the time.
const REPLIES: &[&str] = &["words", "prose", "value"];
/// In millions of bytes per second.
const REPLY_SPEED: f64 = 300.0;

/// A promise and whether it is kept.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) is_kept: bool,
    sentence: String,
}

impl Verdict {
    /// Returns the promises about the row of the payload with this name, in the mode that assembles nothing.
    pub(crate) fn of_row(name: &str, row: &Row) -> Vec<Self> {
        let place = format!("{}, chunks of {}", row.payload, size_title(row.size));
        let mut verdicts = Vec::new();
        let wanted = OF_LOOP
            .iter()
            .find(|(payload, size, _)| *payload == name && Some(*size) == row.size);
        if let Some((_, _, floor)) = wanted {
            let aim = if *floor < AIM {
                format!("; the aim is {AIM}")
            } else {
                String::new()
            };
            verdicts.push(Self {
                is_kept: row.ratio >= *floor,
                sentence: format!(
                    "{place}: {:.3} of the copy loop, at least {floor}{aim}",
                    row.ratio
                ),
            });
        }
        if let Some((search, share)) = row.search.filter(|_| PROSE.contains(&name)) {
            verdicts.push(Self {
                is_kept: row.speed >= SPEED || share >= OF_SEARCH,
                sentence: format!(
                    "{place}: {:.1} GB/s, {share:.2} of memmem's {:.1}, at least {:.0} GB/s or {OF_SEARCH}",
                    row.speed / 1e3,
                    search / 1e3,
                    SPEED / 1e3,
                ),
            });
        }
        verdicts
    }

    /// Returns the promise about the reader of replies, for the payload with this name.
    pub(crate) fn of_reply(name: &str, row: &replies::Row) -> Option<Self> {
        let is_promised = REPLIES.contains(&name) && row.size > Some(4);
        is_promised.then(|| Self {
            is_kept: row.speed() >= REPLY_SPEED,
            sentence: format!(
                "{}, chunks of {}: the reader of replies reads {:.0} MB/s, at least {REPLY_SPEED}",
                row.payload,
                size_title(row.size),
                row.speed()
            ),
        })
    }

    /// Returns the promises about values of growing length.
    pub(crate) fn of_lengths(row: &Flatness) -> Vec<Self> {
        let verdict = |which: &str, share: f64, floor: f64| Self {
            is_kept: share >= floor,
            sentence: format!(
                "values in {}, chunks of {}: the {which} has {share:.2} of the speed of the fastest, at least {floor}",
                row.dialect,
                size_title(row.size)
            ),
        };
        let longest = verdict("longest", row.longest(), LONGEST);
        let slowest = verdict("slowest", row.slowest(), SLOWEST);
        let slowest = (row.size == Some(4)).then_some(slowest);
        [longest].into_iter().chain(slowest).collect()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_kept { "kept" } else { "BROKEN" };
        write!(formatter, "{word}: {}", self.sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict;
    use crate::replies;
    use crate::table::{Flatness, Row};

    fn check(name: &str, size: Option<usize>, figures: [f64; 3], expected: &[bool]) {
        let [speed, ratio, share] = figures;
        let row = Row {
            payload: "a payload",
            size,
            speed,
            loop_speed: 1.0,
            ratio,
            search: size.is_none().then_some((speed / share, share)),
            allocations: 0.0,
        };
        let found: Vec<bool> = Verdict::of_row(name, &row)
            .iter()
            .map(|verdict| verdict.is_kept)
            .collect();
        assert_eq!(found, expected, "{row:?}");
    }

    #[test]
    fn each_promise_can_be_kept_and_broken() {
        check("heavy", Some(4), [200.0, 0.4, 0.0], &[true]);
        check("heavy", Some(4), [200.0, 0.39, 0.0], &[false]);
        check("heavy", Some(64), [200.0, 0.1, 0.0], &[true]);
        check("heavy", Some(64), [200.0, 0.06, 0.0], &[false]);
        check("value", Some(64), [200.0, 0.1, 0.0], &[false]);
        check("heavy", None, [200.0, 0.1, 0.1], &[]);
        check("tiny", Some(4), [200.0, 0.1, 0.0], &[]);
        check("words", None, [5_000.0, 0.1, 0.1], &[true]);
        check("words", None, [4_000.0, 0.1, 0.3], &[true]);
        check("prose", None, [4_000.0, 0.1, 0.2], &[false]);
    }

    #[test]
    fn the_reader_of_replies_must_be_fast_in_large_chunks() {
        let check = |name: &str, size: usize, megabytes: f64, expected: Option<bool>| {
            let row = replies::Row {
                payload: "a payload",
                size: Some(size),
                chunks: 1.0,
                bytes: megabytes * 1e6,
                parser: 1.0,
                reader: 1.0,
                times: 1.0,
                allocations: 0.0,
                calls: 0,
                calls_expected: 0,
            };
            let verdict = Verdict::of_reply(name, &row);
            assert_eq!(verdict.map(|verdict| verdict.is_kept), expected, "{row:?}");
        };
        check("prose", 65_536, 300.0, Some(true));
        check("value", 65_536, 299.0, Some(false));
        check("heavy", 65_536, 100.0, None);
        check("prose", 4, 50.0, None);
    }

    #[test]
    fn speed_must_not_fall_with_length() {
        let check = |size: usize, speeds: &[f64], expected: &[bool]| {
            let row = Flatness {
                dialect: "block",
                size: Some(size),
                speeds: speeds.to_vec(),
            };
            let verdicts = Verdict::of_lengths(&row);
            let found: Vec<bool> = verdicts.iter().map(|verdict| verdict.is_kept).collect();
            assert_eq!(found, expected, "{verdicts:?}");
        };
        check(4, &[100.0, 150.0, 140.0], &[true, true]);
        check(4, &[10.0, 150.0, 140.0], &[true, false]);
        check(4, &[100.0, 150.0, 20.0], &[false, false]);
        check(64, &[10.0, 150.0, 140.0], &[true]);
        check(64, &[100.0, 150.0, 100.0], &[false]);
    }
}
