//! Files that replace others once they are complete.

use std::io::{self, Write as _};
use std::path::Path;

use plaincall::private;
use tempfile::{Builder, NamedTempFile};

/// Creates a file in the folder of `path`, which it can replace.
pub(crate) fn file_for(path: &Path, builder: &Builder<'_, '_>) -> io::Result<NamedTempFile> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    builder.tempfile_in(folder.unwrap_or(Path::new(".")))
}

/// Replaces a file atomically, so that the old file survives a full disk. Only its owner can read the new file.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = file_for(path, &Builder::new())?;
    private::restrict(file.path())?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}
