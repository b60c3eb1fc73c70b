//! What a person has to know before a call may run, and what they can answer.

use plaincall::{Request, Tool};

use crate::run::line::Line;
use crate::run::palette::{ASKING, BOLD, CALL_NAME, DIM, PLAIN};

/// How many lines of all arguments together are shown.
const LINES: usize = 60;

/// How many characters of one line are shown.
const CHARACTERS: usize = 1000;

/// An answer to the question.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) key: u8,
    /// The answer with its key in brackets.
    label: &'static str,
    /// What it means, behind the id of the call.
    pub(crate) outcome: &'static str,
}

/// All answers.
pub(crate) const ANSWERS: [Answer; 4] = [
    Answer {
        key: b'y',
        label: "[y]es",
        outcome: "may run",
    },
    Answer {
        key: b'n',
        label: "[n]o",
        outcome: "may not run",
    },
    Answer {
        key: b'a',
        label: "[a]ll of this tool",
        outcome: "may run, like all calls of this tool",
    },
    Answer {
        key: b'q',
        label: "[q]uit",
        outcome: "does not run; stopping",
    },
];

/// The line with the answers.
pub(crate) fn prompt() -> Line {
    let labels = ANSWERS.map(|answer| answer.label).join(" / ");
    Line::of(ASKING, &format!("? May it run?  {labels}"))
}

/// The call, its arguments and what would be run.
pub(crate) fn lines(request: &Request, tool: Option<&Tool>) -> Vec<Line> {
    let mut head = Line::of(ASKING, "? ");
    head.push(BOLD, &request.id);
    head.push(PLAIN, " wants to run ");
    head.push(CALL_NAME, &request.name);
    head.push(PLAIN, ", which may change something");
    let mut lines = vec![head];
    if let Some(tool) = tool.filter(|tool| !tool.spec().description.is_empty()) {
        lines.push(indented(DIM, &tool.spec().description));
    }
    let mut arguments = Vec::new();
    for argument in request.arguments.iter() {
        if argument.text.contains('\n') {
            arguments.push((format!("{}:", argument.pointer), true));
            arguments.extend(
                argument
                    .text
                    .split('\n')
                    .map(|line| (format!("  {line}"), false)),
            );
        } else {
            arguments.push((format!("{} = {}", argument.pointer, argument.text), true));
        }
    }
    add_bounded(&mut lines, &arguments, "arguments");
    if let Some(tool) = tool {
        let command: Vec<(String, bool)> = tool
            .command_text(&request.arguments)
            .iter()
            .flat_map(|text| text.split('\n'))
            .enumerate()
            .map(|(index, line)| {
                (
                    format!("{} {line}", if index == 0 { "$" } else { " " }),
                    false,
                )
            })
            .collect();
        add_bounded(&mut lines, &command, "command");
    }
    lines
}

fn add_bounded(lines: &mut Vec<Line>, texts: &[(String, bool)], what: &str) {
    for (text, is_head) in texts.iter().take(LINES) {
        let style = if *is_head { PLAIN } else { DIM };
        let shown: String = text.chars().take(CHARACTERS).collect();
        let mut line = indented(style, &shown);
        if let more @ 1.. = text.chars().count() - shown.chars().count() {
            line.push(ASKING, &format!(" ({more} characters more)"));
        }
        lines.push(line);
    }
    if let more @ 1.. = texts.len().saturating_sub(LINES) {
        lines.push(indented(
            ASKING,
            &format!("({more} lines more of the {what})"),
        ));
    }
}

fn indented(style: anstyle::Style, text: &str) -> Line {
    let mut line = Line::of(PLAIN, "    ");
    line.push(style, text);
    line
}
