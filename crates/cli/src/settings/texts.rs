//! Files of a project, read once and with care: they come from the author of the project, and are looked at before
//! the user trusts them.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// How long a file may be, in bytes.
const LONGEST: u64 = 1 << 20;
/// How long the files that a project names may be together, in bytes.
const LONGEST_TOGETHER: usize = 16 << 20;

/// The texts of files, by their paths.
pub(super) type Texts = BTreeMap<PathBuf, Vec<u8>>;

/// Reads these files of a project.
///
/// # Errors
/// Which of them cannot be used, and why.
pub(super) fn read_all(paths: &[PathBuf], folder: &Path) -> Result<Texts, String> {
    let mut texts = Texts::new();
    let mut total = 0;
    for path in paths {
        let refused = |reason| format!("{} cannot be used: {reason}", path.display());
        stays_in(path, folder).map_err(refused)?;
        let (bytes, _) = read(path).map_err(refused)?;
        total += bytes.len();
        if total > LONGEST_TOGETHER {
            let most = LONGEST_TOGETHER >> 20;
            let sum = format!("the files named by the project exceed {most} MiB in total");
            return Err(refused(sum));
        }
        texts.insert(path.clone(), bytes);
    }
    Ok(texts)
}

/// Whether a path of a project stays in it, behind all links.
///
/// # Errors
/// It leads out of the project, as the end of a sentence.
pub(super) fn stays_in(path: &Path, folder: &Path) -> Result<(), String> {
    let Ok(found) = path.canonicalize() else {
        // The file does not exist; reading it reports the error.
        return Ok(());
    };
    let folder = folder.canonicalize().map_err(|error| error.to_string())?;
    if found.starts_with(folder) {
        return Ok(());
    }
    Err(format!(
        "it leads to {}, outside the project",
        found.display()
    ))
}

/// Reads a file and its metadata. Only regular files are read: a device may have no end, and opening a pipe may block.
///
/// # Errors
/// Why not, as the end of a sentence.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, Metadata), String> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    };
    let is_regular = |about: &Metadata| {
        let refused = || "not a regular file".to_owned();
        about.is_file().then_some(()).ok_or_else(refused)
    };
    // Opening some devices does something already.
    is_regular(&fs::metadata(path).map_err(failed)?)?;
    // Something else may have taken its place.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file: File = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    is_regular(&about)?;
    let mut bytes = Vec::new();
    let mut file = file.take(LONGEST + 1);
    file.read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("it is larger than {} MiB", LONGEST >> 20));
    }
    Ok((bytes, about))
}
