//! Programs of Debian packages, unpacked into the build folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{step, succeeds};
use crate::workspace::{command, target};

/// The folders of programs of the system.
const SYSTEM: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];
const UNPACK: &str = "for file in *.deb; do dpkg-deb --extract \"$file\" .; rm \"$file\"; done";

/// Returns a program of the system. If it has none, and the system is a Debian, it downloads the package and unpacks the program,
/// without installing it. Returns `None` if that is not possible.
pub(crate) fn program(package: &str, name: &str) -> Option<PathBuf> {
    let found = |folder: &Path| Some(folder.join(name)).filter(|path| path.is_file());
    if let Some(program) = SYSTEM.iter().map(Path::new).find_map(found) {
        return Some(program);
    }
    let folder = target().join("debian").join(package);
    let unpacked = || {
        let mut folders = ["usr/sbin", "usr/bin"].into_iter();
        let path = folders.find_map(|below| found(&folder.join(below)));
        path.filter(|path| runs(path))
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

/// Returns whether a program starts, which needs the libraries of its package.
fn runs(program: &Path) -> bool {
    let mut versions = ["-v", "--version"].into_iter();
    versions.any(|version| succeeds(Command::new(program).arg(version)))
}
