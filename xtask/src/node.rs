//! Packages for Node, installed into the build folder: one workspace with one lock file for all programs, except those that pin
//! other versions on purpose.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pool::Job;
use crate::step::step;
use crate::workspace::{at, root, target};

/// The job that installs the workspace.
pub(crate) const PACKAGES: &str = "packages of Node";
/// The file that lists the folders of the workspace.
const MANIFEST: &str = "package.json";
const FILES: [&str; 2] = [MANIFEST, "package-lock.json"];

/// Returns the job that installs the workspace.
pub(crate) fn job() -> Job {
    Job::new("builds", PACKAGES, 60, || {
        let manifest = crate::workspace::read(&root().join(MANIFEST))?;
        let manifest: serde_json::Value =
            serde_json::from_str(&manifest).map_err(|error| format!("{MANIFEST}: {error}"))?;
        let members = manifest["workspaces"].as_array();
        for member in members.into_iter().flatten().filter_map(|it| it.as_str()) {
            copy(&root().join(member), &[MANIFEST], &folder()?.join(member))?;
        }
        let lock = |folder: PathBuf| fs::read(folder.join(FILES[1])).ok();
        let is_installed = folder()?.join("node_modules/.package-lock.json").is_file();
        if is_installed && lock(folder()?) == lock(root()) {
            return Ok(());
        }
        install_here("ci", &root(), &folder()?)
    })
}

/// Returns the folder of a member of the workspace, with copies of these programs and folders: Node looks for packages in the folders
/// above a program. [`PACKAGES`] must have passed.
///
/// # Errors
/// Returns an error if a file cannot be copied.
pub(crate) fn member(source: &str, programs: &[&str]) -> Result<PathBuf, String> {
    let folder = folder()?.join(source);
    copy(&root().join(source), programs, &folder)?;
    Ok(folder)
}

/// Returns the folder of the installed packages of the workspace.
///
/// # Errors
/// Returns an error if the path of the build folder is invalid.
pub(crate) fn packages() -> Result<PathBuf, String> {
    Ok(folder()?.join("node_modules"))
}

fn folder() -> Result<PathBuf, String> {
    let folder = target().join("node");
    std::path::absolute(&folder).map_err(at(&folder))
}

/// Installs the packages of another lock file in `source` into `folder`, and copies the programs there. `how` is `ci`, or
/// `install` if optional packages for other systems are missing in the registry, which `ci` rejects.
///
/// # Errors
/// Returns an error if something cannot be copied or installed.
pub(crate) fn install(
    how: &str,
    source: &Path,
    programs: &[&str],
    folder: &Path,
) -> Result<(), String> {
    copy(source, programs, folder)?;
    install_here(how, source, folder)
}

fn install_here(how: &str, source: &Path, folder: &Path) -> Result<(), String> {
    copy(source, &FILES, folder)?;
    let mut npm = Command::new("npm");
    // Scripts of packages are not run.
    npm.args([
        how,
        "--silent",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
    ]);
    step("npm", npm.current_dir(folder))
}

/// Copies files and folders of `source`, and replaces earlier copies.
fn copy(source: &Path, names: &[&str], folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(at(folder))?;
    for name in names {
        let old = folder.join(name);
        if old.is_dir() {
            fs::remove_dir_all(&old).map_err(at(&old))?;
        }
        let mut copy = Command::new("cp");
        copy.arg("--recursive").arg(source.join(name));
        crate::step::output(copy.arg(folder))?;
    }
    Ok(())
}
