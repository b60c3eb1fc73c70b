//! Records of passed test programs, so that unchanged ones are not run again.
//!
//! A program's state is its modification time, with the times and lengths of the files that it may read. Only the ordinary
//! run uses it; `--all` runs everything.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::workspace::{all_files, has_extension, target, write};

/// Returns whether the program has passed with this state.
pub(crate) fn has(name: &str, state: &str) -> bool {
    fs::read_to_string(file(name)).is_ok_and(|found| found == state)
}

/// Records that the program has passed. If that fails, the program runs again next time.
pub(crate) fn note(name: &str, state: &str) {
    let _ = write(&file(name), state);
}

fn file(name: &str) -> PathBuf {
    let name = name.replace(|character: char| !character.is_ascii_alphanumeric(), "-");
    target().join("tests-passed").join(name)
}

/// Returns the name, length and time of one file.
pub(crate) fn of_file(path: &Path) -> String {
    let shown = path.display();
    let Ok(known) = fs::metadata(path) else {
        return format!("{shown} is missing\n");
    };
    let time = known.modified().ok();
    let time = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let nanoseconds = time.unwrap_or_default().as_nanos();
    format!("{shown} {} {nanoseconds}\n", known.len())
}

/// Returns the state of all files below a folder.
pub(crate) fn of_folder(folder: &Path) -> String {
    all_files(folder).iter().map(|path| of_file(path)).collect()
}

/// Returns the state of all files of the repository except sources, because tests read examples, documents and tables.
pub(crate) fn of_data(root: &Path) -> String {
    let files = all_files(root).into_iter();
    let data = files.filter(|path| !has_extension(path, "rs"));
    data.map(|path| of_file(&path)).collect()
}
