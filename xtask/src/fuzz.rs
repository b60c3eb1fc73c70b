//! Guided fuzzing: builds every target of `fuzz/` and runs each for some seconds.
//!
//! It uses the compiler flags of `cargo fuzz build -s none`, so it needs only a C++ compiler for libFuzzer. Each target
//! starts with the inputs in `fuzz/corpus`, those of earlier runs, and seeds from the specification's examples, the vectors
//! of native mode and the payloads of `wire`. New inputs stay in the build folder; `--keep` adds them, minimised, to the corpus.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use crate::pool::Job;
use crate::step::{output, report, step};
use crate::workspace::{at, cargo, files, new_folder, read, target};

/// Default: how long each target runs, in seconds.
const SECONDS: u64 = 6;

/// The longest input that is kept, in bytes. Longer ones are truncated: new coverage is mostly in their beginning.
const LONGEST_KEPT: usize = 1024;

/// Compiler flags for libFuzzer's coverage.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
                     -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares";

/// The folders of one target.
struct Folders {
    /// The corpus in the repository.
    corpus: PathBuf,
    /// Inputs from earlier runs.
    found: PathBuf,
    seeds: PathBuf,
    artifacts: PathBuf,
}

impl Folders {
    fn new(root: &Path, name: &str) -> Result<Self, String> {
        let folder = |place: PathBuf| {
            let folder = place.join(name);
            fs::create_dir_all(&folder).map_err(at(&folder))?;
            Ok::<_, String>(folder)
        };
        Ok(Self {
            corpus: folder(root.join("fuzz/corpus"))?,
            found: folder(target().join("fuzz-found"))?,
            seeds: folder(target().join("fuzz-seeds"))?,
            artifacts: folder(root.join("fuzz/artifacts"))?,
        })
    }
}

/// Returns the job that runs each target for some seconds.
pub(crate) fn job() -> Job {
    let job = Job::new("fuzz", "fuzz", 200, || {
        if has_compiler() {
            return run(&crate::workspace::root(), &[]);
        }
        report!("== fuzz: SKIPPED, no C++ compiler for libFuzzer");
        Ok(())
    });
    job.compiles()
}

/// Builds and runs the named targets, or all. With `--keep`, adds new inputs to the corpus.
///
/// # Errors
/// Lists the targets with a failing input, and the files of the inputs.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let (keeps, words) = match words.split_first() {
        Some((&"--keep", rest)) => (true, rest),
        _ => (false, words),
    };
    let first = words.first().and_then(|word| word.parse().ok());
    let wanted = &words[usize::from(first.is_some())..];
    let seconds = first.unwrap_or(SECONDS);
    let folder = root.join("fuzz");
    let stem = |path: &PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
    let sources = files(&folder.join("fuzz_targets"), "rs");
    let mut targets: Vec<String> = sources.iter().filter_map(stem).collect();
    let is_known = |word: &&str| targets.iter().any(|name| name == *word);
    if let Some(unknown) = wanted.iter().find(|word| !is_known(word)) {
        let all = targets.join(", ");
        return Err(format!("there is no target `{unknown}`: {all}"));
    }
    targets.retain(|name| wanted.is_empty() || wanted.contains(&name.as_str()));
    if !has_compiler() {
        return Err("libFuzzer needs a C++ compiler: install g++ or clang, or set CXX".to_owned());
    }
    let programs = build(root, &targets)?;
    report!("== fuzz: {} targets, {seconds} s each", targets.len());
    let begun = Instant::now();
    seed(root, &target().join("fuzz-seeds"))?;
    let dictionary = folder.join("markers.dict");
    let queue = Mutex::new(targets.iter());
    let found = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = queue.lock().map_or(None, |mut queue| queue.next());
            let Some(name) = next else { return };
            let program = programs.join(name);
            let ran = Folders::new(root, name).and_then(|folders| {
                let summary = fuzz(&program, name, &folders, &dictionary, seconds)?;
                let kept = if keeps {
                    keep(&program, &folders)?
                } else {
                    String::new()
                };
                Ok(format!("{summary}{kept}"))
            });
            match ran {
                Ok(summary) => report!("   {name}: {summary}"),
                Err(error) => {
                    report!("{error}");
                    if let Ok(mut found) = found.lock() {
                        found.push(name.clone());
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    report!("== fuzz: {:.0} s", begun.elapsed().as_secs_f64());
    let found = found.into_inner().unwrap_or_default();
    if found.is_empty() {
        Ok(())
    } else {
        Err(format!("failing inputs: {}", found.join(", ")))
    }
}

/// Returns whether there is a C++ compiler.
pub(crate) fn has_compiler() -> bool {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let version = Command::new(compiler).arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

/// Builds the targets and returns the folder of their programs.
fn build(root: &Path, targets: &[String]) -> Result<PathBuf, String> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("`rustc -vV` names no host")?;
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let folder = target().join("fuzz");
    let mut command = cargo(&["build", "--quiet", "--release"]);
    // With `--target`, build scripts are not instrumented.
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
    step("fuzz targets", &mut command)?;
    Ok(folder.join(host).join("release"))
}

/// Runs a target and returns a summary.
fn fuzz(
    program: &Path,
    name: &str,
    folders: &Folders,
    dictionary: &Path,
    seconds: u64,
) -> Result<String, String> {
    let mut command = Command::new(program);
    command
        // New inputs go into the first folder.
        .args([&folders.found, &folders.corpus, &folders.seeds])
        // Former failures are repeated in every run.
        .arg(&folders.artifacts)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-dict={}", dictionary.display()))
        .arg(format!("-artifact_prefix={}/", folders.artifacts.display()))
        .args(["-timeout=30", "-rss_limit_mb=1024", "-print_final_stats=1"])
        .stdin(Stdio::null());
    if seconds == SECONDS {
        // Short runs use the same seed; longer runs use new ones.
        command.arg("-seed=1");
    }
    let output = command.output().map_err(at(program))?;
    let summary = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        let runs = summary
            .lines()
            .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        return Ok(format!("{} runs", runs.unwrap_or("?").trim()));
    }
    let mut end: Vec<&str> = summary.lines().rev().take(60).collect();
    end.reverse();
    Err(format!(
        "{}\n   {name} failed; reproduce it with `{} {}/<file>`",
        end.join("\n"),
        program.display(),
        folders.artifacts.display()
    ))
}

/// Rewrites the corpus with a minimal set of inputs that keeps the coverage of all known ones. Returns a summary.
///
/// Hit counts are ignored; otherwise there would be ten times as many inputs.
fn keep(program: &Path, folders: &Folders) -> Result<String, String> {
    let kept = new_folder(&folders.found.with_extension("kept"))?;
    let mut merge = Command::new(program);
    merge
        .args(["-set_cover_merge=1", "-use_counters=0"])
        .arg(format!("-max_len={LONGEST_KEPT}"))
        .args([&kept, &folders.corpus, &folders.found, &folders.seeds])
        .stdin(Stdio::null());
    output(&mut merge)?;
    new_folder(&folders.corpus)?;
    let (mut count, mut bytes) = (0, 0);
    for path in entries(&kept)? {
        let to = folders.corpus.join(path.file_name().unwrap_or_default());
        bytes += fs::copy(&path, &to).map_err(at(&to))?;
        count += 1;
    }
    Ok(format!(", {count} inputs kept, {bytes} bytes"))
}

/// Writes the seeds: the examples of the specification, the vectors of native mode, and messages of servers and clients.
fn seed(root: &Path, seeds: &Path) -> Result<(), String> {
    let write = |target: &str, name: &str, choice: &[u8], text: &str| -> Result<(), String> {
        let folder = seeds.join(target);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        let path = folder.join(name);
        fs::write(&path, [choice, text.as_bytes()].concat()).map_err(at(&path))
    };
    for file in files(&root.join("spec"), "md") {
        let text = read(&file)?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let fences = text.split("\n```").skip(1).step_by(2);
        for (number, fence) in fences.enumerate() {
            let name = format!("{stem}-{number}");
            let fence = fence.split_once('\n').map_or(fence, |(_, text)| text);
            // The first byte selects the dialect; this one is of the emoji syntax.
            for (target, emoji) in [
                ("agrees_with_oracle", 1),
                ("chunking_does_not_matter", 7),
                ("escape_is_reversible", 7),
                ("parse_untrusted", 7),
                ("spans_tile", 1),
            ] {
                let dialect = if stem == "emoji" { emoji } else { 0 };
                write(target, &name, &[dialect, 0, 0, 0, 0, 0], fence)?;
            }
            let call = format!("A\0i\0d\0x\0{fence}");
            write("render_then_parse", &name, &[0; 6], &call)?;
            for (target, choice) in [
                ("gateway_reply", &[0, 0, 0, 7, 3][..]),
                ("gateway_reply", &[8 + 128, 4, 0, 7, 3]),
                ("gateway_request", &[0, 0, 2]),
            ] {
                write(target, &format!("{name}-{}", choice[0]), choice, fence)?;
            }
        }
    }
    let vectors = read(&root.join("crates/call/tests/rescue/vectors.txt"))?;
    for (number, vector) in vectors.split("\n==== ").skip(1).enumerate() {
        let text = vector.split_once('\n').map_or(vector, |(_, text)| text);
        let (text, _) = text.split_once("---- found").unwrap_or((text, ""));
        let name = format!("vector-{number}");
        write("rescue_loses_no_byte", &name, &[7, 3], text)?;
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
            let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
            for (number, data) in data.enumerate() {
                write("wire_round_trip", &format!("{name}-{number}"), &[], data)?;
            }
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let paths: Result<Vec<PathBuf>, _> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect();
    paths.map_err(at(folder))
}
