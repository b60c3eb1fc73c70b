//! Tasks of the repository. `cargo xtask` lists them.
#![allow(
    clippy::disallowed_methods,
    reason = "a task is a program: it may ask where cargo is"
)]

mod clients;
mod deny;
mod departures;
mod fuzz;
mod instructions;
mod mcp;
mod mutants;
mod node;
mod notices;
mod oldest_rust;
mod passed;
mod peers;
mod promises;
mod repository_lints;
mod suites;
mod words;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// The profile of what is measured.
const DIST: &str = "dist";

const USAGE: &str = "\
cargo xtask TASK

  test          format, repository lints, lints and tests, less those that need sockets, a terminal or a build of their own; a
                test program that has passed before and has not changed since is not run again
  test --all    the same with all tests, and documents, single features, the oldest Rust, deny, clients, mcp, soak and fuzz
                (bindings join it when they exist)
  lint          the repository lints of `test` alone
  words         the words that the project does not use, in these files and folders: PATH…
  clients       published clients of OpenAI's API against the gateway; installs them, so it needs Python, Node and a network
  mcp           MCP's reference server and a published client against ours; installs them, so it needs Node and a network
  soak          the gateway for a while before a model's server that does everything wrong: nothing grows: [SECONDS]
  deny          licences, duplicates and sources of all packages by cargo deny and deny.toml, and known faults where their
                database can be reached; installs cargo-deny once, so it needs a network
  notices       writes THIRD-PARTY-NOTICES, which goes with binaries, anew; `test` fails if it is not up to date
  fuzz          fuzzes every target of fuzz/, or those that are named, each for some seconds: [--keep] [SECONDS] [TARGET…];
                with --keep what they found goes into fuzz/corpus
  mutants       changes `plan` and `syntax` in one place after another; a test must notice each: [plan|syntax] [ARGUMENTS…]
  bench         the parser's table of speed; arguments are passed on
  bench gateway what the gateway costs beside a bare proxy; with --release as `cargo install` builds it; arguments are passed on
  bench peers   the parser beside other parsers of tool calls; installs them, so it needs Node and a network
  instructions  instructions of the parser in seven small cases, now against a commit ([BASE], else where the branch left main):
                fails above 5 % more; wants valgrind, and builds its runner once
  promises      runs the proofs that take long and writes PROMISES.md; with a word, only those that hold it
  docs          writes docs/command-line.md and docs/configuration.md anew from the command itself
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test(false),
        ["test", "--all"] => test_all(),
        ["lint"] => repository_lints::check(&root()),
        ["words", paths @ ..] => words::list(&root(), paths),
        ["clients"] => clients::test(&root()),
        ["mcp"] => mcp::test(&root()),
        ["deny"] => deny::check(&root()),
        ["notices"] => notices::write(&root()),
        ["soak"] => soak("60"),
        ["soak", seconds] => soak(seconds),
        ["fuzz", rest @ ..] => fuzz::run(&root(), rest),
        ["mutants", rest @ ..] => mutants::run(&root(), rest),
        ["instructions"] => instructions::compare(&root(), None),
        ["instructions", base] => instructions::compare(&root(), Some(base)),
        ["bench", "gateway", "--release", rest @ ..] => bench_gateway("release", rest),
        ["bench", "gateway", rest @ ..] => bench_gateway(DIST, rest),
        ["bench", "peers"] => peers::bench(&root()),
        // Nothing is passed on to the peers.
        ["bench", rest @ ..] if rest.first() != Some(&"peers") => bench(rest),
        ["promises"] => promises::keep(&root(), None),
        ["promises", word] => promises::keep(&root(), Some(word)),
        ["docs"] => docs(),
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Where cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs one step, and says what it is and how long it took.
fn step(name: &str, command: &mut Command) -> Result<(), String> {
    println!("== {name}");
    let begun = Instant::now();
    let status = command
        .status()
        .map_err(|error| format!("{name}: {}: {error}", program(command.get_program())))?;
    println!("== {name}: {:.0} s", begun.elapsed().as_secs_f64());
    if status.success() {
        Ok(())
    } else {
        Err(format!("{name} failed"))
    }
}

fn program(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

fn test(all: bool) -> Result<(), String> {
    let begun = Instant::now();
    step("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    println!("== repository lints");
    repository_lints::check(&root())?;
    println!("== notices");
    notices::check(&root())?;
    suites::run(all)?;
    println!(
        "== everything passed in {:.0} s",
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}

/// A group of checks, of which `test --all` says how long it took.
type Group = fn() -> Result<(), String>;

/// Also what needs more than Rust.
fn test_all() -> Result<(), String> {
    let groups: [(&str, Group); 9] = [
        ("tests", || test(true)),
        ("documents", documents),
        ("features", features),
        ("oldest Rust", oldest_rust::check),
        ("deny", || deny::check(&root())),
        ("clients", || clients::test(&root())),
        ("mcp", || mcp::test(&root())),
        ("soak", || soak("24")),
        ("fuzz", || {
            if fuzz::has_compiler() {
                return fuzz::run(&root(), &[]);
            }
            println!("== fuzz: SKIPPED, there is no compiler of C++ for libFuzzer");
            Ok(())
        }),
    ];
    let mut minutes = Vec::new();
    for (name, run) in groups {
        let begun = Instant::now();
        run()?;
        minutes.push(format!(
            "{name} {:.1}",
            begun.elapsed().as_secs_f64() / 60.0
        ));
    }
    println!("== minutes: {}", minutes.join(", "));
    Ok(())
}

fn documents() -> Result<(), String> {
    let mut documents = cargo(&["doc", "--workspace", "--no-deps"]);
    step(
        "documents",
        documents.env("RUSTDOCFLAGS", "--deny warnings"),
    )
}

/// Checks crates with each of their features alone and with none; the workspace has them all.
fn features() -> Result<(), String> {
    let table = [
        ("plaincall", ["", "tokio"].as_slice()),
        ("plaincall-agent", &["", "http", "mcp", "builtin"]),
    ];
    for (package, features) in table {
        for feature in features {
            // `bench` turns on in dependencies what the workspace does, so those that are checked already serve here too.
            let mut check = cargo(&[
                "clippy",
                "--package",
                package,
                "--lib",
                "--no-default-features",
            ]);
            check.args(["--features", feature, "--", "--deny", "warnings"]);
            step(
                &format!("lints of {package} with `{feature}` alone"),
                &mut check,
            )?;
        }
    }
    Ok(())
}

fn bench(arguments: &[&str]) -> Result<(), String> {
    let run = [
        "run",
        "--profile",
        DIST,
        "--package",
        "plaincall-bench",
        "--",
    ];
    step("bench", cargo(&run).args(arguments))
}

fn bench_gateway(profile: &str, arguments: &[&str]) -> Result<(), String> {
    let measured = command(profile)?.join("plaincall-bench-gateway");
    step("bench gateway", Command::new(measured).args(arguments))
}

fn soak(seconds: &str) -> Result<(), String> {
    let folder = command("release")?;
    let mut soak = Command::new(folder.join("plaincall-bench-gateway"));
    soak.arg("soak").arg(folder.join("plaincall")).arg(seconds);
    step("soak", &mut soak)
}

/// Builds the command and what measures it by a profile, and returns where they are.
fn command(profile: &str) -> Result<PathBuf, String> {
    let both = [
        "--package",
        "plaincall-cli",
        "--package",
        "plaincall-bench-gateway",
    ];
    let mut build = cargo(&["build", "--profile", profile]);
    step(&format!("build of plaincall, {profile}"), build.args(both))?;
    Ok(target().join(profile))
}

fn docs() -> Result<(), String> {
    let write = [
        "test",
        "--package",
        "plaincall-cli",
        "--test",
        "tests",
        "reference::",
    ];
    step("docs", cargo(&write).env("SNAPSHOTS", "overwrite"))
}
