//! Events that are written are read back, and a file that is not a log of this version is rejected.

use std::fmt::Write as _;

use plaincall::{
    RunEvent,
    log::{LOG_VERSION, LineEncoder, Record, read_log},
};

use crate::log::events::{
    HARD_TEXTS, begin, begin_with_everything, delta, every_kind, everywhere, lines,
};

/// Reads the events as lines and writes them again, without changes.
fn check(events: &[RunEvent]) {
    let written = lines(events);
    assert_eq!(written.lines().count(), events.len(), "{written}");
    let record = read_log(written.as_bytes()).unwrap();
    assert_eq!(record.events, events);
    assert_eq!((record.bytes, &record.torn), (written.len(), &None));
    assert_eq!(lines(&record.events), written);
}

#[test]
fn every_kind_of_event_comes_back() {
    check(&[begin()]);
    check(&[begin_with_everything()]);
    let mut events = vec![begin()];
    events.extend(every_kind());
    check(&events);
}

#[test]
fn hard_texts_come_back() {
    let mut events = vec![begin()];
    events.extend(HARD_TEXTS.iter().flat_map(|text| everywhere(text)));
    check(&events);
}

#[test]
fn every_byte_comes_back() {
    let bytes: Vec<u8> = (0..=255).collect();
    let single = bytes.iter().map(|byte| RunEvent::Text(delta(&[*byte])));
    let mut events = vec![begin(), RunEvent::Text(delta(&bytes))];
    events.extend(single);
    check(&events);
}

#[test]
fn a_long_result_comes_back() {
    let text = "\n".repeat(1 << 20) + &"x".repeat(1 << 20);
    let mut events = vec![begin()];
    events.extend(everywhere(&text).into_iter().skip(4).take(1));
    check(&events);
}

#[test]
fn a_line_is_as_defined() {
    let mut encoder = LineEncoder::default();
    let first = encoder.next_line(&begin());
    assert!(
        first.starts_with(r#"{"n":0,"event":"run","version":1,"#),
        "{first}"
    );
    let second = encoder.next_line(&RunEvent::Text(delta(b"a")));
    let checked = r#"{"n":1,"event":"text","text":"a","t_ms":2"#;
    assert_eq!(second, line(checked));
    assert_eq!(
        second,
        format!("{checked},\"crc\":\"{:08x}\"}}\n", checksum(checked))
    );
}

/// CRC-32 bit by bit, as `spec/log.md` defines it.
fn checksum(text: &str) -> u32 {
    let mut rest = u32::MAX;
    for byte in text.bytes() {
        rest ^= u32::from(byte);
        for _ in 0..8 {
            rest = if rest & 1 == 1 {
                rest >> 1 ^ 0xedb8_8320
            } else {
                rest >> 1
            };
        }
    }
    !rest
}

/// Returns a line with a correct checksum, from the text before the checksum.
fn line(checked: &str) -> String {
    format!("{checked},\"crc\":\"{:08x}\"}}\n", checksum(checked))
}

/// Returns the message about this log, whose lines have correct checksums, and the number of events before the error.
fn refused(bytes: impl AsRef<[u8]>) -> (String, usize) {
    let bytes = bytes.as_ref();
    let message = read_log(bytes).unwrap_err().to_string();
    let (record, error) = Record::read_as_far_as_possible(bytes);
    assert_eq!(error.unwrap().to_string(), message);
    (message, record.events.len())
}

#[test]
fn other_versions_are_refused() {
    let newer = "this log has version 2, and this Plaincall reads only version 1; use the newer Plaincall that wrote it";
    let line_1 = line(r#"{"n":0,"event":"run","version":2,"tools":7"#);
    assert_eq!(refused(&line_1), (newer.to_owned(), 0));
    assert_eq!(refused(line_1 + "any other text"), (newer.to_owned(), 0));
    let far = refused(line(
        r#"{"n":0,"event":"run","version":18446744073709551615"#,
    ))
    .0;
    assert!(far.contains("version 18446744073709551615"), "{far}");
    let older = "line 1 of the log cannot be read: version 0 does not exist; use the version of Plaincall that wrote it";
    assert_eq!(
        refused(line(r#"{"n":0,"event":"run","version":0"#)),
        (older.to_owned(), 0)
    );
    assert_eq!(
        LOG_VERSION, 1,
        "keep the logs of the version before (tests/log/kept)"
    );
}

#[test]
fn other_files_are_rejected() {
    let other = "this is not the log of a run: it does not start like one; name a file that `plaincall run --log FILE` wrote";
    for bytes in [
        "\n",
        "{}",
        "{}\n",
        "[1, 2]\n[3]\n",
        "Dear Sir or Madam,\n",
        "\u{feff}{\"n\":0,\"event\":\"run\",\"version\":1}\n",
        "{\"n\":0,\"event\":\"turn\",\"turn\":0,\"t_ms\":0",
        "{\"n\":1,",
    ] {
        assert_eq!(refused(bytes), (other.to_owned(), 0), "{bytes}");
    }
    assert_eq!(refused(b"\x00\x00\x00\x00"), (other.to_owned(), 0));
    assert_eq!(refused(b"\x7fELF\xff\xfe\n\n"), (other.to_owned(), 0));
    let headless =
        "this is not the log of a run: its first line is not an event `run` with a version";
    for checked in [
        r#"{"n":0,"event":"turn","turn":0,"t_ms":0"#,
        r#"{"n":0,"event":"run"#,
        r#"{"n":0,"event":"run","version":"1""#,
        r#"{"version":1"#,
    ] {
        assert_eq!(
            refused(line(checked)),
            (headless.to_owned(), 0),
            "{checked}"
        );
    }
}

#[test]
fn unknown_versions_and_events_are_rejected() {
    let call = r#""call":0,"id":"a","name":"b""#;
    for (rest, what) in [
        (
            r#""event":"later","t_ms":1"#.to_owned(),
            "unknown value `later`",
        ),
        (
            r#""event":"reply_end","stop":"tired","t_ms":1"#.to_owned(),
            "unknown value `tired`",
        ),
        (
            format!(r#""event":"result",{call},"status":"good","t_ms":1"#),
            "unknown value `good`",
        ),
        (format!(r#""event":"ready",{call}"#), "missing field `t_ms`"),
        (
            format!(r#""event":"ready",{call},"t_ms":-1"#),
            "invalid value: integer `-1`",
        ),
        (
            format!(r#""event":"ready",{call},"t_ms":"1""#),
            "invalid type: string \"1\"",
        ),
        (
            r#""event":"text","bytes":"0","t_ms":1"#.to_owned(),
            "`bytes` must be pairs of hexadecimal digits",
        ),
        (
            r#""event":"text","bytes":"0g","t_ms":1"#.to_owned(),
            "`bytes` must be pairs of hexadecimal digits",
        ),
        (r#""turn":0"#.to_owned(), "missing field `event`"),
    ] {
        let log = lines(&[begin()]) + &line(&format!("{{\"n\":1,{rest}"));
        let message = format!(
            "line 2 of the log cannot be read: {what}; use the version of Plaincall that wrote it"
        );
        assert_eq!(refused(&log), (message.clone(), 1), "{rest}");
        // Even at the end it is not a torn line: no crash creates a correct checksum.
        let followed = log + &line(r#"{"n":2,"event":"turn","turn":0,"t_ms":0"#);
        assert_eq!(refused(&followed), (message, 1), "{rest}");
    }
    let log = lines(&[begin()]) + &line(r#"{"event":"turn","n":1,"turn":0,"t_ms":0"#);
    let message = "line 2 of the log cannot be read: it does not begin with its number `n`; use the version of Plaincall that wrote it";
    assert_eq!(refused(log), (message.to_owned(), 1));
}

#[test]
fn fields_that_this_version_does_not_know_are_passed_over() {
    let mut plain = lines(&[begin()]);
    let first = plain.split(",\"crc\"").next().unwrap().to_owned();
    let mut more = line(&format!(r#"{first},"later":{{"n":[1]}}"#));
    for (number, rest) in [
        r#""event":"text","text":"a","t_ms":1"#,
        r#""event":"text","bytes":"ff","t_ms":1"#,
        r#""event":"result","call":0,"id":"a","name":"b","status":"ok","output":"c","t_ms":3"#,
        r#""event":"turn_end","turn":0,"counts":{"ok":1,"error":0,"skipped":0,"rejected":0,"cancelled":0,"unknown":0},"t_ms":3"#,
    ]
    .into_iter()
    .enumerate()
    {
        let number = number + 1;
        plain += &line(&format!("{{\"n\":{number},{rest}"));
        write!(more, "{}", line(&format!("{{\"n\":{number},\"later\":[],{rest},\"last\":null"))).unwrap();
    }
    assert_eq!(
        read_log(more.as_bytes()).unwrap().events,
        read_log(plain.as_bytes()).unwrap().events
    );
}
