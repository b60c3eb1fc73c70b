//! Reports of disagreements between parser and oracle, shrunk to a short text.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use plaincall_oracle::merged::{Merged, merge};
use plaincall_oracle::oracle::{Options, oracle};

use crate::oracle::readers::{Entry, Readers, byte_chunks, chunks};

/// The search stops after this many disagreements.
const ENOUGH: usize = 6;

/// Collects disagreements of several threads, and panics with them at the end.
#[derive(Default)]
pub(crate) struct Disagreements(Mutex<Vec<String>>);

impl Disagreements {
    /// Records that a text did not give the expected events. `place` states how to reproduce it.
    pub(crate) fn note(
        &self,
        text: &str,
        options: &Options,
        entry: Entry,
        cuts: &[usize],
        place: &str,
    ) {
        self.push(format!("{place}\n{}", report(text, options, entry, cuts)));
    }

    /// Prints and records a report.
    pub(crate) fn push(&self, report: String) {
        eprintln!("{report}");
        self.0.lock().unwrap().push(report);
    }

    pub(crate) fn are_enough(&self) -> bool {
        self.0.lock().unwrap().len() >= ENOUGH
    }

    pub(crate) fn done(self) {
        let reports = self.0.into_inner().unwrap();
        assert!(
            reports.is_empty(),
            "{} disagreements:\n\n{}",
            reports.len(),
            reports.join("\n")
        );
    }
}

/// Returns whether the text gives the expected events. A panic counts as a disagreement.
pub(crate) fn agree(
    readers: &Readers,
    entry: Entry,
    text: &str,
    cuts: &[usize],
    expected: &[Merged],
) -> bool {
    catch_unwind(AssertUnwindSafe(|| {
        readers.agree(entry, text, cuts, expected)
    }))
    .unwrap_or(false)
}

/// Returns the first of a few ways to split the text for which parser and oracle disagree.
fn disagreement(text: &str, options: &Options, entry: Entry) -> Option<Vec<usize>> {
    let readers = Readers::new(options);
    let expected = oracle(text, options);
    let edges = entry.edges(text);
    let mut ways = vec![Vec::new(), edges.clone()];
    if text.len() < 400 {
        ways.extend(edges.into_iter().map(|at| vec![at]));
    }
    ways.into_iter()
        .find(|cuts| !agree(&readers, entry, text, cuts, &expected))
}

/// Removes characters and options while parser and oracle still disagree.
fn shrunk(text: &str, options: &Options, entry: Entry) -> (String, Options) {
    let mut text: Vec<char> = text.chars().collect();
    let mut options = options.clone();
    let still = |text: &[char], options: &Options| {
        let text: String = text.iter().collect();
        !options.are_refused() && disagreement(&text, options, entry).is_some()
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

pub(crate) fn lines(events: &[Merged]) -> Vec<String> {
    let line = |event: &Merged| {
        format!(
            "{:>3}..{:<3} {:?}",
            event.span.start, event.span.end, event.kind
        )
    };
    events.iter().map(line).collect()
}

/// Returns the parser's events, one per line, or the message of its panic.
fn found_events(text: &str, options: &Options, entry: Entry, cuts: &[usize]) -> Vec<String> {
    let readers = Readers::new(options);
    let run = AssertUnwindSafe(|| match entry {
        Entry::Text | Entry::Exact => {
            let mut parser = readers.parser(entry);
            let mut events = Vec::new();
            for chunk in chunks(text, cuts) {
                events.extend(parser.feed(chunk));
            }
            events.extend(parser.finish());
            lines(&merge(events))
        }
        Entry::Bytes | Entry::ExactBytes => {
            let mut parser = readers.byte_parser(entry);
            let mut events = Vec::new();
            for chunk in byte_chunks(text.as_bytes(), cuts) {
                events.extend(parser.feed(chunk).map(plaincall_syntax::Event::into_owned));
            }
            events.extend(parser.finish());
            lines(&merge(events))
        }
    });
    catch_unwind(run).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>();
        vec![message.map_or("a panic".to_owned(), |message| {
            format!("a panic: {message}")
        })]
    })
}

/// Describes one disagreement.
fn report(text: &str, options: &Options, entry: Entry, cuts: &[usize]) -> String {
    let (text, options, cuts) = if disagreement(text, options, entry).is_some() {
        let (text, options) = shrunk(text, options, entry);
        let cuts = disagreement(&text, &options, entry).unwrap_or_default();
        (text, options, cuts)
    } else {
        (text.to_owned(), options.clone(), cuts.to_vec())
    };
    let expected = lines(&oracle(&text, &options));
    let found = found_events(&text, &options, entry, &cuts);
    let mut report = format!(
        "text    {text:?}\noptions {}\ncut at  {cuts:?}, as {entry:?}\n",
        options.words()
    );
    let same = expected
        .iter()
        .zip(&found)
        .take_while(|(a, b)| a == b)
        .count();
    if expected == found {
        report.push_str(
            "the merged events agree: a piece is empty, or its source differs from the input\n",
        );
    }
    for (title, lines) in [("oracle", &expected), ("parser", &found)] {
        let _ = writeln!(report, "{title}");
        for (index, line) in lines.iter().enumerate() {
            let sign = if index < same { ' ' } else { '>' };
            let _ = writeln!(report, "  {sign} {line}");
        }
    }
    report
}
