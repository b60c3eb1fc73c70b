//! The third-party notices of the binaries: the dependencies of the command and of the Python package, with their licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::step::output;
use crate::workspace::{at, cargo, entries, name_below, write};

const FILE: &str = "THIRD-PARTY-NOTICES";
/// The target platforms of the command.
const TARGETS: &str = "x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-apple-darwin aarch64-apple-darwin x86_64-pc-windows-msvc";
/// The beginnings of file names with licences and notices, in lower case.
const NAMES: &str = "licence license copying notice unlicense copyright";
const HEAD: &str = "\
Third-party notices

The binaries of Plaincall contain the packages below and the standard library of Rust (MIT OR Apache-2.0,
https://www.rust-lang.org). `cargo xtask notices` writes this file. Where a package lets one choose among licences that
include MIT, MIT is chosen, and its text is that of the package.
";

/// Writes the file.
pub(crate) fn overwrite(root: &Path) -> Result<(), String> {
    write(&root.join(FILE), notices()?)
}

/// Checks that the file is up to date.
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
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in contained()? {
        let known = known.get(&package);
        let (licence, folder) = known.ok_or_else(|| format!("cargo does not know {package}"))?;
        let _ = writeln!(list, "{package}: {licence}");
        for text in licence_texts(licence, folder)? {
            texts.entry(text).or_default().push(package.clone());
        }
    }
    let mut texts: Vec<(String, Vec<String>)> = texts.into_iter().collect();
    texts.sort_by(|(_, one), (_, other)| one.cmp(other));
    let mut notices = format!("{HEAD}\n{list}");
    for (text, packages) in texts {
        let (names, line) = (packages.join(", "), "-".repeat(80));
        let _ = write!(notices, "\n{line}\n{names}\n{line}\n\n{text}\n");
    }
    Ok(notices)
}

/// Returns the third-party packages of the command and of the Python package on all platforms, without macros and build dependencies.
fn contained() -> Result<BTreeSet<String>, String> {
    let mut tree = cargo("tree --locked --prefix=none --format={p} --edges=normal,no-proc-macro");
    tree.args(["--package=plaincall-cli", "--package=plaincall-python"]);
    tree.args(TARGETS.split(' ').flat_map(|target| ["--target", target]));
    let package = |line: &str| {
        let mut words = line.split_whitespace();
        let package = format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?);
        let is_ours = words.any(|word| word.starts_with("(/"));
        (!is_ours).then_some(package)
    };
    Ok(output(&mut tree)?.lines().filter_map(package).collect())
}

fn known() -> Result<BTreeMap<String, (String, PathBuf)>, String> {
    let mut metadata = cargo("metadata --locked --format-version 1");
    let platforms = TARGETS.split(' ');
    metadata.args(platforms.flat_map(|target| ["--filter-platform", target]));
    let metadata: Value =
        serde_json::from_str(&output(&mut metadata)?).map_err(|error| error.to_string())?;
    let packages = metadata.get("packages").and_then(Value::as_array);
    let known = packages.into_iter().flatten().filter_map(|package| {
        let text = |key: &str| package.get(key).and_then(Value::as_str);
        let folder = Path::new(text("manifest_path")?).parent()?;
        let licence = text("license").unwrap_or("see its text");
        let name = format!("{} {}", text("name")?, text("version")?);
        Some((name, (licence.to_owned(), folder.to_owned())))
    });
    Ok(known.collect())
}

/// Returns the licence texts of a package; if there is a choice, that of MIT.
fn licence_texts(licence: &str, folder: &Path) -> Result<Vec<String>, String> {
    let mut files = entries(folder)?;
    let name = |path: &PathBuf| name_below(folder, path).to_lowercase();
    files.retain(|path| {
        path.is_file() && NAMES.split(' ').any(|known| name(path).starts_with(known))
    });
    files.sort_by_key(name);
    let alternatives = licence.replace('/', " OR ");
    let may_choose = !alternatives.contains(" AND ") && alternatives.split(" OR ").count() > 1;
    let is_mit = |path: &PathBuf| name(path).contains("mit");
    if may_choose && files.iter().any(is_mit) {
        files.retain(|path| is_mit(path) || name(path).starts_with("notice"));
    }
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).map_err(at(&path))?;
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        Ok(lines.join("\n").trim_matches('\n').to_owned())
    };
    files.into_iter().map(read).collect()
}
