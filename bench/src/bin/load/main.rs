//! Puts runs under load: `cargo run --release -p plaincall-bench --bin load -- SCENARIO [SIZE]`.
//!
//! Each scenario checks that every call ended correctly and on time, and prints one line with its cost. Without
//! arguments, all scenarios run at a size that suits a test run.

mod memory;
#[path = "../../prose.rs"]
mod prose;
mod scenarios;
mod stream;

use std::process::{Command, ExitCode};

use scenarios::{SCENARIOS, Scenario};

const HELP: &str = "\
load [SCENARIO [SIZE]]

  sleeping   so many calls of one reply sleep at the same time; half of them are to time out
  runs       so many runs of ten calls each at the same time
  output     a command that prints so many MiB
  stalled    streams that stall in the middle of a call
  stream     a stream of so many MiB in each syntax, all of which is compared with what was written
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let played = match words.as_slice() {
        [] => SCENARIOS.iter().try_for_each(alone),
        ["--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        [name, size @ ..] => {
            let scenario = SCENARIOS.iter().find(|one| one.name == *name);
            let size = match size {
                [] => scenario.map(|one| one.full),
                [size] => size.parse().ok(),
                _ => None,
            };
            let Some((scenario, size)) = scenario.zip(size) else {
                eprint!("{HELP}");
                return ExitCode::from(2);
            };
            play(scenario, size)
        }
    };
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the reduced form of a scenario in a separate process, so that its memory can be measured.
fn alone(scenario: &Scenario) -> Result<(), String> {
    let size = scenario.small.to_string();
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let status = Command::new(program).args([scenario.name, &size]).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("{} failed", scenario.name)),
        Err(error) => Err(error.to_string()),
    }
}

fn play(scenario: &Scenario, size: usize) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let before = memory::now();
    let figure = runtime
        .block_on((scenario.play)(size))
        .map_err(|error| format!("{} {size}: {error}", scenario.name))?;
    let grown = match (before, memory::peak()) {
        (Some(before), Some(peak)) => {
            let grown = peak.saturating_sub(before);
            if grown > scenario.most_memory {
                return Err(format!(
                    "{} {size}: {} MiB of memory, at most {} are promised",
                    scenario.name,
                    grown >> 20,
                    scenario.most_memory >> 20
                ));
            }
            format!("{:.1} MiB of memory at most", mebibytes(grown))
        }
        _ => "memory cannot be measured here".to_owned(),
    };
    println!("{} {size}: {figure}; {grown}", scenario.name);
    Ok(())
}

#[allow(
    clippy::cast_precision_loss,
    reason = "no figure here has more than a few digits"
)]
fn mebibytes(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
