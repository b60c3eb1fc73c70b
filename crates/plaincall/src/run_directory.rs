//! The directories of a run: its working directory and its scratch directory.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::event::DirectoryBegin;
use crate::private;

/// The prefix of the names of temporary scratch directories.
const PREFIX: &str = "plaincall-";

/// Permissions that other users must not have for a temporary scratch directory.
const OTHERS: u32 = 0o077;
/// Permissions that other users must not have for any scratch directory that is used again.
const OTHERS_WRITE: u32 = 0o022;

/// The number of removed files that are listed.
const LISTED_FILES: usize = 5;

/// The location of the scratch directory.
#[derive(Clone, Debug)]
pub(crate) enum DirectorySetting {
    /// A new directory in this one.
    In(PathBuf),
    /// This directory.
    At(PathBuf),
}

/// The directories of the placeholders of commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Directories {
    /// `{directory:current}`: the working directory of the run.
    pub current: PathBuf,
    /// `{directory:run}`: the run's scratch directory, if it has one.
    pub run: Option<PathBuf>,
}

/// The files that were removed with the scratch directory of a run. `Display` writes a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemovedFiles {
    /// The directory.
    pub directory: PathBuf,
    /// The names of the files and directories in it, in order.
    pub names: Vec<OsString>,
}

impl RemovedFiles {
    /// Lists the files in a directory that is about to be removed. Returns `None` if there are none.
    pub fn of(directory: &Path) -> Option<Self> {
        let entries = std::fs::read_dir(directory).ok()?;
        let mut names: Vec<OsString> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        (!names.is_empty()).then(|| Self {
            directory: directory.to_owned(),
            names,
        })
    }
}

impl fmt::Display for RemovedFiles {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.names.iter().take(LISTED_FILES);
        // The names come from tools, so they may contain control characters.
        let shown = shown.map(|name| {
            let name = name.to_string_lossy();
            format!("`{}`", name.replace(char::is_control, "\u{fffd}"))
        });
        let shown: Vec<String> = shown.collect();
        write!(
            formatter,
            "the run's scratch directory was removed, with {}",
            shown.join(", ")
        )?;
        match self.names.len().saturating_sub(LISTED_FILES) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

/// The scratch directory of a run. A temporary one is removed at the end of the run. If it contains files, only
/// [`Self::remove`] removes it, and returns their names.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
    is_temporary: bool,
    /// Whether the directory stays, because the run may be resumed from its log.
    stays: AtomicBool,
}

impl DirectorySetting {
    /// Creates the directory.
    ///
    /// # Errors
    /// Returns the directory, and why it cannot be created.
    pub(crate) fn create(self, has_log: bool) -> Result<RunDirectory, (PathBuf, io::Error)> {
        match self {
            Self::In(parent) => {
                // Commands may have another working directory, so they need an absolute path.
                let made = std::path::absolute(&parent)
                    .and_then(|parent| private::temporary_directory(PREFIX, &parent));
                let made = made.map_err(|error| (parent, error))?;
                Ok(RunDirectory {
                    path: made.keep(),
                    is_temporary: true,
                    stays: AtomicBool::new(has_log),
                })
            }
            Self::At(directory) => {
                let made = std::path::absolute(&directory)
                    .and_then(|path| private::create_directory(&path).map(|()| path));
                let path = made.map_err(|error| (directory, error))?;
                Ok(RunDirectory {
                    path,
                    is_temporary: false,
                    stays: AtomicBool::new(true),
                })
            }
        }
    }

    /// Opens the directory that a log names. It counts as temporary only if its parent and its name are those that this run
    /// would have used. Otherwise a forged log could have any directory removed.
    ///
    /// With `is_over`, no call was interrupted, so no call depends on the files in it. Then a temporary directory that was
    /// removed is created again.
    ///
    /// # Errors
    /// Returns the directory, and the reason if it does not exist or may belong to another user.
    pub(crate) fn reopen(
        setting: Option<Self>,
        begin: &DirectoryBegin,
        is_over: bool,
    ) -> Result<RunDirectory, (PathBuf, io::Error)> {
        let path = PathBuf::from(&begin.path);
        let parent = match setting {
            Some(at @ Self::At(_)) => {
                let directory = at.create(true)?;
                check(&directory.path, OTHERS_WRITE)
                    .map_err(|error| (directory.path.clone(), error))?;
                return Ok(directory);
            }
            Some(Self::In(parent)) => std::path::absolute(&parent).ok(),
            None => None,
        };
        let name = path.file_name().and_then(|name| name.to_str());
        let has_our_name = path.is_absolute()
            && name.is_some_and(|name| name.starts_with(PREFIX))
            && parent.is_some_and(|parent| path.parent() == Some(&parent));
        if is_over && begin.temporary && has_our_name && path.symlink_metadata().is_err() {
            private::create_new_directory(&path).map_err(|error| (path.clone(), error))?;
        }
        if !path.is_absolute() || !path.is_dir() {
            return Err((path, io::ErrorKind::NotFound.into()));
        }
        let forbidden = if begin.temporary {
            OTHERS
        } else {
            OTHERS_WRITE
        };
        check(&path, forbidden).map_err(|error| (path.clone(), error))?;
        Ok(RunDirectory {
            path,
            is_temporary: begin.temporary && has_our_name,
            stays: AtomicBool::new(true),
        })
    }
}

/// Checks that no other user can have created or changed a directory since the run used it.
///
/// # Errors
/// Returns the problem and how to fix it.
#[cfg(unix)]
fn check(path: &Path, forbidden: u32) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;

    let about = path.symlink_metadata()?;
    let own = rustix::process::geteuid().as_raw();
    let mode = about.mode() & 0o777;
    let why = if about.is_symlink() {
        "it is a symbolic link; name its target".to_owned()
    } else if about.uid() != own {
        let owner = about.uid();
        format!(
            "it belongs to another user (UID {owner}; you are {own}); name one of your own directories"
        )
    } else if mode & forbidden != 0 {
        let right = mode & !forbidden;
        format!(
            "it has the mode {mode:04o}, so other users can use it; check its content, then run `chmod {right:04o}` on it"
        )
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

/// The temporary directory of a Windows user belongs to that user.
#[cfg(windows)]
fn check(path: &Path, _: u32) -> io::Result<()> {
    if path.symlink_metadata()?.is_symlink() {
        let why = "it is a symbolic link; name its target";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(())
}

impl RunDirectory {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn begin(&self) -> DirectoryBegin {
        DirectoryBegin {
            path: self.path.display().to_string(),
            temporary: self.is_temporary,
        }
    }

    /// Makes a temporary directory removable.
    pub(crate) fn release(&self) {
        self.stays.store(false, Ordering::Relaxed);
    }

    /// Removes the directory, if it is temporary and no longer needed, and returns the files that were in it.
    pub(crate) fn remove(mut self) -> Result<Option<RemovedFiles>, (PathBuf, io::Error)> {
        if !self.is_removable() {
            return Ok(None);
        }
        self.is_temporary = false;
        let files = RemovedFiles::of(&self.path);
        match std::fs::remove_dir_all(&self.path) {
            // A tool may have removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err((self.path.clone(), error)),
            Ok(()) => Ok(files),
        }
    }

    fn is_removable(&self) -> bool {
        self.is_temporary && !self.stays.load(Ordering::Relaxed)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if self.is_removable() {
            // This fails if it contains files, because their removal could not be reported.
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}
