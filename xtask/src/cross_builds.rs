//! The wheels and archives for Arm Linux and macOS, cross-compiled with zig and checked as far as Linux on x86-64 can: their tags, what their programs
//! and libraries link, and the oldest system. Those of Arm Linux also run, under qemu. Builds without optimisation show all of this.
//!
//! The release workflow builds these files on their own systems. `docs/installing.md` states what is shown here.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dist::{COMPATIBILITY, OLDEST_MACOS, archive, check_glibc, maturin};
use crate::installed::{LIBRARY, check_example};
use crate::other_targets::is_installed;
use crate::pool::Job;
use crate::step::{output, report, step};
use crate::workspace::{at, command, entries, new_folder, no_problems, root, target, write};
use crate::{python, tools};

const ARM_LINUX: &str = "aarch64-unknown-linux-gnu";
const MACS: [(&str, &str, &str); 2] = [
    (
        "aarch64-apple-darwin",
        "macosx_11_0_arm64",
        "cffaedfe0c000001",
    ),
    (
        "x86_64-apple-darwin",
        "macosx_11_0_x86_64",
        "cffaedfe07000001",
    ),
];
const LINUX_TAG: &str = "manylinux2014_aarch64";
/// The first bytes of its programs and libraries: ELF of 64 bits, for this processor. Those of a Mac follow its tag.
const ARM_ELF: &str = "7f454c460201010000000000000000000300b700";

const QEMU: &str = "qemu-aarch64";
/// Debian's packages of qemu, and of Python with the libraries that it needs, and its name of the processor.
const EMULATOR: &str = "qemu-user";
const PYTHON: &str = "python3";
const ARM: &str = "arm64";

/// The frameworks that the command links. Their libraries belong to Apple, so the linker gets files that only name them.
const FRAMEWORKS: [&str; 2] = ["CoreFoundation", "Security"];
/// Every library that a program or library of macOS may need, besides [`FRAMEWORKS`].
const MAC_LIBRARIES: [&str; 3] = [
    "/usr/lib/libSystem.B.dylib",
    "/usr/lib/libcharset.1.dylib",
    "/usr/lib/libiconv.2.dylib",
];

/// Folders of Python packages, the first part of the tags of their wheels, and a file of each.
const WHEELS: [(&str, &str, &str); 2] = [
    (".", "py3-none", ".data/scripts/plaincall"),
    ("python", "cp310-abi3", "plaincall/_plaincall.abi3.so"),
];
const CHECK_WHEEL: &str = "import sys, zipfile
tag, content, magic, folder, wheel = sys.argv[1:]
files = zipfile.ZipFile(wheel)
[about] = [name for name in files.namelist() if name.endswith('.dist-info/WHEEL')]
assert f'Tag: {tag}' in files.read(about).decode().splitlines(), files.read(about)
[name] = [name for name in files.namelist() if name.endswith(content)]
assert files.read(name).startswith(bytes.fromhex(magic)), name
files.extractall(folder)
print(f'{folder}/{name}')";

pub(crate) fn job() -> Job {
    Job::new("cross-builds", "Arm Linux and macOS", 400, test)
        .needs(&[python::UV])
        .gigabytes(4)
        .compiles()
}

fn test() -> Result<(), String> {
    let objdump = objdump()?;
    let archives = new_folder(&target().join("cross-builds/archives"))?;
    // The command of Arm Linux, which also writes the completions in the archives of macOS.
    let mut runs_here = None;
    if is_installed(ARM_LINUX) {
        let arm = Arm::new()?;
        let zig = ["--zig", "--compatibility", COMPATIBILITY];
        for (package, tag, content) in WHEELS {
            let tag = format!("{tag}-{LINUX_TAG}");
            let mut build = maturin(ARM_LINUX)?;
            let program = wheel(build.args(zig), package, &tag, content, ARM_ELF)?;
            check_glibc(Command::new(&objdump).arg("--dynamic-syms").arg(&program))?;
            if package == "." {
                let start = arm.start(&program)?;
                let (_, packed) = archive(&program, ARM_LINUX, &archives, Some(&start))?;
                runs_here = Some(start);
                let home = new_folder(&target().join("cross-builds/home"))?;
                check_example(&arm.start(&packed)?, &home)?;
            } else {
                arm.check_library(program.ancestors().nth(2).unwrap_or(&program))?;
            }
        }
    }
    let frameworks = frameworks()?;
    for (mac, system, magic) in MACS {
        if !is_installed(mac) {
            continue;
        }
        for (package, tag, content) in WHEELS {
            let mut build = maturin(mac)?;
            build.arg("--zig").env("RUSTFLAGS", &frameworks);
            build.env("MACOSX_DEPLOYMENT_TARGET", OLDEST_MACOS);
            let tag = format!("{tag}-{system}");
            let program = wheel(&mut build, package, &tag, content, magic)?;
            check_mac(&objdump, &program)?;
            if let (".", Some(start)) = (package, &runs_here) {
                archive(&program, mac, &archives, Some(start))?;
            }
        }
    }
    Ok(())
}

/// Returns Rust's own program that reads the files of all systems.
fn objdump() -> Result<PathBuf, String> {
    let mut add = command("rustup component add llvm-tools");
    step("llvm-tools", add.current_dir(root()))?;
    let libraries = output(command("rustc --print target-libdir").current_dir(root()))?;
    let libraries = Path::new(libraries.trim());
    Ok(libraries.with_file_name("bin").join("llvm-objdump"))
}

/// Builds the wheel of a package, checks its tag and the first bytes of its program or library, and returns the unpacked program.
pub(crate) fn wheel(
    build: &mut Command,
    package: &str,
    tag: &str,
    content: &str,
    magic: &str,
) -> Result<PathBuf, String> {
    let to = new_folder(&target().join("cross-builds").join(tag))?;
    build
        .arg("--out")
        .arg(&to)
        .current_dir(root().join(package));
    build.env("CARGO_PROFILE_DEV_DEBUG", "false");
    step(tag, build)?;
    let wheels = entries(&to)?;
    let mut check = command("python3 -c");
    check.args([CHECK_WHEEL, tag, content, magic]);
    let program = output(check.arg(&to).args(wheels))?;
    Ok(PathBuf::from(program.trim()))
}

/// A folder with a Python of Arm Linux, and the words that run its programs.
struct Arm {
    system: PathBuf,
    start: Vec<String>,
}

impl Arm {
    fn new() -> Result<Self, String> {
        if tools::of_system(QEMU).is_none() {
            tools::install(EMULATOR)?;
        }
        let system = tools::debian_system(ARM, PYTHON)?;
        let start = [QEMU, "-L", &system.display().to_string()].map(str::to_owned);
        let start = start.into();
        Ok(Self { system, start })
    }

    /// Returns the words that run a program, in any folder.
    fn start(&self, program: &Path) -> Result<Vec<String>, String> {
        step("executable", command("chmod +x").arg(program))?;
        let program = std::path::absolute(program).map_err(at(program))?;
        Ok([&self.start[..], &[program.display().to_string()]].concat())
    }

    /// Parses a reply with the library in this folder.
    fn check_library(&self, folder: &Path) -> Result<(), String> {
        let mut python = Command::new(QEMU);
        python.args(&self.start[1..]);
        python.arg(self.system.join("usr/bin").join(PYTHON));
        python.args(["-B", "-c", LIBRARY]).env("PYTHONPATH", folder);
        step("the library under qemu", &mut python)
    }
}

/// Writes files that name the frameworks, and returns the flags to link with them. The system finds the symbols when it starts a program.
fn frameworks() -> Result<String, String> {
    let folder = new_folder(&target().join("frameworks"))?;
    for name in FRAMEWORKS {
        let file = folder.join(format!("{name}.framework/{name}.tbd"));
        let library = framework(name);
        let text = format!(
            "--- !tapi-tbd\ntbd-version: 4\ntargets: [ x86_64-macos, arm64-macos ]\ninstall-name: '{library}'\nexports: []\n...\n"
        );
        write(&file, text)?;
    }
    let folder = folder.display();
    Ok(format!(
        "-Clink-arg=-F{folder} -Clink-arg=-Wl,-undefined,dynamic_lookup"
    ))
}

/// Checks that a program or library needs only what every macOS has, from the oldest version on. Whether the frameworks have what it
/// calls shows only there.
fn check_mac(objdump: &Path, program: &Path) -> Result<(), String> {
    let mut show = Command::new(objdump);
    show.args(["--macho", "--private-headers", "--dylibs-used"]);
    let shown = output(show.arg(program))?;
    let mut problems = Vec::new();
    let oldest = shown
        .lines()
        .find_map(|line| line.trim().strip_prefix("minos "));
    if oldest != Some(OLDEST_MACOS) {
        problems.push(format!(
            "its oldest macOS is {oldest:?}, not {OLDEST_MACOS}"
        ));
    }
    let used = shown.lines().filter_map(|line| {
        let (library, _) = line.split_once(" (compatibility version")?;
        // The first one is the name of a library itself.
        Some(library.trim()).filter(|library| !library.starts_with("@rpath/"))
    });
    let used: Vec<&str> = used.collect();
    if !used.contains(&MAC_LIBRARIES[0]) {
        problems.push(format!("no {} among {used:?}", MAC_LIBRARIES[0]));
    }
    let frameworks = FRAMEWORKS.map(framework);
    let is_known = |library: &str| {
        MAC_LIBRARIES.contains(&library) || frameworks.iter().any(|one| one == library)
    };
    let unknown = used.iter().filter(|library| !is_known(library));
    problems.extend(unknown.map(|library| format!("it needs {library}")));
    report!("== it links {}", used.join(", "));
    no_problems(&program.display().to_string(), &problems)
}

/// Returns the path of a framework's library on macOS.
fn framework(name: &str) -> String {
    format!("/System/Library/Frameworks/{name}.framework/Versions/A/{name}")
}
