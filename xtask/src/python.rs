//! Packages for Python, installed into the build folder with `uv`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use crate::pool::Job;
use crate::step::step;
use crate::workspace::{at, root, target};

/// The job that installs `uv`.
pub(crate) const UV: &str = "uv";
/// Held while packages are installed: jobs share some folders.
static INSTALLING: Mutex<()> = Mutex::new(());
/// The list that pins it.
const LIST: &str = "xtask/dist/install.txt";

/// Returns the job that installs `uv` with pip.
pub(crate) fn job() -> Job {
    Job::new("builds", UV, 20, || {
        let tools = tools()?;
        if !tools.join("uv").exists() {
            let folder = target().join("uv");
            let mut make = Command::new("python3");
            step("Python", make.args(["-m", "venv"]).arg(&folder))?;
        }
        let mut pip = Command::new(tools.join("python"));
        pip.args(["-m", "pip", "install", "--quiet", "--requirement"]);
        step("uv", pip.arg(root().join(LIST)))
    })
}

/// Returns the folder of `uv`, `uvx` and `pipx`. [`UV`] must have passed.
///
/// # Errors
/// Returns an error if the path is invalid.
pub(crate) fn tools() -> Result<PathBuf, String> {
    programs(&target().join("uv"))
}

/// Installs the packages that `requirements` lists into `folder`, and returns the folder of its programs.
///
/// # Errors
/// Returns an error if they cannot be installed.
pub(crate) fn install(requirements: &Path, folder: &Path) -> Result<PathBuf, String> {
    install_with(&[], requirements, folder)
}

/// Installs these packages without the ones that they require.
///
/// # Errors
/// Returns an error if they cannot be installed.
pub(crate) fn install_only(requirements: &Path, folder: &Path) -> Result<PathBuf, String> {
    install_with(&["--no-deps"], requirements, folder)
}

fn install_with(options: &[&str], requirements: &Path, folder: &Path) -> Result<PathBuf, String> {
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    let programs = programs(folder)?;
    if !programs.join("python").exists() {
        let mut make = Command::new(tools()?.join("uv"));
        make.args(["venv", "--quiet", "--seed", "--python", "python3"]);
        step("Python", make.arg(folder))?;
    }
    let mut pip = pip(&programs, options)?;
    let title = format!("Python packages of {}", requirements.display());
    step(&title, pip.arg("--requirement").arg(requirements))?;
    Ok(programs)
}

/// Returns the command that installs packages with these options into the folder of these programs.
///
/// # Errors
/// Returns an error if the path of `uv` is invalid.
pub(crate) fn pip(programs: &Path, options: &[&str]) -> Result<Command, String> {
    let mut pip = Command::new(tools()?.join("uv"));
    pip.args(["pip", "install", "--quiet", "--python"])
        .arg(programs.join("python"))
        .args(options);
    Ok(pip)
}

fn programs(folder: &Path) -> Result<PathBuf, String> {
    std::path::absolute(folder.join("bin")).map_err(at(folder))
}
