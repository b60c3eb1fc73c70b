//! The parser against the naive oracle, on marker soup and on every short text over a small alphabet.
//!
//! `ORACLE_CASES` and `ORACLE_SEED` in the environment set the number of soups and their seed, for longer runs.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "this is test code: a panic is how a test fails"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use plaincall_oracle::examples;
use plaincall_oracle::merged::{Kind, Merged, merge_lossy, merged_by};
use plaincall_oracle::oracle::{Options, escape, oracle, unescape};
use plaincall_oracle::soup::{self, Random};
use plaincall_syntax::{ByteParser, DialectError, Event, EventKind, Parser, Severity};

/// A parser that has read nothing yet, made once for many texts.
type Fresh = Result<Parser, DialectError>;

/// What the parser says to a text that is cut at these places; a panic is an answer too.
fn parsed(text: &str, cuts: &[usize], fresh: &Fresh) -> Result<Vec<Merged>, String> {
    let parser = match fresh {
        Ok(parser) => parser.clone(),
        Err(error) => return Err(format!("refused: {error}")),
    };
    let mut from = 0;
    let end = [text.len()];
    let chunks = cuts.iter().chain(&end);
    let chunks = chunks.map(|&to| &text[std::mem::replace(&mut from, to)..to]);
    let run = AssertUnwindSafe(|| merged_by(parser, chunks));
    match catch_unwind(run) {
        Ok(events) => Ok(events),
        Err(panic) => Err(panic.downcast_ref::<String>().map_or_else(
            || "a panic".to_owned(),
            |message| format!("a panic: {message}"),
        )),
    }
}

/// The first way to cut the text, of a few, at which parser and oracle disagree.
fn disagreement(text: &str, options: &Options) -> Option<Vec<usize>> {
    let fresh = Parser::new(&options.dialect());
    let expected = Ok(oracle(text, options));
    let edges: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let mut ways = vec![Vec::new(), edges.clone()];
    if text.len() < 400 {
        ways.extend(edges.into_iter().map(|at| vec![at]));
    }
    ways.into_iter()
        .find(|cuts| parsed(text, cuts, &fresh) != expected)
}

/// Drops characters and options as long as parser and oracle still disagree.
fn shrunk(text: &str, options: &Options) -> (String, Options) {
    let mut text: Vec<char> = text.chars().collect();
    let mut options = options.clone();
    let still = |text: &[char], options: &Options| {
        !options.are_refused() && disagreement(&text.iter().collect::<String>(), options).is_some()
    };
    let simpler: [fn(&mut Options); 10] = [
        |options| options.start = None,
        |options| options.end = None,
        |options| options.arg = None,
        |options| options.key = None,
        |options| options.escaped = false,
        |options| options.anywhere = false,
        |options| options.strict = false,
        |options| options.self_closing = false,
        |options| options.in_reasoning = false,
        |options| options.reasoning = None,
    ];
    let mut size = text.len();
    while size > 0 {
        for simplify in simpler {
            let mut candidate = options.clone();
            simplify(&mut candidate);
            if still(&text, &candidate) {
                options = candidate;
            }
        }
        let mut at = 0;
        while at < text.len() {
            let mut candidate = text.clone();
            candidate.drain(at..text.len().min(at + size));
            if still(&candidate, &options) {
                text = candidate;
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    (text.into_iter().collect(), options)
}

fn lines(events: &[Merged]) -> Vec<String> {
    let line = |event: &Merged| {
        format!(
            "{:>3}..{:<3} {:?}",
            event.span.start, event.span.end, event.kind
        )
    };
    events.iter().map(line).collect()
}

/// A readable account of one disagreement.
fn report(text: &str, options: &Options, cuts: &[usize]) -> String {
    let (text, options, cuts) = if disagreement(text, options).is_some() {
        let (text, options) = shrunk(text, options);
        let cuts = disagreement(&text, &options).unwrap_or_default();
        (text, options, cuts)
    } else {
        (text.to_owned(), options.clone(), cuts.to_vec())
    };
    let expected = lines(&oracle(&text, &options));
    let found = match parsed(&text, &cuts, &Parser::new(&options.dialect())) {
        Ok(events) => lines(&events),
        Err(message) => vec![message],
    };
    let mut report = format!(
        "text    {text:?}\noptions {}\ncut at  {cuts:?}\n",
        options.words()
    );
    let same = expected
        .iter()
        .zip(&found)
        .take_while(|(a, b)| a == b)
        .count();
    for (title, lines) in [("oracle", &expected), ("parser", &found)] {
        let _ = writeln!(report, "{title}");
        for (index, line) in lines.iter().enumerate() {
            let sign = if index < same { ' ' } else { '>' };
            let _ = writeln!(report, "  {sign} {line}");
        }
    }
    report
}

/// Collects disagreements, and panics with the first few when it is done.
#[derive(Default)]
struct Reports {
    reports: Vec<String>,
    count: usize,
}

impl Reports {
    fn check(
        &mut self,
        text: &str,
        cuts: &[usize],
        fresh: &Fresh,
        expected: &[Merged],
        options: &Options,
    ) {
        if parsed(text, cuts, fresh).as_deref() == Ok(expected) {
            return;
        }
        self.count += 1;
        if self.reports.len() < 6 {
            let report = report(text, options, cuts);
            if !self.reports.contains(&report) {
                self.reports.push(report);
            }
        }
    }

    fn done(self) {
        let Self { reports, count } = self;
        assert!(
            count == 0,
            "{count} disagreements, such as\n\n{}",
            reports.join("\n")
        );
    }
}

/// Options that make a dialect.
fn accepted_options(random: &mut Random) -> Options {
    loop {
        let options = soup::options(random);
        if !options.are_refused() {
            return options;
        }
    }
}

/// A number from the environment, for longer runs than the ordinary one.
#[expect(clippy::disallowed_methods, reason = "only a test reads it")]
fn setting(name: &str, ordinary: u64) -> u64 {
    std::env::var(name).map_or(ordinary, |value| value.parse().unwrap())
}

/// The codes of `spec/common.md` 3.
const CODES: usize = 18;
/// The ways in which a call ends.
const TERMINATIONS: usize = 3;

#[test]
fn soup_is_read_as_the_oracle_reads_it() {
    let (count, seed) = (
        setting("ORACLE_CASES", 1_000_000),
        setting("ORACLE_SEED", 1),
    );
    let mut random = Random::new(seed);
    let mut reports = Reports::default();
    let mut bytes = 0;
    let mut codes = BTreeMap::new();
    let mut options = Options::default();
    let mut fresh = Parser::new(&options.dialect());
    for case in 0..count {
        if case % 4 == 0 {
            options = accepted_options(&mut random);
            fresh = Parser::new(&options.dialect());
        }
        let text = soup::text(&mut random, &options);
        let cuts = soup::cuts(&mut random, &text);
        let expected = oracle(&text, &options);
        reports.check(&text, &cuts, &fresh, &expected, &options);
        bytes += text.len();
        for event in expected {
            if let Kind::Diagnostic(name) | Kind::CallEnd(name) = event.kind {
                *codes.entry(name).or_insert(0) += 1;
            }
        }
    }
    println!("{count} texts, {bytes} bytes, {codes:#?}");
    let rare = codes.values().filter(|times| **times < 100).count();
    assert!(
        (codes.len(), rare) == (CODES + TERMINATIONS, 0) || count < 1_000_000,
        "the soup is too thin"
    );
    reports.done();
}

/// A dialect in the words of `spec/README.md`, and the tokens of the texts that are tried in it.
type Alphabet = (&'static str, &'static [&'static str]);

const PLAIN_BLOCK: &[Alphabet] = &[
    (
        "block start=<s> end=<e> arg=<a>",
        &["<s>", "<e>", "<a>", "\n", " ", "x"],
    ),
    (
        "block start=<s> end=<e> arg=<a>",
        &["<s>x\n", "<e>", "<a>x\n", "\r", "\n", "x"],
    ),
    (
        "block start=<s> end=<e> arg=<a>",
        &["<s>", "<e>\n", ":", ",", "x", "\""],
    ),
    (
        "block start=<s> end=<e> arg=<a>",
        &["<s>x\n", "```", " ", "\n", "<a>", "<e>", "x"],
    ),
    (
        "block start=## end=#### arg=###",
        &["##", "#", "x", "\n", " ", "#x\n"],
    ),
    (
        "block start=\t\t end=\tx arg=x\t",
        &["\t", "x", "\n", "\t\tx\n", "```", " "],
    ),
];

const OTHER_DIALECTS: &[Alphabet] = &[
    (
        "block start=<s> end=<e> arg=<a> anywhere",
        &["<s>", "<e>", "<a>", "\n", " ", "x"],
    ),
    (
        "block start=<s> end=<e> arg=<a> escaped",
        &["<s>x\n", "<a>x\n", "\n<e>", "<a", "\\", ">"],
    ),
    (
        "block start=## end=#### arg=### escaped",
        &["##", "#", "\\", "x", "\n", " "],
    ),
    (
        "block start=aba end=abab arg=ab reasoning=ba,bab",
        &["aba", "b", "a", "x\n", "\n"],
    ),
    (
        "block start=<s> end=<e> arg=<a> reasoning=<t>,</t>",
        &["<s>", "<e>", "<t>", "</t>", "x", "\n"],
    ),
    (
        "emoji",
        &[
            "\u{1F6E0}\u{FE0F}[",
            "\u{1F6E0}[/end]",
            "\u{1F6E0}",
            "[/end]",
            "x",
            "]",
            "\n",
        ],
    ),
    (
        "emoji self-closing",
        &["\u{1F6E0}[x", "\u{1F6E0}[/end]", "/", " ", "]", "\r\n"],
    ),
    (
        "emoji escaped",
        &[
            "\u{1F6E0}\u{FE0F}[x]",
            "\u{1F6E0}",
            "[",
            "/end]",
            "\\",
            "\u{FE0F}",
        ],
    ),
    (
        "auto start=<s> end=<e> arg=<a>",
        &[
            "<s>",
            "<e>",
            "\u{1F6E0}[",
            "\u{1F6E0}[/end]",
            "x",
            "]",
            "\n",
        ],
    ),
];

/// Tries every text of up to six tokens, whole and cut in two at every place.
fn check_short_texts(alphabets: &[Alphabet]) {
    let mut reports = Reports::default();
    for (words, alphabet) in alphabets {
        let options = Options::of_words(words.split(' '));
        let fresh = Parser::new(&options.dialect());
        let (mut texts, mut ways) = (0, 0);
        for length in 0..=6 {
            for number in 0..alphabet.len().pow(length) {
                let mut rest = number;
                let mut text = String::new();
                for _ in 0..length {
                    text.push_str(alphabet[rest % alphabet.len()]);
                    rest /= alphabet.len();
                }
                let expected = oracle(&text, &options);
                texts += 1;
                reports.check(&text, &[], &fresh, &expected, &options);
                for (at, _) in text.char_indices().skip(1) {
                    reports.check(&text, &[at], &fresh, &expected, &options);
                    ways += 1;
                }
            }
        }
        println!("{words}: {texts} texts, {ways} splits");
    }
    reports.done();
}

#[test]
fn every_short_text_of_the_plain_block_dialect_is_read_as_the_oracle_reads_it() {
    check_short_texts(PLAIN_BLOCK);
}

#[test]
fn every_short_text_of_the_other_dialects_is_read_as_the_oracle_reads_it() {
    check_short_texts(OTHER_DIALECTS);
}

/// For each place of the text that replaces invalid bytes by U+FFFD, the place in the bytes.
fn places_in_bytes(bytes: &[u8]) -> Vec<usize> {
    let mut places = vec![0];
    let mut from = 0;
    for chunk in bytes.utf8_chunks() {
        places.extend(from + 1..=from + chunk.valid().len());
        from += chunk.valid().len() + chunk.invalid().len();
        if !chunk.invalid().is_empty() {
            places.extend([from; '\u{FFFD}'.len_utf8()]);
        }
    }
    places
}

#[test]
fn bytes_are_read_as_their_text_is() {
    let mut random = Random::new(2);
    let count = 100_000;
    let mut invalid = 0;
    for _ in 0..count {
        let options = accepted_options(&mut random);
        let text = soup::text(&mut random, &options);
        let bytes = soup::bytes(&mut random, &text);
        let text = String::from_utf8_lossy(&bytes);
        invalid += usize::from(text.as_bytes() != bytes);
        let places = places_in_bytes(&bytes);
        let mut expected = oracle(&text, &options);
        for event in &mut expected {
            event.span = places[event.span.start]..places[event.span.end];
        }
        let mut cuts: Vec<usize> = (0..random.below(6))
            .map(|_| random.below(bytes.len() + 1))
            .collect();
        cuts.sort_unstable();
        let mut parser = ByteParser::new(&options.dialect()).unwrap();
        let mut events = Vec::new();
        let mut from = 0;
        for &to in cuts.iter().chain([&bytes.len()]) {
            events.extend(parser.feed(&bytes[from..to]).map(Event::into_owned));
            from = to;
        }
        events.extend(parser.finish().map(Event::into_owned));
        let found = merge_lossy(events);
        assert!(
            found == expected,
            "{bytes:?}, {text:?}, cut at {cuts:?}, with {}\noracle {:#?}\nparser {:#?}",
            options.words(),
            lines(&expected),
            lines(&found)
        );
    }
    println!("{count} byte strings, {invalid} of them invalid");
    assert!(invalid > count / 2);
}

#[test]
fn dialects_are_refused_as_specified() {
    let mut random = Random::new(3);
    let mut refused = 0;
    for _ in 0..100_000 {
        let options = soup::options(&mut random);
        let answer = Parser::new(&options.dialect());
        assert_eq!(answer.is_err(), options.are_refused(), "{options:?}");
        refused += usize::from(answer.is_err());
    }
    println!("{refused} of 100000 refused");
    assert!(refused > 500);
}

#[test]
fn what_was_escaped_is_read_again() {
    let mut random = Random::new(4);
    let count = 200_000;
    let mut escaped_texts = 0;
    for _ in 0..count {
        let mut options = accepted_options(&mut random);
        options.in_reasoning = false;
        let text = soup::text(&mut random, &options);
        let dialect = options.dialect();
        let written = escape(&text, &options);
        let place = || format!("{text:?}, escaped {written:?}, with {}", options.words());
        escaped_texts += usize::from(written != text);
        assert_eq!(
            plaincall_syntax::escape(&text, &dialect).unwrap(),
            written,
            "{}",
            place()
        );
        assert_eq!(unescape(&written, &options), text, "{}", place());
        assert_eq!(
            plaincall_syntax::unescape(&written, &dialect).unwrap(),
            text,
            "{}",
            place()
        );
        assert_eq!(
            plaincall_syntax::unescape(&text, &dialect).unwrap(),
            unescape(&text, &options),
            "unescaped without need, {}",
            place()
        );
        let escaped = Options {
            escaped: true,
            ..options.clone()
        };
        let mut read = String::new();
        for event in parsed(&written, &[], &Parser::new(&escaped.dialect())).unwrap() {
            match event.kind {
                Kind::Text(text) => read.push_str(&text),
                Kind::Ignored(backslash) => assert_eq!(backslash, "\\", "{}", place()),
                other => panic!("{other:?} in {}", place()),
            }
        }
        assert_eq!(read, text, "{}", place());
    }
    println!("{escaped_texts} of {count} texts needed the escape");
    assert!(escaped_texts > count / 2);
}

#[test]
fn events_carry_their_source_and_diagnostics_their_severity() {
    let mut random = Random::new(5);
    for _ in 0..100_000 {
        let options = accepted_options(&mut random);
        let text = soup::text(&mut random, &options);
        let cut = soup::cuts(&mut random, &text).pop().unwrap_or_default();
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
                "pointer_cut_off",
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
            let events = oracle(&example.input, &options);
            assert_eq!(
                examples::events_text(&events, &example.input),
                examples::normalized(expected),
                "{}",
                example.place
            );
            read += 1;
        } else if words[0] == "escape" {
            let written = escape(&example.input, &options);
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
