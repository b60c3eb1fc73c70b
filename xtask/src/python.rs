//! Packages for Python, installed into the build folder with `uv`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::pool::Job;
use crate::step::{step, succeeds};
use crate::workspace::{command, entries, name_below, root, target};

pub(crate) const UV: &str = "uv";
/// Held while packages are installed: jobs share some folders.
static INSTALLING: Mutex<()> = Mutex::new(());
const LIST: &str = "xtask/dist/install.txt";

pub(crate) fn job() -> Job {
    Job::new("builds", UV, 20, || {
        if !tools().join("uv").exists() {
            let mut make = command("python3 -m venv");
            step("Python", make.arg(target().join("uv")))?;
        }
        let mut pip = Command::new(tools().join("python"));
        pip.args("-m pip install --quiet --requirement".split(' '));
        step("uv", pip.arg(root().join(LIST)))
    })
}

/// Returns the folder of `uv`, `uvx` and `pipx`. [`UV`] must have passed.
pub(crate) fn tools() -> PathBuf {
    target().join("uv/bin")
}

/// Installs the packages that `requirements` lists into `folder`, and returns the folder of its programs.
pub(crate) fn install(requirements: &Path, folder: &Path) -> Result<PathBuf, String> {
    install_with(&[], requirements, folder)
}

/// Installs packages with these options of pip.
pub(crate) fn install_with(options: &[&str], list: &Path, to: &Path) -> Result<PathBuf, String> {
    install_for(Path::new("python3"), options, list, to)
}

/// Returns an interpreter of a version such as `3.10`, if the search path or pyenv has one.
pub(crate) fn interpreter(version: &str) -> Option<PathBuf> {
    let name = format!("python{version}");
    // pyenv's program of this name fails unless the version is selected.
    if succeeds(Command::new(&name).arg("--version")) {
        return Some(name.into());
    }
    let versions = std::env::home_dir()?.join(".pyenv/versions");
    let prefix = format!("{version}.");
    let mut folders = entries(&versions).ok()?.into_iter();
    let folder = folders.find(|folder| name_below(&versions, folder).starts_with(&prefix))?;
    Some(folder.join("bin").join(name))
}

/// Installs packages for an interpreter with these options of pip.
pub(crate) fn install_for(
    python: &Path,
    options: &[&str],
    list: &Path,
    to: &Path,
) -> Result<PathBuf, String> {
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let programs = to.join("bin");
    if !programs.join("python").exists() {
        let mut make = Command::new(tools().join("uv"));
        make.args("venv --quiet --seed --python".split(' '));
        step("Python", make.arg(python).arg(to))?;
    }
    let mut pip = pip(&programs, options);
    let title = format!("Python packages of {}", list.display());
    step(&title, pip.arg("--requirement").arg(list))?;
    Ok(programs)
}

/// Returns the command that installs packages with these options into the folder of these programs.
pub(crate) fn pip(programs: &Path, options: &[&str]) -> Command {
    let mut pip = Command::new(tools().join("uv"));
    pip.args("pip install --quiet --python".split(' '));
    pip.arg(programs.join("python")).args(options);
    pip
}
