//! Programs of Debian packages, unpacked into the build folder.

use crate::step::step;
use crate::workspace::target;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folders of programs of the system.
const SYSTEM: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin"];

/// Returns a program of the system. If it has none, and the system is a Debian, it downloads the package and unpacks the program,
/// without installing it. Returns `None` if that is not possible.
pub(crate) fn program(package: &str, name: &str) -> Option<PathBuf> {
    let found = |folder: &str| Some(Path::new(folder).join(name)).filter(|path| path.is_file());
    if let Some(program) = SYSTEM.into_iter().find_map(found) {
        return Some(program);
    }
    let folder = std::path::absolute(target().join("debian").join(package)).ok()?;
    let unpacked = || {
        let mut folders = ["usr/sbin", "usr/bin"].into_iter();
        let path = folders.find_map(|below| found(folder.join(below).to_str()?));
        path.filter(|path| runs(path))
    };
    if unpacked().is_none() {
        fs::create_dir_all(&folder).ok()?;
        let download = || {
            let mut download = Command::new("apt-get");
            download
                .args(["--quiet", "download", package])
                .current_dir(&folder);
            step(&format!("download of {package}"), &mut download)
        };
        if download().is_err() {
            step(
                "package list",
                Command::new("apt-get").args(["--quiet", "update"]),
            )
            .ok()?;
            download().ok()?;
        }
        let script = "for file in *.deb; do dpkg-deb --extract \"$file\" .; rm \"$file\"; done";
        let mut unpack = Command::new("sh");
        unpack.args(["-ec", script]).current_dir(&folder);
        step(&format!("unpacking of {package}"), &mut unpack).ok()?;
    }
    unpacked()
}

/// Returns whether a program starts, which needs the libraries of its package.
fn runs(program: &Path) -> bool {
    let mut versions = ["-v", "--version"].into_iter();
    versions.any(|version| {
        let output = Command::new(program).arg(version).output();
        output.is_ok_and(|output| output.status.success())
    })
}
