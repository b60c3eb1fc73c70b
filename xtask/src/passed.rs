//! Records of passed test programs, so that unchanged ones are not run again.
//!
//! A program's state is its modification time, with the times and lengths of the files that it may read. Only the ordinary
//! run uses it; `--all` runs everything.

use crate::workspace::target;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Returns whether the program has passed with this state.
pub(crate) fn has(name: &str, state: &str) -> bool {
    fs::read_to_string(file(name)).is_ok_and(|found| found == state)
}

/// Records that the program has passed. If that fails, the program runs again next time.
pub(crate) fn note(name: &str, state: &str) {
    let file = file(name);
    if let Some(folder) = file.parent() {
        let _ = fs::create_dir_all(folder);
    }
    let _ = fs::write(file, state);
}

fn file(name: &str) -> PathBuf {
    let name = name.replace(|character: char| !character.is_ascii_alphanumeric(), "-");
    target().join("tests-passed").join(name)
}

/// Returns the name, length and time of one file.
pub(crate) fn of_file(path: &Path) -> String {
    let Ok(known) = fs::metadata(path) else {
        return format!("{} is missing\n", path.display());
    };
    let time = known.modified().ok();
    let time = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    format!(
        "{} {} {}\n",
        path.display(),
        known.len(),
        time.unwrap_or_default().as_nanos()
    )
}

/// Returns the state of all files below a folder, except built and hidden ones.
pub(crate) fn of_folder(folder: &Path) -> String {
    let mut state = String::new();
    add(folder, &|_| true, &mut state);
    state
}

/// Returns the state of all files of the repository except sources, because tests read examples, documents and tables.
pub(crate) fn of_data(root: &Path) -> String {
    let mut state = String::new();
    let is_data = |path: &Path| path.extension().is_none_or(|end| end != "rs");
    add(root, &is_data, &mut state);
    state
}

fn add(folder: &Path, is_wanted: &dyn Fn(&Path) -> bool, state: &mut String) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == "target" || name.starts_with('.') {
            continue;
        }
        if path.is_dir() {
            add(&path, is_wanted, state);
        } else if is_wanted(&path) {
            let _ = write!(state, "{}", of_file(&path));
        }
    }
}
