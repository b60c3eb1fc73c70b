//! The folders and files of the repository, and cargo in it. It knows no other module.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The profile for measurements and releases.
pub(crate) const DIST: &str = "dist";
/// The profile of `cargo install`, which builds faster.
pub(crate) const QUICK: &str = "release";

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns the target directory.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns cargo with these arguments, in the root.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Returns cargo with clippy's compiler for the workspace.
pub(crate) fn linting_cargo(arguments: &[&str]) -> Command {
    let mut command = cargo(arguments);
    let beside = PathBuf::from(command.get_program()).with_file_name("clippy-driver");
    let driver = if beside.is_file() {
        beside
    } else {
        "clippy-driver".into()
    };
    command.env("RUSTC_WORKSPACE_WRAPPER", driver);
    command
}

/// Reads a text file.
///
/// # Errors
/// Returns an error with the path if that fails.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(at(path))
}

/// Returns the files with this extension below the folder, except built and hidden ones.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                found.extend(files(&path, extension));
            }
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Creates an empty folder, and returns its absolute path.
pub(crate) fn new_folder(folder: &Path) -> Result<PathBuf, String> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(at(folder))?;
    }
    fs::create_dir_all(folder).map_err(at(folder))?;
    std::path::absolute(folder).map_err(at(folder))
}

pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> String {
    let path = path.display().to_string();
    move |error| format!("{path}: {error}")
}
