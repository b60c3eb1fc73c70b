//! `plaincall parse --explain`: how the text of each argument became its value.

use std::iter;

use anstyle::{AnsiColor, Style};
use plaincall_call::{
    Document, Explained, Explanation, Problem, TextPlace, ToolCall, ToolSet, explain,
};
use serde::Serialize;

use crate::output::Output;
use crate::picture::line::Line;
use crate::picture::palette::{CALL_NAME, DIM, PLAIN};
use crate::run::Size;
use crate::status::Failure;
use crate::text::source::Counter;
use crate::visible::harmless;
use crate::visible::{is_invisible, visible};

/// The columns that pointers take at most; a longer one has a line of its own.
const POINTERS: usize = 20;
/// How far apart the columns are.
const GAP: usize = 2;
/// The columns that a text and a value take at most where nobody knows how wide the page is.
const SHOWN: usize = 60;
/// The columns that they take at least, however narrow it is.
const LEAST: usize = 12;
const ARROW: &str = " -> ";
const CUT: &str = "…";

const TEXT: Style = AnsiColor::Green.on_default();
const POINTER: Style = AnsiColor::Yellow.on_default();
const WRONG: Style = AnsiColor::Red.on_default().bold();

/// Says how the arguments of the calls of a text are read.
pub(crate) struct Explainer<'a> {
    /// What messages call the text.
    pub(crate) name: &'a str,
    pub(crate) bytes: &'a [u8],
    pub(crate) tools: Option<&'a ToolSet>,
}

impl Explainer<'_> {
    fn explain(&self, call: &ToolCall) -> Explanation {
        match self.tools {
            Some(tools) => tools.explain(call),
            None => explain(None, call),
        }
    }

    /// For people.
    pub(crate) fn write(&self, document: &Document, output: &mut Output) -> Result<(), Failure> {
        let width = output
            .is_terminal
            .then(|| Size::of_standard_output().columns);
        let mut counter = Counter::new(self.bytes);
        let mut count = 0;
        for call in document.calls() {
            if count > 0 {
                output.bytes(b"\n")?;
            }
            count += 1;
            let (line, column) = counter.position(call.span.start);
            let mut head = Line::of(CALL_NAME, &call.name);
            let place = format!(" ({}, {}:{line}:{column})", call.id, self.name);
            head.push(DIM, &place);
            let lines = iter::once(head).chain(lines(&self.explain(call), width));
            let mut text = String::new();
            for line in lines {
                line.write(&mut text, output.has_color);
                text.push('\n');
            }
            output.text(format_args!("{text}"))?;
        }
        if count == 0 {
            output.text(format_args!("{}: no calls\n", harmless(self.name)))?;
        }
        Ok(())
    }

    /// For programs.
    pub(crate) fn json<'d>(&self, document: &'d Document) -> JsonDocument<'d> {
        let calls = document.calls().map(|call| JsonCall {
            name: &call.name,
            id: &call.id,
            span: (call.span.start, call.span.end),
            explanation: self.explain(call),
        });
        JsonDocument {
            calls: calls.collect(),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct JsonDocument<'d> {
    calls: Vec<JsonCall<'d>>,
}

#[derive(Serialize)]
struct JsonCall<'d> {
    name: &'d str,
    id: &'d str,
    span: (usize, usize),
    #[serde(flatten)]
    explanation: Explanation,
}

/// What stands below the name of the tool.
fn lines(explanation: &Explanation, width: Option<usize>) -> Vec<Line> {
    let Explanation {
        arguments,
        problems,
        ..
    } = explanation;
    let pointers = arguments.iter().map(|one| width_of(&one.pointer));
    let column = pointers.filter(|&it| it <= POINTERS).max().unwrap_or(0) + 2 * GAP;
    let mut lines = Vec::new();
    if arguments.is_empty() && problems.is_empty() {
        push(&mut lines, GAP, &Line::of(DIM, "no arguments"), width);
    }
    for argument in arguments {
        lines.extend(of_argument(argument, column, width));
    }
    for problem in problems {
        push(&mut lines, GAP, &wrong(problem), width);
    }
    lines
}

fn of_argument(argument: &Explained, column: usize, width: Option<usize>) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut line = Line::new();
    line.pad_to(GAP);
    line.push(POINTER, &argument.pointer);
    if line.width() + GAP > column {
        lines.push(std::mem::take(&mut line));
    }
    line.pad_to(column);
    let room = width.map_or(SHOWN, |width| {
        (width.saturating_sub(column + ARROW.len()) / 2).max(LEAST)
    });
    let text = if argument.text.is_empty() {
        Line::of(DIM, "(empty)")
    } else {
        Line::of(TEXT, &seen(&argument.text, room))
    };
    line.append(&text.cut(room, CUT));
    line.push(DIM, ARROW);
    let value = match &argument.value {
        Some(value) => Line::of(PLAIN, &value.to_string()),
        None => Line::of(WRONG, "no value"),
    };
    line.append(&value.cut(room, CUT));
    lines.push(line);

    let mut reason = Line::new();
    if argument.place != TextPlace::Argument {
        reason.push(DIM, &format!("{}; ", argument.place));
    }
    reason.push(DIM, &argument.rule.to_string());
    reason.push(DIM, &format!(" ({})", argument.rule.section()));
    push(&mut lines, column, &reason, width);
    for problem in &argument.problems {
        push(&mut lines, column, &wrong(problem), width);
    }
    lines
}

fn wrong(problem: &Problem) -> Line {
    let mut line = Line::of(WRONG, &format!("error[{}]:", problem.code));
    line.push(PLAIN, &format!(" {}", problem.message));
    line
}

/// Adds a line that begins at a column, broken where the page ends.
fn push(lines: &mut Vec<Line>, column: usize, line: &Line, width: Option<usize>) {
    let room = width.map_or(usize::MAX, |width| {
        width.saturating_sub(column).max(2 * LEAST)
    });
    for row in line.wrapped(room) {
        let mut shifted = Line::new();
        shifted.pad_to(column);
        shifted.append(&row);
        lines.push(shifted);
    }
}

fn width_of(text: &str) -> usize {
    Line::of(PLAIN, text).width()
}

/// A text with its line ends, its tabs and the blanks around it made visible; of a long one the beginning.
fn seen(text: &str, room: usize) -> String {
    let begins = text.len() - text.trim_start_matches(' ').len();
    let ends = text.trim_end_matches(' ').len();
    let mut seen = String::new();
    // No character takes less than no columns, but what takes none would never end.
    for (at, c) in text.char_indices().take(4 * room + 4) {
        match c {
            ' ' if at < begins || at >= ends => seen.push('␠'),
            '\t' => seen.push('␉'),
            c if is_invisible(c) => seen.push_str(&visible(c)),
            c => seen.push(c),
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::seen;

    #[test]
    fn white_space_is_seen() {
        for (text, expected) in [
            ("a b", "a b"),
            (" a  b ", "␠a  b␠"),
            ("  ", "␠␠"),
            ("a\n\tb\r\n", "a␊␉b␍␊"),
            ("\u{1b}[2J\u{202e}", "␛[2J\\u{202e}"),
        ] {
            assert_eq!(seen(text, 40), expected, "{text:?}");
        }
    }
}
