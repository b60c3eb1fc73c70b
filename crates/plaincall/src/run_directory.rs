//! The run's own directory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::event::DirectoryBegin;

/// What begins the name of a directory that goes away with its run.
const PREFIX: &str = "plaincall-";

/// Where the run's own directory is to be.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A new one in this one.
    In(PathBuf),
    /// This one.
    At(PathBuf),
}

/// The run's own directory. A temporary one is removed when the last one who holds it lets go.
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
                let made = std::path::absolute(&parent)
                    .and_then(|parent| tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent));
                match made {
                    Ok(directory) => Ok(RunDirectory {
                        path: directory.keep(),
                        is_temporary: true,
                        stays: AtomicBool::new(has_log),
                    }),
                    Err(error) => Err((parent, error)),
                }
            }
            Self::At(directory) => {
                let made = std::path::absolute(&directory)
                    .and_then(|path| std::fs::create_dir_all(&path).map(|()| path));
                match made {
                    Ok(path) => Ok(RunDirectory::kept(path)),
                    Err(error) => Err((directory, error)),
                }
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
    /// The directory that is gone.
    pub(crate) fn take_again(
        place: Option<Self>,
        begin: &DirectoryBegin,
        is_over: bool,
    ) -> Result<RunDirectory, (PathBuf, io::Error)> {
        let path = PathBuf::from(&begin.path);
        let parent = match place {
            Some(at @ Self::At(_)) => return at.make(true),
            Some(Self::In(parent)) => std::path::absolute(&parent).ok(),
            None => None,
        };
        let name = path.file_name().and_then(|name| name.to_str());
        let has_our_name = path.is_absolute()
            && name.is_some_and(|name| name.starts_with(PREFIX))
            && parent.is_some_and(|parent| path.parent() == Some(&parent));
        if is_over && begin.temporary && has_our_name && path.symlink_metadata().is_err() {
            make_private(&path).map_err(|error| (path.clone(), error))?;
        }
        if !path.is_absolute() || !path.is_dir() {
            return Err((path, io::ErrorKind::NotFound.into()));
        }
        let is_ours = has_our_name && path.symlink_metadata().is_ok_and(|about| about.is_dir());
        Ok(RunDirectory {
            path,
            is_temporary: begin.temporary && is_ours,
            stays: AtomicBool::new(true),
        })
    }
}

/// Makes a directory that, on Unix, only its owner can use.
fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

impl RunDirectory {
    fn kept(path: PathBuf) -> Self {
        Self {
            path,
            is_temporary: false,
            stays: AtomicBool::new(true),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What the record says of it.
    pub(crate) fn begin(&self) -> DirectoryBegin {
        DirectoryBegin {
            path: self.path.display().to_string(),
            temporary: self.is_temporary,
        }
    }

    /// The run needs it no more.
    pub(crate) fn let_go(&self) {
        self.stays.store(false, Ordering::Relaxed);
    }

    /// Removes it, if it is to be removed.
    pub(crate) fn remove(mut self) -> Result<(), (PathBuf, io::Error)> {
        self.remove_now()
            .map_err(|error| (self.path.clone(), error))
    }

    fn remove_now(&mut self) -> io::Result<()> {
        if !self.is_temporary || self.stays.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.is_temporary = false;
        match std::fs::remove_dir_all(&self.path) {
            // A tool may have removed it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        let _ = self.remove_now();
    }
}
