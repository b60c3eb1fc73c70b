//! Tasks of the repository. `cargo xtask` lists them.
#![allow(
    clippy::disallowed_methods,
    reason = "a task is a program: it may ask where cargo is"
)]

mod browser;
mod cargo_tool;
mod clients;
mod coding_agents;
mod debian;
mod deny;
mod deployment;
mod dist;
mod engines;
mod fuzz;
mod inspector;
mod installed;
mod instructions;
mod interface;
mod mcp;
mod mutants;
mod node;
mod notices;
mod npm;
mod oldest_rust;
mod other_parsers;
mod other_targets;
mod passed;
mod pictures;
mod promises;
mod python;
mod python_package;
mod repository_lints;
mod restate;
mod site;
mod step;
mod suites;
mod workspace;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use repository_lints::{links, words};
use step::step;
use workspace::{DIST, QUICK, cargo, root, target};

const USAGE: &str = "\
cargo xtask TASK

  test          formatting, repository lints, lints and tests, except tests that need sockets, a terminal or a separate build;
                a test program that passed before and has not changed is not run again
  test --all    all tests, documents, site, interface, single features, the oldest Rust, targets, deny, installed, browser,
                clients, Python, npm, inspector, coding agents, mcp, engines, Restate, soak, deployment and fuzz
  lint          only the repository lints
  words         list banned words in these files and folders: PATH…
  clients       run published clients of each API against the gateway; installs them (needs Python, Node and a network)
  python        build the wheel of the Python package, and check it with its tests, type checkers and published clients:
                [PROFILE] (default: release; needs x86-64 Linux, Python and a network); soak SECONDS instead uses it and checks
                that nothing grows
  npm           build the npm package, and test it in Node, Deno, Bun and Chromium, and with published clients (needs Node and a
                network)
  inspector     build the inspector's page in target/inspector, and test it in Chromium and in the command (needs Node and a
                network); `build` instead only builds it
  coding-agents run published coding agents against the gateway, without a network; installs them (needs x86-64 Linux, Node
                and a network); Claude Code only with --claude-code PROGRAM, which names an installed one
  mcp           run MCP's reference server and a published client against ours; installs them (needs Node and a network)
  engines       compare grammars in XGrammar and llama.cpp with llguidance; installs them (needs x86-64 Linux, Python, Node
                and a network); --figures instead prints how long grammars of 24 tools take
  restate       run the tests of durable runs with a published Restate server, which it installs (needs Node and a network);
                --killed instead kills workers and servers under RESTATE_CASES conversations, and --cost prints what a call costs
  soak          run the gateway with a faulty model server and check that nothing grows: [SECONDS]
  deployment    check the files of examples/gateway, and restart two gateways behind nginx under load: no request may fail (needs
                Python, and Debian or an installed nginx and promtool)
  targets       compile the crates without I/O for WebAssembly, and runs and the agent for Windows; installs the targets with
                rustup, or prints why it cannot
  deny          check licences, duplicates, sources and advisories of all packages with cargo deny and deny.toml; installs
                cargo-deny once (needs a network)
  interface     compare the public interface of each published crate with crates/NAME/public-interface.txt, which
                --overwrite rewrites
  notices       rewrite THIRD-PARTY-NOTICES; `test` fails if it is out of date
  fuzz          run the targets of fuzz/, each for some seconds: [--keep] [SECONDS] [TARGET…]; --keep adds new inputs to
                fuzz/corpus
  mutants       mutate `plan` and `syntax`; a test must detect every mutant: [plan|syntax] [ARGUMENTS…]
  bench         measure the parser's speed; passes its arguments on
  bench gateway compare the gateway with a bare proxy; --release builds it like `cargo install`; passes its arguments on
  bench parsers compare the parser with other parsers of tool calls; installs them (needs Node and a network)
  bench python  compare the Python package with the Python parsers of vLLM and SGLang; installs them (needs x86-64 Linux, Python
                and a network): [--rounds N] [--seconds S]
  bench npm     compare the npm package with other parsers in JavaScript, which it installs, and with a native addon (needs Node
                and a network)
  instructions  compare the parser's instruction counts in seven small cases with a commit: [BASE] (default: the merge base
                with main); fails above 5 % more; needs valgrind, and builds its runner once
  promises      run the slow proofs and write PROMISES.md; with a word, run only the promises that contain it: [WORD]
  dist          build what a release publishes into target/dist: an archive and two Python wheels for x86-64 Linux, and their
                checksums: [PROFILE]; installs maturin and zig (needs Python and a network)
  installed     build it, install each file in a clean environment, and run the first example: [PROFILE] (default: release,
                which is faster; needs Python and a network)
  browser       open the pages of `show` and `probe` in Chromium with the screen of a phone, and check that they can be read
                (needs Node and Chromium, which it installs on Debian)
  docs          rewrite docs/command-line.md and docs/configuration.md from the command, and docs/measured-models.md and
                the defaults by model name from results/
  pictures      record the pictures of the README in docs/pictures from the real program (needs Chromium)
  external-links
                request each external address in the pages; `test` checks only its form (needs curl and a network)
  site          build the documentation as a website in target/site; installs mdBook once (needs a network)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test"] => test(false),
        ["test", "--all"] => test_all(),
        ["lint"] => repository_lints::check(&root()),
        ["words", paths @ ..] => words::print(&root(), paths),
        ["clients"] => clients::test(&root()),
        ["python", "soak", seconds] => python_package::soak(&root(), seconds),
        ["npm"] => npm::test(&root()),
        ["inspector"] => inspector::test(&root()),
        ["inspector", "build"] => inspector::build(&root()).map(drop),
        ["bench", "npm"] => npm::bench(&root()),
        ["python"] => python_package::test(&root(), QUICK),
        ["python", profile] => python_package::test(&root(), profile),
        ["coding-agents"] => coding_agents::test(&root(), None),
        ["coding-agents", "--claude-code", program] => coding_agents::test(&root(), Some(program)),
        ["mcp"] => mcp::test(&root()),
        ["engines"] => engines::compare(&root()),
        ["engines", "--figures"] => engines::measure(&root()),
        ["restate"] => restate::test(&root()),
        ["restate", "--killed"] => restate::kill(&root()),
        ["restate", "--cost"] => restate::measure(&root()),
        ["targets"] => other_targets::check(),
        ["deny"] => deny::check(&root()),
        ["interface"] => interface::check(&root()),
        ["interface", "--overwrite"] => interface::write(&root()),
        ["notices"] => notices::write(&root()),
        ["soak"] => soak("60"),
        ["soak", seconds] => soak(seconds),
        ["deployment"] => deployment::check(&root()),
        ["fuzz", rest @ ..] => fuzz::run(&root(), rest),
        ["mutants", rest @ ..] => mutants::run(&root(), rest),
        ["instructions"] => instructions::compare(&root(), None),
        ["instructions", base] => instructions::compare(&root(), Some(base)),
        ["bench", "gateway", "--release", rest @ ..] => bench_gateway("release", rest),
        ["bench", "gateway", rest @ ..] => bench_gateway(DIST, rest),
        ["bench", "parsers"] => other_parsers::bench(&root()),
        ["bench", "python", rest @ ..] => python_package::bench(&root(), rest),
        // `parsers` takes no arguments.
        ["bench", rest @ ..] if rest.first() != Some(&"parsers") => bench(rest),
        ["promises"] => promises::keep(&root(), None),
        ["promises", word] => promises::keep(&root(), Some(word)),
        ["dist"] => dist::run(DIST),
        ["dist", profile] => dist::run(profile),
        ["installed"] => installed::test(QUICK),
        ["installed", profile] => installed::test(profile),
        ["browser"] => browser::check(&root()),
        ["docs"] => docs(),
        ["pictures"] => pictures::record(&root()),
        ["external-links"] => links::request_external(&root()),
        ["site"] => site::build(&root()),
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

/// A group of checks that `test --all` times.
type Group = fn() -> Result<(), String>;

/// Runs all tests, including those that need more than Rust.
fn test_all() -> Result<(), String> {
    let groups: [(&str, Group); 21] = [
        ("tests", || test(true)),
        ("documents", documents),
        ("site", || site::build(&root())),
        ("interface", || interface::check(&root())),
        ("features", features),
        ("oldest Rust", oldest_rust::check),
        ("other targets", other_targets::check),
        ("deny", || deny::check(&root())),
        ("installed", || installed::test(QUICK)),
        ("browser", || browser::check(&root())),
        ("clients", || clients::test(&root())),
        ("Python", || python_package::test(&root(), QUICK)),
        ("npm", || npm::test(&root())),
        ("inspector", || inspector::test(&root())),
        ("coding agents", || coding_agents::test(&root(), None)),
        ("mcp", || mcp::test(&root())),
        ("engines", || engines::compare(&root())),
        ("Restate", || restate::test(&root())),
        ("soak", || soak("24")),
        ("deployment", || deployment::check(&root())),
        ("fuzz", || {
            if fuzz::has_compiler() {
                return fuzz::run(&root(), &[]);
            }
            println!("== fuzz: SKIPPED, no C++ compiler for libFuzzer");
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
    documents.args(restate::EXCLUDED);
    step(
        "documents",
        documents.env("RUSTDOCFLAGS", "--deny warnings"),
    )
}

/// Checks crates with each feature alone and with none, and tests those that the workspace build does not enable.
fn features() -> Result<(), String> {
    let table = [
        ("plaincall", ["", "tokio"].as_slice()),
        ("plaincall-agent", &["", "http", "mcp", "builtin"]),
    ];
    for (package, features) in table {
        for feature in features {
            // `bench` enables the same features of dependencies as the workspace, so their build is reused.
            let mut check = cargo(&[
                "clippy",
                "--package",
                package,
                "--lib",
                "--no-default-features",
            ]);
            check.args(["--features", feature, "--", "--deny", "warnings"]);
            step(
                &format!("lints of {package} with only `{feature}`"),
                &mut check,
            )?;
        }
    }
    let mut example = cargo(&["test", "--package", "plaincall-table", "--doc"]);
    step("example of tables", &mut example)?;
    let mut parquet = cargo(&["test", "--package", "plaincall-cli"]);
    parquet.args(["--features", "parquet", "--test", "tests", "extract"]);
    step("Parquet", &mut parquet)
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

/// Builds the command and its benchmark with a profile, and returns their folder.
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
