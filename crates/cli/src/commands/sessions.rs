//! `plaincall sessions`: list the sessions.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use clap::Args;
use plaincall::{RunEvent, events::Author, log::Record};
use plaincall_config::Node;
use plaincall_names::did_you_mean;

use crate::environment::Environment;
use crate::options::FileOptions;
use crate::output::Output;
use crate::session::{Note, SavedSession, list_sessions};
use crate::settings::Configuration;
use crate::status::{Failure, Outcome, Status, print_note};
use crate::terminal::human::{self, count};
use crate::terminal::line::Line;
use crate::terminal::palette::{BOLD, DIM, PLAIN};

/// The maximum length of a question in the list, in columns.
const MAX_QUESTION: usize = 60;

/// List the sessions, most recent first.
///
/// A session is a saved conversation. `ask` and `chat` start one with `--session NAME`, and continue it with the same
/// option or, if it is the most recent, with `--continue`. `plaincall show NAME` shows its messages and calls. A session
/// is stored as the log of its run, readable only by its owner, in the directory that `plaincall config` shows as
/// `sessions`. To remove a session, delete its file, `NAME.jsonl`.
///
/// Exit status: 0 on success; 1 if the directory cannot be read; 2 for wrong usage or configuration.
#[derive(Args, Debug)]
pub(crate) struct SessionsOptions {
    /// Print one JSON object per line.
    #[arg(long, short)]
    json: bool,
}

pub(crate) fn sessions(options: &SessionsOptions, output: &mut Output) -> Outcome {
    let configuration = configuration()?;
    let sessions = list_sessions(configuration.session_directory()?)?;
    list(&sessions, options.json, output)
}

/// Returns the configuration without the project's file, which cannot set the directory of sessions.
fn configuration() -> Result<Configuration, Failure> {
    let files = FileOptions {
        no_project: true,
        ..FileOptions::default()
    };
    Configuration::load(&files, Node::default(), false, &Environment::read())
}

/// Returns the log of a session, for a name that is not the path of a file.
pub(super) fn log_of_session(name: &str) -> Result<PathBuf, Failure> {
    let configuration = configuration()?;
    // Without a directory there are no sessions.
    let directory = configuration.session_directory().ok();
    let sessions = directory.map_or_else(|| Ok(Vec::new()), list_sessions)?;
    let near = did_you_mean(name, sessions.iter().map(|session| session.name.as_str()));
    let found = sessions.into_iter().find(|session| session.name == name);
    found.map(|session| session.path).ok_or_else(|| {
        let advice = "; `plaincall sessions` lists the sessions";
        let advice = if near.is_empty() { advice } else { &near };
        Failure::Runtime(format!("there is no file or session `{name}`{advice}"))
    })
}

/// An entry of the list.
#[derive(serde::Serialize)]
struct Entry {
    name: String,
    used_unix_ms: u64,
    turns: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The first question.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<String>,
    file: PathBuf,
}

fn entry(session: &SavedSession) -> Entry {
    let bytes = fs::read(&session.path).unwrap_or_default();
    let (record, _) = Record::read_as_far_as_possible(&bytes);
    let events = &record.events;
    let note = events.iter().find_map(|event| match event {
        RunEvent::Run(begin) => Note::of(begin),
        _ => None,
    });
    // The question is the last user message before the first turn; documents precede it.
    let first_messages = events
        .iter()
        .take_while(|event| !matches!(event, RunEvent::Turn(_)));
    let question = first_messages.filter_map(|event| match event {
        RunEvent::Message(message) if message.author == Author::User => {
            Some(message.text.to_string())
        }
        _ => None,
    });
    let question = question.last();
    let is_turn = |event: &&RunEvent| matches!(event, RunEvent::Turn(_));
    let used = session
        .used
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    Entry {
        name: session.name.clone(),
        used_unix_ms: u64::try_from(used.as_millis()).unwrap_or(u64::MAX),
        turns: events.iter().filter(is_turn).count(),
        model: note.map(|note| note.model),
        question,
        file: session.path.clone(),
    }
}

fn list(sessions: &[SavedSession], json: bool, output: &mut Output) -> Outcome {
    if sessions.is_empty() && !json {
        print_note(
            "there are no sessions; start one with `ask --session NAME` or `chat --session NAME`",
        );
    }
    let width = sessions.iter().map(|session| session.name.chars().count());
    let width = width.max().unwrap_or(0);
    for session in sessions {
        let entry = entry(session);
        if json {
            output.json_line(&entry)?;
            continue;
        }
        let mut line = Line::of(BOLD, &entry.name);
        line.pad_to(width + 2);
        line.push(DIM, &human::utc(entry.used_unix_ms));
        line.push(DIM, &format!("  {}", count(entry.turns, "turn")));
        if let Some(question) = &entry.question {
            let first = question.trim().lines().next().unwrap_or_default();
            line.push(PLAIN, "  ");
            line.append(&Line::of(PLAIN, first).truncate(MAX_QUESTION, "..."));
        }
        let mut text = String::new();
        line.write(&mut text, output.has_color);
        output.text(format_args!("{text}\n"))?;
    }
    output.flush()?;
    Ok(Status::Success)
}
