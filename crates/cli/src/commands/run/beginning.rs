//! How a run starts: from the command line, or from its log.

use std::collections::BTreeMap;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use plaincall::call::Untrusted;
use plaincall::{Log, Policy, Run, log::LogError, policy::Order};
use plaincall_syntax::Dialect;

use crate::commands::run::note::{self, Note, noted};
use crate::commands::run::recovery;
use crate::commands::run::{RunOptions, STANDARD_INPUT};
use crate::history::{History, what_became_of};
use crate::status::{Failure, remark};
use crate::terminal::approval::RecoveryAnswer;
use crate::text::input::read_whole;
use crate::tools_file::{self, Tools};

/// How long the lock of a log may outlive its run.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// How often the lock is retried.
const LOCK_STEP: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) tools: Tools,
    pub(crate) dialect: Dialect,
    pub(crate) policy: Policy,
    /// The source of the reply or its rest; `None` if nothing is left to read.
    pub(crate) reply: Option<PathBuf>,
    /// Whether a pipe counts as complete.
    pub(crate) complete: bool,
    pub(crate) yes: bool,
    pub(crate) history: History,
    /// The log of a resumed run.
    pub(crate) log: Option<Log>,
    /// The recovery answers for interrupted calls.
    pub(crate) answers: BTreeMap<u32, RecoveryAnswer>,
    /// The untrusted texts that are not in the log yet, with their names.
    pub(crate) untrusted: Vec<(String, Untrusted<'static>)>,
}

/// The state of a log.
pub(crate) enum Again {
    /// The run can be resumed.
    On(Box<Beginning>),
    /// The run has ended.
    Over(History),
}

impl Beginning {
    /// Starts a new run.
    pub(crate) fn anew(options: &RunOptions, tools: &Path) -> Result<Self, Failure> {
        let reply = options.file.clone();
        let reply = reply.unwrap_or_else(|| PathBuf::from(STANDARD_INPUT));
        refuse_one_input_for_two(Some(&reply), tools)?;
        if options.log.as_deref() == Some(Path::new(STANDARD_INPUT)) {
            let message =
                "the log must be a file; use `--json` to print the events on standard output";
            return Err(Failure::Usage(message.to_owned()));
        }
        let dialect = options.dialect.of_reply(options.no_reasoning)?;
        let tools = tools_file::load(tools)?;
        if let Some(directory) = options
            .run_directory
            .as_deref()
            .filter(|path| path.is_file())
        {
            return Err(Failure::Broken(format!(
                "the scratch directory {} is a file; name a directory",
                directory.display()
            )));
        }
        let policy = policy(tools.policy, options);
        let untrusted = read_untrusted(&options.untrusted)?;
        Ok(Self {
            tools,
            dialect,
            policy,
            reply: Some(reply),
            complete: options.complete,
            yes: options.yes,
            history: History::default(),
            log: None,
            answers: BTreeMap::new(),
            untrusted,
        })
    }

    /// Resumes a run.
    pub(crate) fn again(options: &RunOptions, path: &Path) -> Result<Again, Failure> {
        let name = path.display();
        let log = open_again(path).map_err(|error| in_log(path, &error))?;
        if let Some(torn) = log.torn() {
            remark(&format!(
                "{name}: the end ({} bytes from line {}) is incomplete or damaged and was {}",
                torn.bytes,
                torn.line,
                what_became_of(torn)
            ));
        }
        let history = History {
            events: log.history().to_vec(),
        };
        let answers = recovery::answers(options, &history)?;
        if history.end().is_some() {
            return Ok(Again::Over(history));
        }
        let note = history.begin().map(|begin| &begin.note);
        let note = Note::from_json(note.unwrap_or_default());
        let broken = |what: String| Failure::Broken(format!("the log {name} {what}"));
        let note = note.map_err(broken)?;
        let dialect = note.syntax.of_reply(note.no_reasoning)?;
        let reply = match (history.stop(), &options.file, &note.reply) {
            (Some(_), Some(_), _) => {
                remark("the run has already read the whole reply; the file is ignored");
                None
            }
            (Some(_), None, _) => None,
            (None, Some(file), _) => Some(file.clone()),
            (None, None, Some(noted)) => Some(note::path(noted)),
            (None, None, None) => {
                remark(
                    "the reply came from a pipe, and its unread part is lost; its last call runs only if it has an end marker. To pass the rest on standard input, use `-`",
                );
                None
            }
        };
        let tools = tools_again(options, &note, reply.as_deref())?;
        // A crash may have come before all of them were written down.
        let missing = note.untrusted.iter().skip(history.untrusted());
        let untrusted: Vec<PathBuf> = missing
            .map(note::path)
            .chain(options.untrusted.iter().cloned())
            .collect();
        let untrusted = read_untrusted(&untrusted)?;
        // Text that was declared complete is not, if only its beginning arrived.
        let complete = options.complete || (note.complete && reply.is_some());
        Ok(Again::On(Box::new(Self {
            policy: history.begin().map_or(tools.policy, |begin| begin.policy),
            tools,
            dialect,
            reply,
            complete,
            yes: options.yes || note.yes,
            history,
            log: Some(log),
            answers,
            untrusted,
        })))
    }

    /// Reports the untrusted texts to the run and its listeners.
    pub(crate) fn report_untrusted(&mut self, run: &mut Run) {
        for (name, text) in take(&mut self.untrusted) {
            run.observe_untrusted(&name, &text);
        }
    }

    /// Whether the reply is typed or piped in.
    pub(crate) fn reads_standard_input(&self) -> bool {
        self.reply.as_deref() == Some(Path::new(STANDARD_INPUT))
    }

    /// Returns the note for the log of a new run. `is_file`: whether the reply is a file.
    pub(crate) fn note(&self, options: &RunOptions, is_file: bool) -> Note {
        let named = |path: &Path| path != Path::new(STANDARD_INPUT);
        let file = self.reply.as_deref().filter(|path| is_file && named(path));
        let tools = options.tools.as_deref().filter(|path| named(path));
        Note {
            program: note::PROGRAM.to_owned(),
            reply: file.map(noted),
            tools: tools.map(noted),
            tools_crc32: self.tools.crc32,
            syntax: options.dialect.clone(),
            complete: self.complete,
            yes: self.yes,
            no_reasoning: options.no_reasoning,
            untrusted: options.untrusted.iter().map(|path| noted(path)).collect(),
        }
    }
}

/// Creates the log of a new run. Waits for the disk.
pub(crate) fn new_log(path: &Path) -> Result<Log, Failure> {
    Log::create(path).map_err(|error| match error {
        LogError::Exists { path, .. } => {
            let path = path.display();
            Failure::Broken(format!(
                "the file {path} already exists; `plaincall run --resume {path}` resumes an interrupted run from its log; for a new log, name a new file"
            ))
        }
        error => Failure::Broken(error.to_string()),
    })
}

/// Opens a log to resume its run.
///
/// If its run was killed in the moment in which a tool's process was being made, that process holds the lock of the log
/// for a moment more. So a log that seems to be used is tried again for a while.
fn open_again(path: &Path) -> Result<Log, LogError> {
    let begun = Instant::now();
    loop {
        match Log::resume(path) {
            Err(LogError::InUse { .. }) if begun.elapsed() < LOCK_PATIENCE => {
                // There is no runtime yet that this could hold up.
                thread::park_timeout(LOCK_STEP);
            }
            other => return other,
        }
    }
}

/// Returns a log error with the path of the log.
fn in_log(path: &Path, error: &LogError) -> Failure {
    Failure::Broken(match error {
        LogError::InUse { .. } | LogError::File { .. } => error.to_string(),
        _ => format!("{}: {error}", path.display()),
    })
}

/// Returns the policy of the tools file, overridden by the options.
fn policy(mut policy: Policy, options: &RunOptions) -> Policy {
    if let Some(count) = options.concurrency {
        policy.concurrent = count;
    }
    if let Some(choice) = options.unclosed {
        policy.unclosed = choice.unclosed();
    }
    if options.parallel {
        policy.emoji_order = Order::Graph;
    } else if options.stop_on_error {
        policy.emoji_order = Order::StopOnError;
    }
    policy
}

/// Returns the tools of a resumed run: the unchanged original file, or the file of `--tools`.
fn tools_again(options: &RunOptions, note: &Note, reply: Option<&Path>) -> Result<Tools, Failure> {
    if let Some(path) = &options.tools {
        refuse_one_input_for_two(reply, path)?;
        return tools_file::load(path);
    }
    let Some(path) = &note.tools else {
        let message =
            "the tools file of this run came from standard input; name it with `--tools FILE`";
        return Err(Failure::Usage(message.to_owned()));
    };
    let path = note::path(path);
    let tools = tools_file::load(&path)?;
    if note.tools_crc32 == tools.crc32 {
        return Ok(tools);
    }
    Err(Failure::Broken(format!(
        "the tools file {path} has changed since the run began; restore it, or pass `--tools {path}` if its tools still do the same",
        path = path.display()
    )))
}

/// Reads the untrusted files, with their names. Invalid UTF-8 is replaced; a model cannot copy it.
fn read_untrusted(paths: &[PathBuf]) -> Result<Vec<(String, Untrusted<'static>)>, Failure> {
    let texts = paths.iter().map(|path| {
        if path == Path::new(STANDARD_INPUT) {
            let message = "`--untrusted` cannot read standard input, because a resumed run may need to read the text again; name a file";
            return Err(Failure::Usage(message.to_owned()));
        }
        let (name, bytes) = read_whole(path)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok((name, Untrusted::new(text)))
    });
    texts.collect()
}

fn refuse_one_input_for_two(reply: Option<&Path>, tools: &Path) -> Result<(), Failure> {
    let standard = Path::new(STANDARD_INPUT);
    if reply == Some(standard) && tools == standard {
        let message = "the reply and the tools cannot both come from standard input; name a file for one of them";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}
