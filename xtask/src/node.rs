//! Packages for Node, installed into the build folder: one workspace with one lock file for all programs, except those that pin
//! other versions on purpose.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::pool::Job;
use crate::step::{copy, step};
use crate::workspace::{at, command, read, root, target};

pub(crate) const PACKAGES: &str = "packages of Node";
/// The file that lists the folders of the workspace.
const MANIFEST: &str = "package.json";
const LOCK: &str = "package-lock.json";
const FILES: &str = "package.json package-lock.json";

pub(crate) fn job() -> Job {
    Job::new("builds", PACKAGES, 60, || {
        let manifest = serde_json::from_str(&read(&root().join(MANIFEST))?);
        let manifest: Value = manifest.map_err(|error| format!("{MANIFEST}: {error}"))?;
        let members = manifest["workspaces"].as_array();
        for name in members.into_iter().flatten().filter_map(Value::as_str) {
            member(name, MANIFEST)?;
        }
        let lock = |folder: PathBuf| fs::read(folder.join(LOCK)).ok();
        let is_installed = packages().join(".package-lock.json").is_file();
        if is_installed && lock(folder()) == lock(root()) {
            return Ok(());
        }
        install("ci", &root(), "", &folder())
    })
}

/// Returns the folder of a member of the workspace, with copies of these programs and folders: Node looks for packages in the folders
/// above a program. [`PACKAGES`] must have passed.
pub(crate) fn member(source: &str, programs: &str) -> Result<PathBuf, String> {
    let folder = folder().join(source);
    copies(&root().join(source), programs, &folder)?;
    Ok(folder)
}

/// Returns the folder of the installed packages of the workspace.
pub(crate) fn packages() -> PathBuf {
    folder().join("node_modules")
}

fn folder() -> PathBuf {
    target().join("node")
}

/// Installs the packages of another lock file in `from` into a folder, and copies the programs there. `how` is `ci`, or
/// `install` if optional packages for other systems are missing in the registry, which `ci` rejects.
pub(crate) fn install(how: &str, from: &Path, programs: &str, to: &Path) -> Result<(), String> {
    copies(from, programs, to)?;
    copies(from, FILES, to)?;
    // Scripts of packages are not run.
    let options = "--silent --no-audit --no-fund --ignore-scripts";
    let mut npm = command(&format!("npm {how} {options}"));
    step("npm", npm.current_dir(to))
}

/// Copies files and folders of `source`, and replaces earlier copies.
fn copies(source: &Path, names: &str, folder: &Path) -> Result<(), String> {
    for name in names.split_whitespace() {
        let old = folder.join(name);
        if old.is_dir() {
            fs::remove_dir_all(&old).map_err(at(&old))?;
        }
        copy(&source.join(name), folder)?;
    }
    Ok(())
}
