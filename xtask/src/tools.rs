//! Programs that checks use. Those written in Rust are published programs where there are some, otherwise cargo installs them below
//! the build folder. Others are of the system, or of Debian packages that are unpacked into the build folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::python;
use crate::step::{report, step, succeeds};
use crate::workspace::{at, cargo, command, new_folder, root, target, write};

const UNPACK: &str = "for file in *.deb; do dpkg-deb --extract \"$file\" .; rm \"$file\"; done";

/// The list of published programs, with their versions and hashes.
const PUBLISHED: &str = "xtask/dist/tools.txt";

/// Returns a published program of [`PUBLISHED`], or the same version installed by cargo. [`python::UV`] must have passed.
pub(crate) fn published(package: &str, version: &str, options: &str) -> Result<PathBuf, String> {
    match python::install(&root().join(PUBLISHED), &target().join("tools/published")) {
        Ok(programs) => Ok(programs.join(package)),
        Err(error) => {
            report!("{error}: cargo compiles {package}");
            installed(package, version, options)
        }
    }
}

/// Returns the program of a package with its name, and installs it if it is missing. `options` are those of
/// `cargo install`.
pub(crate) fn installed(package: &str, version: &str, options: &str) -> Result<PathBuf, String> {
    let tools = target().join("tools");
    let place = tools.join(format!("{package}-{version}"));
    let program = place.join("bin").join(package);
    if !program.exists() {
        // These tools mostly wait for files and other programs, so a debug build is enough.
        let mut install = cargo("install --quiet --locked --debug --version");
        install
            .args([version, package])
            .args(options.split_whitespace());
        install.arg("--root").arg(&place);
        install.env("CARGO_TARGET_DIR", tools.join("build"));
        install.env("CARGO_PROFILE_DEV_DEBUG", "false");
        step(package, &mut install)?;
    }
    fs::canonicalize(&program).map_err(at(&program))
}

/// Returns a program of the system. If it has none, and the system is a Debian, it downloads the package and unpacks the program,
/// without installing it. Returns `None` if that is not possible.
pub(crate) fn of_debian(package: &str, name: &str) -> Option<PathBuf> {
    if let Some(program) = of_system(name) {
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

/// Unpacks a package of Debian for another processor, with all that it needs, and returns the folder. The packages of this system, and
/// the lists of them, remain as they are.
pub(crate) fn debian_system(processor: &str, package: &str) -> Result<PathBuf, String> {
    let folder = new_folder(&target().join("debian").join(processor))?;
    let system = folder.join("system");
    let status = folder.join("status");
    write(&status, "")?;
    for partial in ["lists/partial", "system/partial"].map(|below| folder.join(below)) {
        fs::create_dir_all(&partial).map_err(at(&partial))?;
    }
    let options = [
        format!("APT::Architecture={processor}"),
        format!("APT::Architectures={processor}"),
        format!("Dir::State::status={}", status.display()),
        format!("Dir::State::lists={}", folder.join("lists").display()),
        format!("Dir::Cache={}", folder.display()),
        format!("Dir::Cache::archives={}", system.display()),
    ];
    let apt = |words: &str| {
        let mut apt = command(&format!("apt-get --quiet --yes {words}"));
        step(
            words,
            apt.args(options.iter().flat_map(|option| ["-o", option])),
        )
    };
    apt("update")?;
    apt(&format!(
        "install --download-only --no-install-recommends {package}"
    ))?;
    let mut unpack = command("sh -ec");
    step("unpacking", unpack.arg(UNPACK).current_dir(&system))?;
    Ok(system)
}

/// Installs packages of Debian into the system, which needs root.
pub(crate) fn install(packages: &str) -> Result<(), String> {
    let install = format!("apt-get --quiet --yes install --no-install-recommends {packages}");
    let run = |words| step("apt-get", &mut command(words));
    run(&install).or_else(|_| run("apt-get --quiet --yes update").and_then(|()| run(&install)))
}

pub(crate) fn of_system(name: &str) -> Option<PathBuf> {
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
