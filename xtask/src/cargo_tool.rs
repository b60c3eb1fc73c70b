//! Tools written in Rust: published programs where there are some, otherwise cargo installs them below the build folder.

use std::fs;
use std::path::PathBuf;

use crate::python;
use crate::step::{report, step};
use crate::workspace::{at, cargo, root, target};

/// The list of published programs, with their versions and hashes.
const PUBLISHED: &str = "xtask/dist/tools.txt";

/// Returns a published program of [`PUBLISHED`], or the same version installed by cargo. [`python::UV`] must have passed.
pub(crate) fn published(package: &str, version: &str, options: &str) -> Result<PathBuf, String> {
    match python::install(&root().join(PUBLISHED), &target().join("tools/published")) {
        Ok(programs) => Ok(programs.join(package)),
        Err(error) => {
            report!("{error}: cargo compiles {package}");
            installed(package, version, options)
        }
    }
}

/// Returns the program of a package with its name, and installs it if it is missing. `options` are those of
/// `cargo install`.
pub(crate) fn installed(package: &str, version: &str, options: &str) -> Result<PathBuf, String> {
    let tools = target().join("tools");
    let place = tools.join(format!("{package}-{version}"));
    let program = place.join("bin").join(package);
    if !program.exists() {
        // These tools mostly wait for files and other programs, so a debug build is enough.
        let mut install = cargo("install --quiet --locked --debug --version");
        install
            .args([version, package])
            .args(options.split_whitespace());
        install.arg("--root").arg(&place);
        install.env("CARGO_TARGET_DIR", tools.join("build"));
        install.env("CARGO_PROFILE_DEV_DEBUG", "false");
        step(package, &mut install)?;
    }
    fs::canonicalize(&program).map_err(at(&program))
}
