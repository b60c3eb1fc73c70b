//! Whether the user trusts a project's file.
//!
//! It comes with the project, from whoever wrote that. So until its user has looked at it and said yes, nothing of it
//! counts but what forbids. What was said holds for the very texts that were looked at: the project's file and all files
//! that it names. When one of them changes it is asked anew.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::texts::Texts;
use crate::status::Failure;

/// The file with what was said, in the directory of Plaincall's state.
const FILE: &str = "trusted.jsonl";

/// A project's file that was trusted.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Trusted {
    path: PathBuf,
    /// Of its text and of those of the files that it names.
    sha256: String,
}

/// What stands for the texts of these files. Their paths are part of it, as seen from the folder of the project's file.
pub(super) fn fingerprint(path: &Path, text: &str, named: &Texts) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut digest = Sha256::new();
    let mut add = |path: &Path, text: &[u8]| {
        let path = path.strip_prefix(folder).unwrap_or(path);
        for part in [path.as_os_str().as_bytes(), text] {
            // The length keeps two texts apart.
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    };
    add(path, text.as_bytes());
    for (path, text) in named.iter() {
        add(path, text);
    }
    let bytes = digest.finalize();
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// What stands for the texts that were trusted under this path, if any were.
pub(super) fn said(state: Option<&Path>, path: &Path) -> Option<String> {
    // What cannot be read says nothing.
    let said = read(state?).ok()?;
    let said = said.into_iter().find(|said| said.path == path);
    said.map(|said| said.sha256)
}

fn read(state: &Path) -> std::io::Result<Vec<Trusted>> {
    let text = match fs::read_to_string(state.join(FILE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    // A line that is no such thing trusts nothing.
    Ok(text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}

/// Trusts these texts from now on, in the place of what was trusted under this path; or nothing of it any more.
pub(super) fn set(state: &Path, path: &Path, sha256: Option<&str>) -> Result<(), Failure> {
    let file = state.join(FILE);
    let failed = |error: std::io::Error| {
        Failure::Broken(format!("cannot write {}: {error}", file.display()))
    };
    let mut said = read(state).map_err(failed)?;
    said.retain(|said| said.path != path);
    said.extend(sha256.map(|sha256| Trusted {
        path: path.to_owned(),
        sha256: sha256.to_owned(),
    }));
    let mut text = String::new();
    for said in &said {
        text.push_str(&serde_json::to_string(said).map_err(|error| failed(error.into()))?);
        text.push('\n');
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state)
        .map_err(failed)?;
    // Whoever reads meanwhile finds the old file or the new one.
    let mut new = tempfile::NamedTempFile::new_in(state).map_err(failed)?;
    new.write_all(text.as_bytes()).map_err(failed)?;
    let new: File = new.persist(&file).map_err(|error| failed(error.error))?;
    new.sync_all().map_err(failed)
}
