//! The start of a run, new or from its log.

use std::collections::BTreeMap;
use std::mem::take;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use plaincall::reply::Untrusted;
use plaincall::{Log, Policy, Run, log::LogError, policy::Order};
use plaincall_syntax::Dialect;

use crate::commands::run::note::{self, Note, absolute};
use crate::commands::run::recovery;
use crate::commands::run::{RunOptions, STANDARD_INPUT};
use crate::history::{History, torn_tail_outcome};
use crate::status::{Failure, print_note, reason};
use crate::terminal::approval::RecoveryAnswer;
use crate::text::input::read_input;
use crate::tools_file::{self, Tools};

/// How long to wait for the lock of a log.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of calls of a reply, unless the tools file sets another.
pub(super) const MAX_CALLS: u32 = 10_000;

/// The interval between attempts to lock a log.
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// A run that is ready to start.
#[derive(Debug)]
pub(crate) struct Beginning {
    pub(crate) tools: Tools,
    pub(crate) dialect: Dialect,
    pub(crate) policy: Policy,
    /// The source of the reply or its rest; `None` if nothing is left to read.
    pub(crate) reply: Option<PathBuf>,
    /// Whether a pipe is treated as complete.
    pub(crate) complete: bool,
    pub(crate) yes: bool,
    /// The events before the interruption. Empty for a new run.
    pub(crate) history: History,
    /// The log of a resumed run.
    pub(crate) log: Option<Log>,
    /// Recovery answers for interrupted calls, by call number.
    pub(crate) answers: BTreeMap<u32, RecoveryAnswer>,
    /// Untrusted texts that are not in the log yet, with their names.
    pub(crate) untrusted: Vec<(String, Untrusted<'static>)>,
}

/// The state of a log.
pub(crate) enum ResumedLog {
    /// The run can be resumed.
    Unfinished(Box<Beginning>),
    /// The run has ended.
    Ended(History),
}

impl Beginning {
    /// Starts a new run.
    pub(crate) fn new(options: &RunOptions, tools: &Path) -> Result<Self, Failure> {
        let reply = options.file.clone();
        let reply = reply.unwrap_or_else(|| PathBuf::from(STANDARD_INPUT));
        check_standard_input(Some(&reply), tools)?;
        if options.log.as_deref() == Some(Path::new(STANDARD_INPUT)) {
            let message =
                "the log must be a file; use `--json` to print the events on standard output";
            return Err(Failure::Usage(message.to_owned()));
        }
        let dialect = options.dialect.dialect.of_reply()?;
        let tools = tools_file::load(tools)?;
        if let Some(directory) = options
            .run_directory
            .as_deref()
            .filter(|path| path.is_file())
        {
            return Err(Failure::Runtime(format!(
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

    pub(crate) fn resume(options: &RunOptions, path: &Path) -> Result<ResumedLog, Failure> {
        let name = path.display();
        let log = resume_log(path).map_err(|error| log_failure(path, &error))?;
        if let Some(torn) = log.torn() {
            print_note(&format!(
                "{name}: the end ({} bytes from line {}) is incomplete or damaged and was {}",
                torn.bytes,
                torn.line,
                torn_tail_outcome(torn)
            ));
        }
        let history = History {
            events: log.history().to_vec(),
        };
        let answers = recovery::answers(options, &history)?;
        if history.end().is_some() {
            return Ok(ResumedLog::Ended(history));
        }
        let note = history.begin().map(|begin| &begin.note);
        let note = Note::from_json(note.unwrap_or_default());
        let broken = |what: String| Failure::Runtime(format!("the log {name} {what}"));
        let note = note.map_err(broken)?;
        let dialect = note.syntax.of_reply(note.no_reasoning)?;
        let reply = match (history.stop(), &options.file, &note.reply) {
            (Some(_), Some(_), _) => {
                print_note("the run has already read the whole reply; the file is ignored");
                None
            }
            (Some(_), None, _) => None,
            (None, Some(file), _) => Some(file.clone()),
            (None, None, Some(file)) => Some(note::path(file)),
            (None, None, None) => {
                print_note(
                    "the reply came from a pipe, and its unread part is lost; its last call runs only if it has an end marker. To pass the rest on standard input, use `-`",
                );
                None
            }
        };
        let tools = load_tools(options, &note, reply.as_deref())?;
        // The crash may have come before all of them were logged.
        let missing = note.untrusted.iter().skip(history.untrusted());
        let untrusted: Vec<PathBuf> = missing
            .map(note::path)
            .chain(options.untrusted.iter().cloned())
            .collect();
        let untrusted = read_untrusted(&untrusted)?;
        // `--complete` applied to the whole reply; a rest that is lost makes it incomplete.
        let complete = options.complete || (note.complete && reply.is_some());
        Ok(ResumedLog::Unfinished(Box::new(Self {
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

    /// Reports the untrusted texts to the run and its observers.
    pub(crate) fn report_untrusted(&mut self, run: &mut Run) {
        for (name, text) in take(&mut self.untrusted) {
            run.observe_untrusted(&name, &text);
        }
    }

    /// Returns whether the reply comes from standard input.
    pub(crate) fn reads_standard_input(&self) -> bool {
        self.reply.as_deref() == Some(Path::new(STANDARD_INPUT))
    }

    /// Returns the note for the log of a new run. `is_file` is whether the reply is a file.
    pub(crate) fn note(&self, options: &RunOptions, is_file: bool) -> Note {
        let is_path = |path: &Path| path != Path::new(STANDARD_INPUT);
        let file = self
            .reply
            .as_deref()
            .filter(|path| is_file && is_path(path));
        let tools = options.tools.as_deref().filter(|path| is_path(path));
        Note {
            program: note::PROGRAM.to_owned(),
            reply: file.map(absolute),
            tools: tools.map(absolute),
            tools_crc32: self.tools.crc32,
            syntax: options.dialect.dialect.options.clone(),
            complete: self.complete,
            yes: self.yes,
            no_reasoning: options.dialect.dialect.no_reasoning,
            untrusted: options.untrusted.iter().map(|it| absolute(it)).collect(),
        }
    }
}

/// Creates the log of a new run. Blocks.
pub(crate) fn new_log(path: &Path) -> Result<Log, Failure> {
    Log::create(path).map_err(|error| match error {
        LogError::Exists { path, .. } => {
            let path = path.display();
            Failure::Runtime(format!(
                "the file {path} already exists; `plaincall run --resume {path}` resumes an interrupted run from its log; for a new log, name a new file"
            ))
        }
        LogError::File { path, error, .. } => Failure::Runtime(format!(
            "cannot create the log {}: {}",
            path.display(),
            reason(&error)
        )),
        error => Failure::Runtime(error.to_string()),
    })
}

/// Opens a log to resume its run.
///
/// If the run was killed while it started a tool, the new process holds the lock of the log for a moment longer, so a
/// locked log is retried for a while.
fn resume_log(path: &Path) -> Result<Log, LogError> {
    let started = Instant::now();
    loop {
        match Log::resume(path) {
            Err(LogError::InUse { .. }) if started.elapsed() < LOCK_TIMEOUT => {
                // No runtime is running yet, so blocking is fine.
                thread::park_timeout(LOCK_RETRY);
            }
            other => return other,
        }
    }
}

/// Adds the path of the log to a log error.
fn log_failure(path: &Path, error: &LogError) -> Failure {
    Failure::Runtime(match error {
        LogError::InUse { .. } | LogError::File { .. } => error.to_string(),
        _ => format!("{}: {error}", path.display()),
    })
}

/// Returns the policy of the tools file, overridden by the options.
fn policy(mut policy: Policy, options: &RunOptions) -> Policy {
    policy.calls_per_turn.get_or_insert(MAX_CALLS);
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
fn load_tools(options: &RunOptions, note: &Note, reply: Option<&Path>) -> Result<Tools, Failure> {
    if let Some(path) = &options.tools {
        check_standard_input(reply, path)?;
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
    Err(Failure::Runtime(format!(
        "the tools file {path} has changed since the run began; restore it, or pass `--tools {path}` if its tools still do the same",
        path = path.display()
    )))
}

/// Reads the untrusted files. Invalid UTF-8 is replaced; a model cannot copy it.
fn read_untrusted(paths: &[PathBuf]) -> Result<Vec<(String, Untrusted<'static>)>, Failure> {
    let texts = paths.iter().map(|path| {
        if path == Path::new(STANDARD_INPUT) {
            let message = "`--untrusted` cannot read standard input, because a resumed run may need to read the text again; name a file";
            return Err(Failure::Usage(message.to_owned()));
        }
        let (name, bytes) = read_input(path)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok((name, Untrusted::new(text)))
    });
    texts.collect()
}

fn check_standard_input(reply: Option<&Path>, tools: &Path) -> Result<(), Failure> {
    let standard = Path::new(STANDARD_INPUT);
    if reply == Some(standard) && tools == standard {
        let message = "the reply and the tools cannot both come from standard input; name a file for one of them";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(())
}
