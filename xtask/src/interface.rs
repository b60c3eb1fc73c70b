//! Listings of the public interface of each published crate, `crates/NAME/public-interface.txt`, so that a diff shows every
//! change.
//!
//! The source is rustdoc's JSON, with all features of the crates. `xtask/interface` prints it as text.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pool::Job;
use crate::step::{output, step};
use crate::workspace::{at, cargo, command, name_below, no_problems, root, target, write};

/// The packages, in folders without the prefix.
const PACKAGES: &str = "plaincall plaincall-agent plaincall-config plaincall-gateway plaincall-grammar plaincall-http plaincall-names plaincall-plan plaincall-probe plaincall-prompt plaincall-reply plaincall-report plaincall-syntax plaincall-table plaincall-tool plaincall-wire";

/// A program that calls rustdoc with its unstable options enabled. The variable does not reach any other program, because
/// packages would be built anew with it.
const RUSTDOC: &str = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";

/// Writes the listings.
pub(crate) fn overwrite(root: &Path) -> Result<(), String> {
    for (file, listing) in listings(root)? {
        write(&file, listing)?;
    }
    Ok(())
}

pub(crate) fn job() -> Job {
    Job::new("interface", "interface", 60, || check(&root())).compiles()
}

fn check(root: &Path) -> Result<(), String> {
    let mut changed = Vec::new();
    let new = target().join("interface.txt");
    for (file, listing) in listings(root)? {
        write(&new, listing)?;
        let name = name_below(root, &file);
        if step(&name, command("diff --unified=0").arg(&file).arg(&new)).is_err() {
            changed.push(name);
        }
    }
    let title = "the public interface has changed: run `cargo xtask interface --overwrite`, and read the diff";
    no_problems(title, &changed)
}

fn listings(root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let build = target().join("tools/build");
    let mut program = cargo("build --quiet --locked --manifest-path xtask/interface/Cargo.toml");
    step(
        "plaincall-interface",
        program.env("CARGO_TARGET_DIR", &build),
    )?;
    document()?;
    let listing = |package: &str| {
        let json = format!("doc/{}.json", package.replace('-', "_"));
        let mut list = Command::new(build.join("debug/plaincall-interface"));
        let listing = output(list.arg(target().join(json)))?;
        let folder = package.strip_prefix("plaincall-").unwrap_or(package);
        let folder = root.join("crates").join(folder);
        Ok((folder.join("public-interface.txt"), listing))
    };
    PACKAGES.split(' ').map(listing).collect()
}

/// Writes rustdoc's JSON of the crates.
fn document() -> Result<(), String> {
    let rustdoc = target().join("tools/rustdoc");
    write(&rustdoc, RUSTDOC)?;
    fs::set_permissions(&rustdoc, fs::Permissions::from_mode(0o755)).map_err(at(&rustdoc))?;
    let mut document = cargo("doc --no-deps --lib --all-features");
    document
        .args(PACKAGES.split(' ').map(|name| format!("--package={name}")))
        .env("RUSTDOC", rustdoc)
        .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json");
    step("rustdoc's JSON", &mut document)
}
