//! The folders and files of the repository, commands, and cargo. It knows no other module.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The profiles: for measurements and releases, for programs that are checked, and that of `cargo install`.
pub(crate) const DIST: &str = "dist";
pub(crate) const CHECKED: &str = "checked";
pub(crate) const RELEASE: &str = "release";

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the target directory, as an absolute path.
pub(crate) fn target() -> PathBuf {
    let folder = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let folder = folder.unwrap_or_else(|| root().join("target"));
    std::path::absolute(&folder).unwrap_or(folder)
}

/// Returns cargo's folder in the home directory.
pub(crate) fn cargo_home() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
}

/// Returns a command from words that one space separates.
pub(crate) fn command(words: &str) -> Command {
    let mut words = words.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// Returns cargo with these words, in the root.
pub(crate) fn cargo(words: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words.split_whitespace()).current_dir(root());
    command
}

/// Returns cargo with clippy's compiler for the workspace.
pub(crate) fn linting_cargo(words: &str) -> Command {
    let mut command = cargo(words);
    let beside = Path::new(command.get_program()).with_file_name("clippy-driver");
    let driver = Some(beside).filter(|path| path.is_file());
    let driver = driver.unwrap_or_else(|| "clippy-driver".into());
    command.env("RUSTC_WORKSPACE_WRAPPER", driver);
    command
}

/// Returns an error with the title and the problems if there are any.
pub(crate) fn no_problems(title: &str, problems: &[String]) -> Result<(), String> {
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("{title}\n{}", problems.join("\n")))
}

/// Reads a text file. An error contains the path.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(at(path))
}

/// Writes a file, in a folder that may not exist yet.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .map_err(at(path))
}

/// Returns the files with this extension below the folder, except built and hidden ones.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = all_files(folder);
    files.retain(|path| has_extension(path, extension));
    files
}

/// Returns the files below the folder in their order, except built and hidden ones.
pub(crate) fn all_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder).unwrap_or_default() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name == "target" || name.starts_with('.') {
        } else if path.is_dir() {
            found.extend(all_files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    paths.collect::<Result<_, _>>().map_err(at(folder))
}

pub(crate) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

pub(crate) fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// Returns the path below a folder, for messages.
pub(crate) fn name_below(folder: &Path, path: &Path) -> String {
    let name = path.strip_prefix(folder).unwrap_or(path);
    name.display().to_string()
}

/// Creates an empty folder, and returns its absolute path.
pub(crate) fn new_folder(folder: &Path) -> Result<PathBuf, String> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(at(folder))?;
    }
    fs::create_dir_all(folder).map_err(at(folder))?;
    std::path::absolute(folder).map_err(at(folder))
}

/// Returns a function that adds the path to an error.
pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}
