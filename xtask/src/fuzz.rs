//! Guided fuzzing: builds every target of `fuzz/` and runs each for some seconds.
//!
//! It uses the compiler flags of `cargo fuzz build -s none`, so it needs only a C++ compiler for libFuzzer. Each target
//! starts with the inputs in `fuzz/corpus`, those of earlier runs, and seeds from the specification's examples, the vectors
//! of native mode and the payloads of `wire`. New inputs stay in the build folder; `--keep` adds them, minimised, to the corpus.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

/// Returns the job that runs each target for some seconds.
pub(crate) fn job() -> Job {
    let job = Job::new("fuzz", "fuzz", 200, || {
        if has_compiler() {
            return run(&[]);
        }
        skipped("fuzz", "no C++ compiler for libFuzzer")
    });
    job.compiles()
}

/// Builds and runs the named targets, or all. With `--keep`, adds new inputs to the corpus.
///
/// # Errors
/// Lists the targets with a failing input, and the files of the inputs.
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
    if !has_compiler() {
        return Err("libFuzzer needs a C++ compiler: install g++ or clang, or set CXX".to_owned());
    }
    let programs = build(&targets)?;
    write_seeds(&new_folder(&target().join("fuzz-seeds"))?)?;
    report!("== fuzz: {} targets, {seconds} s each", targets.len());
    let mut failed = Vec::new();
    for few in targets.chunks(std::thread::available_parallelism().map_or(1, usize::from)) {
        let one = |name: &String| Target::new(&programs, name)?.run(seconds, keeps);
        let ran: Vec<Result<String, String>> = std::thread::scope(|scope| {
            let started = few.iter().map(|name| scope.spawn(move || one(name)));
            let started: Vec<_> = started.collect();
            let ended = started.into_iter().map(std::thread::ScopedJoinHandle::join);
            ended
                .map(|it| it.unwrap_or_else(|_| Err("it panicked".to_owned())))
                .collect()
        });
        for (name, ran) in few.iter().zip(ran) {
            match ran {
                Ok(summary) => report!("   {name}: {summary}"),
                Err(error) => failed.push(format!("{name}: {error}")),
            }
        }
    }
    no_problems("failing inputs:", &failed)
}

/// Returns whether there is a C++ compiler.
fn has_compiler() -> bool {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    succeeds(Command::new(compiler).arg("--version"))
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

/// A program and its folders.
struct Target {
    program: PathBuf,
    /// The corpus in the repository.
    corpus: PathBuf,
    /// Inputs from earlier runs.
    found: PathBuf,
    seeds: PathBuf,
    artifacts: PathBuf,
}

impl Target {
    fn new(programs: &Path, name: &str) -> Result<Self, String> {
        let folder = |place: PathBuf| {
            let folder = place.join(name);
            fs::create_dir_all(&folder).map_err(at(&folder))?;
            Ok::<_, String>(folder)
        };
        Ok(Self {
            program: programs.join(name),
            corpus: folder(root().join("fuzz/corpus"))?,
            found: folder(target().join("fuzz-found"))?,
            seeds: folder(target().join("fuzz-seeds"))?,
            artifacts: folder(root().join("fuzz/artifacts"))?,
        })
    }

    /// Runs the target and returns a summary.
    fn run(&self, seconds: u64, keeps: bool) -> Result<String, String> {
        let (program, artifacts) = (self.program.display(), self.artifacts.display());
        let dictionary = root().join("fuzz/markers.dict");
        let mut fuzz = Command::new(&self.program);
        // New inputs go into the first folder. Former failures are repeated in every run.
        fuzz.args([&self.found, &self.corpus, &self.seeds, &self.artifacts])
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-dict={}", dictionary.display()))
            .arg(format!("-artifact_prefix={artifacts}/"))
            .args(["-timeout=30", "-rss_limit_mb=1024", "-print_final_stats=1"])
            .stdin(Stdio::null());
        if seconds == SECONDS {
            // Short runs use the same seed; longer runs use new ones.
            fuzz.arg("-seed=1");
        }
        let output = fuzz.output().map_err(at(&self.program))?;
        let printed = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = printed.lines().collect();
        if !output.status.success() {
            let end = lines[lines.len().saturating_sub(60)..].join("\n");
            let again = format!("reproduce it with `{program} {artifacts}/<file>`");
            return Err(format!("{again}\n{end}"));
        }
        let runs = "stat::number_of_executed_units:";
        let runs = lines.iter().find_map(|line| line.strip_prefix(runs));
        let summary = format!("{} runs", runs.unwrap_or("?").trim());
        let kept = if keeps { self.keep()? } else { String::new() };
        Ok(summary + &kept)
    }

    /// Rewrites the corpus with a minimal set of inputs that keeps the coverage of all known ones. Returns a summary.
    fn keep(&self) -> Result<String, String> {
        let kept = new_folder(&self.found.with_extension("kept"))?;
        let mut merge = Command::new(&self.program);
        merge.args(MERGE.split(' ')).stdin(Stdio::null());
        output(merge.args([&kept, &self.corpus, &self.found, &self.seeds]))?;
        new_folder(&self.corpus)?;
        let (mut count, mut bytes) = (0, 0);
        for path in entries(&kept)? {
            let to = self.corpus.join(path.file_name().unwrap_or_default());
            bytes += fs::copy(&path, &to).map_err(at(&to))?;
            count += 1;
        }
        Ok(format!(", {count} inputs kept, {bytes} bytes"))
    }
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
    let vectors = read(&root().join("crates/call/tests/rescue/vectors.txt"))?;
    for vector in vectors.split("\n==== ").skip(1) {
        let text = without_first_line(vector);
        let text = text.split("---- found").next().unwrap_or(text);
        seed("rescue_loses_no_byte", &[7, 3], text)?;
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
