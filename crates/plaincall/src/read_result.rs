//! The built-in tool that reads on where a result was cut.

use std::fmt::Write as _;

use plaincall_call::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::Context;
use crate::cut::{READ_RESULT, beginning, with_last_line};
use crate::tool::Tool;
use crate::tool_error::ToolResult;
use crate::whole_results::WholeResults;

/// What the last line of a piece needs at most, in bytes.
const LAST_LINE: usize = 128;

/// How many ids a message names.
const NAMED: usize = 20;

/// Reads on in the result of an earlier call, where it was cut because of its length.
#[derive(Deserialize, JsonSchema)]
struct Piece {
    /// The id of that call.
    id: String,
    /// The byte of the result to begin at, counted from 0; 0 if it is left out.
    from: Option<u64>,
    /// How many bytes to read at most; as many as a result may have if it is left out.
    bytes: Option<u64>,
}

impl Tool {
    /// The built-in tool `read_result`: it returns a piece of the whole output of an earlier call of the run, of which
    /// the model was told only the beginning (`spec/running.md`, "Long results").
    ///
    /// It takes the call's `id`, optionally `from` (the first byte, 0 if nothing is said) and `bytes` (how many at most; if
    /// nothing is said as many as a result may have). The piece begins and ends with whole characters, where possible with
    /// lines; its last line says where it ends and how long the whole is.
    pub fn read_result() -> Self {
        Self::new(READ_RESULT, |piece: Piece, context: Context| async move {
            piece.read(&context.surroundings.whole_results)
        })
        .effect(Effect::Read)
    }
}

impl Piece {
    fn read(&self, results: &WholeResults) -> ToolResult {
        let Some(whole) = results.get(&self.id) else {
            return Err(unknown(&self.id, results).into());
        };
        let total = whole.len();
        let from = usize::try_from(self.from.unwrap_or(0)).unwrap_or(usize::MAX);
        if from > total {
            return Err(format!(
                "the result of `{}` has {total} bytes, so there is nothing from byte {from} on",
                self.id
            )
            .into());
        }
        let start = whole.floor_char_boundary(from);
        let wanted = self.bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let room = results.limit().saturating_sub(LAST_LINE);
        let bytes = wanted.map_or(room, |wanted| wanted.min(room));
        let rest = whole.get(start..).unwrap_or_default();
        let mut end = start + beginning(rest, bytes);
        if end == start {
            // At least one character, or reading on would never come to an end.
            end += rest.chars().next().map_or(0, char::len_utf8);
        }
        let text = whole.get(start..end).unwrap_or_default();
        let line = if end == total {
            format!("bytes {start} to {end} of {total}: this is the end")
        } else {
            format!("bytes {start} to {end} of {total}; read on with `from` = {end}")
        };
        Ok(with_last_line(text, &line))
    }
}

/// What a model hears that names a call of which there is no result.
fn unknown(id: &str, results: &WholeResults) -> String {
    let (ids, total) = results.latest_ids(NAMED);
    if ids.is_empty() {
        return format!("there is no cut result of a call `{id}`; no result has been cut yet");
    }
    let mut sentence =
        format!("there is no cut result of a call `{id}`; those that were cut are of ");
    if total > ids.len() {
        let _ = write!(sentence, "{total} calls, the latest ");
    }
    for (place, id) in ids.iter().enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        let _ = write!(sentence, "{comma}`{id}`");
    }
    sentence
}

#[cfg(test)]
mod tests {
    use super::Piece;
    use crate::policy::DEFAULT_RESULT_LIMIT;
    use crate::whole_results::WholeResults;

    fn results(outputs: &[(&str, &str)]) -> WholeResults {
        let results = WholeResults::default();
        for &(id, output) in outputs {
            results.insert(id.into(), output.into());
        }
        results
    }

    fn read(results: &WholeResults, id: &str, from: Option<u64>, bytes: Option<u64>) -> String {
        let id = id.to_owned();
        let piece = Piece { id, from, bytes };
        match piece.read(results) {
            Ok(text) => text,
            Err(error) => format!("error: {error}"),
        }
    }

    #[test]
    fn pieces() {
        let results = results(&[("a", "old"), ("a", "12345\näö"), ("empty", "")]);
        for (id, from, bytes, expected) in [
            (
                "a",
                None,
                None,
                "12345\näö\n[bytes 0 to 10 of 10: this is the end]\n",
            ),
            (
                "a",
                Some(0),
                Some(6),
                "12345\n[bytes 0 to 6 of 10; read on with `from` = 6]\n",
            ),
            (
                "a",
                Some(6),
                Some(3),
                "ä\n[bytes 6 to 8 of 10; read on with `from` = 8]\n",
            ),
            (
                "a",
                Some(7),
                Some(1),
                "ä\n[bytes 6 to 8 of 10; read on with `from` = 8]\n",
            ),
            (
                "a",
                Some(8),
                Some(0),
                "ö\n[bytes 8 to 10 of 10: this is the end]\n",
            ),
            (
                "a",
                Some(3),
                Some(u64::MAX),
                "45\näö\n[bytes 3 to 10 of 10: this is the end]\n",
            ),
            (
                "a",
                Some(10),
                None,
                "[bytes 10 to 10 of 10: this is the end]\n",
            ),
            (
                "a",
                Some(11),
                None,
                "error: the result of `a` has 10 bytes, so there is nothing from byte 11 on",
            ),
            (
                "a",
                Some(u64::MAX),
                None,
                "error: the result of `a` has 10 bytes, so there is nothing from byte 18446744073709551615 on",
            ),
            (
                "empty",
                None,
                None,
                "[bytes 0 to 0 of 0: this is the end]\n",
            ),
            (
                "A",
                None,
                None,
                "error: there is no cut result of a call `A`; those that were cut are of `a`, `empty`",
            ),
        ] {
            assert_eq!(
                read(&results, id, from, bytes),
                expected,
                "{id} {from:?} {bytes:?}"
            );
        }
    }

    #[test]
    fn ids_that_there_are() {
        let none = results(&[]);
        let expected = "error: there is no cut result of a call `x`; no result has been cut yet";
        assert_eq!(read(&none, "x", None, None), expected);
        let many = WholeResults::default();
        for number in 0..30 {
            many.insert(format!("n{number}").into(), "".into());
        }
        let latest: Vec<String> = (10..30).map(|number| format!("`n{number}`")).collect();
        let expected = format!(
            "error: there is no cut result of a call `x`; those that were cut are of 30 calls, the latest {}",
            latest.join(", ")
        );
        assert_eq!(read(&many, "x", None, None), expected);
    }

    /// A piece is not so long that it would be cut itself.
    #[test]
    fn a_short_limit() {
        for (limit, length) in [(0, 1), (128, 1), (130, 2), (228, 100)] {
            let results = WholeResults::with_limit(limit);
            results.insert("a".into(), "x".repeat(1000).into());
            for bytes in [None, Some(1000)] {
                let expected = format!(
                    "{}\n[bytes 0 to {length} of 1000; read on with `from` = {length}]\n",
                    "x".repeat(length)
                );
                assert_eq!(read(&results, "a", None, bytes), expected);
            }
        }
    }

    /// Whoever follows the last lines gets the whole.
    #[test]
    fn reading_on_comes_to_the_end() {
        let whole = "wörter 🛠 und\nZeilen\n".repeat(9_000);
        let results = results(&[("long", &whole)]);
        for bytes in [None, Some(1_000), Some(100_000)] {
            let (mut from, mut pieces) = (0, 0);
            while from < whole.len() {
                let piece = read(&results, "long", Some(from as u64), bytes);
                let (text, line) = piece.rsplit_once('[').unwrap();
                let end = line.split(' ').nth(3).unwrap().parse().unwrap();
                let part = &whole[from..end];
                assert_eq!(text, format!("{}\n", part.trim_end_matches('\n')));
                assert!(part.len() as u64 <= bytes.unwrap_or(u64::MAX));
                assert!(piece.len() <= DEFAULT_RESULT_LIMIT);
                let next = line
                    .split('=')
                    .nth(1)
                    .and_then(|end| end[1..].split(']').next());
                assert_eq!(next.map_or(whole.len(), |next| next.parse().unwrap()), end);
                (from, pieces) = (end, pieces + 1);
            }
            assert!(pieces > 3, "{pieces}");
        }
    }
}
