//! Creates, locks and resumes the file of a log.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::error::LogError;
use super::line::LineEncoder;
use super::record::{TornTail, read_log};
use super::storage::Storage;
use crate::event::RunEvent;
use crate::private;

/// The log of a run, from which the run can be resumed (`spec/log.md`).
///
/// A log belongs to one run. Its file is locked until the log, or the run that uses it, is dropped. These functions block on
/// the disk: in async code, call them in `tokio::task::spawn_blocking`.
pub struct Log {
    pub(super) storage: Box<dyn Storage>,
    pub(super) history: Vec<RunEvent>,
    torn: Option<TornTail>,
}

impl Log {
    /// Creates a new log. Only the owner can read the file.
    ///
    /// # Errors
    /// Returns an error if the file already exists, or cannot be created, locked or synced.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, LogError> {
        let path = path.as_ref();
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let file = private::open(path, &options).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => LogError::Exists { path: path.into() },
            _ => LogError::file(path, "created", error),
        })?;
        lock(&file, path)?;
        sync_directory(path).map_err(|error| {
            // Nothing was written, and the next attempt would fail if the file existed.
            let _ = fs::remove_file(path);
            LogError::file(path, "synced", error)
        })?;
        Ok(Self::to(LockedFile(file)))
    }

    /// Opens the log of a run to resume it. If a crash left an unfinished line at its end, the line is removed; if the line may
    /// be the start of a call of a tool that writes, [`RunEvent::DamagedEnd`] replaces it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened, another run uses it, or it is not an intact log; see [`read_log`].
    pub fn resume(path: impl AsRef<Path>) -> Result<Self, LogError> {
        let path = path.as_ref();
        let file = locked(path, OpenOptions::new().read(true).write(true))?;
        Self::read(file, path)
    }

    /// Opens the log of a run to resume it, or creates a new log if the file does not exist or is empty. Only the owner can
    /// read a new file.
    ///
    /// # Errors
    /// Same as [`create`](Self::create) and [`resume`](Self::resume).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LogError> {
        let path = path.as_ref();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = locked(path, &options)?;
        // Only after locking it: the run that created it may not have written yet.
        let about = file
            .metadata()
            .map_err(|error| LogError::file(path, "opened", error))?;
        if about.len() > 0 {
            return Self::read(file, path);
        }
        sync_directory(path).map_err(|error| LogError::file(path, "synced", error))?;
        Ok(Self::to(LockedFile(file)))
    }

    /// Removes the file of a log, with any content, unless a run uses it.
    ///
    /// # Errors
    /// Returns an error if a run uses the file, or if it cannot be opened, locked or removed.
    pub fn remove(path: impl AsRef<Path>) -> Result<(), LogError> {
        let path = path.as_ref();
        let file = locked(path, OpenOptions::new().read(true).write(true))?;
        fs::remove_file(path).map_err(|error| LogError::file(path, "removed", error))?;
        // The lock is held until the file is removed, so no run can resume it.
        drop(file);
        Ok(())
    }

    fn read(mut file: File, path: &Path) -> Result<Self, LogError> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(|error| LogError::file(path, "read", error))?;
        let mut record = read_log(&bytes)?;
        let mut line = Vec::new();
        if let Some(event) = record.stand_in() {
            let number = u64::try_from(record.events.len()).unwrap_or(u64::MAX);
            LineEncoder::from_number(number)
                .append(&event, &mut line)
                .map_err(|error| LogError::file(path, "prepared for writing", error.into()))?;
            record.events.push(event);
        }
        replace_end(&mut file, record.bytes, &line, bytes.len())
            .map_err(|error| LogError::file(path, "prepared for writing", error))?;
        Ok(Self {
            storage: Box::new(LockedFile(file)),
            history: record.events,
            torn: record.torn,
        })
    }

    /// Creates a new log in a custom storage.
    pub fn to(storage: impl Storage) -> Self {
        Self {
            storage: Box::new(storage),
            history: Vec::new(),
            torn: None,
        }
    }

    /// Returns the events that the log contained when it was opened.
    pub fn history(&self) -> &[RunEvent] {
        &self.history
    }

    /// Returns the unfinished end that was removed or replaced when the log was opened, if any.
    pub fn torn(&self) -> Option<&TornTail> {
        self.torn.as_ref()
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Log")
            .field("events", &self.history.len())
            .field("torn", &self.torn)
            .finish_non_exhaustive()
    }
}

struct LockedFile(File);

impl Storage for LockedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // A child process that is being started shares the file, and thus the lock, until it executes its program.
        let _ = self.0.unlock();
    }
}

fn locked(path: &Path, options: &OpenOptions) -> Result<File, LogError> {
    loop {
        let failed = |error| LogError::file(path, "opened", error);
        let file = private::open(path, options).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(LogError::NotALog {
                what: "it is not a regular file".to_owned(),
            });
        }
        lock(&file, path)?;
        if is_in_place(&file, path).map_err(failed)? {
            return Ok(file);
        }
        // It was removed before it was locked, so everything written to it would be lost.
    }
}

/// Returns whether the path still leads to the file.
#[cfg(unix)]
fn is_in_place(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let about = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (about.dev(), about.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Other systems do not remove open files.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
fn is_in_place(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Locks a file until it is closed.
fn lock(file: &File, path: &Path) -> Result<(), LogError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => LogError::InUse { path: path.into() },
        TryLockError::Error(error) => LogError::file(path, "locked", error),
    })
}

/// Replaces the damaged end of a log with a line, which may be empty.
///
/// The line overwrites the old end before the rest is truncated, so the file shows at all times that its end was damaged. The
/// file is synced even if nothing changed: the content that was read may not be on the disk yet, and the run relies on it.
fn replace_end(file: &mut File, good: usize, line: &[u8], all: usize) -> io::Result<()> {
    let end = good + line.len();
    file.seek(SeekFrom::Start(
        u64::try_from(good).map_err(io::Error::other)?,
    ))?;
    file.write_all(line)?;
    if all != end {
        file.set_len(u64::try_from(end).map_err(io::Error::other)?)?;
    }
    file.sync_all()
}

/// Syncs the directory entry of a new file.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    match File::open(parent.unwrap_or(Path::new(".")))?.sync_all() {
        // Some file systems cannot sync directories.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}

/// Other systems cannot sync directories.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
