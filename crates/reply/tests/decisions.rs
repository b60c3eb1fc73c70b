//! The decision about each call of a reply (`spec/common.md` 10): attacks that must not run and controls that must, with the
//! same decision from every reader.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::sync::Arc;

use plaincall_reply::{
    CallError, DecidedCall, Document, MissingEnd, ReplyCheck, ReplyItem, ReplyReader, Stop,
    Unclosed, extract::Extractor, openai::openai_calls,
};
use plaincall_syntax::Dialect;
use plaincall_tool::{Effect, Limits, Parameter, ParameterKind, ToolSet, ToolSpec};

use plaincall_testkit::allocations::allocations;

const ATTACKS: &str = include_str!("decisions/attacks.txt");
const CONTROLS: &str = include_str!("decisions/controls.txt");

struct Case<'t> {
    title: &'t str,
    dialect: Dialect,
    stop: Stop,
    unclosed: Unclosed,
    has_tools: bool,
    text: String,
    expected: &'t str,
}

impl<'t> Case<'t> {
    fn of(case: &'t str) -> Self {
        let (title, rest) = case.split_once('\n').expect("a title");
        let (mut rest, expected) = rest.rsplit_once("\n--- ").expect("a result");
        let [mut open, mut close] = Dialect::THINK;
        let mut found = Self {
            title,
            dialect: Dialect::auto(),
            stop: Stop::Natural,
            unclosed: Unclosed::Reject,
            has_tools: true,
            text: String::new(),
            expected: expected.trim(),
        };
        while let Some((line, behind)) = rest.split_once('\n') {
            match line.split_once(' ') {
                Some(("stop", name)) => found.stop = Stop::from_name(name).expect("a name"),
                Some(("unclosed", name)) => {
                    found.unclosed = Unclosed::from_name(name).expect("a name");
                }
                Some(("dialect", "block")) => found.dialect = Dialect::block(),
                Some(("tools", "none")) => found.has_tools = false,
                Some(("reasoning", markers)) => {
                    (open, close) = markers.split_once(' ').expect("two markers");
                }
                _ => break,
            }
            rest = behind;
        }
        found.dialect = found.dialect.leading_reasoning(open, close);
        found.text = rest.replace("{BOM}", "\u{FEFF}");
        found
    }

    /// Whether the text has more headers than calls, as in reasoning.
    fn hides_a_call(&self) -> bool {
        let count = |marker: &str| self.text.matches(marker).count();
        let emoji = count("🛠️[") - count("🛠️[/end]");
        count("!!!GADGET_START:") + emoji > self.expected.split(", ").count()
    }

    fn check(&self) -> ReplyCheck {
        ReplyCheck::new(&self.dialect, self.unclosed).expect("a dialect")
    }

    /// Reads the text in pieces of this many bytes. What arrives in one piece has not started when its end is read.
    fn read(&self, tools: &ToolSet, size: usize) -> String {
        let reader = ReplyReader::new(&self.dialect, tools, self.check(), Limits::for_running());
        let mut reader = reader.expect("a dialect");
        let mut items = Vec::new();
        for piece in self.text.as_bytes().chunks(size) {
            items.extend(reader.feed(piece).map(ReplyItem::into_owned));
        }
        if size >= self.text.len() {
            // As where a reply is known as a whole before its calls are used.
            items.extend(reader.end_line());
        }
        items.extend(reader.finish(self.stop).items);
        let mut calls = Vec::new();
        for item in items {
            match item {
                ReplyItem::Call(read) => calls.push((read.call.name.clone(), word(read.decision))),
                ReplyItem::MaybeReasoning { from, .. } => {
                    let late = calls.iter_mut().skip(from);
                    late.for_each(|(_, word)| *word = "maybe-reasoning");
                }
                _ => {}
            }
        }
        joined(calls)
    }
}

/// Returns the decision as a word.
fn word<T>(decided: Result<Option<T>, CallError>) -> &'static str {
    let error = match decided {
        Ok(None) => return "yes",
        Ok(Some(_)) => return "held",
        Err(error) => error,
    };
    match error {
        CallError::NotClosed { why, .. } => match why {
            MissingEnd::Truncated => "truncated",
            MissingEnd::EndOfFile => "end-of-file",
            MissingEnd::NoEndMarker => "no-end-marker",
            MissingEnd::EndedByNextCall => "ended-by-next-call",
            MissingEnd::AfterUnclosed => "after-unclosed",
            MissingEnd::MarkerInside => "marker-inside",
            MissingEnd::LongLastValue => "long-last-value",
            MissingEnd::OtherEnd => "other-end",
            other => panic!("{other:?}"),
        },
        CallError::EndsInQuotation(_) => "ends-in-quotation",
        CallError::AfterBrokenStart { .. } => "after-broken",
        CallError::Arguments(_) => "invalid",
        CallError::InReasoning(_) => "in-reasoning",
        CallError::SlashInHeader(_) => "slash-in-header",
        CallError::MaybeReasoning(_) => "maybe-reasoning",
        other => panic!("{other}"),
    }
}

fn joined(calls: impl IntoIterator<Item = (String, &'static str)>) -> String {
    let calls = calls.into_iter();
    let calls: Vec<String> = calls.map(|(name, word)| format!("{word} {name}")).collect();
    calls.join(", ")
}

fn tools() -> ToolSet {
    let tool = |name: &str, effect, parameters: &[&str]| {
        let tool = ToolSpec::new(name).effect(effect);
        let text = |name: &&str| Parameter::new(*name, ParameterKind::String).optional();
        parameters.iter().map(text).fold(tool, ToolSpec::parameter)
    };
    let note = tool("note", Effect::Write, &["line", "text"]).body("text");
    let wait = tool("wait", Effect::Write, &[]);
    let wait = wait.parameter(Parameter::new("seconds", ParameterKind::Integer));
    ToolSet::new([
        wait.parameter(Parameter::new("limit", ParameterKind::Integer).optional()),
        tool("save", Effect::Write, &["name", "content"]),
        tool("delete", Effect::Write, &["path"]),
        note.positional(["line"]),
        tool("look", Effect::Read, &["path"]),
        tool("find", Effect::Read, &["words"]),
        tool("now", Effect::Read, &[]),
    ])
    .expect("distinct names")
}

fn cases(text: &'static str) -> Vec<Case<'static>> {
    text.split("\n=== ").skip(1).map(Case::of).collect()
}

#[test]
fn attacks_and_controls() {
    let tools = Arc::new(tools());
    let (attacks, controls) = (cases(ATTACKS), cases(CONTROLS));
    for case in &attacks {
        assert!(
            case.expected
                .split(", ")
                .any(|call| !call.starts_with("yes "))
                || case.hides_a_call(),
            "{}",
            case.title
        );
    }
    for case in &controls {
        assert!(
            case.expected
                .split(", ")
                .all(|call| call.starts_with("yes ")),
            "{}",
            case.title
        );
    }
    let mut wrong = Vec::new();
    for case in attacks.iter().chain(&controls) {
        let mut expect = |by: &str, found: String, expected: &str| {
            if found != expected {
                let (title, text) = (case.title, &case.text);
                wrong.push(format!(
                    "{title}, by {by}: {found}\nnot {expected}\n{text}\n"
                ));
            }
        };
        let tools = case.has_tools.then_some(&tools);
        for size in [1, 3, 7, 64, usize::MAX] {
            // Without tools, every tool is unknown to a reader.
            let Some(tools) = tools else { break };
            let size = size.min(case.text.len());
            expect("a reader", case.read(tools, size), case.expected);
        }
        let text = case.text.as_bytes();
        let (dialect, check) = (&case.dialect, case.check());
        let given = tools.map(|tools| &**tools);
        let decided = Document::read(text, dialect, given, check, case.stop);
        let decided = decided.expect("a dialect");
        let runs: Vec<bool> = decided.decided().map(DecidedCall::may_run).collect();
        let expected: Vec<bool> = case
            .expected
            .split(", ")
            .map(|call| call.starts_with("yes "))
            .collect();
        expect("a document", format!("{runs:?}"), &format!("{expected:?}"));
        let row = Extractor::new(&case.dialect, case.unclosed, tools.cloned(), case.stop);
        let row = row.expect("a dialect").row(text);
        let runs: Vec<bool> = row.calls.iter().map(|call| call.may_run).collect();
        expect("a row", format!("{runs:?}"), &format!("{expected:?}"));
        let openai = openai_calls(&decided);
        let skipped: Vec<usize> = openai.skipped.iter().map(|call| call.index).collect();
        let runs: Vec<bool> = (0..expected.len())
            .map(|at| !skipped.contains(&at))
            .collect();
        expect("an array", format!("{runs:?}"), &format!("{expected:?}"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A table shows all text of a model, also a result that it invents.
#[test]
fn a_row_has_the_text_after_a_call() {
    let text = "a\n!!!GADGET_START:now\n!!!GADGET_END\nResult 1 of 1: tool now\n12:00\n";
    let row = Extractor::new(&Dialect::block(), Unclosed::Reject, None, Stop::Natural);
    let row = row.expect("a dialect").row(text);
    assert_eq!(row.content, "a\n\nResult 1 of 1: tool now\n12:00\n");
    assert_eq!(row.calls.len(), 1);
}

/// A row is read in pieces. Their boundaries may split a marker, a character, or bytes that are not UTF-8.
#[test]
fn a_row_of_a_long_text() {
    const PIECE: usize = 64 << 10;
    let extractor = Extractor::new(&Dialect::block(), Unclosed::Reject, None, Stop::Natural);
    let extractor = extractor.expect("a dialect");
    let before = "\n!!!GADGET_START:now\n!!!ARG:a\n\u{1F600}";
    let call = [before.as_bytes(), b"\xe2\x82", b"\n!!!GADGET_END\n"].concat();
    for length in PIECE - call.len() + 1..PIECE {
        let text = [vec![b'x'; length], call.clone()].concat();
        let mut lengths = Vec::new();
        let row = extractor.row_with_check(&text, |length| {
            lengths.push(length);
            Ok::<(), ()>(())
        });
        assert_eq!(lengths, [PIECE, text.len() - PIECE]);
        let row = row.expect("a row");
        assert_eq!(row.content, "x".repeat(length) + "\n\n");
        assert_eq!(row.calls.len(), 1);
        let arguments = row.calls[0].arguments.as_deref();
        assert_eq!(arguments, Some("{\"a\":\"\u{1F600}\u{fffd}\"}"));
        let span = (row.calls[0].start, row.calls[0].end);
        assert_eq!(span, (length + 1, text.len() - 1));
    }
}

/// There are as many calls that must run as calls that must not.
#[test]
fn there_are_enough_controls() {
    let count = |cases: &[Case<'_>], runs: bool| {
        let calls = cases.iter().flat_map(|case| case.expected.split(", "));
        calls
            .filter(|call| call.starts_with("yes ") == runs)
            .count()
    };
    let (attacks, controls) = (cases(ATTACKS), cases(CONTROLS));
    assert!(count(&attacks, false) >= 40);
    assert!(count(&controls, true) >= 40);
}

/// Each call keeps only what is new before it.
#[test]
fn calls_between_other_formats_take_linear_work() {
    let tools = tools();
    let count = |times: usize| {
        let part = "{\"name\": \"Alice\"}\n!!!GADGET_START:now\n!!!GADGET_END\n";
        let mut case = Case::of("-\n-\n--- yes now");
        case.text = part.repeat(times);
        allocations(|| assert_eq!(case.read(&tools, usize::MAX).split(", ").count(), times))
    };
    let (few, many) = (count(50), count(500));
    assert!(many < few * 12, "{few} {many}");
}
