//! Guided fuzzing: builds every target of `fuzz/` and lets each run for some seconds.
//!
//! It passes the compiler what `cargo fuzz build -s none` passes, so that nothing must be installed but a compiler of C++
//! for libFuzzer itself. Each target begins with what the last run found, and with seeds made of the specification's
//! examples and the payloads of `wire`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// How long each target runs if nothing is said, in seconds.
const SECONDS: u64 = 8;

/// What tells libFuzzer where a program has been.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
                     -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Builds and runs the targets that are named, or all.
///
/// # Errors
/// Names every target that found something, and the file with the input.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let (seconds, wanted) = match words.split_first() {
        Some((first, rest)) if first.parse::<u64>().is_ok() => {
            (first.parse().unwrap_or(SECONDS), rest)
        }
        _ => (SECONDS, words),
    };
    let folder = root.join("fuzz");
    let all = targets(&folder)?;
    if let Some(unknown) = wanted
        .iter()
        .find(|word| !all.iter().any(|one| one == *word))
    {
        return Err(format!(
            "there is no target `{unknown}`: {}",
            all.join(", ")
        ));
    }
    let is_wanted = |name: &String| wanted.is_empty() || wanted.contains(&name.as_str());
    let targets: Vec<String> = all.into_iter().filter(is_wanted).collect();
    if !has_compiler() {
        return Err("libFuzzer needs a compiler of C++, and none runs: install g++ or clang, or name one by CXX".to_owned());
    }
    let programs = build(root, &targets)?;
    println!("== fuzz: {} targets, {seconds} s each", targets.len());
    let begun = Instant::now();
    let seeds = crate::target().join("fuzz-seeds");
    seed(root, &seeds)?;
    let queue = Mutex::new(targets.iter());
    let found = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = queue.lock().map_or(None, |mut queue| queue.next());
            let Some(name) = next else { return };
            let ran = fuzz(&programs.join(name), name, &folder, &seeds, seconds);
            match ran {
                Ok(said) => println!("   {name}: {said}"),
                Err(error) => {
                    println!("{error}");
                    if let Ok(mut found) = found.lock() {
                        found.push(name.clone());
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    println!("== fuzz: {:.0} s", begun.elapsed().as_secs_f64());
    let found = found.into_inner().unwrap_or_default();
    if found.is_empty() {
        Ok(())
    } else {
        Err(format!("fuzzing found something: {}", found.join(", ")))
    }
}

/// Whether there is a compiler of C++.
pub(crate) fn has_compiler() -> bool {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let version = Command::new(compiler).arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

/// The names of the targets, in order.
fn targets(folder: &Path) -> Result<Vec<String>, String> {
    let folder = folder.join("fuzz_targets");
    let mut names: Vec<String> = entries(&folder)?
        .iter()
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Builds the targets; where their programs are.
fn build(root: &Path, targets: &[String]) -> Result<PathBuf, String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.map_err(|error| format!("rustc: {error}"))?;
    let output = String::from_utf8_lossy(&output.stdout);
    let host = output.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("`rustc -vV` names no host")?;
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let folder = crate::target().join("fuzz");
    let mut command = crate::cargo(&["build", "--quiet", "--release"]);
    // With a target, what is built to build with is not instrumented.
    command
        .args(["--manifest-path", "fuzz/Cargo.toml", "--target", host])
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", format!("{flags} {FLAGS}").trim())
        .env("CARGO_INCREMENTAL", "0")
        .current_dir(root);
    for target in targets {
        command.args(["--bin", target]);
    }
    crate::step("fuzz targets", &mut command)?;
    Ok(folder.join(host).join("release"))
}

/// Runs a target; what it says about the run.
fn fuzz(
    program: &Path,
    name: &str,
    folder: &Path,
    seeds: &Path,
    seconds: u64,
) -> Result<String, String> {
    let corpus = folder.join("corpus").join(name);
    let artifacts = folder.join("artifacts").join(name);
    let seeds = seeds.join(name);
    for made in [&corpus, &artifacts, &seeds] {
        make(made)?;
    }
    let mut command = Command::new(program);
    command
        .arg(&corpus)
        // What was found once is played each time.
        .args([&seeds, &artifacts])
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-dict={}", folder.join("markers.dict").display()))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(["-timeout=30", "-rss_limit_mb=1024", "-print_final_stats=1"])
        .stdin(Stdio::null());
    if seconds == SECONDS {
        // The share of every run draws the same numbers; what is looked for longer draws new ones.
        command.arg("-seed=1");
    }
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        let runs = said
            .lines()
            .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        return Ok(format!("{} runs", runs.unwrap_or("?").trim()));
    }
    let mut end: Vec<&str> = said.lines().rev().take(60).collect();
    end.reverse();
    Err(format!(
        "{}\n   {name} failed; play the input again with `{} {}/<file>`",
        end.join("\n"),
        program.display(),
        artifacts.display()
    ))
}

/// Writes what the targets begin with: the examples of the specification and what servers and clients send.
fn seed(root: &Path, seeds: &Path) -> Result<(), String> {
    let write = |target: &str, name: &str, choice: &[u8], text: &str| -> Result<(), String> {
        let folder = seeds.join(target);
        make(&folder)?;
        let path = folder.join(name);
        fs::write(&path, [choice, text.as_bytes()].concat())
            .map_err(|error| format!("{}: {error}", path.display()))
    };
    for file in entries(&root.join("spec"))? {
        let text = read(&file)?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let fences = text.split("\n```").skip(1).step_by(2);
        for (number, fence) in fences.enumerate() {
            let name = format!("{stem}-{number}");
            let fence = fence.split_once('\n').map_or(fence, |(_, text)| text);
            for target in ["parse_foreign", "escape_round_trip", "chunking"] {
                write(target, &name, &[0; 6], fence)?;
            }
            for (target, choice) in [
                ("gateway_reply", &[0, 0, 0, 7, 3][..]),
                ("gateway_reply", &[8 + 128, 4, 0, 7, 3]),
                ("gateway_request", &[0, 0, 2]),
            ] {
                write(target, &format!("{name}-{}", choice[0]), choice, fence)?;
            }
        }
    }
    for folder in entries(&root.join("crates/wire/tests/payloads"))? {
        if !folder.is_dir() {
            continue;
        }
        for file in entries(&folder)? {
            let text = read(&file)?;
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            let kind = folder.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{kind}-{name}");
            write("wire_round_trip", &name, &[], &text)?;
            write("event_stream", &name, &[255, 255, 7], &text)?;
            write("gateway_reply", &name, &[0, 32, 1, 7, 3], &text)?;
            write("gateway_request", &name, &[0, 0, 1], &text)?;
            for (number, data) in text
                .lines()
                .filter_map(|line| line.strip_prefix("data: "))
                .enumerate()
            {
                write("wire_round_trip", &format!("{name}-{number}"), &[], data)?;
            }
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("{}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    let paths: Result<Vec<PathBuf>, _> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    paths.map_err(failed)
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn make(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}
