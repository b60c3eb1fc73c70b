//! What the examples of the specification are explained as.

use std::collections::BTreeSet;

use plaincall_oracle::effort::at_most;
use plaincall_oracle::examples::{self, Operation};
use plaincall_oracle::merged::{self, Kind, Merged};
use plaincall_oracle::soup::{Kitchen, Random};
use plaincall_syntax::{Dialect, Meaning, Section, explain};

use crate::oracle::accepted_options;

const FILES: &[&str] = &["common.md", "block.md", "emoji.md", "limits.md"];

/// Whether a range of this meaning may stand where this event does.
fn is_told_by(meaning: Meaning, event: &Kind) -> bool {
    match meaning {
        Meaning::Text => matches!(event, Kind::Text(_)),
        Meaning::Reasoning => matches!(event, Kind::Reasoning(_)),
        Meaning::Value | Meaning::Body => matches!(event, Kind::Value(_)),
        Meaning::MarkerAsContent(..) => {
            matches!(event, Kind::Text(_) | Kind::Value(_) | Kind::Ignored(_))
        }
        Meaning::CallStart(_) | Meaning::SelfClosingCall => {
            matches!(event, Kind::BlockCall { .. } | Kind::EmojiCall { .. })
        }
        Meaning::ArgumentStart => matches!(event, Kind::Argument(_)),
        Meaning::LineEndBeforeBody => matches!(event, Kind::Body),
        Meaning::LineEndAfterValue(_) => matches!(event, Kind::ValueEnd),
        Meaning::EndMarker(_) | Meaning::EndMarkerInMidLine => {
            matches!(event, Kind::CallEnd("explicit"))
        }
        Meaning::ReasoningOpen
        | Meaning::ReasoningClose
        | Meaning::Escape
        | Meaning::BlankBeforeArgument
        | Meaning::FenceBeforeArgument
        | Meaning::TextBeforeArgument
        | Meaning::RestOfPointerLine => matches!(event, Kind::Ignored(_)),
        // Those of no bytes.
        _ => false,
    }
}

/// Every byte of a text is explained once, as what the events say that it is. Notes what was found.
fn check(text: &str, dialect: &Dialect, place: &str, seen: &mut BTreeSet<&'static str>) {
    let merged = merged::merged(text, dialect).expect("a dialect");
    let is_placed = |event: &&Merged| !matches!(event.kind, Kind::Diagnostic(_));
    let events: Vec<&Merged> = merged.iter().filter(is_placed).collect();
    let mut end = 0;
    for range in explain(text.as_bytes(), dialect).expect("a dialect") {
        seen.insert(range.meaning.name());
        assert_eq!(range.span.start, end, "{place}: {range}: {text:?}");
        end = range.span.end;
        for event in &events {
            let is_there = event.span.start < range.span.end && event.span.end > range.span.start;
            assert!(
                !is_there || is_told_by(range.meaning, &event.kind),
                "{place}: {range}: {event:?}: {text:?}"
            );
        }
    }
    assert_eq!(end, text.len(), "{place}: {text:?}");
}

#[test]
fn soups_are_explained() {
    let mut random = Random::new(11);
    let mut seen = BTreeSet::new();
    for case in 0..at_most(2_000) {
        let options = accepted_options(&mut random);
        let text = Kitchen::new(&options).text(&mut random);
        let place = format!("soup {case}, {}", options.words());
        check(&text, &options.dialect(), &place, &mut seen);
    }
    assert!(seen.len() > 15, "{seen:?}");
}

#[test]
fn examples_are_explained() {
    let mut seen = BTreeSet::new();
    for example in examples::all(FILES) {
        if example.operation == Operation::Read {
            check(&example.input, &example.dialect, &example.place, &mut seen);
        }
    }
    // The page that lists them for programs lists all that there are.
    let page = examples::folder().join("../docs/command-line.md");
    let page = std::fs::read_to_string(page).expect("the reference");
    let list = page
        .split_once("`taken_for` is one of ")
        .expect("the list")
        .1;
    let list = list.split_once(". ").expect("its end").0;
    let listed: BTreeSet<&str> = list
        .split(", ")
        .map(|name| name.trim_matches('`'))
        .collect();
    assert_eq!(seen, listed);
}

/// The numbers of the sections of a document.
fn headings(document: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(examples::folder().join(document)).expect(document);
    let mut fence: Option<&str> = None;
    let mut numbers = BTreeSet::new();
    for line in text.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if ticks >= 3 => fence = Some(&line[..ticks]),
            None => {
                let heading = line
                    .strip_prefix("##")
                    .map(|rest| rest.trim_start_matches('#'));
                let number = heading.and_then(|rest| rest.strip_prefix(' ')?.split(' ').next());
                numbers.extend(number.map(|number| number.trim_end_matches('.').to_owned()));
            }
        }
    }
    numbers
}

#[test]
fn every_section_that_is_named_is_there() {
    for section in Section::ALL {
        let headings = headings(section.document());
        assert!(
            headings.contains(section.number()),
            "{section} is not there"
        );
    }
    assert!(headings("block.md").len() > 30);
    assert!(!headings("block.md").contains("9.9"));
}
