//! The parser against the naive oracle, on arbitrary texts and on every short text over a small alphabet.
//!
//! In the environment, for longer runs than the ordinary one: `ORACLE_CASES` is how many soups are read at least,
//! `ORACLE_MINUTES` for how long, `ORACLE_SEED` which, `ORACLE_BATCH` from which
//! batch of them on; `ORACLE_TOKENS` how many tokens short texts have at most.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: a panic is how a test fails"
)]

mod arbitrary_texts;
mod disagreement;
mod escape;
mod readers;
mod render;
mod sections;
mod short_texts;
mod specification;

use plaincall_oracle::arbitrary_texts::{self as generator, Generator, Random};
use plaincall_oracle::effort::at_most;
use plaincall_oracle::examples;
use plaincall_oracle::oracle::{Options, Oracle};
use plaincall_syntax::{Event, EventKind, Parser, Severity};

/// Options that make a dialect.
fn accepted_options(random: &mut Random) -> Options {
    loop {
        let options = generator::options(random);
        if !options.are_refused() {
            return options;
        }
    }
}

#[test]
fn dialects_are_refused_as_specified() {
    let mut random = Random::new(3);
    let (count, mut refused) = (at_most(100_000), 0);
    for _ in 0..count {
        let options = generator::options(&mut random);
        let answer = Parser::new(&options.dialect());
        assert_eq!(answer.is_err(), options.are_refused(), "{options:?}");
        refused += u64::from(answer.is_err());
    }
    println!("{refused} of {count} refused");
    assert!(refused > count / 200);
}

#[test]
fn events_carry_their_source_and_diagnostics_their_severity() {
    let mut random = Random::new(5);
    for _ in 0..at_most(10_000) {
        let options = accepted_options(&mut random);
        let text = Generator::new(&options).text(&mut random);
        let cut = generator::cuts(&mut random, &text)
            .pop()
            .unwrap_or_default();
        let mut parser = Parser::new(&options.dialect()).unwrap();
        let mut events: Vec<_> = parser.feed(&text[..cut]).collect();
        events.extend(
            parser
                .feed(&text[cut..])
                .map(Event::into_owned)
                .collect::<Vec<_>>(),
        );
        events.extend(parser.finish());
        for event in events {
            let place = || format!("{event:?} in {text:?} with {}", options.words());
            let EventKind::Diagnostic(diagnostic) = &event.kind else {
                assert_eq!(event.source(), &text[event.span.range()], "{}", place());
                continue;
            };
            let is_error = [
                "text_without_argument",
                "pointer_too_long",
                "truncated_pointer",
                "stray_reasoning_close",
            ]
            .contains(&diagnostic.code.name());
            let severity = if is_error {
                Severity::Error
            } else {
                Severity::Warning
            };
            assert_eq!(diagnostic.severity(), severity, "{}", place());
            assert_eq!(diagnostic.span, event.span, "{}", place());
        }
    }
}

/// The words behind the fence that an example's place names.
fn words_of(place: &str) -> Vec<String> {
    let (file, line) = place
        .strip_prefix("spec/")
        .and_then(|place| place.split_once(':'))
        .unwrap();
    let text = std::fs::read_to_string(examples::folder().join(file)).unwrap();
    let fence = text
        .lines()
        .nth(line.parse::<usize>().unwrap() - 1)
        .unwrap();
    fence
        .trim_start_matches('`')
        .split(' ')
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_oracle_reads_and_escapes_the_examples_as_specified() {
    let (mut read, mut escaped) = (0, 0);
    for example in examples::all(&["common.md", "block.md", "emoji.md", "limits.md"]) {
        let words = words_of(&example.place);
        let options = Options::of_words(words.iter().map(String::as_str));
        if let Some(expected) = example.expectation("events") {
            let events = Oracle::new(&options).read(&example.input);
            assert_eq!(
                examples::events_text(&events, &example.input),
                examples::normalized(expected),
                "{}",
                example.place
            );
            read += 1;
        } else if words[0] == "escape" {
            let written = Oracle::new(&options).escape(&example.input);
            assert_eq!(
                Some(&*written),
                example.expectation("text"),
                "{}",
                example.place
            );
            escaped += 1;
        }
    }
    println!("{read} examples read, {escaped} escaped");
    assert!(read > 100 && escaped > 5);
}
