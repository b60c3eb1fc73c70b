//! Every change and truncation of a log is detected, and nothing before it is lost.

use plaincall::{
    RunEvent,
    log::{LogError, Record, read_log},
};

use crate::log::events::{begin, begin_with_everything, delta, every_kind, lines, torn_fields};

fn short_log() -> (Vec<RunEvent>, Vec<u8>) {
    let mut events = vec![begin()];
    events.extend(every_kind().into_iter().take(3));
    let bytes = lines(&events).into_bytes();
    (events, bytes)
}

fn long_log() -> (Vec<RunEvent>, Vec<u8>) {
    let mut events = vec![begin_with_everything()];
    events.extend(every_kind());
    let bytes = lines(&events).into_bytes();
    (events, bytes)
}

/// Reads a damaged log: it contains only events of the log, from its beginning. `None` if the damage was not
/// detected.
fn noticed(events: &[RunEvent], changed: &[u8]) -> Option<(Record, Option<LogError>)> {
    let (record, error) = Record::read_as_far_as_possible(changed);
    assert_eq!(events.get(..record.events.len()), Some(&*record.events));
    assert_eq!(record.events.is_empty(), record.bytes == 0);
    assert_eq!(read_log(changed).is_err(), error.is_some());
    (error.is_some() || record.torn.is_some()).then_some((record, error))
}

#[test]
fn every_change_of_a_byte_is_noticed() {
    let (events, bytes) = short_log();
    for place in 0..bytes.len() {
        for change in 1..=255 {
            let mut changed = bytes.clone();
            changed[place] ^= change;
            let (record, _) =
                noticed(&events, &changed).unwrap_or_else(|| panic!("byte {place} by {change}"));
            // Only the line of the byte and everything after it are lost.
            let before = bytes[..place].split(|byte| *byte == b'\n').count() - 1;
            assert_eq!(record.events.len(), before, "byte {place} by {change}");
        }
    }
}

#[test]
fn every_byte_too_few_or_too_many_is_noticed() {
    let (events, bytes) = short_log();
    for place in 0..bytes.len() {
        let mut fewer = bytes.clone();
        fewer.remove(place);
        assert!(noticed(&events, &fewer).is_some(), "without byte {place}");
        for more in [b' ', b'\n', b'\r', b'0', b'"', bytes[place]] {
            let mut changed = bytes.clone();
            changed.insert(place, more);
            assert!(
                noticed(&events, &changed).is_some(),
                "{more} before byte {place}"
            );
        }
    }
}

#[test]
fn a_log_truncated_anywhere_keeps_what_precedes_the_cut() {
    let (events, bytes) = long_log();
    let ends: Vec<usize> = (1..=bytes.len())
        .filter(|end| bytes[end - 1] == b'\n')
        .collect();
    assert_eq!(ends.len(), events.len());
    for cut in 0..=bytes.len() {
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let good = whole.checked_sub(1).map_or(0, |last| ends[last]);
        match read_log(&bytes[..cut]) {
            Err(LogError::Empty) => assert_eq!(whole, 0, "{cut}"),
            Err(error) => panic!("{cut}: {error}"),
            Ok(record) => {
                let torn = (good < cut).then(|| (u64::try_from(whole).unwrap() + 1, cut - good));
                let found = record.torn.map(|torn| (torn.line, torn.bytes));
                assert_eq!((record.bytes, found), (good, torn), "{cut}");
                assert_eq!(record.events, events[..whole], "{cut}");
            }
        }
    }
}

/// Returns the message about a log with these lines, without their ends, joined by LF.
fn refused(lines: &[&str]) -> String {
    let bytes = lines.join("\n");
    let message = read_log(bytes.as_bytes()).unwrap_err().to_string();
    let end = "; use an intact copy, because it is not known what happened after this line";
    message.strip_suffix(end).unwrap_or(&message).to_owned()
}

#[test]
fn lines_that_are_missing_or_moved_are_damage() {
    let log = lines(&[
        begin(),
        RunEvent::Text(delta(b"a")),
        RunEvent::Text(delta(b"b")),
        RunEvent::Text(delta(b"c")),
    ]);
    let parts: Vec<&str> = log.split('\n').collect();
    let [begin, a, b, c, rest] = parts[..] else {
        panic!("{log}");
    };
    let number = |line, found, right| {
        format!(
            "line {line} of the log is damaged: it has the number {found} and should have {right}, so lines are \
             missing or duplicated"
        )
    };
    assert_eq!(refused(&[begin, b, c, rest]), number(2, 2, 1));
    assert_eq!(refused(&[begin, a, c, rest]), number(3, 3, 2));
    assert_eq!(refused(&[begin, a, a, b, c, rest]), number(3, 1, 2));
    assert_eq!(refused(&[begin, b, a, c, rest]), number(2, 2, 1));
    assert_eq!(refused(&[begin, a, b, c, begin, a, rest]), number(5, 0, 4));
    assert_eq!(
        refused(&[a, b, c, rest]),
        "this is not the log of a run: its first line is not an event `run` with a version"
    );

    let at = |line, what| format!("line {line} of the log is damaged: {what}");
    let checksum = "its checksum does not match";
    assert_eq!(
        refused(&[begin, &a.replace("\"a\"", "\"A\""), b, rest]),
        at(2, checksum)
    );
    assert_eq!(
        refused(&[begin, "", b, rest]),
        at(2, "it has no checksum at its end")
    );
    assert_eq!(
        refused(&[begin, &a[..20], &a[20..], b, rest]),
        at(2, "it has no checksum at its end")
    );
    assert_eq!(
        refused(&[&begin.replace("0.1.0", "0.1.1"), a, "", ""]),
        at(1, checksum)
    );
    let rewritten = "it ends in CR LF, so another program rewrote the file";
    assert_eq!(refused(&[&log.replace('\n', "\r\n")]), at(1, rewritten));
    assert_eq!(
        refused(&[begin, &format!("{a}\r"), b, c, rest]),
        at(2, rewritten)
    );

    let twice = "{\"n\":1,".to_owned() + begin.strip_prefix("{\"n\":0,").unwrap();
    let twice = twice.split(",\"crc\"").next().unwrap();
    let twice = format!(
        "{twice},\"crc\":\"{:08x}\"}}",
        crc32fast::hash(twice.as_bytes())
    );
    assert_eq!(
        refused(&[begin, &twice, rest]),
        at(2, "a second run starts here")
    );
}

/// A crash can leave more than one invalid line, for example where a page never reached the disk.
#[test]
fn several_bad_lines_at_the_end_are_one_torn_end() {
    let (events, bytes) = short_log();
    for tail in [
        "\n",
        "\n\n\n",
        "\0\0\0\0",
        "\0\0\n\0",
        "{\"n\":4,\"event\":\"turn\"}\n{\"n\":5,",
    ] {
        let mut log = bytes.clone();
        log.extend_from_slice(tail.as_bytes());
        let record = read_log(&log).unwrap();
        assert_eq!(record.events, events);
        let line = u64::try_from(events.len()).unwrap() + 1;
        assert_eq!(record.bytes, bytes.len(), "{tail:?}");
        assert_eq!(
            record.torn.as_ref().map(torn_fields),
            Some((line, tail.len(), false)),
            "{tail:?}"
        );
    }
}

/// Many invalid lines do not make reading slow: each byte is read a few times at most.
#[test]
fn long_damage_is_read_to_its_end() {
    let (events, mut bytes) = short_log();
    let tail = "{\"crc\":\"00000000\"}\n".repeat(200_000);
    bytes.extend_from_slice(tail.as_bytes());
    let record = read_log(&bytes).unwrap();
    assert_eq!(record.events, events);
    assert_eq!(record.torn.unwrap().bytes, tail.len());
}
