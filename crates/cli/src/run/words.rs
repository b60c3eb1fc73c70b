//! Times and counts in words.

use std::time::Duration;

/// A time for people: `40 ms`, `1.2 s`, `2 min 05 s`.
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

/// A number with what it counts: `1 call`, `2 calls`.
pub(crate) fn count(count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    #[test]
    fn times() {
        for (milliseconds, expected) in [
            (0, "0 ms"),
            (99, "99 ms"),
            (100, "0.1 s"),
            (1249, "1.2 s"),
            (59_900, "59.9 s"),
            (59_999, "1 min 00 s"),
            (125_400, "2 min 05 s"),
        ] {
            assert_eq!(super::time(Duration::from_millis(milliseconds)), expected);
        }
    }
}
