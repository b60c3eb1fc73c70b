//! Files and directories that only their owner can use.
//!
//! On Unix their mode allows no one else to use them. On Windows their access control list is replaced by one entry for the owner.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

use tempfile::TempDir;

/// `CREATE_NO_WINDOW`.
#[cfg(windows)]
const WITHOUT_CONSOLE: u32 = 0x0800_0000;

/// Opens a file. If the options create it, only its owner can use it.
///
/// # Errors
/// Returns an error if the file cannot be opened, or not be made private.
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    {
        let mut options = options.clone();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)
    }
    #[cfg(windows)]
    {
        let is_new = !path.exists();
        let file = options.open(path)?;
        if is_new && let Err(error) = restrict(path) {
            // It would be used as it is the next time.
            drop(file);
            let _ = std::fs::remove_file(path);
            return Err(error);
        }
        Ok(file)
    }
}

/// Creates a directory that only its owner can use, with its missing parents. An existing directory stays as it is.
///
/// # Errors
/// Returns an error if the directory cannot be created, or not be made private.
pub fn create_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    create(path, true)
}

/// Creates a directory that only its owner can use, in an existing directory.
///
/// # Errors
/// Returns an error if the path exists, or if the directory cannot be created, or not be made private.
pub fn create_new_directory(path: &Path) -> io::Result<()> {
    create(path, false)
}

fn create(path: &Path, with_parents: bool) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(with_parents).create(path)?;
    #[cfg(windows)]
    restrict(path).inspect_err(|_| {
        let _ = std::fs::remove_dir(path);
    })?;
    Ok(())
}

/// Creates a temporary directory that only its owner can use. It is removed when the value is dropped.
///
/// # Errors
/// Returns an error if the directory cannot be created, or not be made private.
pub fn temporary_directory(prefix: &str, parent: &Path) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let directory = builder.prefix(prefix).tempdir_in(parent)?;
    #[cfg(windows)]
    restrict(directory.path())?;
    Ok(directory)
}

/// Removes the rights of everyone but the owner from a file or directory.
///
/// # Errors
/// Returns an error if its rights cannot be changed.
pub fn restrict(path: &Path) -> io::Result<()> {
    let is_directory = path.is_dir();
    #[cfg(unix)]
    {
        let mode = if is_directory { 0o700 } else { 0o600 };
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(path, mode)
    }
    // The program of the system, so that no unsafe call is needed.
    #[cfg(windows)]
    {
        // The well-known identifier of the owner. New files in a directory inherit the entry.
        let owner = if is_directory {
            "*S-1-3-4:(OI)(CI)F"
        } else {
            "*S-1-3-4:F"
        };
        let mut icacls = std::process::Command::new("icacls.exe");
        icacls
            .arg(std::path::absolute(path)?)
            .args(["/inheritance:r", "/grant:r", owner]);
        std::os::windows::process::CommandExt::creation_flags(&mut icacls, WITHOUT_CONSOLE);
        let output = icacls.output()?;
        if output.status.success() {
            return Ok(());
        }
        let reason = String::from_utf8_lossy(&output.stderr);
        Err(io::Error::other(format!(
            "it cannot be made private: icacls: {}",
            reason.trim()
        )))
    }
}
