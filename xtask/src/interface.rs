//! Listings of the public interface of each published crate, `crates/NAME/public-interface.txt`, so that a diff shows every
//! change.
//!
//! The source is rustdoc's JSON, with all features of the crates. `xtask/interface` prints it as text.

use crate::pool::Job;
use crate::step::step;
use crate::workspace::{cargo, root, target};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folders of the crates.
const CRATES: [&str; 12] = [
    "agent",
    "call",
    "config",
    "gateway",
    "http",
    "plaincall",
    "plan",
    "probe",
    "report",
    "syntax",
    "table",
    "wire",
];

/// A program that calls rustdoc with its unstable options enabled. The variable does not reach any other program, because
/// packages would be built anew with it.
const RUSTDOC: &str = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n";

/// Writes the listings.
///
/// # Errors
/// Returns an error if a crate cannot be documented, or if a listing cannot be written.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    for (file, listing) in listings(root)? {
        fs::write(&file, listing).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

/// Returns the job that compares the listings with the crates, and lists the differences.
pub(crate) fn job() -> Job {
    Job::new("interface", "interface", 60, || check(&root())).compiles()
}

fn check(root: &Path) -> Result<(), String> {
    let mut differences = Vec::new();
    for (file, listing) in listings(root)? {
        let kept = fs::read_to_string(&file).unwrap_or_default();
        let found = differences_between(&kept, &listing);
        if !found.is_empty() {
            let name = file.strip_prefix(root).unwrap_or(&file);
            differences.push(format!("{}:\n{}", name.display(), found.join("\n")));
        }
    }
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the public interface has changed: run `cargo xtask interface --overwrite`, and read the diff\n{}",
        differences.join("\n")
    ))
}

/// Returns the lines that only one of the texts has.
fn differences_between(kept: &str, listing: &str) -> Vec<String> {
    let lines = |text: &str, other: &str, sign: &str| -> Vec<String> {
        let other: Vec<&str> = other.lines().collect();
        text.lines()
            .filter(|line| !other.contains(line))
            .map(|line| format!("{sign} {line}"))
            .collect()
    };
    let mut found = [lines(kept, listing, "-"), lines(listing, kept, "+")].concat();
    if found.is_empty() && kept != listing {
        found.push("the lines are in another order".to_owned());
    }
    found
}

/// Returns the files and their listings.
fn listings(root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let program = program(root)?;
    document()?;
    let listing = |folder: &&str| {
        let json = target()
            .join("doc")
            .join(package(folder).replace('-', "_") + ".json");
        let output = Command::new(&program)
            .arg(json)
            .output()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let file = root
            .join("crates")
            .join(folder)
            .join("public-interface.txt");
        Ok((file, String::from_utf8_lossy(&output.stdout).into_owned()))
    };
    CRATES.iter().map(listing).collect()
}

/// Builds `xtask/interface`.
fn program(root: &Path) -> Result<PathBuf, String> {
    let folder = target().join("tools/build");
    let mut build = cargo(&["build", "--quiet", "--locked", "--manifest-path"]);
    build
        .arg(root.join("xtask/interface/Cargo.toml"))
        .env("CARGO_TARGET_DIR", &folder);
    step("plaincall-interface", &mut build)?;
    Ok(folder.join("debug/plaincall-interface"))
}

/// Writes rustdoc's JSON of the crates.
fn document() -> Result<(), String> {
    let failed = |error: std::io::Error| format!("target/tools/rustdoc: {error}");
    let folder = target().join("tools");
    fs::create_dir_all(&folder).map_err(failed)?;
    let rustdoc = folder.join("rustdoc");
    fs::write(&rustdoc, RUSTDOC).map_err(failed)?;
    fs::set_permissions(&rustdoc, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    let rustdoc = fs::canonicalize(&rustdoc).map_err(failed)?;
    let mut document = cargo(&["doc", "--no-deps", "--lib", "--all-features"]);
    document
        .args(CRATES.map(|folder| format!("--package={}", package(folder))))
        .env("RUSTDOC", rustdoc)
        .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json");
    step("rustdoc's JSON", &mut document)
}

fn package(folder: &str) -> String {
    if folder == "plaincall" {
        folder.to_owned()
    } else {
        format!("plaincall-{folder}")
    }
}

#[cfg(test)]
mod tests {
    use super::differences_between;

    #[test]
    fn differences_are_listed() {
        let table: [(&str, &str, &[&str]); 3] = [
            ("a\nb\n", "a\nb\n", &[]),
            ("a\nb\n", "b\nc\n", &["- a", "+ c"]),
            ("a\nb\n", "b\na\n", &["the lines are in another order"]),
        ];
        for (kept, listing, expected) in table {
            assert_eq!(differences_between(kept, listing), expected, "{listing}");
        }
    }
}
