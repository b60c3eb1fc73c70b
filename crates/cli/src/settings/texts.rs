//! Safe reading of project files, which come from the author of the project and may not be trusted yet.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use crate::platform::open_without_waiting;
use crate::status::reason;

/// The maximum size of a file, in bytes.
const MAX_SIZE: u64 = 1 << 20;
/// The maximum total size of the included files of a project, in bytes.
const MAX_TOTAL_SIZE: usize = 16 << 20;

/// The content of files by path.
pub(super) type Texts = BTreeMap<PathBuf, Vec<u8>>;

/// Reads included files of a project.
pub(super) fn read_all(paths: &[PathBuf], directory: &Path) -> Result<Texts, String> {
    let mut texts = Texts::new();
    let mut total = 0;
    for path in paths {
        let unusable = |reason| format!("{} cannot be used: {reason}", path.display());
        check_in_project(path, directory).map_err(unusable)?;
        let (bytes, _) = read(path).map_err(unusable)?;
        total += bytes.len();
        if total > MAX_TOTAL_SIZE {
            let max = MAX_TOTAL_SIZE >> 20;
            let reason = format!("the files named by the project exceed {max} MiB in total");
            return Err(unusable(reason));
        }
        texts.insert(path.clone(), bytes);
    }
    Ok(texts)
}

/// Checks that a path leads to a file in the project, after symbolic links are resolved. An error is a phrase.
pub(super) fn check_in_project(path: &Path, directory: &Path) -> Result<(), String> {
    let Ok(target) = path.canonicalize() else {
        // The file does not exist; reading it reports the error.
        return Ok(());
    };
    let directory = directory
        .canonicalize()
        .map_err(|error| error.to_string())?;
    if target.starts_with(directory) {
        return Ok(());
    }
    Err(format!(
        "it leads to {}, outside the project",
        target.display()
    ))
}

/// Reads a file and its metadata. Only regular files are read: a device may have no end, and opening a pipe may block.
/// An error is a phrase.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, Metadata), String> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        _ => reason(&error),
    };
    let is_regular = |metadata: &Metadata| {
        let irregular = || "not a regular file".to_owned();
        metadata.is_file().then_some(()).ok_or_else(irregular)
    };
    // Check before opening, because opening some devices has side effects.
    is_regular(&fs::metadata(path).map_err(failed)?)?;
    // Check again, because the file may have been replaced.
    let file = open_without_waiting(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    is_regular(&metadata)?;
    let mut bytes = Vec::new();
    let mut file = file.take(MAX_SIZE + 1);
    file.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_SIZE {
        return Err(format!("it is larger than {} MiB", MAX_SIZE >> 20));
    }
    Ok((bytes, metadata))
}
