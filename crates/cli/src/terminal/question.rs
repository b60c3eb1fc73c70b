//! The pages and answers of a question about a call.

use std::path::PathBuf;
use std::time::Duration;

use plaincall::command::Directories;
use plaincall::events::HeldReason;
use plaincall::tool::Arguments;
use plaincall::{Effect, Tool};

use crate::terminal::human;
use crate::terminal::line::{Line, indented};
use crate::terminal::pages::{self, Extent, PageText};
use crate::terminal::palette::{BOLD, CALL_NAME, DIM, NOTICE, PLAIN};
use crate::terminal::tty::Size;
use crate::terminal::{address, replacement};

/// The minimum number of lines shown of a text, even on a low terminal.
const MIN_LINES: usize = 8;

/// A possible answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) key: u8,
    /// The answer with its key in brackets.
    label: &'static str,
    /// The outcome, shown after the id of the call.
    pub(crate) outcome: &'static str,
    /// The prompt for text that can be added to the answer.
    pub(crate) text_prompt: Option<&'static str>,
    /// Whether the answer is accepted only on the last page.
    pub(crate) needs_all_pages: bool,
}

const fn answer(key: u8, label: &'static str, outcome: &'static str) -> Answer {
    Answer {
        key,
        label,
        outcome,
        text_prompt: None,
        needs_all_pages: false,
    }
}

impl Answer {
    const fn with_text(mut self, text_prompt: &'static str) -> Self {
        self.text_prompt = Some(text_prompt);
        self
    }

    const fn on_last_page(mut self) -> Self {
        self.needs_all_pages = true;
        self
    }
}

const ALL_OF_TOOL: &str = "allowed, with all calls of this tool";

pub(crate) static YES: Answer = answer(b'y', "[y]es", "allowed").on_last_page();
pub(crate) static NO: Answer =
    answer(b'n', "[n]o", "denied").with_text("Reason for the model (optional):");
pub(crate) static ALL: Answer = answer(b'a', "[a]ll of this tool", ALL_OF_TOOL).on_last_page();
pub(crate) static QUIT: Answer = answer(b'q', "[q]uit", "not run; stopping");
pub(crate) static AGAIN: Answer = answer(b'r', "[r]un again", "runs again").on_last_page();
pub(crate) static DONE: Answer =
    answer(b'd', "[d]one", "completed").with_text("Output for the model (optional):");
pub(crate) static NOT_DONE: Answer =
    answer(b'n', "[n]ot done", "not run").with_text("Note for the model (optional):");
pub(crate) static LEAVE: Answer = answer(b'l', "[l]eave open", "left open");

/// The answer to a question of the model: text, without a key.
pub(crate) static ANSWER: Answer =
    answer(b'\r', "", "you answered").with_text("Your answer (optional):");

pub(crate) const MORE: u8 = b'm';

/// Returns the line with the accepted answers on a page, counted from 0, and their keys.
pub(crate) fn prompt(
    text: &str,
    answers: &[&'static Answer],
    page: usize,
    pages: usize,
) -> (Line, Vec<u8>) {
    let is_last = page + 1 >= pages;
    let accepted = answers.iter().filter(|it| is_last || !it.needs_all_pages);
    let (mut labels, mut keys): (Vec<_>, Vec<_>) =
        accepted.map(|it| (it.label.to_owned(), it.key)).unzip();
    if !is_last {
        labels.insert(0, format!("[m]ore: page {} of {pages}", page + 1));
        keys.push(MORE);
    }
    let line = format!("? {text}  {}", labels.join(" / "));
    (Line::of(NOTICE, &line), keys)
}

/// The call that a question is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Details<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) effect: Effect,
    /// Whether a rule requires approval.
    pub(crate) rule_asks: bool,
    pub(crate) held: Option<&'a HeldReason>,
    pub(crate) arguments: &'a Arguments,
    pub(crate) tool: Option<&'a Tool>,
    /// The directories of the run. None before the run starts.
    pub(crate) directories: Option<&'a Directories>,
    pub(crate) size: Size,
}

impl Details<'_> {
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        self.tool?.command_directory(self.directories?)
    }

    /// Returns how many lines of one text are shown: a third of the height, so that the question stays visible.
    pub(crate) fn max_lines(&self) -> usize {
        (self.size.rows / 3).max(MIN_LINES)
    }
}

/// Returns the pages for a call that needs approval: arguments, command, directory, URLs, and the file it would
/// replace.
pub(crate) async fn pages(details: Details<'_>) -> Vec<Vec<Line>> {
    let mut head = Line::of(NOTICE, "? ");
    head.push(BOLD, details.id);
    head.push(PLAIN, " wants to run ");
    head.push(CALL_NAME, details.name);
    if details.effect == Effect::Write {
        head.push(PLAIN, ", which may change something");
    }
    if details.rule_asks {
        head.push(PLAIN, "; a rule requires your approval");
    }
    let mut lines = vec![head];
    if let Some(held) = details.held {
        let mut text = format!("! this call {held}");
        if held.is_echo() {
            text.push_str("; the model may have copied it");
        }
        lines.push(indented(NOTICE, &text));
    }
    let description = details
        .tool
        .map(|tool| tool.spec().description.replace('\n', " "));
    if let Some(description) = description.filter(|it| !it.is_empty()) {
        let mut about = PageText::default();
        about.add(&[(DIM, description)], Extent::Ends(1), "description");
        lines.append(&mut about.lines);
    }
    let directory = details.directory().unwrap_or_default();
    let tail = replacement::lines(details.arguments, directory, details.max_lines()).await;
    arrange(&lines, &tail, details)
}

/// Arranges the call on pages. If it does not fit on one page, an overview comes first.
fn arrange(head: &[Line], tail: &[Line], details: Details<'_>) -> Vec<Vec<Line>> {
    let with_call = |extent| {
        let mut listing = PageText {
            lines: head.to_vec(),
            is_truncated: false,
        };
        add_call(&mut listing, details, extent);
        listing.lines.extend_from_slice(tail);
        listing
    };
    let ends = with_call(Extent::Ends(details.max_lines()));
    let whole = pages::pages(&with_call(Extent::Whole).lines, details.size);
    if !ends.is_truncated {
        return whole;
    }
    let overview = pages::overview(&ends.lines, details.size);
    std::iter::once(overview).chain(whole).collect()
}

/// Returns the pages for an interrupted call. `started` is its start since the beginning of the run, `began` the
/// beginning of the run in milliseconds since 1970.
pub(crate) fn pages_of_interrupted(
    details: Details<'_>,
    started: Option<Duration>,
    began: u64,
) -> Vec<Vec<Line>> {
    let mut head = Line::of(NOTICE, "? ");
    head.push(BOLD, details.id);
    head.push(PLAIN, " was interrupted while running ");
    head.push(CALL_NAME, details.name);
    head.push(PLAIN, ", which may have changed something");
    let mut lines = vec![head];
    if let Some(started) = started {
        let text = format!(
            "It started {} after the run began at {}. It may still be running.",
            human::time(started),
            human::utc(began)
        );
        lines.push(indented(DIM, &text));
    }
    arrange(&lines, &[], details)
}

/// Adds the arguments, the command, its directory and the URLs.
fn add_call(listing: &mut PageText, details: Details<'_>, extent: Extent) {
    let tool = details.tool;
    let command = tool.and_then(|tool| tool.command_text(details.arguments));
    for argument in details.arguments.iter() {
        if command.as_deref() == Some(argument.text.trim_end()) {
            // The command is shown below.
            continue;
        }
        if argument.text.contains('\n') {
            let name = [(PLAIN, format!("{}:", argument.pointer))];
            listing.add(&name, extent, "name");
            let text = argument.text.strip_suffix('\n').unwrap_or(argument.text);
            let lines = text.split('\n').map(|line| (DIM, format!("  {line}")));
            listing.add(&lines.collect::<Vec<_>>(), extent, argument.pointer);
        } else {
            let text = [(PLAIN, format!("{} = {}", argument.pointer, argument.text))];
            listing.add(&text, extent, argument.pointer);
        }
    }
    if tool.is_none() {
        return;
    }
    let lines = command.iter().flat_map(|text| text.split('\n'));
    let prefixes = std::iter::once("$").chain(std::iter::repeat(" "));
    let command = prefixes
        .zip(lines)
        .map(|(prefix, line)| (DIM, format!("{prefix} {line}")));
    listing.add(&command.collect::<Vec<_>>(), extent, "command");
    let current = details.directories.map(|directories| &directories.current);
    let directory = details.directory();
    if let Some(directory) = directory.filter(|directory| Some(directory) != current) {
        let directory = [(DIM, format!("in {}", directory.display()))];
        listing.add(&directory, extent, "directory");
    }
    listing.lines.extend(address::lines(details.arguments));
}
