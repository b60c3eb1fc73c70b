//! The directory of the file tools, and error messages for paths that they cannot use.
//!
//! The system resolves every path beneath the open directory (with `openat2` and `RESOLVE_BENEATH` where available,
//! otherwise component by component with handles). So `..`, absolute paths and links cannot leave it, even if a link is
//! swapped during the call.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions, OpenOptionsExt as _};
use plaincall::names::nearest_name;
use rustix::fs::OFlags;
use rustix::io::Errno;
use tokio::sync::Mutex;

use crate::builtin::BuiltinTool;
use crate::builtin::spelling::named;

/// How many names in a directory are searched for a suggestion.
const LOOKED_AT: usize = 2_000;

#[derive(Debug)]
pub(super) struct Root {
    pub(super) dir: Dir,
    /// Its path when it was opened.
    pub(super) path: PathBuf,
    /// Locked while a file is changed, so that no concurrent change is lost.
    pub(super) changing: Arc<Mutex<()>>,
}

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        Ok(Self {
            dir: Dir::open_ambient_dir(&path, ambient_authority())?,
            path,
            changing: Arc::default(),
        })
    }
}

/// The directory and the tools that are offered for it.
#[derive(Clone, Debug)]
pub(super) struct Workspace {
    pub(super) root: Arc<Root>,
    pub(super) offered: Arc<BTreeSet<BuiltinTool>>,
}

#[derive(Debug)]
pub(super) struct RelPath {
    pub(super) text: String,
    pub(super) path: PathBuf,
}

pub(super) enum Target {
    Directory(Dir),
    /// A file, or something else.
    Other(Metadata),
}

impl Workspace {
    pub(super) fn dir(&self) -> &Dir {
        &self.root.dir
    }

    /// The name of a tool, if it is offered.
    pub(super) fn has(&self, tool: BuiltinTool) -> Option<&'static str> {
        self.offered.contains(&tool).then(|| tool.name())
    }

    /// Parses a path that the model wrote. An empty path is the directory itself; an absolute path must begin with it.
    pub(super) fn written(&self, text: &str) -> Result<RelPath, String> {
        let given = Path::new(text);
        let path = match given.strip_prefix(&self.root.path) {
            Ok(below) => below,
            Err(_) if given.is_absolute() => return Err(outside(text)),
            Err(_) => given,
        };
        if text.contains('\0') {
            return Err(format!(
                "{} contains a NUL character; remove it",
                named(text)
            ));
        }
        let path = path.strip_prefix(".").unwrap_or(path);
        Ok(RelPath {
            text: text.to_owned(),
            path: or_here(path).to_owned(),
        })
    }

    /// Resolves the links of a path. A file that does not exist keeps its name.
    pub(super) fn behind_links(&self, path: &Path) -> PathBuf {
        if let Ok(found) = self.dir().canonicalize(path) {
            return found;
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return path.to_owned();
        };
        let folder = self.dir().canonicalize(or_here(folder));
        folder.map_or_else(|_| path.to_owned(), |folder| folder.join(name))
    }

    /// Finds a file or directory to walk. `what` is the verb of error messages, such as `listed`.
    pub(super) fn find(&self, text: &str, what: &str) -> Result<(RelPath, Target), String> {
        let written = self.written(text)?;
        let trouble = |error| self.trouble(&error, &written, what);
        let about = self.dir().metadata(&written.path).map_err(trouble)?;
        let there = if about.is_dir() {
            Target::Directory(self.dir().open_dir(&written.path).map_err(trouble)?)
        } else {
            Target::Other(about)
        };
        Ok((written, there))
    }

    /// Opens a file for reading, without blocking on a pipe.
    pub(super) fn open(&self, written: &RelPath) -> Result<(File, Metadata), String> {
        let trouble = |error| self.trouble(&error, written, "read");
        let about = self.dir().metadata(&written.path).map_err(trouble)?;
        self.reject_special_files(&about, written)?;
        let file = open_without_waiting(self.dir(), &written.path).map_err(trouble)?;
        // It may have been replaced in between.
        let about = file.metadata().map_err(trouble)?;
        self.reject_special_files(&about, written)?;
        Ok((file, about))
    }

    pub(super) fn reject_special_files(
        &self,
        about: &Metadata,
        written: &RelPath,
    ) -> Result<(), String> {
        let name = named(&written.text);
        if about.is_dir() {
            let list = self.has(BuiltinTool::ListFiles);
            let list = list.map_or(String::new(), |list| {
                format!("; `{list}` lists its contents")
            });
            return Err(format!("{name} is a directory, not a file{list}"));
        }
        if !about.is_file() {
            return Err(format!(
                "{name} is a pipe, a socket or a device, not a file"
            ));
        }
        Ok(())
    }

    pub(super) fn trouble(&self, error: &io::Error, written: &RelPath, what: &str) -> String {
        let name = named(&written.text);
        let errno = Errno::from_io_error(error);
        let why = match error.kind() {
            // Errors of the system have a number; those of `cap_std` have none.
            ErrorKind::PermissionDenied if errno.is_none() => return outside(&written.text),
            ErrorKind::PermissionDenied => "permission denied".to_owned(),
            ErrorKind::NotFound => return self.missing(written),
            ErrorKind::NotADirectory => {
                let look = self.look();
                return format!("{name}: part of this path is a file, not a directory{look}");
            }
            ErrorKind::IsADirectory => {
                return format!("{name} is a directory, not a file");
            }
            ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                format!("no space left ({error}); nothing was changed")
            }
            _ if errno == Some(Errno::LOOP) => {
                return format!("{name}: too many levels of symbolic links");
            }
            _ if errno == Some(Errno::NAMETOOLONG) => {
                return format!("{name}: the path is too long");
            }
            _ => error.to_string(),
        };
        format!("{name} cannot be {what}: {why}")
    }

    fn missing(&self, written: &RelPath) -> String {
        let name = named(&written.text);
        let is_link = self
            .dir()
            .symlink_metadata(&written.path)
            .is_ok_and(|about| about.is_symlink());
        if is_link {
            return format!("{name} is a broken link");
        }
        let trimmed = Path::new(written.text.trim());
        if trimmed != Path::new(&written.text) && self.dir().metadata(trimmed).is_ok() {
            return format!(
                "{name} does not exist; remove the whitespace around the path: `{}`",
                trimmed.display()
            );
        }
        match self.meant(&written.path) {
            Some(meant) => format!("{name} does not exist; did you mean {}?", named(&meant)),
            None => format!("{name} does not exist{}", self.look()),
        }
    }

    /// The path with its first missing component replaced by the most similar name.
    fn meant(&self, path: &Path) -> Option<PathBuf> {
        let mut found = PathBuf::from(".");
        let mut rest = path.components();
        for component in rest.by_ref() {
            let Component::Normal(name) = component else {
                found.push(component);
                continue;
            };
            if self.dir().metadata(found.join(name)).is_ok() {
                found.push(name);
                continue;
            }
            let entries = self.dir().read_dir(&found).ok()?.take(LOOKED_AT);
            let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            let mut names: Vec<String> = names.collect();
            names.sort();
            let near = nearest_name(name.to_str()?, names.iter().map(String::as_str))?;
            if near == name {
                // A broken link.
                return None;
            }
            found.push(near);
            found.extend(rest);
            return Some(found.strip_prefix(".").unwrap_or(&found).to_owned());
        }
        None
    }

    fn look(&self) -> String {
        match self.has(BuiltinTool::ListFiles) {
            Some(list) => format!("; `{list}` lists what exists"),
            None => String::new(),
        }
    }
}

/// Returns the path; `.` for an empty one.
pub(super) fn or_here(path: &Path) -> &Path {
    Some(path)
        .filter(|path| *path != Path::new(""))
        .unwrap_or(Path::new("."))
}

/// Opens a file or a pipe without blocking.
pub(super) fn open_without_waiting(dir: &Dir, path: &Path) -> io::Result<File> {
    dir.open_with(path, options().read(true))
}

/// Options that open files without blocking and without acquiring a controlling terminal.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    options.custom_flags(flags.bits().cast_signed());
    options
}

/// Reads a file of at most `most` bytes.
pub(super) fn read_all(file: File, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    // The reported size may be wrong: files in `/proc` report 0, and files can grow.
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() <= most))
}

fn outside(text: &str) -> String {
    format!(
        "{} is outside the directory; use a path inside it, such as `src/main.rs`",
        named(text)
    )
}
