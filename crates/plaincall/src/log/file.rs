//! The file of a log: made, locked, taken up again.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::error::LogError;
use super::line::LineEncoder;
use super::record::{TornTail, read_log};
use super::storage::Storage;
use crate::event::RunEvent;

/// Where a run writes its record, so that it can be taken up again (`spec/log.md`).
///
/// A log belongs to one run. Its file is locked as long as the log, or the run that has taken it, lives. The functions
/// here wait for the disk: in async code call them from `tokio::task::spawn_blocking`.
pub struct Log {
    pub(super) storage: Box<dyn Storage>,
    pub(super) history: Vec<RunEvent>,
    torn: Option<TornTail>,
}

impl Log {
    /// A new file. On Unix only its owner can read it.
    ///
    /// # Errors
    /// If there is such a file already, or it cannot be made, locked or brought to the disk.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, LogError> {
        let path = path.as_ref();
        let mut options = private();
        options.write(true).create_new(true);
        let file = options.open(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => LogError::Exists { path: path.into() },
            _ => LogError::file(path, "made", error),
        })?;
        lock(&file, path)?;
        sync_directory(path).map_err(|error| {
            // Nothing has been written, and a file that is left behind would be refused the next time.
            let _ = fs::remove_file(path);
            LogError::file(path, "synced", error)
        })?;
        Ok(Self::to(LockedFile(file)))
    }

    /// The log of a run that is to be taken up again. What a crash left of an unfinished line at its end is cut off; if
    /// it may be the start of a call of a tool that writes, [`RunEvent::DamagedEnd`] takes its place.
    ///
    /// # Errors
    /// If the file cannot be opened, another run uses it, or it is not a whole log; see [`read_log`].
    pub fn resume(path: impl AsRef<Path>) -> Result<Self, LogError> {
        let path = path.as_ref();
        let file = locked(path, OpenOptions::new().read(true).write(true))?;
        Self::read(file, path)
    }

    /// The log of a run that begins, if the file is not there or nothing was written in it, or else of one that is to be
    /// taken up again. On Unix only its owner can read a file that is made.
    ///
    /// # Errors
    /// As those of [`create`](Self::create) and [`resume`](Self::resume).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LogError> {
        let path = path.as_ref();
        let mut options = private();
        options.read(true).write(true).create(true).truncate(false);
        let file = locked(path, &options)?;
        // Not before it is locked: whoever has made it may not have written yet.
        let about = file
            .metadata()
            .map_err(|error| LogError::file(path, "opened", error))?;
        if about.len() > 0 {
            return Self::read(file, path);
        }
        sync_directory(path).map_err(|error| LogError::file(path, "synced", error))?;
        Ok(Self::to(LockedFile(file)))
    }

    /// Removes the file of a log, whatever is in it, unless a run uses it.
    ///
    /// # Errors
    /// If a run uses it, or it cannot be opened, locked or removed.
    pub fn remove(path: impl AsRef<Path>) -> Result<(), LogError> {
        let path = path.as_ref();
        let file = locked(path, OpenOptions::new().read(true).write(true))?;
        fs::remove_file(path).map_err(|error| LogError::file(path, "removed", error))?;
        // Until here nobody else could take it up.
        drop(file);
        Ok(())
    }

    /// What a locked file holds already.
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

    /// A new log in some other place.
    pub fn to(storage: impl Storage) -> Self {
        Self {
            storage: Box::new(storage),
            history: Vec::new(),
            torn: None,
        }
    }

    /// The events that the log holds already.
    pub fn history(&self) -> &[RunEvent] {
        &self.history
    }

    /// What was cut off its end or replaced there, if a crash had left something.
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

/// A file that this run alone uses.
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
        // A process that is being started holds the file, and with it the lock, until its program runs.
        let _ = self.0.unlock();
    }
}

/// A file that is made so can be read by its owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Opens a file, and keeps other runs out of it.
fn locked(path: &Path, options: &OpenOptions) -> Result<File, LogError> {
    loop {
        let failed = |error| LogError::file(path, "opened", error);
        let file = options.open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(LogError::NotALog {
                what: "it is not a regular file".to_owned(),
            });
        }
        lock(&file, path)?;
        if is_in_place(&file, path).map_err(failed)? {
            return Ok(file);
        }
        // It was removed between the two, and whatever would be written in it would be lost.
    }
}

/// Whether the file is still what stands at this path.
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

/// Other systems remove no file that is open.
#[cfg(not(unix))]
fn is_in_place(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Keeps other runs out as long as the file is open.
fn lock(file: &File, path: &Path) -> Result<(), LogError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => LogError::InUse { path: path.into() },
        TryLockError::Error(error) => LogError::file(path, "locked", error),
    })
}

/// Puts a line in the place of what stands behind the good part, or nothing, to be written on after it.
///
/// The line is written over the old end before the rest is cut off: at no time is there a file from which nothing can
/// be seen of the end. It is synced even if nothing is changed: what was read may be known to the system and not yet
/// to the disk, and the run is about to act on it.
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

/// Makes the name of a new file survive a crash.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    match File::open(parent.unwrap_or(Path::new(".")))?.sync_all() {
        // Some file systems have no such operation for directories; there is nothing better to do there.
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

/// Other systems have no such operation.
#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
