//! The promises of the repository: each with its command and the figure of the last run.
//!
//! `cargo xtask promises` runs every command, which takes long, and rewrites `PROMISES.md`. If a command fails, its promise
//! is broken and nothing is written. `cargo xtask promises WORD` runs the promises whose sentence contains the word, and
//! writes nothing.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// One promise.
struct Promise {
    /// The promise.
    sentence: &'static str,
    /// Environment variables for the command.
    environment: &'static [(&'static str, &'static str)],
    /// The command that checks it.
    command: &'static str,
    /// Prefixes of the output lines that contain the figure.
    figure: &'static [&'static str],
}

const PROMISES: &[Promise] = &[
    Promise {
        sentence: "Every example of the specification, every transcript and every other text of the repository that \
                   contains a marker gives the same events for every split in two, by character and by byte, and for \
                   every split in three; above 512 bytes for every split in two and for 10,000 random splits",
        environment: &[("ORACLE_SPLITS", "10000")],
        command: "cargo test --release --quiet --package plaincall-oracle --test tests contract::cuts -- --nocapture",
        figure: &["cuts:"],
    },
    Promise {
        sentence: "For every text of up to 8 tokens over alphabets of about seven, in each dialect and for every \
                   split in two, the parser agrees with its oracle, and the spans tile the text",
        environment: &[("ORACLE_TOKENS", "8")],
        command: "cargo test --release --quiet --package plaincall-oracle --test tests every_short_text -- --nocapture",
        figure: &["short texts:"],
    },
    Promise {
        sentence: "For at least 100,000,000 arbitrary texts with random options, markers and chunks, tested for 40 \
                   minutes on all cores, the parser agrees with its oracle, with and without the fast path",
        environment: &[("ORACLE_MINUTES", "40"), ("ORACLE_CASES", "100000000")],
        command: "cargo test --release --quiet --package plaincall-oracle --test tests arbitrary_texts_match -- --nocapture",
        figure: &["arbitrary texts:"],
    },
    Promise {
        sentence: "100,000 texts that llguidance wrote at random for each of 63 combinations of a syntax, a form of dialect and a \
                   choice, with 12,600 grammars of random schemas, parse, bind and validate without a problem that the \
                   grammar does not report",
        environment: &[
            ("GRAMMAR_CASES", "12600"),
            ("GRAMMAR_WALKS_CASES", "120000"),
        ],
        command: "cargo test --release --quiet --package plaincall-testkit --test tests grammar::walks -- --nocapture",
        figure: &["walks:"],
    },
    Promise {
        sentence: "1,000,000 random conversations end as in the plan's oracle, and no limit is ever exceeded",
        environment: &[("PLAN_CASES", "1000000")],
        command: "cargo test --release --quiet --package plaincall-oracle --test tests plan::",
        figure: &["test result"],
    },
    Promise {
        sentence: "In a turn of 1,000,000 calls with three dependencies each, the plan visits no dependency more \
                   than twice",
        environment: &[],
        command: "cargo test --release --quiet --package plaincall-plan --lib three_dependencies -- --ignored",
        figure: &["test result"],
    },
    Promise {
        sentence: "A test detects every mutant of the plan, except for equivalent ones, which are listed with their \
                   reason",
        environment: &[],
        command: "cargo xtask mutants plan",
        figure: &["mutants of plan:"],
    },
    Promise {
        sentence: "A test detects every mutant of the parser's crate, except for equivalent ones, which are listed \
                   with their reason",
        environment: &[],
        command: "cargo xtask mutants syntax --jobs 2",
        figure: &["mutants of syntax:"],
    },
    Promise {
        sentence: "In 10,000 random conversations with gates, retries, limits, panics and cancellation, each call \
                   ends once, with one result, and no task remains",
        environment: &[("RUN_CASES", "10000")],
        command: "cargo test --release --quiet --package plaincall --test tests every_call_ends_once",
        figure: &["test result"],
    },
    Promise {
        sentence: "The overhead of a call is less than 10 µs, and planning 100,000 calls with three dependencies \
                   each takes less than 250 ms",
        environment: &[],
        command: "cargo run --profile dist --quiet --package plaincall-bench --bin runs",
        figure: &["with", "plan:"],
    },
    Promise {
        sentence: "For 200,000 texts of the parser's own literals, no processing time grows by more than 2.2 times \
                   in several doublings in a row: parser and byte parser with chunks of 1, 4 and 64 bytes and whole, \
                   renderer, escape, near misses, calls and their JSON, calls as text, coercion, pointers",
        environment: &[("COMPLEXITY_INPUTS", "200000")],
        command: "cargo test --release --quiet --package plaincall-testkit --lib no_text_takes -- --nocapture",
        figure: &["complexity:"],
    },
    Promise {
        sentence: "Five minutes of guided fuzzing for each property find nothing: chunk boundaries do not matter, \
                   spans tile the input, the oracle agrees, a rendered call parses to the same call, the escape is \
                   reversible, no digit is lost, the JSON deltas form the value",
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
        sentence: "Runs with tools that write are killed at 200 random moments and resumed: no reported event is \
                   lost, nothing is started twice, every log opens",
        environment: &[("KILLS", "200")],
        command: "cargo test --release --quiet --package plaincall-cli --test tests killed_runs -- --nocapture",
        figure: &["killed"],
    },
    Promise {
        sentence: "1,000 conversations of random graphs run on three workers of Restate, while workers and the server are \
                   killed at random moments: each ends with the results of a run on one machine, no write is started twice, \
                   and every record is a log from which a run can be resumed",
        environment: &[("RESTATE_CASES", "1000")],
        command: "cargo xtask restate --killed",
        figure: &["restate kills:"],
    },
    Promise {
        sentence: "A run can be resumed from a log truncated at any byte, and from the logs of 200 random \
                   conversations, truncated at every line",
        environment: &[],
        command: "cargo test --release --quiet --package plaincall --test tests resume:: -- --ignored",
        figure: &["test result"],
    },
    Promise {
        sentence: "In 20,000 interleavings of each of nine conversations nothing deadlocks, each call has one \
                   result, no limit is exceeded, and nothing is started or reported before its line is durable",
        environment: &[("INTERLEAVINGS", "10000")],
        command: "cargo test --release --quiet --package plaincall-interleave --test interleavings",
        figure: &["test result"],
    },
    Promise {
        sentence: "10,000 calls of one reply sleep at the same time; each ends on time, half of them by timeout",
        environment: &[],
        command: "cargo run --release --quiet --package plaincall-bench --bin load -- sleeping",
        figure: &["sleeping"],
    },
    Promise {
        sentence: "1,000 runs of ten calls each proceed at the same time",
        environment: &[],
        command: "cargo run --release --quiet --package plaincall-bench --bin load -- runs",
        figure: &["runs"],
    },
    Promise {
        sentence: "The output of a command that prints 1 GiB is read to its end, and takes no more memory than its \
                   limit",
        environment: &[],
        command: "cargo run --release --quiet --package plaincall-bench --bin load -- output",
        figure: &["output"],
    },
    Promise {
        sentence: "With `for_each`, the parser has at least 0.4 of the speed of a loop that searches for one byte \
                   and copies, for call-heavy text in chunks of 4 bytes and for a long value in chunks of 64; at \
                   least 5 GB/s or a quarter of the speed of memmem for prose in one chunk; and values of 64 MiB are \
                   as fast as short ones, in both syntaxes, with custom and keyed markers",
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
        sentence: "The parser returns every byte of the text and values of a 10 GiB reply in each syntax, and the \
                   whole program takes less than 8 MiB",
        environment: &[],
        command: "cargo run --release --quiet --package plaincall-bench --bin load -- stream",
        figure: &["stream"],
    },
    Promise {
        sentence: "The parser does not allocate for a piece of text, reasoning or a value, and at most once per \
                   header or pointer line of a call; it buffers less than 4 KiB besides the longest line, and its \
                   markers, which its clones share, take less than 7 KiB",
        environment: &[],
        command: "cargo test --release --quiet --package plaincall-syntax --test tests memory:: -- --nocapture",
        figure: &["a parser holds"],
    },
    Promise {
        sentence: "1,000 streams stall in the middle of a call; their turns still end on time",
        environment: &[],
        command: "cargo run --release --quiet --package plaincall-bench --bin load -- stalled",
        figure: &["stalled"],
    },
    Promise {
        sentence: "For 100,000 random replies and 100,000 random conversations, a client of the gateway gets the \
                   calls of the whole texts, and the model gets the calls that the client sends back",
        environment: &[("GATEWAY_CASES", "100000")],
        command: "cargo test --release --quiet --package plaincall-gateway --test tests -- replies:: every_api:: \
                  --skip each_reply_ends_once",
        figure: &["test result"],
    },
    Promise {
        sentence: "In each API of the gateway, with 100,000 random servers and clients in memory, a client that obeys \
                   the API's rules strictly gets one end on time and no incomplete call, and nothing is left behind",
        environment: &[("GATEWAY_CASES", "100000")],
        command: "cargo test --release --quiet --package plaincall-gateway --test tests each_reply_ends_once -- --nocapture",
        figure: &["random servers:"],
    },
    Promise {
        sentence: "The gateway passes replies of 100 MiB and buffers less than 4 MiB of them, plus 200 bytes per \
                   call",
        environment: &[],
        command: "cargo test --release --quiet --package plaincall-gateway --test tests long_replies -- --ignored \
                  --nocapture",
        figure: &["long reply"],
    },
    Promise {
        sentence: "Over sockets, with 200 random servers that stall, truncate, reset, refuse, or send huge lines or \
                   invalid responses, a client of the gateway gets one end each, on time, and nothing stays open",
        environment: &[("CHAOS_CASES", "200")],
        command: "cargo test --release --quiet --package plaincall-gateway --test tests serving::chaos",
        figure: &["test result"],
    },
    Promise {
        sentence: "With 10,000 random models, tools, subagents, gates and users, each question to an agent has one \
                   end, on time; no call runs twice; the model gets each result once and its own text byte for \
                   byte; and nothing is left behind, even if questions are cancelled or dropped; 1,000 sessions \
                   are truncated anywhere and resumed, also within subagents; 200 conversations are killed while \
                   subagents work, at random moments, and resumed: no completed call or reply is repeated, and what no \
                   kill has truncated is the same as without a kill",
        environment: &[
            ("AGENT_CASES", "10000"),
            ("SESSION_CASES", "1000"),
            ("KILL_CASES", "200"),
        ],
        command: "cargo test --release --quiet --package plaincall-agent --test tests -- scenarios::seeds scenarios::killed --nocapture",
        figure: &["random conversations", "random kills", "test result"],
    },
    Promise {
        sentence: "In an hour of parsing, tools, repairs, calls and transports whose clients also disconnect, neither the memory \
                   nor the objects of a Python process grow",
        environment: &[],
        command: "cargo xtask python soak 3600",
        figure: &["python soak:"],
    },
    Promise {
        sentence: "The gateway has at least half of the throughput of a bare proxy, adds less than 0.3 ms to the \
                   first token, 0.1 ms to a delta and 0.2 ms to the end of an argument, takes less than 60 MB with \
                   100 streams and 32 connections, and serves 2,000 streams at once",
        environment: &[],
        command: "cargo xtask bench gateway --check",
        figure: &["plaincall in short"],
    },
];

/// Runs the promises whose sentence contains `word`, or runs all and writes the table.
pub(crate) fn keep(root: &Path, word: Option<&str>) -> Result<(), String> {
    let commit = output_of(
        Command::new("git").args(["rev-parse", "--short", "HEAD"]),
        root,
    )?;
    let date = output_of(Command::new("date").args(["-u", "+%Y-%m-%d"]), root)?;
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
         Plaincall's promises beyond its ordinary tests, with the figure of the last run and the command to repeat it. \
         `cargo xtask promises` writes this page, and fails if a promise does not hold. The figures are from one run on \
         {machine}, which also ran other work.\n\n\
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
    let output = output_of(&mut command, root)?;
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

/// Shortens the line of a test result to the number of tests and their time.
fn in_short(line: &str) -> String {
    let Some(result) = line.strip_prefix("test result: ok. ") else {
        return line.to_owned();
    };
    let parts = result.split("; ");
    let relevant = parts.filter(|part| part.contains("passed") || part.contains("finished"));
    relevant.collect::<Vec<_>>().join(", ")
}

/// Runs a command and returns its standard output. Fails if the command fails.
fn output_of(command: &mut Command, root: &Path) -> Result<String, String> {
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

/// Returns the command line, with its environment.
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
