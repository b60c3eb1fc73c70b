//! The pages of a question about a call, and its answers.

use std::path::PathBuf;
use std::time::Duration;

use plaincall::{Effect, Tool, call::Arguments, command::Directories, events::HeldReason};

use crate::terminal::line::{Line, indented};
use crate::terminal::pages::{self, Extent, PageText};
use crate::terminal::palette::{ASKING, BOLD, CALL_NAME, DIM, PLAIN};
use crate::terminal::tty::Size;
use crate::terminal::words;
use crate::terminal::{address, replacement};

/// Of one text so many lines are shown even on a low terminal.
const FEW: usize = 8;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) key: u8,
    /// The answer with its key in brackets.
    label: &'static str,
    /// What it means, behind the id of the call.
    pub(crate) outcome: &'static str,
    /// What can be typed to it.
    pub(crate) asks: Option<&'static str>,
    /// It is accepted only when everything has been shown.
    pub(crate) needs_all: bool,
}

const fn answer(key: u8, label: &'static str, outcome: &'static str) -> Answer {
    Answer {
        key,
        label,
        outcome,
        asks: None,
        needs_all: false,
    }
}

impl Answer {
    const fn asking(mut self, asks: &'static str) -> Self {
        self.asks = Some(asks);
        self
    }

    const fn needing_all(mut self) -> Self {
        self.needs_all = true;
        self
    }
}

const ALL_OF_TOOL: &str = "allowed, with all calls of this tool";

pub(crate) static YES: Answer = answer(b'y', "[y]es", "allowed").needing_all();
pub(crate) static NO: Answer =
    answer(b'n', "[n]o", "denied").asking("Reason for the model (optional):");
pub(crate) static ALL: Answer = answer(b'a', "[a]ll of this tool", ALL_OF_TOOL).needing_all();
pub(crate) static QUIT: Answer = answer(b'q', "[q]uit", "not run; stopping");
pub(crate) static AGAIN: Answer = answer(b'r', "[r]un again", "runs again").needing_all();
pub(crate) static DONE: Answer =
    answer(b'd', "[d]one", "completed").asking("Output for the model (optional):");
pub(crate) static NOT_DONE: Answer =
    answer(b'n', "[n]ot done", "not executed").asking("Note for the model (optional):");
pub(crate) static LEAVE: Answer = answer(b'l', "[l]eave open", "left open");

/// What is typed at once, without a key before it.
pub(crate) static ANSWER: Answer =
    answer(b'\r', "", "you answered").asking("Your answer (optional):");

pub(crate) const MORE: u8 = b'm';

/// The line with the answers that are accepted on a page, from 0, of so many; and their keys.
pub(crate) fn prompt(
    words: &str,
    answers: &[&'static Answer],
    page: usize,
    pages: usize,
) -> (Line, Vec<u8>) {
    let is_last = page + 1 >= pages;
    let accepted = answers.iter().filter(|it| is_last || !it.needs_all);
    let (mut labels, mut keys): (Vec<_>, Vec<_>) =
        accepted.map(|it| (it.label.to_owned(), it.key)).unzip();
    if !is_last {
        labels.insert(0, format!("[m]ore: page {} of {pages}", page + 1));
        keys.push(MORE);
    }
    let line = format!("? {words}  {}", labels.join(" / "));
    (Line::of(ASKING, &line), keys)
}

/// A call that a question is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Details<'a> {
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) effect: Effect,
    /// Whether a rule requires approval.
    pub(crate) is_ruled: bool,
    pub(crate) held: Option<&'a HeldReason>,
    pub(crate) arguments: &'a Arguments,
    pub(crate) tool: Option<&'a Tool>,
    /// Where the run's tools work; `None` before the run has begun.
    pub(crate) directories: Option<&'a Directories>,
    pub(crate) size: Size,
}

impl Details<'_> {
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        self.tool?.command_directory(self.directories?)
    }

    /// How many lines of one text are shown: a part of the height, so that what is asked about stays in sight.
    pub(crate) fn share(&self) -> usize {
        (self.size.rows / 3).max(FEW)
    }
}

/// A call that wants to run: its arguments and what would be run, where that would be, what it would reach and replace.
pub(crate) async fn pages(details: Details<'_>) -> Vec<Vec<Line>> {
    let mut head = Line::of(ASKING, "? ");
    head.push(BOLD, details.id);
    head.push(PLAIN, " wants to run ");
    head.push(CALL_NAME, details.name);
    if details.effect == Effect::Write {
        head.push(PLAIN, ", which may change something");
    }
    if details.is_ruled {
        head.push(PLAIN, "; a rule requires your approval");
    }
    let mut lines = vec![head];
    if let Some(held) = details.held {
        let mut text = format!("! this call {held}");
        if held.is_echo() {
            text.push_str("; the model may have copied it");
        }
        lines.push(indented(ASKING, &text));
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
    let tail = replacement::lines(details.arguments, directory, details.share()).await;
    on_pages(&lines, &tail, details)
}

/// The call with the lines before and after it: on one page if it fits, else on several, preceded by an overview if that
/// omits something.
fn on_pages(head: &[Line], tail: &[Line], details: Details<'_>) -> Vec<Vec<Line>> {
    let with_call = |extent| {
        let mut listing = PageText {
            lines: head.to_vec(),
            is_cut: false,
        };
        add_call(&mut listing, details, extent);
        listing.lines.extend_from_slice(tail);
        listing
    };
    let ends = with_call(Extent::Ends(details.share()));
    let whole = pages::pages(&with_call(Extent::Whole).lines, details.size);
    if !ends.is_cut {
        return whole;
    }
    let overview = pages::overview(&ends.lines, details.size);
    std::iter::once(overview).chain(whole).collect()
}

/// The pages for an interrupted call. `started` is when it was started, from the beginning of the run,
/// which was at `began`, in milliseconds since 1970.
pub(crate) fn pages_of_interrupted(
    details: Details<'_>,
    started: Option<Duration>,
    began: u64,
) -> Vec<Vec<Line>> {
    let mut head = Line::of(ASKING, "? ");
    head.push(BOLD, details.id);
    head.push(PLAIN, " was interrupted while running ");
    head.push(CALL_NAME, details.name);
    head.push(PLAIN, ", which may have changed something");
    let mut lines = vec![head];
    if let Some(started) = started {
        let text = format!(
            "It started {} after the run began at {}. It may still be running.",
            words::time(started),
            words::moment(began)
        );
        lines.push(indented(DIM, &text));
    }
    on_pages(&lines, &[], details)
}

/// The arguments, the command, its directory, and what it would reach.
fn add_call(listing: &mut PageText, details: Details<'_>, extent: Extent) {
    let tool = details.tool;
    let command = tool.and_then(|tool| tool.command_text(details.arguments));
    for argument in details.arguments.iter() {
        if command.as_deref() == Some(argument.text.trim_end()) {
            // It is the command, which is shown below.
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
    let signs = std::iter::once("$").chain(std::iter::repeat(" "));
    let command = signs
        .zip(lines)
        .map(|(sign, line)| (DIM, format!("{sign} {line}")));
    listing.add(&command.collect::<Vec<_>>(), extent, "command");
    let current = details.directories.map(|directories| &directories.current);
    let directory = details.directory();
    if let Some(directory) = directory.filter(|directory| Some(directory) != current) {
        let directory = [(DIM, format!("in {}", directory.display()))];
        listing.add(&directory, extent, "directory");
    }
    listing.lines.extend(address::lines(details.arguments));
}
