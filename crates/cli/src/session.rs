//! Sessions: saved conversations, each stored as a log.

mod note;

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use plaincall::{Log, log::LogError};

use crate::history::{History, what_became_of};
use crate::options::SessionOptions;
use crate::settings::Configuration;
use crate::status::{Failure, remark};

pub(crate) use note::Note;

/// How a log is called behind the name of its session.
const ENDING: &str = ".jsonl";
/// How long a name may be, in bytes.
const LONGEST_NAME: usize = 100;

/// A session that continues or starts.
pub(crate) struct Session {
    pub(crate) log: Log,
    /// The history in its log; empty for a new session.
    pub(crate) past: History,
    /// What it was begun with.
    pub(crate) note: Option<Note>,
}

impl Session {
    /// Opens the session that the options name.
    pub(crate) fn open(
        options: &SessionOptions,
        configuration: &Configuration,
    ) -> Result<Option<Self>, Failure> {
        let folder = match (&options.session, options.is_continued) {
            (None, false) => return Ok(None),
            _ => configuration.session_directory()?,
        };
        let name = match &options.session {
            Some(name) => name.clone(),
            None => match all(folder)?.into_iter().next() {
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
        let path = folder.join(format!("{name}{ENDING}"));
        let failed = |error: LogError| {
            Failure::Broken(match error {
                LogError::InUse { .. } => {
                    format!("the session `{name}` is in use by another process")
                }
                error => format!("cannot continue the session `{name}`: {error}"),
            })
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|error| {
                Failure::Broken(format!("cannot create {}: {error}", folder.display()))
            })?;
        let log = Log::open(&path).map_err(failed)?;
        if let Some(torn) = log.torn() {
            remark(&format!(
                "the session `{name}` ends with {} incomplete or damaged bytes, which were {}",
                torn.bytes,
                what_became_of(torn)
            ));
        }
        let past = History {
            events: log.history().to_vec(),
        };
        let note = match past.begin() {
            None => None,
            Some(begin) => Some(Note::of(begin).ok_or_else(|| {
                Failure::Broken(format!(
                    "the session `{name}` was not written by this version of `plaincall ask` or `plaincall chat`"
                ))
            })?),
        };
        Ok(Some(Self { log, past, note }))
    }
}

/// A name is that of a file, and nothing else.
fn check_name(name: &str) -> Result<(), Failure> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_good = !name.is_empty()
        && name.len() <= LONGEST_NAME
        && !name.starts_with('.')
        && name.chars().all(is_plain);
    if is_good {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "invalid session name `{name}`: use letters, digits, `-`, `_` and `.`, no leading `.`, and at most {LONGEST_NAME} bytes"
    )))
}

pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) used: SystemTime,
}

/// All sessions of a directory, the one used last first.
pub(crate) fn all(folder: &Path) -> Result<Vec<Known>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::Broken(format!("cannot read {}: {error}", folder.display()))
    };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut known = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let file = entry.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(ENDING));
        // One that is removed meanwhile is not there.
        if let (Some(name), Ok(about)) = (name, entry.metadata())
            && about.is_file()
            && check_name(name).is_ok()
        {
            known.push(Known {
                name: name.to_owned(),
                path: entry.path(),
                used: about.modified().unwrap_or(UNIX_EPOCH),
            });
        }
    }
    known.sort_by(|one, other| other.used.cmp(&one.used).then(one.name.cmp(&other.name)));
    Ok(known)
}
