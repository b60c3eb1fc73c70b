//! The Python package `plaincall`: its wheel, its types, its tests, and published clients that use it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::command;
use crate::dist;
use crate::python;
use crate::step::{report, step};
use crate::workspace::{DIST, QUICK, cargo, new_folder, target};

/// The most time that everything after the builds and installations may take.
const DEADLINE: Duration = Duration::from_mins(10);
/// The client libraries whose clients have an environment each: they need different versions of the same packages.
const CLIENTS: [&str; 2] = ["httpx2", "httpx"];

/// Builds the wheel, and checks it in clean environments.
///
/// # Errors
/// Returns an error if something cannot be built or installed, or a check fails.
pub(crate) fn test(root: &Path, profile: &str) -> Result<(), String> {
    if !dist::is_supported() {
        report!("== Python package: SKIPPED, it needs x86-64 Linux");
        return Ok(());
    }
    lint()?;
    let package = root.join("python");
    let folder = new_folder(&target().join("python-package"))?;
    let wheel = folder.join(dist::wheel(&package, profile, &folder)?);
    let plaincall = std::path::absolute(command("release")?.join("plaincall"));
    let plaincall = plaincall.map_err(|error| error.to_string())?;
    let tests = package.join("tests");
    let tools = install(&tests.join("requirements.txt"), "python-tests", &wheel)?;
    let clients = CLIENTS.map(|library| {
        let list = package.join("clients").join(library).with_extension("txt");
        install(&list, &format!("python-{library}"), &wheel)
    });
    let engines = install_engines(&package.join("engines"), &wheel)?;
    let data = package.join("data");
    let tables = install(&data.join("requirements.txt"), "python-data", &wheel)?;

    let begun = Instant::now();
    let run = |name: &str, program: PathBuf, arguments: &[&str], folder: &Path| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder);
        // No compiled files in the sources.
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        step(name, command.env("PLAINCALL", &plaincall))
    };
    let built = wheel.display().to_string();
    let audit = ["--strict", "--assume-minimum-abi3", "3.10", &built];
    run("abi3audit", tools.join("abi3audit"), &audit, &tests)?;
    let examples = "../examples/python";
    let configured = ["--config", "pyproject.toml", "--no-cache", ".", examples];
    let check = [&["check"], configured.as_slice()].concat();
    run("ruff", tools.join("ruff"), &check, &package)?;
    let format = [&["format", "--check"], configured.as_slice()].concat();
    run("ruff format", tools.join("ruff"), &format, &package)?;
    // The types of the engines are not checked: most of their packages are empty here.
    let checked = |name: &str, installed: &Path, sources: &[&str]| {
        let interpreter = installed.join("python").display().to_string();
        let cache = target().join("python-types").join(name);
        let cache = cache.display().to_string();
        let options = ["--python-executable", &interpreter, "--cache-dir", &cache];
        let types = [&options, sources].concat();
        run(
            &format!("mypy, {name}"),
            tools.join("mypy"),
            &types,
            &package,
        )?;
        let types = [&["--pythonpath", &interpreter], sources].concat();
        run(
            &format!("pyright, {name}"),
            tools.join("pyright"),
            &types,
            &package,
        )
    };
    checked("package", &tools, &["plaincall", "tests"])?;
    checked("data", &tables, &["data"])?;
    // Below, Python must not find the sources, which have no extension module.
    run(
        "stubtest",
        tools.join("stubtest"),
        &["plaincall._plaincall"],
        &tests,
    )?;
    let quiet = ["-p", "no:cacheprovider"];
    run("tests of the package", tools.join("pytest"), &quiet, &tests)?;
    for (library, installed) in CLIENTS.into_iter().zip(clients) {
        let installed = installed?;
        let file = format!("test_{library}.py");
        checked(library, &installed, &[&format!("clients/{file}")])?;
        let arguments = ["-p", "no:cacheprovider", &file];
        let name = format!("clients of {library}");
        let pytest = installed.join("pytest");
        run(&name, pytest, &arguments, &package.join("clients"))?;
    }
    let name = "plugins in the code of vLLM and SGLang";
    let pytest = engines.join("pytest");
    run(name, pytest, &quiet, &package.join("engines"))?;
    let alone = ["-p", "no:cacheprovider", "test_tables.py"];
    run("tables", tables.join("pytest"), &alone, &data)?;
    if Command::new("java").arg("-version").output().is_ok() {
        let alone = ["-p", "no:cacheprovider", "test_spark.py"];
        run("tables in Spark", tables.join("pytest"), &alone, &data)?;
    } else {
        report!("== tables in Spark: SKIPPED, they need Java");
    }
    let seconds = begun.elapsed().as_secs_f64();
    report!("== Python package: {seconds:.0} s");
    if begun.elapsed() > DEADLINE {
        return Err(format!("the checks took longer than {DEADLINE:?}"));
    }
    Ok(())
}

/// Builds the wheel, and uses it for some seconds. Nothing may grow.
///
/// # Errors
/// Returns an error if something cannot be built or installed, or grows.
pub(crate) fn soak(root: &Path, seconds: &str) -> Result<(), String> {
    let package = root.join("python");
    let folder = new_folder(&target().join("python-package"))?;
    let wheel = folder.join(dist::wheel(&package, QUICK, &folder)?);
    let tests = package.join("tests");
    let tools = install(&tests.join("requirements.txt"), "python-tests", &wheel)?;
    let mut soak = Command::new(tools.join("python"));
    soak.args(["-B", "test_process.py", seconds]);
    step("soak of the Python package", soak.current_dir(tests))
}

/// Builds the wheel as a release does, and compares its speed with the parsers of vLLM and `SGLang`.
///
/// # Errors
/// Returns an error if something cannot be built, installed or run.
pub(crate) fn bench(root: &Path, arguments: &[&str]) -> Result<(), String> {
    let package = root.join("python");
    let folder = new_folder(&target().join("python-package"))?;
    let wheel = folder.join(dist::wheel(&package, DIST, &folder)?);
    let engines = package.join("engines");
    let programs = install_engines(&engines, &wheel)?;
    let mut speed = Command::new(programs.join("python"));
    // Warnings of the published code about empty packages.
    speed.args(["-B", "-W", "ignore", "speed.py"]);
    let name = "speed of the Python package";
    step(name, speed.args(arguments).current_dir(engines))
}

/// Installs the published engines without a GPU, and returns the folder of the programs.
fn install_engines(folder: &Path, wheel: &Path) -> Result<PathBuf, String> {
    let programs = install(&folder.join("requirements.txt"), "python-engines", wheel)?;
    let build = std::path::absolute(folder.join("build")).map_err(|error| error.to_string())?;
    let mut pip = python::pip(&programs, &["--no-deps", "--no-compile"]);
    // The source package of vLLM installs in seconds if it has no kernels to compile; its wheel has hundreds of megabytes.
    pip.args(["--no-build-isolation", "--no-binary", "vllm"]);
    pip.env("PYTHONPATH", build)
        .env("VLLM_TARGET_DEVICE", "empty")
        .env("VLLM_VERSION_OVERRIDE", "0.33.0");
    let list = folder.join("without-dependencies.txt");
    step("vLLM and SGLang", pip.arg("--requirement").arg(list))?;
    Ok(programs)
}

/// Lints the extension module, which the build of the workspace skips.
fn lint() -> Result<(), String> {
    let mut clippy = cargo(&["clippy", "--package", "plaincall-python", "--"]);
    step(
        "lints of the extension module",
        clippy.args(["--deny", "warnings"]),
    )
}

/// Installs packages and the wheel, and returns the folder of the programs.
fn install(requirements: &Path, folder: &str, wheel: &Path) -> Result<PathBuf, String> {
    let programs = python::install(requirements, &target().join(folder))?;
    let mut pip = python::pip(&programs, &["--force-reinstall", "--no-deps"]);
    step("wheel of the package", pip.arg("--no-index").arg(wheel))?;
    Ok(programs)
}
