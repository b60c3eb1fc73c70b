//! Guided fuzzing: builds every target of `fuzz/` and runs each for some seconds.
//!
//! It uses the compiler flags of `cargo fuzz build -s none`, so it needs only a C++ compiler for libFuzzer. Each target
//! starts with the inputs in `fuzz/corpus`, those of earlier runs, and seeds from the specification's examples, the vectors
//! of native mode and the payloads of `wire`. New inputs stay in the build folder; `--keep` adds them, minimised, to the corpus.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::pool::Job;
use crate::step::{output, report, skipped, step, succeeds};
use crate::workspace::{
    all_files, at, cargo, command, entries, files, has_extension, new_folder, no_problems, read,
    root, stem, target, write,
};

/// Default: how long each target runs, in seconds.
const SECONDS: u64 = 6;

/// Compiler flags for libFuzzer's coverage.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
                     -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares";

/// How to merge inputs. Hit counts are ignored; otherwise there would be ten times as many. Longer ones are truncated: new coverage is
/// mostly in their beginning.
const MERGE: &str = "-set_cover_merge=1 -use_counters=0 -max_len=1024";

/// The targets whose first byte selects the dialect, with that of the emoji syntax.
const DIALECTS: [(&str, u8); 5] = [
    ("agrees_with_oracle", 1),
    ("chunking_does_not_matter", 7),
    ("escape_is_reversible", 7),
    ("parse_untrusted", 7),
    ("spans_tile", 1),
];
/// The bytes before an example of the specification, and before a message of a server or client: they select options.
const EXAMPLES: [(&str, &[u8]); 4] = [
    ("render_then_parse", b"\0\0\0\0\0\0A\0i\0d\0x\0"),
    ("gateway_reply", &[0, 0, 0, 7, 3]),
    ("gateway_reply", &[8 + 128, 4, 0, 7, 3]),
    ("gateway_request", &[0, 0, 2]),
];
const MESSAGES: [(&str, &[u8]); 4] = [
    ("wire_round_trip", &[]),
    ("event_stream", &[255, 255, 7]),
    ("gateway_reply", &[0, 32, 1, 7, 3]),
    ("gateway_request", &[0, 0, 1]),
];

pub(crate) fn job() -> Job {
    let job = Job::new("fuzz", "fuzz", 200, || {
        let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
        if succeeds(Command::new(compiler).arg("--version")) {
            return run(&[]);
        }
        skipped("fuzz", "no C++ compiler for libFuzzer")
    });
    job.compiles()
}

/// Builds and runs the named targets, or all. With `--keep`, adds new inputs to the corpus.
pub(crate) fn run(words: &[&str]) -> Result<(), String> {
    let (keeps, words) = match words.split_first() {
        Some((&"--keep", rest)) => (true, rest),
        _ => (false, words),
    };
    let first = words.first().and_then(|word| word.parse().ok());
    let wanted = &words[usize::from(first.is_some())..];
    let seconds = first.unwrap_or(SECONDS);
    let sources = files(&root().join("fuzz/fuzz_targets"), "rs");
    let mut targets: Vec<String> = sources.iter().map(|path| stem(path)).collect();
    let is_known = |word: &&str| targets.iter().any(|name| name == *word);
    if let Some(unknown) = wanted.iter().find(|word| !is_known(word)) {
        let all = targets.join(", ");
        return Err(format!("there is no target `{unknown}`: {all}"));
    }
    targets.retain(|name| wanted.is_empty() || wanted.contains(&name.as_str()));
    let programs = build(&targets)?;
    write_seeds(&new_folder(&target().join("fuzz-seeds"))?)?;
    report!("== fuzz: {} targets, {seconds} s each", targets.len());
    let mut failed = Vec::new();
    for few in targets.chunks(std::thread::available_parallelism().map_or(1, usize::from)) {
        let start = |name: &String| start(&programs.join(name), &folders(name)?, seconds);
        let started = few.iter().map(start).collect::<Result<Vec<_>, _>>()?;
        for (name, process) in few.iter().zip(started) {
            let (program, folders) = (programs.join(name), folders(name)?);
            let kept = summary(process, &program, &folders).and_then(|summary| {
                let kept = if keeps {
                    keep(&program, &folders)?
                } else {
                    String::new()
                };
                Ok(summary + &kept)
            });
            match kept {
                Ok(summary) => report!("   {name}: {summary}"),
                Err(error) => failed.push(format!("{name}: {error}")),
            }
        }
    }
    no_problems("failing inputs:", &failed)
}

/// Builds the targets and returns the folder of their programs.
fn build(targets: &[String]) -> Result<PathBuf, String> {
    let version = output(&mut command("rustc -vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("`rustc -vV` names no host")?;
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let folder = target().join("fuzz");
    let mut build = cargo("build --quiet --release --manifest-path fuzz/Cargo.toml");
    // With `--target`, build scripts are not instrumented.
    build
        .args(["--target", host, "--target-dir"])
        .arg(&folder)
        .env("RUSTFLAGS", format!("{flags} {FLAGS}").trim())
        .env("CARGO_INCREMENTAL", "0")
        .args(targets.iter().flat_map(|target| ["--bin", target]));
    step("fuzz targets", &mut build)?;
    Ok(folder.join(host).join("release"))
}

/// Returns the folders of a target: for inputs of earlier runs, the corpus in the repository, the seeds, and inputs that failed.
fn folders(name: &str) -> Result<[PathBuf; 4], String> {
    let (target, fuzz) = (target(), root().join("fuzz"));
    let (found, seeds) = (target.join("fuzz-found"), target.join("fuzz-seeds"));
    let folders = [found, fuzz.join("corpus"), seeds, fuzz.join("artifacts")];
    let folders = folders.map(|folder| folder.join(name));
    for folder in &folders {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    Ok(folders)
}

/// Starts a target. Its messages go into a file beside its first folder.
fn start(program: &Path, folders: &[PathBuf; 4], seconds: u64) -> Result<Child, String> {
    let log = folders[0].with_extension("log");
    let dictionary = root().join("fuzz/markers.dict");
    let mut fuzz = Command::new(program);
    // New inputs go into the first folder. Former failures are repeated in every run.
    fuzz.args(folders)
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-dict={}", dictionary.display()))
        .arg(format!("-artifact_prefix={}/", folders[3].display()))
        .args(["-timeout=30", "-rss_limit_mb=1024", "-print_final_stats=1"]);
    if seconds == SECONDS {
        // Short runs use the same seed; longer runs use new ones.
        fuzz.arg("-seed=1");
    }
    fuzz.stdin(Stdio::null()).stdout(Stdio::null());
    fuzz.stderr(File::create(&log).map_err(at(&log))?);
    fuzz.spawn().map_err(at(program))
}

/// Waits for the end of a target, and returns a summary.
fn summary(mut process: Child, program: &Path, folders: &[PathBuf; 4]) -> Result<String, String> {
    let status = process.wait().map_err(at(program))?;
    let printed = fs::read(folders[0].with_extension("log")).map_err(at(program))?;
    let printed = String::from_utf8_lossy(&printed);
    let lines: Vec<&str> = printed.lines().collect();
    if status.success() {
        let runs = "stat::number_of_executed_units:";
        let runs = lines.iter().find_map(|line| line.strip_prefix(runs));
        return Ok(format!("{} runs", runs.unwrap_or("?").trim()));
    }
    let end = lines[lines.len().saturating_sub(60)..].join("\n");
    let (program, artifacts) = (program.display(), folders[3].display());
    Err(format!(
        "reproduce it with `{program} {artifacts}/<file>`\n{end}"
    ))
}

/// Rewrites the corpus with a minimal set of inputs that keeps the coverage of all known ones. Returns a summary.
fn keep(program: &Path, [found, corpus, seeds, _]: &[PathBuf; 4]) -> Result<String, String> {
    let kept = new_folder(&found.with_extension("kept"))?;
    let mut merge = Command::new(program);
    merge.args(MERGE.split(' ')).stdin(Stdio::null());
    output(merge.args([&kept, corpus, found, seeds]))?;
    new_folder(corpus)?;
    let (mut count, mut bytes) = (0, 0);
    for path in entries(&kept)? {
        let to = corpus.join(path.file_name().unwrap_or_default());
        bytes += fs::copy(&path, &to).map_err(at(&to))?;
        count += 1;
    }
    Ok(format!(", {count} inputs kept, {bytes} bytes"))
}

/// Writes the seeds: the examples of the specification, the vectors of native mode, and messages of servers and clients.
fn write_seeds(seeds: &Path) -> Result<(), String> {
    let mut count = 0;
    let mut seed = |target: &str, options: &[u8], text: &str| {
        count += 1;
        let path = seeds.join(target).join(count.to_string());
        write(&path, [options, text.as_bytes()].concat())
    };
    for file in files(&root().join("spec"), "md") {
        let is_emoji = stem(&file) == "emoji";
        let page = read(&file)?;
        for fence in page.split("\n```").skip(1).step_by(2) {
            let text = without_first_line(fence);
            for (target, emoji) in DIALECTS {
                let dialect = if is_emoji { emoji } else { 0 };
                seed(target, &[dialect, 0, 0, 0, 0, 0], text)?;
            }
            for (target, options) in EXAMPLES {
                seed(target, options, text)?;
            }
        }
    }
    for name in ["vectors.txt", "formats.txt"] {
        let vectors = read(&root().join("crates/reply/tests/rescue").join(name))?;
        for vector in vectors.split("\n==== ").skip(1) {
            let text = without_first_line(vector);
            let text = text.split("---- found").next().unwrap_or(text);
            seed("rescue_loses_no_byte", &[7, 3], text)?;
        }
    }
    let mut payloads = all_files(&root().join("crates/wire/tests/payloads"));
    payloads.retain(|path| !has_extension(path, "rs"));
    for file in payloads {
        let text = read(&file)?;
        for (target, options) in MESSAGES {
            seed(target, options, &text)?;
        }
        for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
            seed("wire_round_trip", &[], data)?;
        }
    }
    Ok(())
}

fn without_first_line(text: &str) -> &str {
    text.split_once('\n').map_or(text, |(_, rest)| rest)
}
