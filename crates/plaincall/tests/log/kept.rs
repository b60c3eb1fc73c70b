//! Logs of every released version can be read.

use std::path::{Path, PathBuf};
use std::{fs, str};

use plaincall::{RunEvent, events::Source, log::read_log};

use crate::log::events::{HARD_TEXTS, begin, begin_with_everything, every_kind, everywhere, lines};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/log/kept")
}

/// Each kept log and the number of its events.
const KEPT: &[(&str, usize)] = &[
    ("v1-beginning.jsonl", 1),
    ("v1-every-event.jsonl", 53),
    ("v1-hard-texts.jsonl", 81),
];

#[test]
fn kept_logs_are_read() {
    for (name, count) in KEPT {
        let bytes = fs::read(folder().join(name)).unwrap();
        let record = read_log(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((record.events.len(), record.torn), (*count, None), "{name}");
        // The current version is also written in the same form.
        assert_eq!(
            lines(&record.events),
            str::from_utf8(&bytes).unwrap(),
            "{name}"
        );
    }
    let mut found: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    found.sort();
    assert_eq!(
        found,
        KEPT.iter().map(|(name, _)| *name).collect::<Vec<_>>()
    );
}

#[test]
fn kept_logs_contain_what_was_written() {
    let read = |name| {
        read_log(&fs::read(folder().join(name)).unwrap())
            .unwrap()
            .events
    };
    assert_eq!(read("v1-every-event.jsonl")[1..], every_kind());
    let texts = read("v1-hard-texts.jsonl")
        .into_iter()
        .filter_map(|event| match event {
            RunEvent::Text(delta) => match delta.source {
                Source::Text(text) => Some(text.to_string()),
                _ => None,
            },
            _ => None,
        });
    assert_eq!(texts.collect::<Vec<_>>(), HARD_TEXTS);
}

/// Writes the kept logs of version 1 again. Only before the first release that writes this version.
#[test]
#[ignore = "changes files that are kept; see tests/log/kept/README.md"]
fn write_the_logs_of_a_version_that_is_not_released_yet() {
    let write =
        |name: &str, events: &[RunEvent]| fs::write(folder().join(name), lines(events)).unwrap();
    write("v1-beginning.jsonl", &[begin_with_everything()]);
    let mut every = vec![begin()];
    every.extend(every_kind());
    write("v1-every-event.jsonl", &every);
    let mut hard = vec![begin()];
    hard.extend(HARD_TEXTS.iter().flat_map(|text| everywhere(text)));
    write("v1-hard-texts.jsonl", &hard);
}
