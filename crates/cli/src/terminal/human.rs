//! Times, counts and wrapped text for people.

use std::time::Duration;

use plaincall::events::Usage;
use unicode_width::UnicodeWidthStr as _;

/// Formats a duration: `40 ms`, `1.2 s`, `2 min 05 s`.
pub(crate) fn time(time: Duration) -> String {
    let milliseconds = time.as_millis();
    if milliseconds < 100 {
        return format!("{milliseconds} ms");
    }
    let seconds = time.as_secs_f64();
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    let seconds = (milliseconds + 500) / 1000;
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

/// Formats a time in milliseconds since 1970: `2026-11-20 13:04:05 UTC`.
pub(crate) fn utc(milliseconds: u64) -> String {
    const DAY: u64 = 24 * 60 * 60;
    let seconds = milliseconds / 1000;
    let (mut days, second) = (seconds / DAY, seconds % DAY);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    // Skipping whole 400-year periods keeps the loop short.
    let mut year = 1970 + days / 146_097 * 400;
    days %= 146_097;
    while let Some(rest) = days.checked_sub(if is_leap(year) { 366 } else { 365 }) {
        days = rest;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        let Some(rest) = days.checked_sub(length) else {
            break;
        };
        days = rest;
        month += 1;
    }
    format!(
        "{year:04}-{month:02}-{:02} {:02}:{:02}:{:02} UTC",
        days + 1,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Formats a count: `1 call`, `2 calls`.
pub(crate) fn count(count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

/// Formats tokens: `1204 input tokens (960 cached), 56 output tokens`.
pub(crate) fn tokens(usage: Usage) -> String {
    let cached = match usage.cached {
        0 => String::new(),
        cached => format!(" ({cached} cached)"),
    };
    let (input, output) = (usage.input, usage.output);
    format!("{input} input tokens{cached}, {output} output tokens")
}

/// Wraps text between words to rows of at most `width` columns. Its first row starts at column `indent`, the others are
/// indented as far. A word that is too long stays whole, so that it can be copied.
pub(crate) fn wrap(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    let mut column = indent;
    for piece in text.split_inclusive([' ', '\n']) {
        let word = piece.trim_end_matches([' ', '\n']);
        if column > indent && column + word.width() > width {
            out.truncate(out.trim_end_matches(' ').len());
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        }
        out.push_str(piece);
        column += piece.trim_end_matches('\n').width();
        if piece.ends_with('\n') {
            column = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn words_stay_whole() {
        for (text, expected) in [
            ("", ""),
            ("one two", "one two"),
            ("one two three four", "one two\n  three four"),
            (
                "a_word_that_is_too_long fits",
                "a_word_that_is_too_long\n  fits",
            ),
            ("one\ntwo three four", "one\ntwo three\n  four"),
            ("日本語 日本語 日本語", "日本語\n  日本語\n  日本語"),
        ] {
            assert_eq!(wrap(text, 2, 12), expected, "{text}");
        }
    }
}
