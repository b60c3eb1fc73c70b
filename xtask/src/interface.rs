//! Listings of the public interface of each published crate, `crates/NAME/public-interface.txt`, so that a diff shows every
//! change.
//!
//! The source is rustdoc's JSON, with all features of the crates. `xtask/interface` prints it as text.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pool::Job;
use crate::step::{output, step};
use crate::workspace::{at, cargo, name_below, no_problems, root, target, write};

/// The packages, in folders without the prefix.
const PACKAGES: &str = "plaincall plaincall-agent plaincall-call plaincall-config plaincall-gateway plaincall-http plaincall-plan plaincall-probe plaincall-report plaincall-syntax plaincall-table plaincall-wire";

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
            let name = name_below(root, &file);
            differences.push(format!("{name}:\n{}", found.join("\n")));
        }
    }
    let title = "the public interface has changed: run `cargo xtask interface --overwrite`, and read the diff";
    no_problems(title, &differences)
}

/// Returns the lines that only one of the texts has.
fn differences_between(kept: &str, listing: &str) -> Vec<String> {
    let lines = |text: &str, other: &str, sign: &str| -> Vec<String> {
        let other: HashSet<&str> = other.lines().collect();
        let only = text.lines().filter(|line| !other.contains(line));
        only.map(|line| format!("{sign} {line}")).collect()
    };
    let mut found = [lines(kept, listing, "-"), lines(listing, kept, "+")].concat();
    if found.is_empty() && kept != listing {
        found.push("the lines are in another order".to_owned());
    }
    found
}

/// Returns the files and their listings.
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
