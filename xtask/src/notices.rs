//! The third-party notices of the binaries: the dependencies of the command and of the Python package, with their licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::step::output;
use crate::workspace::{at, cargo};

/// The file.
const FILE: &str = "THIRD-PARTY-NOTICES";
/// The target platforms of the command.
const TARGETS: [&str; 4] = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
];
/// The beginnings of file names with licences and notices, in lower case.
const NAMES: [&str; 6] = [
    "licence",
    "license",
    "copying",
    "notice",
    "unlicense",
    "copyright",
];
const HEAD: &str = "\
Third-party notices

The binaries of Plaincall contain the packages below and the standard library of Rust (MIT OR Apache-2.0,
https://www.rust-lang.org). `cargo xtask notices` writes this file. Where a package lets one choose among licences that
include MIT, MIT is chosen, and its text is that of the package.
";

/// The name and version of a package.
type Package = (String, String);

/// Writes the file.
///
/// # Errors
/// Returns an error if something cannot be read or written.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    let path = root.join(FILE);
    fs::write(&path, notices()?).map_err(at(&path))
}

/// Checks that the file is up to date.
///
/// # Errors
/// Returns an error if it is not.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let written = fs::read_to_string(root.join(FILE)).unwrap_or_default();
    if written == notices()? {
        return Ok(());
    }
    Err(format!(
        "{FILE} does not match the dependencies of the command and of the Python package: run `cargo xtask notices`"
    ))
}

fn notices() -> Result<String, String> {
    let known = known()?;
    let mut list = String::new();
    let mut texts: BTreeMap<String, Vec<Package>> = BTreeMap::new();
    for package in contained()? {
        let (licence, folder) = known
            .get(&package)
            .ok_or_else(|| format!("cargo does not know {} {}", package.0, package.1))?;
        let _ = writeln!(list, "{} {}: {licence}", package.0, package.1);
        for text in licence_texts(licence, folder)? {
            texts.entry(text).or_default().push(package.clone());
        }
    }
    let mut texts: Vec<(String, Vec<Package>)> = texts.into_iter().collect();
    texts.sort_by(|(_, one), (_, other)| one.cmp(other));
    let mut notices = format!("{HEAD}\n{list}");
    for (text, packages) in texts {
        let names: Vec<String> = packages
            .into_iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        let line = "-".repeat(80);
        let _ = write!(
            notices,
            "\n{line}\n{}\n{line}\n\n{text}\n",
            names.join(", ")
        );
    }
    Ok(notices)
}

/// Returns the third-party packages of the command and of the Python package on all platforms, without macros and build dependencies.
fn contained() -> Result<BTreeSet<Package>, String> {
    let mut tree = cargo(&["tree", "--locked", "--prefix=none", "--format={p}"]);
    tree.args(["--package=plaincall-cli", "--package=plaincall-python"]);
    tree.arg("--edges=normal,no-proc-macro");
    tree.args(TARGETS.iter().flat_map(|target| ["--target", target]));
    let package = |line: &str| {
        let mut words = line.split_whitespace();
        let package = (words.next()?, words.next()?.strip_prefix('v')?);
        let is_ours = words.any(|word| word.starts_with("(/"));
        (!is_ours).then(|| (package.0.to_owned(), package.1.to_owned()))
    };
    Ok(output(&mut tree)?.lines().filter_map(package).collect())
}

/// Returns the licence and the source folder of every package.
fn known() -> Result<BTreeMap<Package, (String, PathBuf)>, String> {
    let mut metadata = cargo(&["metadata", "--locked", "--format-version", "1"]);
    let platforms = TARGETS.iter();
    metadata.args(platforms.flat_map(|target| ["--filter-platform", target]));
    let metadata: Value =
        serde_json::from_str(&output(&mut metadata)?).map_err(|error| error.to_string())?;
    let packages = metadata.get("packages").and_then(Value::as_array);
    let known = packages.into_iter().flatten().filter_map(|package| {
        let text = |key: &str| package.get(key).and_then(Value::as_str);
        let folder = Path::new(text("manifest_path")?).parent()?;
        let licence = text("license").unwrap_or("see its text");
        let name = (text("name")?.to_owned(), text("version")?.to_owned());
        Some((name, (licence.to_owned(), folder.to_owned())))
    });
    Ok(known.collect())
}

/// Returns the licence texts of a package; if there is a choice, that of MIT.
fn licence_texts(licence: &str, folder: &Path) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let entry = entry.map_err(at(folder))?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        let is_text = entry.path().is_file() && NAMES.iter().any(|known| name.starts_with(known));
        if is_text {
            files.push((name, entry.path()));
        }
    }
    files.sort();
    let alternatives = licence.replace('/', " OR ");
    let may_choose = !alternatives.contains(" AND ") && alternatives.split(" OR ").count() > 1;
    let is_mit = |(name, _): &&(String, PathBuf)| name.contains("mit");
    if may_choose && files.iter().any(|file| is_mit(&file)) {
        files.retain(|file| is_mit(&file) || file.0.starts_with("notice"));
    }
    let read = |(_, path): (String, PathBuf)| {
        let bytes = fs::read(&path).map_err(at(&path))?;
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        Ok(lines.join("\n").trim_matches('\n').to_owned())
    };
    files.into_iter().map(read).collect()
}
