//! The directories of a run: where it was started, and its scratch directory.

use std::ffi::OsString;
use std::fmt;
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::event::DirectoryBegin;

/// What begins the name of a directory that goes away with its run.
const PREFIX: &str = "plaincall-";

const PRIVATE: u32 = 0o700;
/// What nobody else may have in a directory that a run has made.
const OTHERS: u32 = 0o077;
/// What nobody else may have in any directory that a run takes again.
const OTHERS_WRITE: u32 = 0o022;

const NAMED: usize = 5;

/// Where the run's scratch directory is to be.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A new one in this one.
    In(PathBuf),
    /// This one.
    At(PathBuf),
}

/// The directories that the placeholders of a command name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directories {
    /// `{directory:current}`: where the run was started.
    pub current: PathBuf,
    /// `{directory:run}`: the run's scratch directory, if it has one.
    pub run: Option<PathBuf>,
}

/// The files that were removed with the scratch directory of a run. It displays as a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedFiles {
    /// The directory.
    pub directory: PathBuf,
    /// The names of the files and directories in it, in order.
    pub names: Vec<OsString>,
}

impl RemovedFiles {
    /// The files in a directory that is about to be removed; `None` if there are none.
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
        let shown = self.names.iter().take(NAMED);
        // Tools choose the names.
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
        match self.names.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(formatter, " and {more} more"),
        }
    }
}

/// The run's scratch directory. A temporary one is removed at the end of the run; files in it only by [`Self::remove`],
/// which names them.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
    is_temporary: bool,
    /// With a log it stays as long as the run may be taken up again.
    stays: AtomicBool,
}

impl Place {
    /// Makes the directory.
    ///
    /// # Errors
    /// The directory that was wanted, and why it cannot be made.
    pub(crate) fn make(self, has_log: bool) -> Result<RunDirectory, (PathBuf, io::Error)> {
        match self {
            Self::In(parent) => {
                // Commands work elsewhere, so they need the whole path.
                let made = std::path::absolute(&parent).and_then(|parent| {
                    tempfile::Builder::new()
                        .prefix(PREFIX)
                        .permissions(Permissions::from_mode(PRIVATE))
                        .tempdir_in(parent)
                });
                let made = made.map_err(|error| (parent, error))?;
                Ok(RunDirectory {
                    path: made.keep(),
                    is_temporary: true,
                    stays: AtomicBool::new(has_log),
                })
            }
            Self::At(directory) => {
                let made = std::path::absolute(&directory)
                    .and_then(|path| make_private(&path, true).map(|()| path));
                let path = made.map_err(|error| (directory, error))?;
                Ok(RunDirectory {
                    path,
                    is_temporary: false,
                    stays: AtomicBool::new(true),
                })
            }
        }
    }

    /// Takes the directory of a log again, if it is still there. It is removed at the end only if it is where this run
    /// would have made it and has such a name: a log is a file like any other, and must not name what is to be removed.
    ///
    /// With `is_over` no call has been cut off, so nothing that has begun can miss it: one that was removed at the end of
    /// the run is made anew.
    ///
    /// # Errors
    /// The directory, which is gone or may be somebody else's.
    pub(crate) fn take_again(
        place: Option<Self>,
        begin: &DirectoryBegin,
        is_over: bool,
    ) -> Result<RunDirectory, (PathBuf, io::Error)> {
        let path = PathBuf::from(&begin.path);
        let parent = match place {
            Some(at @ Self::At(_)) => {
                let directory = at.make(true)?;
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
            make_private(&path, false).map_err(|error| (path.clone(), error))?;
        }
        if !path.is_absolute() || !path.is_dir() {
            return Err((path, io::ErrorKind::NotFound.into()));
        }
        let refused = if begin.temporary {
            OTHERS
        } else {
            OTHERS_WRITE
        };
        check(&path, refused).map_err(|error| (path.clone(), error))?;
        Ok(RunDirectory {
            path,
            is_temporary: begin.temporary && has_our_name,
            stays: AtomicBool::new(true),
        })
    }
}

/// Makes a directory that only its owner can use, and those above it that are missing. One that is there stays as it is.
fn make_private(path: &Path, with_parents: bool) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.mode(PRIVATE).recursive(with_parents).create(path)
}

/// Whether a directory can only be the one that the run had. Its place may have been free for a while.
///
/// # Errors
/// It may be somebody else's, or others may use it: why, and what to do.
fn check(path: &Path, refused: u32) -> io::Result<()> {
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
    } else if mode & refused != 0 {
        let right = mode & !refused;
        format!(
            "it has the mode {mode:04o}, so others can use it; check its content, then run `chmod {right:04o}` it"
        )
    } else {
        return Ok(());
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
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

    pub(crate) fn let_go(&self) {
        self.stays.store(false, Ordering::Relaxed);
    }

    /// Removes it, if it is temporary and no longer needed, and returns the files that were in it.
    pub(crate) fn remove(mut self) -> Result<Option<RemovedFiles>, (PathBuf, io::Error)> {
        if !self.goes() {
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

    fn goes(&self) -> bool {
        self.is_temporary && !self.stays.load(Ordering::Relaxed)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if self.goes() {
            // It fails if files are in it: nobody could be told that they were removed.
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}
