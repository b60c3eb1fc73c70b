//! Tools written in Rust: published programs where there are some, otherwise cargo installs them below the build folder.

use crate::python;
use crate::step::{report, step};
use crate::workspace::{at, cargo, root, target};

/// The list of published programs, with their versions and hashes.
const PUBLISHED: &str = "xtask/dist/tools.txt";

/// Returns a published program of [`PUBLISHED`], or the same version installed by cargo. [`python::UV`] must have passed.
///
/// # Errors
/// Returns an error if it cannot be installed.
pub(crate) fn published(
    package: &str,
    version: &str,
    arguments: &[&str],
) -> Result<PathBuf, String> {
    match python::install(&root().join(PUBLISHED), &target().join("tools/published")) {
        Ok(programs) => Ok(programs.join(package)),
        Err(error) => {
            report!("{error}: cargo compiles {package}");
            installed(package, version, arguments)
        }
    }
}

use std::fs;
use std::path::PathBuf;

/// Returns the program of a package with its name, and installs it if it is missing. `arguments` are further arguments of
/// `cargo install`.
///
/// # Errors
/// Returns an error if the package cannot be installed.
pub(crate) fn installed(
    package: &str,
    version: &str,
    arguments: &[&str],
) -> Result<PathBuf, String> {
    let tools = target().join("tools");
    let place = tools.join(format!("{package}-{version}"));
    let program = place.join("bin").join(package);
    if !program.exists() {
        // These tools mostly wait for files and other programs, so a debug build is enough.
        let mut install = cargo(&["install", "--quiet", "--locked", "--debug", package]);
        install.args(["--version", version]).args(arguments);
        install.arg("--root").arg(&place);
        install.env("CARGO_TARGET_DIR", tools.join("build"));
        install.env("CARGO_PROFILE_DEV_DEBUG", "false");
        step(package, &mut install)?;
    }
    // The working directory may be another one later.
    fs::canonicalize(&program).map_err(at(&program))
}
