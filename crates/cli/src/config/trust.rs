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

/// What stands for the texts of these files: if one of them changes or is not there any more, it is another.
pub(super) fn fingerprint(path: &Path, text: &str, named: &[PathBuf]) -> String {
    let mut digest = Sha256::new();
    let mut add = |path: &Path, text: Option<&[u8]>| {
        use std::os::unix::ffi::OsStrExt as _;
        let path = path.as_os_str().as_bytes();
        for part in [Some(path), text] {
            // The length keeps two texts apart; one that cannot be read has none.
            digest.update(
                part.map_or(u64::MAX, |part| part.len() as u64)
                    .to_le_bytes(),
            );
            digest.update(part.unwrap_or_default());
        }
    };
    add(path, Some(text.as_bytes()));
    for path in named {
        add(path, fs::read(path).ok().as_deref());
    }
    let bytes = digest.finalize();
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Whether these texts were trusted. What cannot be read says no.
pub(super) fn is_trusted(state: Option<&Path>, path: &Path, sha256: &str) -> bool {
    let said = state.and_then(|state| read(state).ok()).unwrap_or_default();
    said.iter()
        .any(|said| said.path == path && said.sha256 == sha256)
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
