//! What a person has to know before they answer a question about a call, and what they can answer.

use std::path::Path;
use std::time::Duration;

use anstyle::Style;
use plaincall::{Arguments, EchoOf, Effect, Tool};

use crate::picture::line::Line;
use crate::picture::palette::{ASKING, BOLD, CALL_NAME, DIM, PLAIN};
use crate::picture::words;
use crate::run::address;
use crate::run::replacement;

/// Of one text so many lines are shown even on a low terminal.
const FEW: usize = 8;

/// How many lines of all arguments together are shown.
const LINES: usize = 60;

/// How many characters of one line are shown.
const CHARACTERS: usize = 1000;

/// An answer to a question.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) key: u8,
    /// The answer with its key in brackets.
    label: &'static str,
    /// What it means, behind the id of the call, if that is settled by it.
    pub(crate) outcome: Option<&'static str>,
    /// What can be typed to it.
    pub(crate) asks: Option<&'static str>,
}

const fn answer(key: u8, label: &'static str, outcome: &'static str) -> Answer {
    Answer {
        key,
        label,
        outcome: Some(outcome),
        asks: None,
    }
}

pub(crate) static YES: Answer = answer(b'y', "[y]es", "may run");
pub(crate) static NO: Answer = Answer {
    asks: Some("Why not? The model reads it; Enter alone gives no reason."),
    ..answer(b'n', "[n]o", "may not run")
};
pub(crate) static EDIT: Answer = Answer {
    outcome: None,
    ..answer(b'e', "[e]dit", "")
};
pub(crate) static ALL: Answer = answer(
    b'a',
    "[a]ll of this tool",
    "may run, like all calls of this tool",
);
pub(crate) static QUIT: Answer = answer(b'q', "[q]uit", "does not run; stopping");
pub(crate) static AGAIN: Answer = answer(b'r', "[r]un again", "is run again");
pub(crate) static DONE: Answer = Answer {
    asks: Some("What did it return? The model reads it; Enter alone: nothing."),
    ..answer(b'd', "[d]one", "was done")
};
pub(crate) static NOT_DONE: Answer = Answer {
    asks: Some("What is the model to know about it? Enter alone: no more than that."),
    ..answer(b'n', "[n]ot done", "was not done")
};
pub(crate) static LEAVE: Answer = answer(b'l', "[l]eave open", "is left open");

/// What is typed at once, without a key before it.
pub(crate) static ANSWER: Answer = Answer {
    asks: Some("Your answer; Enter alone says nothing."),
    ..answer(b'\r', "", "you answered")
};

/// The line with the answers.
pub(crate) fn prompt(words: &str, answers: &[&Answer]) -> Line {
    let labels: Vec<&str> = answers.iter().map(|answer| answer.label).collect();
    Line::of(ASKING, &format!("? {words}  {}", labels.join(" / ")))
}

/// A call that a question is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Details<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) effect: Effect,
    /// Whether a rule wants somebody to be asked.
    pub(crate) is_ruled: bool,
    /// The text from outside that the call stands in.
    pub(crate) echo: Option<&'a EchoOf>,
    pub(crate) arguments: &'a Arguments,
    pub(crate) tool: Option<&'a Tool>,
    /// The run's own directory.
    pub(crate) run_directory: Option<&'a Path>,
    /// How many rows the terminal has.
    pub(crate) rows: usize,
}

impl Details<'_> {
    /// How many lines of one text are shown: a part of the height, so that what is asked about stays in sight.
    pub(crate) fn share(&self) -> usize {
        (self.rows / 3).max(FEW)
    }
}

/// A call that wants to run: its arguments and what would be run, where that would be, what it would reach and replace.
/// `remark` is what came of the last answer.
pub(crate) async fn lines(
    details: Details<'_>,
    is_edited: bool,
    remark: Option<String>,
) -> Vec<Line> {
    let mut head = Line::of(ASKING, "? ");
    head.push(BOLD, details.id);
    head.push(PLAIN, " wants to run ");
    head.push(CALL_NAME, details.name);
    match details.effect {
        Effect::Write => head.push(PLAIN, ", which may change something"),
        Effect::Read | Effect::Idempotent => {}
    }
    if details.is_ruled {
        head.push(PLAIN, "; a rule wants you to be asked");
    }
    let mut lines = vec![head];
    if let Some(echo) = details.echo {
        let text = format!("! this call {echo}; the model may only have copied it");
        lines.push(indented(ASKING, &text));
    }
    if let Some(tool) = details
        .tool
        .filter(|tool| !tool.spec().description.is_empty())
    {
        lines.push(indented(DIM, &tool.spec().description));
    }
    if is_edited {
        lines.push(indented(
            ASKING,
            "with the arguments that you have changed:",
        ));
    }
    add_call(&mut lines, details);
    lines.extend(replacement::lines(details).await);
    if let Some(remark) = remark {
        lines.push(Line::of(ASKING, &format!("! {remark}")));
    }
    lines
}

/// A call that was cut off: what is known about it. `started` is when it was started, from the beginning of the run,
/// which was at `began`, in milliseconds since 1970.
pub(crate) fn lines_of_cut_off(
    details: Details<'_>,
    started: Option<Duration>,
    began: u64,
) -> Vec<Line> {
    let mut head = Line::of(ASKING, "? ");
    head.push(BOLD, details.id);
    head.push(PLAIN, " was cut off while it ran ");
    head.push(CALL_NAME, details.name);
    head.push(PLAIN, ", which may have changed something");
    let mut lines = vec![head];
    if let Some(started) = started {
        let text = format!(
            "It was started {} after the run began, which was at {}. It may even be at work still.",
            words::time(started),
            words::moment(began)
        );
        lines.push(indented(DIM, &text));
    }
    add_call(&mut lines, details);
    lines
}

/// The arguments, the command, its directory, and what it would reach.
fn add_call(lines: &mut Vec<Line>, details: Details<'_>) {
    let mut arguments = Vec::new();
    for argument in details.arguments.iter() {
        if argument.text.contains('\n') {
            arguments.push((PLAIN, format!("{}:", argument.pointer)));
            let text = argument.text.strip_suffix('\n').unwrap_or(argument.text);
            let mut text = text.split('\n');
            let shown = text.by_ref().take(details.share());
            arguments.extend(shown.map(|line| (DIM, format!("  {line}"))));
            if let more @ 1.. = text.count() {
                let more = words::count(more, "line");
                arguments.push((ASKING, format!("  ({more} more of {})", argument.pointer)));
            }
        } else {
            arguments.push((PLAIN, format!("{} = {}", argument.pointer, argument.text)));
        }
    }
    add_bounded(lines, &arguments, LINES, "arguments");
    let Some(tool) = details.tool else {
        return;
    };
    let command = tool.command_text(details.arguments);
    let command: Vec<(Style, String)> = command
        .iter()
        .flat_map(|text| text.split('\n'))
        .enumerate()
        .map(|(index, line)| {
            let sign = if index == 0 { "$" } else { " " };
            (DIM, format!("{sign} {line}"))
        })
        .collect();
    add_bounded(lines, &command, LINES, "command");
    let directory = tool.command_directory(details.run_directory);
    if let Some(directory) = directory
        .as_deref()
        .filter(|directory| Some(*directory) != details.run_directory)
    {
        lines.push(indented(DIM, &format!("in {}", directory.display())));
    }
    lines.extend(address::lines(details.arguments));
}

/// Adds so many of these lines, and what is left out of the rest.
pub(crate) fn add_bounded(
    lines: &mut Vec<Line>,
    texts: &[(Style, String)],
    most: usize,
    what: &str,
) {
    for (style, text) in texts.iter().take(most) {
        let shown: String = text.chars().take(CHARACTERS).collect();
        let mut line = indented(*style, &shown);
        if let more @ 1.. = text.chars().count() - shown.chars().count() {
            line.push(ASKING, &format!(" ({more} characters more)"));
        }
        lines.push(line);
    }
    if let more @ 1.. = texts.len().saturating_sub(most) {
        lines.push(indented(
            ASKING,
            &format!("({more} lines more of the {what})"),
        ));
    }
}

pub(crate) fn indented(style: Style, text: &str) -> Line {
    let mut line = Line::of(PLAIN, "    ");
    line.push(style, text);
    line
}
