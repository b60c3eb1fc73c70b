//! The Python package `plaincall`: its wheel, its types, its tests, and published clients that use it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::pool::{Job, Task};
use crate::step::{skipped, step};
use crate::workspace::{root, target};
use crate::{dist, python, suites};

const GROUP: &str = "python";
/// Only a test that hangs takes so long, in seconds.
const PATIENCE: [&str; 4] = ["-p", "no:cacheprovider", "-o", "faulthandler_timeout=600"];
/// The oldest Python and a newer one than most systems have, with the lists of what the tests need.
const VERSIONS: [(&str, &str); 2] = [("3.10", "oldest.txt"), ("3.13", "requirements.txt")];
const OTHERS: &str = "tests of the package with other versions of Python";
const PLUGINS: &str = "tool parsers in the code of vLLM and SGLang";

/// Returns the jobs of ordinary and nightly runs. The client libraries have an environment each: they need different versions of the same
/// packages.
pub(crate) fn jobs() -> Vec<Job> {
    vec![
        job(GROUP, "types of the package", 60, types),
        job(GROUP, "tests of the package", 100, package),
        job(GROUP, "clients of httpx2", 60, || clients("httpx2")),
        job(GROUP, "clients of httpx", 60, || clients("httpx")),
        job(GROUP, "tables", 60, tables).gigabytes(3),
        job("other-pythons", OTHERS, 200, other_pythons),
        job("engine-plugins", PLUGINS, 120, plugins).gigabytes(3),
        job("spark", "tables in Spark", 90, spark).gigabytes(6),
    ]
}

/// Returns the job that uses the package for some seconds. Nothing may grow.
pub(crate) fn soak(seconds: String) -> Job {
    let name = "soak of the Python package";
    job(name, name, 60, move || {
        let mut soak = Command::new(tools("python-tests")?.join("python"));
        soak.args(["-B", "test_process.py", &seconds]);
        step(name, soak.current_dir(tests()))
    })
}

/// Returns the job that compares the speed of the package with the parsers of vLLM and `SGLang`.
pub(crate) fn bench(arguments: Vec<String>) -> Job {
    let name = "speed of the Python package";
    job(name, name, 60, move || {
        let engines = folder().join("engines");
        let mut speed = Command::new(install_engines()?.join("python"));
        // Warnings of the published code about empty packages.
        speed.args(["-B", "-W", "ignore", "speed.py"]);
        step(name, speed.args(arguments).current_dir(engines))
    })
}

/// Returns the job of a group that asks a real model with `testing/testkit/model`, once with each of these arguments.
pub(crate) fn model(
    group: &'static str,
    runs: impl Fn() -> Vec<Vec<String>> + Send + 'static,
) -> Job {
    job(group, "a real model", 600, move || {
        let folder = root().join("testing/testkit/model");
        let runs = runs();
        let has_gemma = runs.iter().flatten().any(|word| word == "gemma3");
        let mut lists = vec!["requirements.txt"];
        lists.extend(has_gemma.then_some("gemma.txt"));
        let mut programs = PathBuf::new();
        for list in lists {
            programs = install_with(&["--no-deps"], &folder.join(list), "python-model")?;
        }
        runs.iter().try_for_each(|arguments| {
            let mut words = vec!["measure.py"];
            words.extend(arguments.iter().map(String::as_str));
            run("model", programs.join("python"), &words, &folder)
        })
    })
}

fn job(group: &'static str, name: &str, seconds: u32, work: impl Task) -> Job {
    let job = Job::new(group, name, seconds, move || {
        if dist::packages().is_some() {
            return work();
        }
        skipped("Python package", "it needs x86-64 Linux")
    });
    job.needs(&[dist::RELEASE, python::UV, suites::BUILD])
}

fn folder() -> PathBuf {
    root().join("python")
}

fn tests() -> PathBuf {
    folder().join("tests")
}

/// Installs the tools and the package into a folder, and returns that of the programs.
fn tools(folder: &str) -> Result<PathBuf, String> {
    install(&tests().join("requirements.txt"), folder)
}

/// Runs a program in a folder.
fn run(name: &str, program: PathBuf, arguments: &[&str], folder: &Path) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    // No compiled files in the sources.
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    step(name, command.env("PLAINCALL", suites::plaincall()))
}

fn pytest(name: &str, programs: &Path, files: &[&str], folder: &Path) -> Result<(), String> {
    let arguments = [&PATIENCE, files].concat();
    run(name, programs.join("pytest"), &arguments, folder)
}

/// Checks the wheel, the style, and the types of the package, of the tables and of the clients.
fn types() -> Result<(), String> {
    let (package, tests) = (folder(), tests());
    let tools = tools("python-types")?;
    let wheel = dist::packages().map(|packages| packages.folder.join(&packages.library));
    let wheel = wheel.unwrap_or_default().display().to_string();
    // Below `tests`, Python does not find the sources, which have no extension module.
    let configured = "--config pyproject.toml --no-cache .";
    let check = format!("ruff check {configured}");
    let format = format!("ruff format --check {configured}");
    let audit = ["--strict", "--assume-minimum-abi3", "3.10", &wheel];
    run("abi3audit", tools.join("abi3audit"), &audit, &tests)?;
    for (line, folder) in [
        (&*check, &package),
        (&*format, &package),
        ("stubtest plaincall._plaincall", &tests),
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        run(line, tools.join(words[0]), &words[1..], folder)?;
    }
    // The types of the engines are not checked: they are not installed here.
    check_types("package", &tools, &tools, &["plaincall", "tests"])
}

/// Checks the types of sources with the packages in `installed`.
fn check_types(name: &str, tools: &Path, installed: &Path, sources: &[&str]) -> Result<(), String> {
    let python = installed.join("python").display().to_string();
    let cache = target().join("python-types-cache").join(name);
    let cache = cache.display().to_string();
    let mypy = ["--python-executable", &python, "--cache-dir", &cache];
    for (tool, options) in [("mypy", &mypy[..]), ("pyright", &["--pythonpath", &python])] {
        let arguments = [options, sources].concat();
        let title = format!("{tool}, {name}");
        run(&title, tools.join(tool), &arguments, &folder())?;
    }
    Ok(())
}

fn package() -> Result<(), String> {
    let name = "tests of the package";
    pytest(name, &tools("python-tests")?, &[], &tests())
}

fn other_pythons() -> Result<(), String> {
    for (version, list) in VERSIONS {
        let Some(interpreter) = python::interpreter(version) else {
            skipped(&format!("Python {version}"), "it is not installed")?;
            continue;
        };
        let folder = target().join(format!("python-{version}"));
        let programs = python::install_for(&interpreter, &[], &tests().join(list), &folder)?;
        install_wheel(&programs)?;
        pytest(&format!("Python {version}"), &programs, &[], &tests())?;
    }
    Ok(())
}

/// Runs the tests of a file with its packages, and checks the types of sources with them.
fn suite(list: &str, environment: &str, file: &str, typed: &[&str]) -> Result<(), String> {
    let list = folder().join(list);
    let programs = install(&list, environment)?;
    if !typed.is_empty() {
        let tools = tools(&format!("{environment}-types"))?;
        check_types(environment, &tools, &programs, typed)?;
    }
    pytest(file, &programs, &[file], list.parent().unwrap_or(&list))
}

fn clients(library: &str) -> Result<(), String> {
    let (list, environment) = (
        format!("clients/{library}.txt"),
        format!("python-{library}"),
    );
    let file = format!("test_{library}.py");
    suite(&list, &environment, &file, &[&format!("clients/{file}")])
}

fn tables() -> Result<(), String> {
    suite(
        "data/requirements.txt",
        "python-data",
        "test_tables.py",
        &["data"],
    )
}

fn spark() -> Result<(), String> {
    if Command::new("java").arg("-version").output().is_err() {
        return skipped("tables in Spark", "they need Java");
    }
    suite("data/requirements.txt", "python-data", "test_spark.py", &[])
}

fn plugins() -> Result<(), String> {
    pytest(PLUGINS, &install_engines()?, &[], &folder().join("engines"))
}

/// Installs the published engines without a GPU, and returns the folder of the programs.
fn install_engines() -> Result<PathBuf, String> {
    let folder = folder().join("engines");
    let programs = install(&folder.join("requirements.txt"), "python-engines")?;
    let mut pip = python::pip(&programs, &["--no-deps"]);
    // The source package of vLLM installs in seconds if it has no kernels to compile; its wheel has hundreds of megabytes.
    pip.args(["--no-build-isolation", "--no-binary", "vllm"]);
    pip.env("PYTHONPATH", folder.join("build"));
    pip.env("VLLM_TARGET_DEVICE", "empty");
    pip.env("VLLM_VERSION_OVERRIDE", "0.33.0");
    let list = folder.join("without-dependencies.txt");
    step("vLLM and SGLang", pip.arg("--requirement").arg(list))?;
    Ok(programs)
}

/// Installs packages and the wheel, and returns the folder of the programs.
fn install(requirements: &Path, folder: &str) -> Result<PathBuf, String> {
    install_with(&[], requirements, folder)
}

fn install_with(options: &[&str], list: &Path, folder: &str) -> Result<PathBuf, String> {
    let programs = python::install_with(options, list, &target().join(folder))?;
    install_wheel(&programs)?;
    Ok(programs)
}

fn install_wheel(programs: &Path) -> Result<(), String> {
    let packages = dist::packages().ok_or("no wheel was built")?;
    let mut pip = python::pip(programs, &["--force-reinstall", "--no-deps", "--no-index"]);
    let wheel = packages.folder.join(&packages.library);
    step("wheel of the package", pip.arg(wheel))
}
