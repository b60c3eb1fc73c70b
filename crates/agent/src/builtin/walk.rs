//! Walks a directory tree in the order of names.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

use cap_std::fs::{Dir, FileType, FileTypeExt as _};

use crate::builtin::blocking::Stop;
use crate::builtin::spelling::below;
use crate::text::count;

/// The maximum depth. Each level needs a file handle.
pub(super) const DEEPEST: usize = 64;
/// The most names that are visited.
const LOOKED_AT: usize = 200_000;
/// How many names are read between two checks for cancellation.
const BETWEEN_LOOKS: usize = 256;
/// Skipped: the repository data of a project.
const HISTORY: &str = ".git";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
    Link,
    Other(&'static str),
}

#[derive(Debug)]
pub(super) struct Entry<'w> {
    pub(super) dir: &'w Dir,
    pub(super) name: &'w Path,
    pub(super) path: &'w Path,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    On,
    /// Do not visit what is in this directory.
    Skip,
    Enough,
}

#[derive(Debug, Default)]
pub(super) struct Left {
    unreadable: usize,
    too_deep: usize,
    is_cut: bool,
}

impl Left {
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.unreadable > 0 {
            notes.push(format!(
                "{} not readable",
                count(self.unreadable, "directory")
            ));
        }
        if self.too_deep > 0 {
            notes.push(format!(
                "{} deeper than {DEEPEST} skipped; use a deeper `path`",
                count(self.too_deep, "directory")
            ));
        }
        if self.is_cut {
            notes.push("too many files; use a deeper `path`".to_owned());
        }
        notes
    }
}

struct Level {
    dir: Dir,
    path: PathBuf,
    entries: IntoIter<(OsString, Kind)>,
}

/// Visits a directory tree down to `depth` levels. Does not follow links.
pub(super) fn walk(
    dir: Dir,
    path: &Path,
    depth: usize,
    stop: &Stop,
    trouble: impl FnOnce(io::Error) -> String,
    visit: &mut dyn FnMut(&Entry<'_>) -> Result<Step, String>,
) -> Result<Left, String> {
    let mut left = Left::default();
    let mut budget = LOOKED_AT;
    let mut levels = vec![Level::new(dir, path.to_owned(), stop, &mut budget).map_err(trouble)?];
    loop {
        let deep = levels.len();
        let Some(level) = levels.last_mut() else {
            break;
        };
        if stop.is_set() {
            stop.check()?;
        }
        if stop.is_late() || budget == 0 {
            left.is_cut = true;
            break;
        }
        let Some((name, kind)) = level.entries.next() else {
            levels.pop();
            continue;
        };
        let path = below(&level.path, &name);
        let entry = Entry {
            dir: &level.dir,
            name: Path::new(&name),
            path: &path,
            kind,
        };
        match visit(&entry)? {
            Step::On => {}
            Step::Skip => continue,
            Step::Enough => break,
        }
        if kind != Kind::Directory || name == HISTORY || deep >= depth.min(DEEPEST) {
            left.too_deep += usize::from(kind == Kind::Directory && deep >= DEEPEST);
            continue;
        }
        // A directory replaced by a link in between cannot lead out of this one.
        let below = level.dir.open_dir(&name);
        match below.and_then(|dir| Level::new(dir, path, stop, &mut budget)) {
            Ok(level) => levels.push(level),
            Err(_) => left.unreadable += 1,
        }
    }
    Ok(left)
}

impl Level {
    /// Reads the names. On cancellation it returns those read so far; the caller checks again.
    fn new(dir: Dir, path: PathBuf, stop: &Stop, budget: &mut usize) -> io::Result<Self> {
        let mut entries = Vec::new();
        for entry in dir.entries()? {
            let Ok(entry) = entry else { continue };
            let is_time_to_look = budget.is_multiple_of(BETWEEN_LOOKS);
            if *budget == 0 || is_time_to_look && (stop.is_set() || stop.is_late()) {
                break;
            }
            *budget -= 1;
            let kind = entry.file_type().map_or(Kind::Other("unknown"), kind);
            entries.push((entry.file_name(), kind));
        }
        entries.sort_by(|(one, _): &(OsString, Kind), (other, _)| one.cmp(other));
        Ok(Self {
            dir,
            path,
            entries: entries.into_iter(),
        })
    }
}

fn kind(file_type: FileType) -> Kind {
    if file_type.is_dir() {
        Kind::Directory
    } else if file_type.is_file() {
        Kind::File
    } else if file_type.is_symlink() {
        Kind::Link
    } else if file_type.is_fifo() {
        Kind::Other("a pipe")
    } else if file_type.is_socket() {
        Kind::Other("a socket")
    } else {
        Kind::Other("a device")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cancelled walk does not read the rest of a large directory.
    #[test]
    fn cancelled_directories() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..BETWEEN_LOOKS {
            std::fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        let dir = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
        let mut budget = LOOKED_AT;
        let level = Level::new(dir, PathBuf::new(), &Stop::set(), &mut budget).unwrap();
        assert!(level.entries.len() < BETWEEN_LOOKS);
        assert_eq!(budget, LOOKED_AT - level.entries.len());
    }
}
