//! The directory that the tools for files see, and what a model hears when a path leads to nothing that they can use.
//!
//! Every path is resolved by the system below the opened directory (`openat2` with `RESOLVE_BENEATH` where there is
//! one, else component by component with handles). So `..`, absolute paths and links can lead nowhere else, and a link
//! that is swapped at the wrong moment neither.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, Metadata, OpenOptions, OpenOptionsExt as _};
use plaincall::call::nearest_name;
use rustix::fs::OFlags;
use rustix::io::Errno;
use tokio::sync::Mutex;

use crate::builtin::BuiltinTool;
use crate::builtin::spelling::named;

/// How many names of a directory are looked at for one that was meant.
const LOOKED_AT: usize = 2_000;

#[derive(Debug)]
pub(super) struct Root {
    pub(super) dir: Dir,
    /// Where it was when it was opened.
    pub(super) path: PathBuf,
    /// Held while a file is changed, so that of two changes at the same time none is lost.
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

/// The directory, as one set of tools uses it.
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
    /// A file, or what is neither.
    Other(Metadata),
}

impl Workspace {
    pub(super) fn dir(&self) -> &Dir {
        &self.root.dir
    }

    /// The name of a tool, if the model has it.
    pub(super) fn has(&self, tool: BuiltinTool) -> Option<&'static str> {
        self.offered.contains(&tool).then(|| tool.name())
    }

    /// What a path means that a model has written: nothing is the directory itself, and an absolute one counts if it
    /// begins with the directory.
    pub(super) fn written(&self, text: &str) -> Result<RelPath, String> {
        let given = Path::new(text);
        let path = match given.strip_prefix(&self.root.path) {
            Ok(below) => below,
            Err(_) if given.is_absolute() => return Err(outside(text)),
            Err(_) => given,
        };
        if text.contains('\0') {
            return Err(format!(
                "{} holds a NUL character, which no path can; leave it out",
                named(text)
            ));
        }
        let path = path.strip_prefix(".").unwrap_or(path);
        let path = if path == Path::new("") {
            Path::new(".")
        } else {
            path
        };
        Ok(RelPath {
            text: text.to_owned(),
            path: path.to_owned(),
        })
    }

    /// Where a path leads below the directory. What is not there yet keeps its name.
    pub(super) fn behind_links(&self, path: &Path) -> PathBuf {
        if let Ok(found) = self.dir().canonicalize(path) {
            return found;
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return path.to_owned();
        };
        let folder = if folder == Path::new("") {
            Path::new(".")
        } else {
            folder
        };
        let folder = self.dir().canonicalize(folder);
        folder.map_or_else(|_| path.to_owned(), |folder| folder.join(name))
    }

    /// What a model has named to be gone through. `what` is what is to be done with it: `listed`.
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

    /// Opens a file for reading. It never waits, whatever lies there.
    pub(super) fn open(&self, written: &RelPath) -> Result<(File, Metadata), String> {
        let trouble = |error| self.trouble(&error, written, "read");
        let about = self.dir().metadata(&written.path).map_err(trouble)?;
        self.refuse_what_is_no_file(&about, written)?;
        let file = open_without_waiting(self.dir(), &written.path).map_err(trouble)?;
        // It may have been changed for another meanwhile.
        let about = file.metadata().map_err(trouble)?;
        self.refuse_what_is_no_file(&about, written)?;
        Ok((file, about))
    }

    pub(super) fn refuse_what_is_no_file(
        &self,
        about: &Metadata,
        written: &RelPath,
    ) -> Result<(), String> {
        let name = named(&written.text);
        if about.is_dir() {
            let list = self.has(BuiltinTool::ListFiles);
            let list = list.map_or(String::new(), |list| {
                format!("; `{list}` shows what is in it")
            });
            return Err(format!("{name} is a directory, no file{list}; name a file"));
        }
        if !about.is_file() {
            return Err(format!(
                "{name} is a pipe, a socket or a device; only files can be read and written here"
            ));
        }
        Ok(())
    }

    pub(super) fn trouble(&self, error: &io::Error, written: &RelPath, what: &str) -> String {
        let name = named(&written.text);
        let errno = Errno::from_io_error(error);
        let why = match error.kind() {
            // What the system itself refuses has a number.
            ErrorKind::PermissionDenied if errno.is_none() => return outside(&written.text),
            ErrorKind::PermissionDenied => {
                "its permissions do not allow it; go on without it, or ask the user".to_owned()
            }
            ErrorKind::NotFound => return self.missing(written),
            ErrorKind::NotADirectory => {
                let look = self.look();
                return format!("{name}: a part of this path is a file, not a directory{look}");
            }
            ErrorKind::IsADirectory => {
                return format!("{name} is a directory, no file; name a file");
            }
            ErrorKind::ReadOnlyFilesystem => "it is on a disk that can only be read".to_owned(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                format!("there is no room left for it ({error}); nothing was changed")
            }
            _ if errno == Some(Errno::LOOP) => {
                return format!("{name}: links lead round in a circle here; name another path");
            }
            _ if errno == Some(Errno::NAMETOOLONG) => {
                return format!("{name} is too long for a path; name a shorter one");
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
            return format!("{name} is a link that leads to nothing; name another path");
        }
        let trimmed = Path::new(written.text.trim());
        if trimmed != Path::new(&written.text) && self.dir().metadata(trimmed).is_ok() {
            return format!(
                "there is nothing at {name}; without the blanks or line ends around it there is: write `{}`",
                trimmed.display()
            );
        }
        match self.meant(&written.path) {
            Some(meant) => format!(
                "there is nothing at {name}; did you mean {}?",
                named(&meant)
            ),
            None => format!("there is nothing at {name}{}", self.look()),
        }
    }

    /// The first part of the path that is not there, changed for the name that is nearest.
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
                // It is there, as a link that leads to nothing.
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
            Some(list) => format!("; `{list}` shows what there is"),
            None => "; name a path that is there".to_owned(),
        }
    }
}

/// Opens what lies there, and waits for nobody at the other end of a pipe.
pub(super) fn open_without_waiting(dir: &Dir, path: &Path) -> io::Result<File> {
    dir.open_with(path, options().read(true))
}

/// How files are opened: without waiting, and without becoming the terminal of this process.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    options.custom_flags(flags.bits().cast_signed());
    options
}

/// The bytes of a file, if they are no more than `most`.
pub(super) fn read_all(file: File, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    // Files of the system say that they are empty and are not, and others grow.
    file.take(most as u64 + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() <= most))
}

fn outside(text: &str) -> String {
    format!(
        "{} leads out of the directory that you may use; write a path that begins in it, such as `src/main.rs`",
        named(text)
    )
}
