//! Packages for Python, installed into the build folder.

use crate::step::step;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs the packages that `requirements` lists into `folder`, and returns the folder of its programs.
pub(crate) fn install(requirements: &Path, folder: &Path) -> Result<PathBuf, String> {
    install_with(&[], requirements, folder)
}

/// Installs these packages without the ones that they require.
pub(crate) fn install_only(requirements: &Path, folder: &Path) -> Result<PathBuf, String> {
    install_with(&["--no-deps"], requirements, folder)
}

fn install_with(options: &[&str], requirements: &Path, folder: &Path) -> Result<PathBuf, String> {
    let programs = std::path::absolute(folder.join("bin"))
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    let python = programs.join("python");
    if !python.exists() {
        let mut make = Command::new("python3");
        step("Python", make.args(["-m", "venv"]).arg(folder))?;
    }
    let mut pip = pip(&programs, options);
    let title = format!("Python packages of {}", requirements.display());
    step(&title, pip.arg("--requirement").arg(requirements))?;
    Ok(programs)
}

/// Returns the command that installs packages with these options into the folder of these programs.
pub(crate) fn pip(programs: &Path, options: &[&str]) -> Command {
    let mut pip = Command::new(programs.join("python"));
    pip.args(["-m", "pip", "install", "--quiet"]).args(options);
    pip
}
