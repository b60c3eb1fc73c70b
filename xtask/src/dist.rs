//! The files of a release: an archive with the command for Linux, a Python wheel that contains it, the wheel of the Python
//! library, and their checksums.
//!
//! maturin builds the command and the wheels. zig links against an old C library, so that the command runs on old and new
//! systems. `xtask/dist/build.txt` pins both. The archive contains the command of the wheel.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::pool::Job;
use crate::step::{output, report, step};
use crate::workspace::{QUICK, at, cargo, new_folder, read, root, target};
use crate::{inspector, python};

/// The platform of the command.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
/// The oldest glibc that the command runs with, and the name that Python has for it.
const OLDEST_GLIBC: (u32, u32) = (2, 17);
const COMPATIBILITY: &str = "manylinux2014";

/// The shells, and the names of their completion scripts.
const COMPLETIONS: [(&str, &str); 5] = [
    ("bash", "plaincall.bash"),
    ("zsh", "_plaincall"),
    ("fish", "plaincall.fish"),
    ("elvish", "plaincall.elv"),
    ("powershell", "_plaincall.ps1"),
];
/// The files and folders of the repository in the archive. The first example needs no other files.
const INCLUDED: [&str; 6] = [
    "README.md",
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "THIRD-PARTY-NOTICES",
    "examples/harbour",
];
pub(crate) const CHECKSUMS: &str = "SHA256SUMS";
/// The version of the workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The built files.
pub(crate) struct Packages {
    /// `target/dist`, as an absolute path.
    pub(crate) folder: PathBuf,
    /// The names of the files in it.
    pub(crate) archive: String,
    pub(crate) wheel: String,
    pub(crate) library: String,
    /// The command of the archive.
    program: PathBuf,
}

/// Returns whether the files can be built here: their command must run to print its completions.
pub(crate) fn is_supported() -> bool {
    cfg!(all(target_arch = "x86_64", target_os = "linux"))
}

/// The job that builds the files.
pub(crate) const RELEASE: &str = "files of a release";

static BUILT: OnceLock<Packages> = OnceLock::new();

/// Returns the job that builds the files with a profile into `target/dist`, and prints their sizes and checksums. Elsewhere than on
/// x86-64 Linux it only builds the command.
pub(crate) fn job(profile: &'static str) -> Job {
    let job = Job::new("builds", RELEASE, 300, move || {
        if !is_supported() {
            report!("== wheels and archive: SKIPPED, they are built on x86-64 Linux");
            let build = ["build", "--package", "plaincall-cli", "--profile", profile];
            return step("build of plaincall", &mut cargo(&build));
        }
        let packages = build(profile)?;
        for name in [&packages.archive, &packages.wheel, &packages.library] {
            let bytes = fs::metadata(packages.folder.join(name)).map_or(0, |file| file.len());
            report!("{:6} kB  {name}", bytes / 1000);
        }
        let sums = packages.folder.join(CHECKSUMS);
        report!("{}", read(&sums)?);
        BUILT.get_or_init(|| packages);
        Ok(())
    });
    let needs = [inspector::PAGE, python::UV];
    job.needs(&needs).gigabytes(4).compiles()
}

/// Returns the built files, if they can be built here. [`RELEASE`] must have passed.
pub(crate) fn packages() -> Option<&'static Packages> {
    BUILT.get()
}

/// Returns the command of the archive, as an absolute path. [`RELEASE`] must have passed.
///
/// # Errors
/// Returns an error if the path is invalid.
pub(crate) fn command() -> Result<PathBuf, String> {
    let path = match packages() {
        Some(packages) => packages.program.clone(),
        None => target().join(QUICK).join("plaincall"),
    };
    std::path::absolute(&path).map_err(at(&path))
}

/// Builds the files, and replaces those of an earlier build.
fn build(profile: &str) -> Result<Packages, String> {
    let staging = new_folder(&target().join("packages"))?;
    let page = inspector::page()?;
    if page.is_none() {
        report!("== the command has no page of the inspector, which needs WebAssembly");
    }
    let wheel = wheel_with(&root(), profile, &staging, page.as_deref())?;
    let unpacked = staging.join("wheel");
    let mut unzip = Command::new("python3");
    unzip.args(["-m", "zipfile", "--extract"]);
    step("unpack", unzip.arg(staging.join(&wheel)).arg(&unpacked))?;
    let program = unpacked.join(format!("plaincall_cli-{VERSION}.data/scripts/plaincall"));
    check_glibc(&program)?;
    let (archive, program) = archive(&program, &staging)?;
    if let Some(page) = page {
        check_page(&program, &page)?;
    }
    let library = wheel_with(&root().join("python"), profile, &staging, None)?;

    // Cargo keeps programs of the profile `dist` in the same folder.
    let folder = target().join("dist");
    let folder = std::path::absolute(&folder).map_err(at(&folder))?;
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    for old in fs::read_dir(&folder).map_err(at(&folder))?.flatten() {
        let path = old.path();
        if has_extension(&path, "gz") || has_extension(&path, "whl") {
            fs::remove_file(&path).map_err(at(&path))?;
        }
    }
    for name in [&archive, &wheel, &library] {
        let built = staging.join(name);
        fs::rename(&built, folder.join(name)).map_err(at(&built))?;
    }
    let mut sums = Command::new("sha256sum");
    let sums = output(sums.args([&archive, &wheel, &library]).current_dir(&folder))?;
    let path = folder.join(CHECKSUMS);
    fs::write(&path, sums).map_err(at(&path))?;
    Ok(Packages {
        folder,
        archive,
        wheel,
        library,
        program,
    })
}

/// Checks that the command contains the inspector's page, and adds its input.
fn check_page(program: &Path, page: &Path) -> Result<(), String> {
    let mut inspect = Command::new(program);
    inspect.args(["inspect", "--html", "-", "LICENSE-MIT"]);
    let shown = output(inspect.current_dir(root()))?;
    let (start, end) = read(page)
        .ok()
        .and_then(|page| {
            let (start, end) = page.split_once("id=\"given\">null")?;
            Some((start.to_owned(), end.to_owned()))
        })
        .ok_or("the page has no place for its input")?;
    if shown.starts_with(&start) && shown.ends_with(&end) && shown.contains("MIT License") {
        return Ok(());
    }
    Err("`plaincall inspect` shows another page".to_owned())
}

/// Builds the Python package whose `pyproject.toml` is in `package`, with the inspector's page if the command is in it, and returns
/// the name of its wheel in `folder`.
fn wheel_with(
    package: &Path,
    profile: &str,
    folder: &Path,
    page: Option<&Path>,
) -> Result<String, String> {
    let tools = python::install(&root().join("xtask/dist/build.txt"), &target().join("zig"))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = [tools.clone()]
        .into_iter()
        .chain(std::env::split_paths(&path));
    let paths = std::env::join_paths(paths).map_err(|error| error.to_string())?;
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let home = home.ok_or("no home directory")?;
    let mut build = Command::new(tools.join("maturin"));
    build
        .args(["build", "--zig", "--locked", "--profile", profile])
        .args(["--target", PLATFORM, "--compatibility", COMPATIBILITY])
        .arg("--out")
        .arg(folder)
        .current_dir(package)
        .env("PATH", paths)
        // The same bytes in every home directory, and at every time. 1980 is the first year of a zip file.
        .env(
            "RUSTFLAGS",
            format!("--remap-path-prefix={}=/cargo", home.display()),
        )
        .env("SOURCE_DATE_EPOCH", "315532800");
    if let Some(page) = page {
        build.env("PLAINCALL_INSPECTOR_PAGE", page);
    }
    step(&format!("wheel, {profile}"), &mut build)?;
    let mut files = fs::read_dir(folder).map_err(at(folder))?.flatten();
    let wheel = files.find(|file| has_extension(&file.path(), "whl"));
    let wheel = wheel.ok_or("maturin built no wheel")?;
    Ok(wheel.file_name().to_string_lossy().into_owned())
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// Checks that the command requires no glibc newer than [`OLDEST_GLIBC`].
fn check_glibc(program: &Path) -> Result<(), String> {
    let mut symbols = Command::new("objdump");
    let symbols = output(symbols.arg("--dynamic-syms").arg(program))?;
    let (major, minor) = newest_glibc(&symbols).ok_or("the command requires no glibc")?;
    report!("== the command requires glibc {major}.{minor}");
    if (major, minor) > OLDEST_GLIBC {
        return Err(format!(
            "{} requires glibc {major}.{minor}, at most {OLDEST_GLIBC:?}",
            program.display()
        ));
    }
    Ok(())
}

/// Returns the newest version of glibc in a list of symbols.
fn newest_glibc(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("GLIBC_").skip(1);
    versions
        .filter_map(|text| {
            let end = text.find(|character: char| !character.is_ascii_digit() && character != '.');
            let mut numbers = text[..end.unwrap_or(text.len())].split('.');
            Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
        })
        .max()
}

/// Packs the command with its completions, man pages, licences and first example, and returns the names of the archive and of the command.
fn archive(program: &Path, staging: &Path) -> Result<(String, PathBuf), String> {
    let name = format!("plaincall-{VERSION}-{PLATFORM}");
    let folder = new_folder(&staging.join(&name))?;
    let from = program;
    let program = folder.join("plaincall");
    fs::copy(from, &program).map_err(at(from))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).map_err(at(&program))?;
    for file in INCLUDED {
        let to = folder.join(file);
        let parent = to.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).map_err(at(parent))?;
        let mut copy = Command::new("cp");
        copy.arg("--recursive").arg(root().join(file)).arg(parent);
        output(&mut copy)?;
    }
    let completions = new_folder(&folder.join("completions"))?;
    for (shell, file) in COMPLETIONS {
        let script = output(Command::new(&program).args(["completions", shell]))?;
        let path = completions.join(file);
        fs::write(&path, script).map_err(at(&path))?;
    }
    let mut pages = Command::new(&program);
    output(pages.arg("man").arg(folder.join("man/man1")))?;

    let archive = format!("{name}.tar.gz");
    let mut tar = Command::new("tar");
    // The same bytes for every user and at every time.
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .args(["--mtime=@0", "--mode=u=rwX,go=rX"])
        .arg("--use-compress-program=gzip -9n")
        .args(["--create", "--file", &archive, &name])
        .current_dir(staging);
    step("archive", &mut tar)?;
    Ok((archive, program))
}

#[cfg(test)]
mod tests {
    use super::newest_glibc;

    #[test]
    fn the_newest_version_of_glibc_counts() {
        let table = [
            (
                "0000 DF *UND*  0000 (GLIBC_2.9) a\n0000 DF *UND* 0000 (GLIBC_2.17) b\n0 GLIBC_2.2.5 c\n",
                Some((2, 17)),
            ),
            ("0000 (GLIBC_2.4)\n0000 (GLIBC_2.34)", Some((2, 34))),
            ("0000 (GLIBC_PRIVATE) a\n", None),
            ("", None),
        ];
        for (symbols, expected) in table {
            assert_eq!(newest_glibc(symbols), expected, "{symbols}");
        }
    }
}
