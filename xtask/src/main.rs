//! Tasks of the repository. `cargo xtask` lists them.
#![allow(
    clippy::disallowed_methods,
    reason = "a task is a program: it may ask where cargo is"
)]

mod browser;
mod clients;
mod cross_builds;
mod deny;
mod deployment;
mod dist;
mod engines;
mod fuzz;
mod groups;
mod inspector;
mod installed;
mod interface;
mod mutants;
mod node;
mod notices;
mod npm;
mod other_targets;
mod pictures;
mod pool;
mod promises;
mod python;
mod python_package;
mod release;
mod repository_lints;
mod restate;
mod site;
mod step;
mod suites;
mod tools;
mod wasm;
mod windows;
mod workspace;

use std::process::{Command, ExitCode};

use repository_lints::words;
use step::step;
use workspace::{CHECKED, DIST, RELEASE, cargo, root, target};

const USAGE: &str = "\
cargo xtask TASK

  test          formatting, repository lints, lints and tests, except tests that need sockets, a terminal or a separate build;
                a test program that passed before and has not changed is not run again
  test --all    all groups of tests and checks, and one nightly group, by the date: [GROUP…], or --minutes N to stop after N
                minutes with the table of what has ended. An unknown group lists all; CONTRIBUTING.md describes them
  test --nightly  what does not change daily: [GROUP…]
  lint          only the repository lints
  words         list banned words in these files and folders: PATH…
  GROUP…        short for `test --all GROUP…`
  python soak   use the wheel of the Python package for some seconds and check that nothing grows: SECONDS
  inspector build  build the inspector's page: target/inspector/inspector.html
  coding-agents run Claude Code, which you have installed, against the gateway: --claude-code PROGRAM
  engines       print how long grammars of 24 tools take: --figures
  restate       kill workers and servers under RESTATE_CASES conversations: --killed; print what a call costs: --cost
  soak          run the gateway with a faulty model server and check that nothing grows: SECONDS
  interface     rewrite the listings of public interfaces, crates/NAME/public-interface.txt: --overwrite
  notices       rewrite THIRD-PARTY-NOTICES; `test` fails if it is out of date
  fuzz          run the targets of fuzz/, each for some seconds: [--keep] [SECONDS] [TARGET…]; --keep adds new inputs
  mutants       mutate `plan` and `syntax`; a test must detect every mutant: [plan|syntax] [ARGUMENTS…]
  bench         measure the parser's speed; passes its arguments on
  bench gateway compare the gateway with a bare proxy; --release builds it like `cargo install`; passes its arguments on
  bench python  compare the Python package with the parsers of vLLM and SGLang, which it installs: [--rounds N] [--seconds S]
  bench npm     compare the npm package with other parsers in JavaScript, which it installs
  model         ask a real model questions that no one here wrote; passes its arguments on to testing/testkit/model/measure.py
  promises      run the slow proofs and write PROMISES.md; with a word, run only the promises that contain it: [WORD]
  dist          build what a release publishes for this platform into target/dist, with the profile `dist`
  installed dist  build it, install each file in a clean environment, and run the first example
  release       the dry run of a release: what the workflow does for a tag, except publishing
  docs          rewrite docs/command-line.md and docs/configuration.md from the command, and docs/measured-models.md and
                the defaults by model name from results/
  pictures      record the pictures of the README in docs/pictures from the real program (needs Chromium)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root();
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let quick = |job| groups::run_job(job, CHECKED);
    let slow = |job| groups::run_job(job, DIST);
    let done = match words.as_slice() {
        ["test"] => groups::run_ordinary(),
        ["test", "--all", "--minutes", minutes] => (minutes
            .parse()
            .map_err(|error| format!("--minutes {minutes}: {error}")))
        .and_then(|minutes| groups::run(&[], Some(minutes))),
        ["test", "--all", groups @ ..] => groups::run(groups, None),
        ["test", "--nightly", groups @ ..] => groups::run_nightly(groups),
        ["lint"] => repository_lints::check(&root),
        ["words", paths @ ..] => words::print(&root, paths),
        ["python", "soak", seconds] => quick(python_package::soak((*seconds).to_owned())),
        ["inspector", "build"] => groups::run(&[inspector::PAGE], None),
        ["coding-agents", "--claude-code", program] => {
            quick(clients::claude_code((*program).to_owned()))
        }
        ["engines", "--figures"] => quick(engines::figures()),
        ["restate", "--killed"] => quick(restate::measured("kills", "killed::")),
        ["restate", "--cost"] => quick(restate::measured("costs", "cost::")),
        ["interface", "--overwrite"] => interface::overwrite(&root),
        ["notices"] => notices::overwrite(&root),
        ["soak", seconds] => quick(groups::soak("soak", (*seconds).to_owned())),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["mutants", rest @ ..] => mutants::run(&root, rest),
        ["bench", "gateway", "--release", rest @ ..] => bench_gateway(RELEASE, rest),
        ["bench", "gateway", rest @ ..] => bench_gateway(DIST, rest),
        ["bench", "python", rest @ ..] => slow(python_package::bench(owned(rest))),
        ["model", rest @ ..] => {
            let rest = owned(rest);
            slow(python_package::model("model", move || vec![rest.clone()]))
        }
        ["bench", "npm"] => slow(npm::bench()),
        ["bench", rest @ ..] => bench(rest),
        ["promises"] => promises::keep(&root, None),
        ["promises", word] => promises::keep(&root, Some(word)),
        ["dist"] => slow(dist::job(DIST)),
        ["installed", "dist"] => slow(installed::job()),
        ["release"] => release::check(),
        ["docs"] => docs(),
        ["pictures"] => {
            groups::run(&[inspector::PAGE], None).and_then(|()| pictures::record(&root))
        }
        [first, ..] if !first.starts_with('-') => groups::run(&words, None),
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

fn bench(arguments: &[&str]) -> Result<(), String> {
    let run = format!("run --profile {DIST} --package plaincall-bench --");
    step("bench", cargo(&run).args(arguments))
}

fn bench_gateway(profile: &str, arguments: &[&str]) -> Result<(), String> {
    let both = "--package plaincall-cli --package plaincall-bench-gateway";
    let mut build = cargo(&format!("build --profile {profile} {both}"));
    step(&format!("build, {profile}"), &mut build)?;
    let measured = target().join(profile).join("plaincall-bench-gateway");
    step("bench gateway", Command::new(measured).args(arguments))
}

fn docs() -> Result<(), String> {
    let mut write = cargo("test --package plaincall-cli --test tests reference::");
    step("docs", write.env("SNAPSHOTS", "overwrite"))
}
