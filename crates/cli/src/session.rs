//! Sessions: saved conversations, each stored as a log.

mod note;

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use plaincall::{
    Log,
    log::{LogError, Record},
    private,
};

use crate::history::{History, torn_tail_outcome};
use crate::options::SessionOptions;
use crate::settings::Configuration;
use crate::status::{Failure, print_note, reason};

pub(crate) use note::Note;

/// The extension of a session's log.
const EXTENSION: &str = ".jsonl";
/// The maximum length of a session name, in bytes.
const MAX_NAME: usize = 100;

/// An open session.
pub(crate) struct Session {
    pub(crate) name: String,
    pub(crate) log: Log,
    /// The events in its log. Empty for a new session.
    pub(crate) history: History,
    /// The note at the beginning of its log. None for a new session.
    pub(crate) note: Option<Note>,
}

impl Session {
    /// Opens the session that the options name. A new one is created only if `check_new` succeeds.
    pub(crate) fn open(
        options: &SessionOptions,
        configuration: &Configuration,
        check_new: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<Option<Self>, Failure> {
        let directory = match (&options.session, options.is_continued) {
            (None, false) => return Ok(None),
            _ => configuration.session_directory()?,
        };
        let name = match &options.session {
            Some(name) => name.clone(),
            None => match list_sessions(directory)?.into_iter().next() {
                Some(last) => last.name,
                None => {
                    return Err(Failure::Configuration(
                        "there is no session to continue; start one with `--session NAME`"
                            .to_owned(),
                    ));
                }
            },
        };
        check_name(&name)?;
        let path = directory.join(format!("{name}{EXTENSION}"));
        if !path.exists() {
            check_new()?;
        }
        let failed = |error: LogError| {
            Failure::Runtime(match error {
                LogError::InUse { .. } => {
                    format!("the session `{name}` is in use by another process")
                }
                error => format!("cannot continue the session `{name}`: {error}"),
            })
        };
        private::create_directory(directory).map_err(|error| {
            Failure::Runtime(format!(
                "cannot create {}: {}",
                directory.display(),
                reason(&error)
            ))
        })?;
        let log = match Log::open(&path) {
            Err(LogError::Damaged { line, .. }) if keep_intact(&path, &name, line)? => {
                Log::open(&path)
            }
            opened => opened,
        };
        let log = log.map_err(failed)?;
        if let Some(torn) = log.torn() {
            print_note(&format!(
                "the session `{name}` ends with {} incomplete or damaged bytes, which were {}",
                torn.bytes,
                torn_tail_outcome(torn)
            ));
        }
        let history = History {
            events: log.history().to_vec(),
        };
        let note = match history.begin() {
            None => None,
            Some(begin) => Some(Note::of(begin).ok_or_else(|| {
                Failure::Runtime(format!(
                    "the session `{name}` was not written by this version of `plaincall ask` or `plaincall chat`"
                ))
            })?),
        };
        Ok(Some(Self {
            name,
            log,
            history,
            note,
        }))
    }
}

/// Shortens a damaged session to the lines before the damage, unless a call of a tool that writes was in progress there or is behind
/// it. Keeps the whole file beside it. Returns whether it did.
fn keep_intact(path: &Path, name: &str, line: u64) -> Result<bool, Failure> {
    let failed = |error: std::io::Error| {
        let why = reason(&error);
        Failure::Runtime(format!(
            "cannot shorten the damaged session `{name}`: {why}"
        ))
    };
    let mut file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.as_mut().map_err(|error| failed(error.kind().into()))?;
    if file.try_lock().is_err() {
        return Ok(false);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    let (record, _) = Record::read_as_far_as_possible(&bytes);
    let history = History {
        events: record.events,
    };
    let later = bytes.get(record.bytes..).unwrap_or_default();
    if history.begin().is_none() || history.may_be_writing() || history.may_have_written(later) {
        return Ok(false);
    }
    let mut names = (1..).map(|number| path.with_extension(format!("damaged-{number}")));
    let free = names.find(|name| !name.exists());
    let whole = free.unwrap_or_else(|| path.with_extension("damaged"));
    let mut copy = File::create_new(&whole).map_err(failed)?;
    copy.write_all(&bytes)
        .and_then(|()| copy.sync_all())
        .map_err(failed)?;
    file.set_len(u64::try_from(record.bytes).unwrap_or(u64::MAX))
        .and_then(|()| file.sync_all())
        .map_err(failed)?;
    print_note(&format!(
        "the session `{name}` is damaged from line {line} and continues with the lines before; the whole file is {}",
        whole.display()
    ));
    Ok(true)
}

/// Checks that a name is a plain file name.
fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_valid = !name.is_empty()
        && name.len() <= MAX_NAME
        && !name.starts_with('.')
        && name.chars().all(is_plain);
    if is_valid {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "invalid session name `{name}`: use letters, digits, `-`, `_` and `.`, no leading `.`, and at most {MAX_NAME} bytes"
    )))
}

pub(crate) struct SavedSession {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) used: SystemTime,
}

/// Lists the sessions of a directory, most recently used first.
pub(crate) fn list_sessions(directory: &Path) -> Result<Vec<SavedSession>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::Runtime(format!(
            "cannot read {}: {}",
            directory.display(),
            reason(&error)
        ))
    };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut sessions = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let file = entry.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(EXTENSION));
        // A session that was removed in the meantime is skipped.
        if let (Some(name), Ok(metadata)) = (name, entry.metadata())
            && metadata.is_file()
            && check_name(name).is_ok()
        {
            sessions.push(SavedSession {
                name: name.to_owned(),
                path: entry.path(),
                used: metadata.modified().unwrap_or(UNIX_EPOCH),
            });
        }
    }
    sessions.sort_by(|a, b| b.used.cmp(&a.used).then(a.name.cmp(&b.name)));
    Ok(sessions)
}
