//! Programs of Debian packages, unpacked into the build folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{step, succeeds};
use crate::workspace::{command, target};

const UNPACK: &str = "for file in *.deb; do dpkg-deb --extract \"$file\" .; rm \"$file\"; done";

/// Returns a program of the system. If it has none, and the system is a Debian, it downloads the package and unpacks the program,
/// without installing it. Returns `None` if that is not possible.
pub(crate) fn program(package: &str, name: &str) -> Option<PathBuf> {
    if let Some(program) = installed(name) {
        return Some(program);
    }
    let folder = target().join("debian").join(package);
    let unpacked = || {
        let folders = ["usr/sbin", "usr/bin"].map(|below| folder.join(below));
        found(folders.into_iter(), name).filter(|path| runs(path))
    };
    if unpacked().is_none() {
        fs::create_dir_all(&folder).ok()?;
        let download = || {
            let mut download = command("apt-get --quiet download");
            download.arg(package).current_dir(&folder);
            step(&format!("download of {package}"), &mut download)
        };
        if download().is_err() {
            step("package list", &mut command("apt-get --quiet update")).ok()?;
            download().ok()?;
        }
        let mut unpack = command("sh -ec");
        unpack.arg(UNPACK).current_dir(&folder);
        step(&format!("unpacking of {package}"), &mut unpack).ok()?;
    }
    unpacked()
}

/// Returns a program of the system.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/local/sbin", "/usr/sbin"].map(PathBuf::from);
    found(std::env::split_paths(&path).chain(system), name)
}

fn found(folders: impl Iterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    let mut programs = folders.map(|folder| folder.join(name));
    programs.find(|program| program.is_file())
}

/// Returns whether a program starts, which needs the libraries of its package.
fn runs(program: &Path) -> bool {
    let mut versions = ["-v", "--version"].into_iter();
    versions.any(|version| succeeds(Command::new(program).arg(version)))
}
