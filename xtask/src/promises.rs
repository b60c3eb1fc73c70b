//! The promises of the repository: what is said, how it is shown, and what the last run of it found.
//!
//! `cargo xtask promises` runs every command, which takes long, and writes `PROMISES.md` anew. A command that fails
//! breaks its promise, and then nothing is written. `cargo xtask promises WORD` runs those whose sentence holds the
//! word and writes nothing.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// One promise.
struct Promise {
    /// What is promised.
    sentence: &'static str,
    /// What is set for the command.
    environment: &'static [(&'static str, &'static str)],
    /// The command that shows it.
    command: &'static str,
    /// What begins the lines of its output that hold the figure.
    figure: &'static [&'static str],
}

const PROMISES: &[Promise] = &[
    Promise {
        sentence: "Every example of the specification, every transcript and every other text of the repository that holds a \
                   marker gives the same events cut at each place, by character and by byte, and at each pair of places; \
                   above 512 bytes at each place and in 10,000 random ways",
        environment: &[("ORACLE_SPLITS", "10000")],
        command: "cargo test --release --quiet --package plaincall-oracle --test tests contract::cuts -- --nocapture",
        figure: &["cuts:"],
    },
    Promise {
        sentence: "Every text of up to 8 tokens over alphabets of about seven, in each dialect, cut in two at each place, is \
                   read as the parser's oracle reads it, and its spans tile",
        environment: &[("ORACLE_TOKENS", "8")],
        command: "cargo test --release --quiet --package plaincall-oracle --test tests every_short_text -- --nocapture",
        figure: &["short texts:"],
    },
    Promise {
        sentence: "For 40 minutes on all cores, at least 100,000,000 random texts of markers with random options, markers and \
                   chunks are read as the parser's oracle reads them, with and without the fast path",
        environment: &[("ORACLE_MINUTES", "40"), ("ORACLE_CASES", "100000000")],
        command: "cargo test --release --quiet --package plaincall-oracle --test tests soup_is_read -- --nocapture",
        figure: &["soup:"],
    },
    Promise {
        sentence: "1,000,000 random conversations end as the plan's oracle says, and no limit is ever passed",
        environment: &[("PLAN_CASES", "1000000")],
        command: "cargo test --release --quiet --package plaincall-oracle --test tests plan::",
        figure: &["test result"],
    },
    Promise {
        sentence: "In a turn of 1,000,000 calls with three dependencies each, the plan visits no dependency more than \
                   twice",
        environment: &[],
        command: "cargo test --release --quiet --package plaincall-plan --lib three_dependencies -- --ignored",
        figure: &["test result"],
    },
    Promise {
        sentence: "Each change that mutation testing makes to the plan is noticed by a test, but for those that make no \
                   difference, which are listed with their reason",
        environment: &[],
        command: "cargo xtask mutants plan",
        figure: &["mutants of plan:"],
    },
    Promise {
        sentence: "Each change that mutation testing makes to the parser, and to what else is in its crate, is noticed by a \
                   test, but for those that make no difference, which are listed with their reason",
        environment: &[],
        command: "cargo xtask mutants syntax --jobs 2",
        figure: &["mutants of syntax:"],
    },
    Promise {
        sentence: "In 10,000 random conversations with gates, retries, limits, panics and cancelling each call ends once, \
                   with one result, and no task is left",
        environment: &[("RUN_CASES", "10000")],
        command: "cargo test --release --quiet --package plaincall --test tests every_call_ends_once",
        figure: &["test result"],
    },
    Promise {
        sentence: "A call costs less than 10 µs beside its tool, and 100,000 calls with three dependencies each are \
                   planned in less than 250 ms",
        environment: &[],
        command: "cargo run --profile dist --quiet --package plaincall-bench --bin runs",
        figure: &["with", "plan:"],
    },
    Promise {
        sentence: "Of 200,000 texts made of the parser's own literals there is none whose time, doubling after doubling, grows \
                   by more than 2.2 times: parser and byte door at chunks of 1, 4 and 64 bytes and whole, renderer, escape, near misses, \
                   calls and their JSON, coercion, pointers",
        environment: &[("HUNT_INPUTS", "200000")],
        command: "cargo test --release --quiet --package plaincall-testkit --lib no_text_takes -- --nocapture",
        figure: &["hunt:"],
    },
    Promise {
        sentence: "Guided fuzzing of five minutes for each property finds nothing: chunking does not matter, spans tile, \
                   the oracle agrees, what is rendered is read as the same call, the escape is reversible, no digit is \
                   lost, the deltas of JSON are its value",
        environment: &[],
        command: "cargo xtask fuzz 300 agrees_with_oracle chunking_does_not_matter coercion_loses_no_digit \
                  escape_is_reversible json_stream_equals_value render_then_parse spans_tile",
        figure: &[
            "agrees_with_oracle:",
            "chunking_does_not_matter:",
            "coercion_loses_no_digit:",
            "escape_is_reversible:",
            "json_stream_equals_value:",
            "render_then_parse:",
            "spans_tile:",
        ],
    },
    Promise {
        sentence: "Runs with tools that write are killed at 200 random moments and taken up again: nothing that was \
                   told is lost, nothing is started twice, every log opens",
        environment: &[("KILLS", "200")],
        command: "cargo test --release --quiet --package plaincall-cli --test tests killed_runs -- --nocapture",
        figure: &["killed"],
    },
    Promise {
        sentence: "A log that is cut at any byte is gone on with; so are the logs of 200 random conversations, cut at \
                   the edges of all lines",
        environment: &[],
        command: "cargo test --release --quiet --package plaincall --test tests resume:: -- --ignored",
        figure: &["test result"],
    },
    Promise {
        sentence: "In 20,000 interleavings of each of nine conversations nothing deadlocks, each call has one result, no \
                   limit is passed, and nothing is started or told before its line is safe",
        environment: &[("INTERLEAVINGS", "10000")],
        command: "cargo test --release --quiet --package plaincall-interleave --test interleavings",
        figure: &["test result"],
    },
    Promise {
        sentence: "10,000 calls of one reply sleep at the same time; each ends in its time, half of them by their timeout",
        environment: &[],
        command: "cargo run --release --quiet --package plaincall-bench --bin load -- sleeping",
        figure: &["sleeping"],
    },
    Promise {
        sentence: "1,000 runs of ten calls each go on at the same time",
        environment: &[],
        command: "cargo run --release --quiet --package plaincall-bench --bin load -- runs",
        figure: &["runs"],
    },
    Promise {
        sentence: "A command that prints 1 GiB is read to its end, and takes no more memory than its limit",
        environment: &[],
        command: "cargo run --release --quiet --package plaincall-bench --bin load -- output",
        figure: &["output"],
    },
    Promise {
        sentence: "At 0.4 of the speed of a loop that looks for one byte and copies, call-heavy text is read in chunks of 4 \
                   bytes and a long value in chunks of 64, events taken by `for_each`; prose in one chunk at 5 GB/s or a \
                   quarter of the speed of memmem; and values of 64 MiB as fast as short ones, in both syntaxes, with custom \
                   and keyed markers",
        environment: &[],
        command: "cargo run --profile dist --quiet --package plaincall-bench -- --check",
        figure: &[
            "kept: call-heavy",
            "kept: one long value",
            "kept: prose",
            "kept: values in block, keyed, chunks of 4:",
            "kept: values in emoji, keyed, chunks of 4:",
        ],
    },
    Promise {
        sentence: "A reply of 10 GiB is read in each syntax, every byte of its text and values comes back, and the whole \
                   program takes less than 8 MiB",
        environment: &[],
        command: "cargo run --release --quiet --package plaincall-bench --bin load -- stream",
        figure: &["stream"],
    },
    Promise {
        sentence: "No piece of text, reasoning or a value makes the parser ask for memory, a call at most once for each of its \
                   lines; a parser holds less than 4 KiB beside the longest line, and its markers, which its clones share, \
                   are less than 7 KiB",
        environment: &[],
        command: "cargo test --release --quiet --package plaincall-syntax --test tests memory:: -- --nocapture",
        figure: &["a parser holds"],
    },
    Promise {
        sentence: "1,000 streams stop in the middle of a call for ever; their turns end in their time all the same",
        environment: &[],
        command: "cargo run --release --quiet --package plaincall-bench --bin load -- stalled",
        figure: &["stalled"],
    },
    Promise {
        sentence: "100,000 random replies and 100,000 random conversations give a client of the gateway the calls that \
                   reading the whole texts finds, and the model those that the client sends back; 100,000 random servers \
                   and clients in memory get one end in time, no call that is not whole, and leave nothing behind",
        environment: &[("GATEWAY_CASES", "100000")],
        command: "cargo test --release --quiet --package plaincall-gateway --test tests replies::",
        figure: &["test result"],
    },
    Promise {
        sentence: "Replies of 100 MiB go through the gateway and less than 4 MiB of them are held, beside 200 bytes for \
                   each call",
        environment: &[],
        command: "cargo test --release --quiet --package plaincall-gateway --test tests long_replies -- --ignored \
                  --nocapture",
        figure: &["long reply"],
    },
    Promise {
        sentence: "Over sockets, 200 random servers that stall, break off, reset, refuse, send giant lines or what is no \
                   answer give a client of the gateway one end each, in time, and nothing is left open behind it",
        environment: &[("CHAOS_CASES", "200")],
        command: "cargo test --release --quiet --package plaincall-gateway --test tests serving::chaos",
        figure: &["test result"],
    },
    Promise {
        sentence: "10,000 random models, tools, gates and users: each question to an agent has one end in its time, no call \
                   runs twice, the model is told of each once and reads its own words byte for byte, and nothing is left \
                   behind, also where questions are cancelled or dropped; 1,000 sessions are cut off anywhere and go on",
        environment: &[("AGENT_CASES", "10000"), ("SESSION_CASES", "1000")],
        command: "cargo test --release --quiet --package plaincall-agent --test tests scenarios::seeds -- --nocapture",
        figure: &["random conversations", "test result"],
    },
    Promise {
        sentence: "The gateway answers at least half of the requests of a bare proxy, adds less than 0.3 ms to the first \
                   token, 0.1 ms to a delta and 0.2 ms to the end of an argument, takes less than 60 MB under 100 \
                   streams and 32 connections, and carries 2,000 streams at once",
        environment: &[],
        command: "cargo xtask bench gateway --check",
        figure: &["plaincall in short"],
    },
];

/// Runs the promises whose sentence holds `word`, or all, and writes the table of all.
pub(crate) fn keep(root: &Path, word: Option<&str>) -> Result<(), String> {
    let commit = said(
        Command::new("git").args(["rev-parse", "--short", "HEAD"]),
        root,
    )?;
    let date = said(Command::new("date").args(["-u", "+%Y-%m-%d"]), root)?;
    let machine = machine();
    let mut table = String::new();
    for promise in PROMISES {
        if word.is_some_and(|word| !promise.sentence.contains(word)) {
            continue;
        }
        println!("== {}", promise.sentence);
        let figure = show(promise, root)?;
        println!("   {figure}");
        let _ = writeln!(
            table,
            "| {} | {figure} | `{}` | {date} | {commit} |",
            promise.sentence,
            written(promise)
        );
    }
    if word.is_some() {
        return Ok(());
    }
    let page = format!(
        "# Promises\n\n\
         What Plaincall promises beyond its ordinary tests, the figure of the last run, and the command that shows it \
         again. `cargo xtask promises` writes this page; a promise that does not hold stops it. The figures are of one \
         run on {machine}, which had other work to do too.\n\n\
         | promise | figure | command | date | commit |\n\
         | --- | --- | --- | --- | --- |\n{table}"
    );
    fs::write(root.join("PROMISES.md"), page).map_err(|error| format!("PROMISES.md: {error}"))
}

/// Runs the command of a promise and returns its figure.
fn show(promise: &Promise, root: &Path) -> Result<String, String> {
    let mut words = promise.command.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command
        .args(words)
        .envs(promise.environment.iter().copied());
    let output = said(&mut command, root)?;
    let figures: Vec<String> = output
        .lines()
        .map(str::trim)
        .filter(|line| promise.figure.iter().any(|figure| line.starts_with(figure)))
        .map(in_short)
        .collect();
    if figures.is_empty() {
        return Err(format!("`{}` printed no figure", written(promise)));
    }
    Ok(figures.join("; "))
}

/// A line without what says nothing: of a test's result how many there were, and how long they took.
fn in_short(line: &str) -> String {
    let Some(result) = line.strip_prefix("test result: ok. ") else {
        return line.to_owned();
    };
    let parts = result.split("; ");
    let telling = parts.filter(|part| part.contains("passed") || part.contains("finished"));
    telling.collect::<Vec<_>>().join(", ")
}

/// What a command prints, if it ends well.
fn said(command: &mut Command, root: &Path) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() {
        Ok(text)
    } else {
        Err(format!("{name} failed:\n{text}"))
    }
}

/// The command as one types it.
fn written(promise: &Promise) -> String {
    let set = promise.environment.iter();
    let set = set.map(|(name, value)| format!("{name}={value} "));
    format!("{}{}", set.collect::<String>(), promise.command)
}

fn machine() -> String {
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let architecture = std::env::consts::ARCH;
    let system = std::env::consts::OS;
    format!("{count} cores ({architecture}, {system})")
}
