//! Packages for Node, installed into the build folder.

use crate::step::step;
use std::path::Path;
use std::process::Command;

/// Installs the packages of `package-lock.json` in `source` into `folder`, and copies the programs there, because Node looks
/// for packages next to the program. Package scripts are disabled. `how` is `ci`, or `install` if optional packages for other
/// systems are missing in the registry, which `ci` rejects.
pub(crate) fn install(
    title: &str,
    how: &str,
    source: &Path,
    programs: &[&str],
    folder: &Path,
) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for file in programs
        .iter()
        .chain(&["package.json", "package-lock.json"])
    {
        let copied = std::fs::copy(source.join(file), folder.join(file));
        copied.map_err(|error| format!("{file}: {error}"))?;
    }
    let mut npm = Command::new("npm");
    npm.args([how, "--silent", "--no-audit", "--no-fund"]);
    step(title, npm.arg("--ignore-scripts").current_dir(folder))
}
