//! The files of a release for this platform: an archive with the command, a Python wheel that contains it, the wheel of the Python
//! library, and their checksums.
//!
//! maturin builds the command and the wheels. On Linux, zig links against an old C library, so that the command runs on old and new
//! systems. `xtask/dist/build.txt` pins both. The archive contains the command of the wheel.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::pool::Job;
use crate::step::{copy, output, report, skipped, step};
use crate::workspace::{
    CHECKED, at, cargo, cargo_home, command as words, entries, has_extension, name_below,
    new_folder, read, root, target, write,
};
use crate::{inspector, python};

/// The target of this platform, if files of a release are built for it.
const PLATFORM: Option<&str> = if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
    Some("x86_64-unknown-linux-gnu")
} else if cfg!(all(target_os = "linux", target_arch = "aarch64")) {
    Some("aarch64-unknown-linux-gnu")
} else if cfg!(all(target_os = "macos", target_arch = "x86_64")) {
    Some("x86_64-apple-darwin")
} else if cfg!(all(target_os = "macos", target_arch = "aarch64")) {
    Some("aarch64-apple-darwin")
} else {
    None
};
const IS_LINUX: bool = cfg!(target_os = "linux");
/// GNU tar, and a program that prints checksums.
const TAR: &str = if IS_LINUX { "tar" } else { "gtar" };
pub(crate) const SHA256: &str = if IS_LINUX {
    "sha256sum"
} else {
    "shasum --algorithm 256"
};
pub(crate) const OLDEST_MACOS: &str = "11.0";
/// The oldest glibc that the command runs with, and the name that Python has for it.
const OLDEST_GLIBC: (u32, u32) = (2, 17);
pub(crate) const COMPATIBILITY: &str = "manylinux2014";

/// The shells, and the names of their completion scripts.
const COMPLETIONS: &str = "bash:plaincall.bash zsh:_plaincall fish:plaincall.fish elvish:plaincall.elv powershell:_plaincall.ps1";
/// The files and folders of the repository in the archive. The commands of the README need no other files.
const INCLUDED: &str = "README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT THIRD-PARTY-NOTICES examples/harbour \
                        examples/gateway";
pub(crate) const CHECKSUMS: &str = "SHA256SUMS";
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

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

pub(crate) const RELEASE: &str = "files of a release";

static BUILT: OnceLock<Packages> = OnceLock::new();

/// Returns the job that builds the files with a profile into `target/dist`, and prints their sizes and checksums. On another platform
/// than those of [`PLATFORM`] it only builds the command.
pub(crate) fn job(profile: &'static str) -> Job {
    let job = Job::new(RELEASE, RELEASE, 300, move || {
        let Some(platform) = PLATFORM else {
            let build = format!("build --package plaincall-cli --profile {profile}");
            step("build of plaincall", &mut cargo(&build))?;
            return skipped("wheels and archive", "they are built on Linux and macOS");
        };
        let packages = build(platform, profile)?;
        for name in [&packages.archive, &packages.wheel, &packages.library] {
            let bytes = fs::metadata(packages.folder.join(name)).map_or(0, |file| file.len());
            report!("{:6} kB  {name}", bytes / 1000);
        }
        report!("{}", read(&packages.folder.join(CHECKSUMS))?);
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
pub(crate) fn command() -> PathBuf {
    match packages() {
        Some(packages) => packages.program.clone(),
        None => target().join(CHECKED).join("plaincall"),
    }
}

/// Builds the files, and replaces those of an earlier build.
fn build(platform: &str, profile: &str) -> Result<Packages, String> {
    let staging = new_folder(&target().join("packages"))?;
    let page = inspector::page();
    if page.is_none() {
        report!("== the command has no page of the inspector, which needs WebAssembly");
    }
    let wheel = self::wheel(&root(), platform, profile, &staging, page.as_deref())?;
    let unpacked = staging.join("wheel");
    let mut unzip = words("python3 -m zipfile --extract");
    step("unpack", unzip.arg(staging.join(&wheel)).arg(&unpacked))?;
    let program = unpacked.join(format!("plaincall_cli-{VERSION}.data/scripts/plaincall"));
    if IS_LINUX {
        check_glibc(words("objdump --dynamic-syms").arg(&program))?;
    }
    let (archive, program) = archive(&program, platform, &staging, None)?;
    if let Some(page) = page {
        check_page(&program, &page)?;
    }
    let library = self::wheel(&root().join("python"), platform, profile, &staging, None)?;

    // Cargo keeps programs of the profile `dist` in the same folder.
    let folder = target().join("dist");
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    for old in entries(&folder)? {
        if has_extension(&old, "gz") || has_extension(&old, "whl") {
            fs::remove_file(&old).map_err(at(&old))?;
        }
    }
    let names = [&archive, &wheel, &library];
    for name in names {
        let built = staging.join(name);
        fs::rename(&built, folder.join(name)).map_err(at(&built))?;
    }
    let sums = output(words(SHA256).args(names).current_dir(&folder))?;
    write(&folder.join(CHECKSUMS), sums)?;
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
    let page = read(page)?;
    let parts = page.split_once("id=\"given\">null");
    let (start, end) = parts.ok_or("the page has no place for its input")?;
    if shown.starts_with(start) && shown.ends_with(end) && shown.contains("MIT License") {
        return Ok(());
    }
    Err("`plaincall inspect` shows another page".to_owned())
}

/// Returns the command that builds a wheel for a platform, with zig in its search path.
pub(crate) fn maturin(platform: &str) -> Result<Command, String> {
    let tools = python::install(&root().join("xtask/dist/build.txt"), &target().join("zig"))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(tools.clone()).chain(std::env::split_paths(&path));
    let paths = std::env::join_paths(paths).map_err(|error| error.to_string())?;
    let mut build = Command::new(tools.join("maturin"));
    build.args(["build", "--locked", "--target", platform]);
    build.env("PATH", paths);
    Ok(build)
}

/// Builds the Python package whose `pyproject.toml` is in `package`, with the inspector's page if the command is in it, and returns
/// the name of its wheel in `to`.
fn wheel(
    package: &Path,
    platform: &str,
    profile: &str,
    to: &Path,
    page: Option<&Path>,
) -> Result<String, String> {
    let home = cargo_home().ok_or("no home directory")?;
    let mut build = maturin(platform)?;
    build.args(["--profile", profile, "--out"]).arg(to);
    build.current_dir(package);
    if IS_LINUX {
        build.args(["--zig", "--compatibility", COMPATIBILITY]);
    } else {
        build.env("MACOSX_DEPLOYMENT_TARGET", OLDEST_MACOS);
    }
    // The same bytes in every home directory, and at every time. 1980 is the first year of a zip file.
    let flags = format!("--remap-path-prefix={}=/cargo", home.display());
    build.env("RUSTFLAGS", flags);
    build.env("SOURCE_DATE_EPOCH", "315532800");
    build.envs(page.map(|page| ("PLAINCALL_INSPECTOR_PAGE", page)));
    step(&format!("wheel, {profile}"), &mut build)?;
    let mut files = entries(to)?.into_iter();
    let wheel = files.find(|file| has_extension(file, "whl"));
    let wheel = wheel.ok_or("maturin built no wheel")?;
    Ok(name_below(to, &wheel))
}

/// Checks that a program requires no glibc newer than [`OLDEST_GLIBC`]. `show` prints its dynamic symbols.
pub(crate) fn check_glibc(show: &mut Command) -> Result<(), String> {
    let symbols = output(show)?;
    let (major, minor) =
        newest_glibc(&symbols).ok_or_else(|| format!("no glibc in the output of {show:?}"))?;
    report!("== the program requires glibc {major}.{minor}");
    if (major, minor) <= OLDEST_GLIBC {
        return Ok(());
    }
    Err(format!(
        "{show:?} shows glibc {major}.{minor}, at most {OLDEST_GLIBC:?} is right"
    ))
}

/// Returns the newest version of glibc in a list of symbols.
fn newest_glibc(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|text| {
        let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let mut numbers = text[..end.unwrap_or(text.len())].split('.');
        Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
    });
    versions.max()
}

/// Packs the command with its completions, man pages, licences and examples, and returns the names of the archive and of the command.
/// `runs_here` starts the same command if that of the archive is for another system.
pub(crate) fn archive(
    from: &Path,
    platform: &str,
    staging: &Path,
    runs_here: Option<&[String]>,
) -> Result<(String, PathBuf), String> {
    let name = format!("plaincall-{VERSION}-{platform}");
    let folder = new_folder(&staging.join(&name))?;
    copy(from, &folder)?;
    let program = folder.join("plaincall");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).map_err(at(&program))?;
    for file in INCLUDED.split(' ') {
        let to = folder.join(file);
        copy(&root().join(file), to.parent().unwrap_or(&folder))?;
    }
    let own = [program.display().to_string()];
    let [start, first @ ..] = runs_here.unwrap_or(&own) else {
        return Err("no command writes the completions".to_owned());
    };
    let run = || {
        let mut command = Command::new(start);
        command.args(first);
        command
    };
    for (shell, file) in COMPLETIONS.split(' ').filter_map(|one| one.split_once(':')) {
        let script = output(run().args(["completions", shell]))?;
        write(&folder.join("completions").join(file), script)?;
    }
    output(run().arg("man").arg(folder.join("man/man1")))?;

    let archive = format!("{name}.tar.gz");
    // The same bytes for every user and at every time.
    let mut tar = words(TAR);
    tar.args("--sort=name --owner=0 --group=0 --numeric-owner --mtime=@0".split(' '));
    tar.args(["--mode=u=rwX,go=rX", "--use-compress-program=gzip -9n"]);
    tar.args(["--create", "--file", &archive, &name]);
    step("archive", tar.current_dir(staging))?;
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
