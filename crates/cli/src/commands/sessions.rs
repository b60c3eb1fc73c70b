//! Sessions: saved conversations, each stored as a log.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use clap::{Args, Subcommand};
use plaincall::{
    Log, RunEvent,
    events::Author,
    log::{LogError, Record},
};
use plaincall_call::names::did_you_mean;
use plaincall_config::Node;

use crate::commands::show::{self, ShowOptions};
use crate::environment::Environment;
use crate::options::FileOptions;
use crate::output::Output;
use crate::session::{Known, Note, all};
use crate::settings::Configuration;
use crate::status::{Failure, Outcome, Status, remark};
use crate::terminal::line::Line;
use crate::terminal::palette::{BOLD, DIM, PLAIN};
use crate::terminal::words::{self, count};

/// How much of a question a list shows, in columns.
const SHOWN: usize = 60;

/// List, show and remove sessions.
///
/// A session is a saved conversation. `ask` and `chat` start one with `--session NAME`, and continue it with the same
/// option or, if it is the most recent, with `--continue`. A session is stored as the log of its run, readable only by
/// its owner, in the directory that `plaincall config` shows as `sessions`. Other commands for logs also work on it.
///
/// Exit status: 0; 1 if a session does not exist or cannot be read; 2 for wrong usage or configuration.
#[derive(Args, Debug)]
pub(crate) struct SessionsOptions {
    #[command(subcommand)]
    action: Action,

    #[command(flatten)]
    files: FileOptions,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the sessions, most recent first.
    List {
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show the messages and calls of a session.
    Show {
        /// The name of the session.
        #[arg(value_name = "NAME")]
        name: String,

        /// Show arguments and outputs in full.
        #[arg(long)]
        full: bool,
    },
    /// Remove sessions.
    Remove {
        /// The names of the sessions.
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
}

pub(crate) fn sessions(options: &SessionsOptions, output: &mut Output) -> Outcome {
    let environment = Environment::read();
    let configuration = Configuration::load(&options.files, Node::default(), false, &environment)?;
    let folder = configuration.session_directory()?;
    match &options.action {
        Action::List { json } => list(&all(folder)?, *json, output),
        Action::Show { name, full } => {
            let known = find(folder, name)?;
            let options = ShowOptions {
                file: known.path,
                html: None,
                full: *full,
            };
            show::show(&options, output)
        }
        Action::Remove { names } => {
            // All are looked for before one is removed.
            let found: Result<Vec<Known>, Failure> =
                names.iter().map(|name| find(folder, name)).collect();
            for known in found? {
                Log::remove(&known.path).map_err(|error| {
                    Failure::Broken(match error {
                        LogError::InUse { .. } => {
                            format!("the session `{}` is in use", known.name)
                        }
                        error => format!("cannot remove {}: {error}", known.path.display()),
                    })
                })?;
                remark(&format!("removed the session `{}`", known.name));
            }
            Ok(Status::Good)
        }
    }
}

fn find(folder: &Path, name: &str) -> Result<Known, Failure> {
    let known = all(folder)?;
    let near = did_you_mean(name, known.iter().map(|known| known.name.as_str()));
    let found = known.iter().position(|known| known.name == name);
    let found = found.and_then(|place| known.into_iter().nth(place));
    found.ok_or_else(|| Failure::Broken(format!("there is no session `{name}`{near}")))
}

/// A session in a list.
#[derive(serde::Serialize)]
struct Listed {
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

fn listed(known: &Known) -> Listed {
    let bytes = fs::read(&known.path).unwrap_or_default();
    let (record, _) = Record::read_as_far_as_possible(&bytes);
    let events = &record.events;
    let noted = events.iter().find_map(|event| match event {
        RunEvent::Run(begin) => Note::of(begin),
        _ => None,
    });
    // Documents stand before the question that they came with.
    let before = events
        .iter()
        .take_while(|event| !matches!(event, RunEvent::Turn(_)));
    let question = before.filter_map(|event| match event {
        RunEvent::Message(message) if message.author == Author::User => {
            Some(message.text.to_string())
        }
        _ => None,
    });
    let question = question.last();
    let is_turn = |event: &&RunEvent| matches!(event, RunEvent::Turn(_));
    let used = known
        .used
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    Listed {
        name: known.name.clone(),
        used_unix_ms: u64::try_from(used.as_millis()).unwrap_or(u64::MAX),
        turns: events.iter().filter(is_turn).count(),
        model: noted.map(|note| note.model),
        question,
        file: known.path.clone(),
    }
}

fn list(known: &[Known], json: bool, output: &mut Output) -> Outcome {
    if known.is_empty() && !json {
        remark(
            "there are no sessions; start one with `ask --session NAME` or `chat --session NAME`",
        );
    }
    let width = known.iter().map(|known| known.name.chars().count());
    let width = width.max().unwrap_or(0);
    for known in known {
        let listed = listed(known);
        if json {
            output.json_line(&listed)?;
            continue;
        }
        let mut line = Line::of(BOLD, &listed.name);
        line.pad_to(width + 2);
        line.push(DIM, &words::moment(listed.used_unix_ms));
        line.push(DIM, &format!("  {}", count(listed.turns, "turn")));
        if let Some(question) = &listed.question {
            let first = question.trim().lines().next().unwrap_or_default();
            line.push(PLAIN, "  ");
            line.append(&Line::of(PLAIN, first).cut(SHOWN, "..."));
        }
        let mut text = String::new();
        line.write(&mut text, output.has_color);
        output.text(format_args!("{text}\n"))?;
    }
    output.flush()?;
    Ok(Status::Good)
}
