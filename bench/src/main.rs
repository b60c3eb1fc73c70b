//! Measures the streaming parser: `cargo run --release -p plaincall-bench`.
//!
//! For each payload and chunk size the parser and a copy loop take turns on the same chunks; one table says how fast
//! they were, how often memory was asked for, and that nothing was lost. `README.md` says how to read it.

mod chunks;
mod clock;
mod copy_loop;
mod kept;
mod measure;
mod options;
mod payload;
mod prose;
mod reading;
mod table;

use std::error::Error;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use plaincall_syntax::Parser;

use crate::kept::Kept;
use crate::measure::{Effort, allocations, interleaved, median};
use crate::options::{HELP, Options};
use crate::payload::Payload;
use crate::reading::Mode;
use crate::table::{Line, Row, head, size_title};

/// What `--check` asks of block payloads at chunks of [`PROMISED_SIZE`]: so much of the copy loop's speed.
const PROMISED_RATIO: f64 = 0.2;
const PROMISED_SIZE: Option<usize> = Some(4);

const FULL: Effort = Effort {
    sample: Duration::from_millis(10),
    rounds: 11,
};
const QUICK: Effort = Effort {
    sample: Duration::from_millis(4),
    rounds: 7,
};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("plaincall-bench: {message}");
            return ExitCode::from(2);
        }
    };
    if options.help {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    if cfg!(debug_assertions) {
        eprintln!(
            "plaincall-bench: this is an unoptimised build, its figures say nothing; use cargo run --release"
        );
        if options.check {
            return ExitCode::from(2);
        }
    }
    match run(&options, &mut std::io::stdout()) {
        Ok(complaints) if complaints.is_empty() => ExitCode::SUCCESS,
        Ok(complaints) => {
            for complaint in complaints {
                eprintln!("plaincall-bench: {complaint}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("plaincall-bench: the table is not complete: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the table and returns what is wrong with it.
///
/// # Errors
/// The table could not be written, for instance because the program behind the pipe has ended.
fn run(options: &Options, out: &mut impl Write) -> Result<Vec<String>, Box<dyn Error>> {
    let effort = if options.quick { QUICK } else { FULL };
    let mut complaints = Vec::new();
    // The rows of the second mode are measured with those of the first, and printed after them.
    let mut later = Vec::new();
    writeln!(out, "{}", head())?;
    writeln!(out, "-- {}", Mode::Events.title())?;
    for payload in payload::all(options.quick) {
        if options
            .payload
            .as_deref()
            .is_some_and(|name| name != payload.name)
        {
            continue;
        }
        let parser = Parser::new(&payload.dialect)?;
        for size in chunks::SIZES {
            if options
                .chunk
                .as_ref()
                .is_some_and(|chunk| *chunk != size_title(size))
            {
                continue;
            }
            let chunks = chunks::cut(&payload.text, size);
            let kept = Kept::compare(&payload.parts, &reading::parts(&parser, &chunks));
            let [events, values] = measure(&payload, size, &chunks, &parser, effort);
            writeln!(out, "{}", Line(&events, &kept))?;
            let place = format!("{}, chunks of {}", payload.title, size_title(size));
            if let Some(difference) = &kept.difference {
                complaints.push(format!("LOST: {place}: {difference}"));
            }
            if options.check
                && payload.is_block()
                && size == PROMISED_SIZE
                && events.ratio < PROMISED_RATIO
            {
                complaints.push(format!(
                    "TOO SLOW: {place}: {:.3} of the copy loop, at least {PROMISED_RATIO} is promised",
                    events.ratio
                ));
            }
            later.push((values, kept));
        }
    }
    writeln!(out, "-- {}", Mode::Values.title())?;
    for (row, kept) in &later {
        writeln!(out, "{}", Line(row, kept))?;
    }
    Ok(complaints)
}

/// One row for each mode.
fn measure(
    payload: &Payload,
    size: Option<usize>,
    chunks: &[&str],
    parser: &Parser,
    effort: Effort,
) -> [Row; 2] {
    let copy = || copy_loop::read(chunks, payload.first_byte);
    let [events, values] = Mode::ALL.map(|mode| move || reading::read(parser, chunks, mode));
    let mut times = interleaved(effort, &[&copy, &events, &values]).into_iter();
    let bytes = float(payload.text.len());
    let speed = |times: &[Duration]| {
        median(
            times
                .iter()
                .map(|time| bytes / time.as_secs_f64() / 1e6)
                .collect(),
        )
    };
    let copy_times = times.next().unwrap_or_default();
    Mode::ALL.map(|mode| {
        let times = times.next().unwrap_or_default();
        let ratios = copy_times
            .iter()
            .zip(&times)
            .map(|(copy, time)| copy.div_duration_f64(*time));
        let count = allocations(|| reading::read(parser, chunks, mode));
        Row {
            payload: payload.title,
            size,
            speed: speed(&times),
            loop_speed: speed(&copy_times),
            ratio: median(ratios.collect()),
            allocations: float(usize::try_from(count).unwrap_or(usize::MAX)) * 1000.0 / bytes,
        }
    })
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a speed needs three digits, not sixteen"
)]
fn float(count: usize) -> f64 {
    count as f64
}
