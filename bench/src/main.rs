//! Measures the streaming parser: `cargo run --release -p plaincall-bench`.
//!
//! For each payload and chunk size, the parser and a copy loop take turns on the same chunks; for a text in one
//! chunk, so does the search for the start marker. Prints a table of speeds, allocations and losses. `README.md`
//! describes it.

mod chunks;
mod clock;
mod copy_loop;
mod kept;
mod lengths;
mod measure;
mod options;
mod payload;
mod promised;
mod prose;
mod reading;
mod replies;
mod table;

use std::cell::Cell;
use std::error::Error;
use std::hint::black_box;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use memchr::memmem;
use plaincall_syntax::Parser;

use crate::kept::Kept;
use crate::lengths::Values;
use crate::measure::{Effort, allocations, interleaved, median};
use crate::options::{HELP, Options};
use crate::payload::Payload;
use crate::promised::Verdict;
use crate::reading::Mode;
use crate::table::{Flatness, Line, Row, head, lengths_head, size_title};

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
            "plaincall-bench: the figures of an unoptimised build mean nothing; use cargo run --release"
        );
        if options.check {
            return ExitCode::from(2);
        }
    }
    match run(&options, &mut std::io::stdout()) {
        Ok(problems) if problems.is_empty() => ExitCode::SUCCESS,
        Ok(problems) => {
            for problem in problems {
                eprintln!("plaincall-bench: {problem}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("plaincall-bench: the table is not complete: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the table and returns its problems.
///
/// # Errors
/// Returns an error if the table could not be written, for example because the reader of the pipe has ended.
fn run(options: &Options, out: &mut impl Write) -> Result<Vec<String>, Box<dyn Error>> {
    let effort = if options.quick { QUICK } else { FULL };
    let mut problems = Vec::new();
    let mut verdicts = Vec::new();
    // The rows of the other modes are measured together with those of the first, and printed after them.
    let (mut in_loop, mut assembled) = (Vec::new(), Vec::new());
    writeln!(out, "{}", head())?;
    writeln!(out, "-- {}", Mode::Events.title())?;
    for payload in payload::all(options.quick) {
        if !options.wants(payload.name) {
            continue;
        }
        let parser = Parser::new(&payload.dialect)?;
        for size in chunks::SIZES {
            if !options.wants_size(size) {
                continue;
            }
            let chunks = chunks::cut(&payload.text, size);
            let kept = Kept::compare(&payload.parts, &reading::parts(&parser, &chunks));
            let [events, looped, values] = measure(&payload, size, &chunks, &parser, effort);
            writeln!(out, "{}", Line(&events, &kept))?;
            if let Some(difference) = &kept.difference {
                let size = size_title(size);
                let title = payload.title;
                problems.push(format!("LOST: {title}, chunks of {size}: {difference}"));
            }
            verdicts.extend(Verdict::of_row(payload.name, &events));
            in_loop.push((looped, kept.clone()));
            assembled.push((values, kept));
        }
    }
    for (mode, rows) in [(Mode::EventsInLoop, in_loop), (Mode::Values, assembled)] {
        writeln!(out, "-- {}", mode.title())?;
        for (row, kept) in &rows {
            writeln!(out, "{}", Line(row, kept))?;
        }
    }
    verdicts.extend(print_replies(options, effort, out, &mut problems)?);
    if options.wants(options::LENGTHS) {
        let rows = print_lengths(options, effort, out, &mut problems)?;
        verdicts.extend(rows.iter().flat_map(Verdict::of_lengths));
    }
    if options.check {
        for verdict in &verdicts {
            writeln!(out, "{verdict}")?;
        }
        let broken = verdicts.iter().filter(|verdict| !verdict.is_kept);
        problems.extend(broken.map(Verdict::to_string));
    }
    Ok(problems)
}

/// Prints the rows of the parser and the reader of replies, on the same chunks. Returns what was promised about them.
fn print_replies(
    options: &Options,
    effort: Effort,
    out: &mut impl Write,
    problems: &mut Vec<String>,
) -> Result<Vec<Verdict>, Box<dyn Error>> {
    let mut verdicts = Vec::new();
    writeln!(out, "-- the parser and the reader of replies")?;
    writeln!(out, "{}", replies::head())?;
    let wanted = payload::all(options.quick)
        .into_iter()
        .filter(|payload| replies::PAYLOADS.contains(&payload.name) && options.wants(payload.name));
    for payload in wanted {
        let parser = Parser::new(&payload.dialect)?;
        let reader = replies::reader(&payload.dialect)?;
        for size in replies::SIZES {
            if !options.wants_size(size) {
                continue;
            }
            let chunks = chunks::cut(&payload.text, size);
            let parse = || reading::read(&parser, &chunks, Mode::Events);
            let read = || {
                black_box(replies::read(&reader, &chunks));
            };
            let times = interleaved(effort, &[&parse, &read]);
            let [parsed, read_times] = [0, 1].map(|run| times.get(run).map_or(&[][..], |of| of));
            let bytes = float(payload.text.len());
            let count = allocations(read);
            let row = replies::Row {
                payload: payload.title,
                size,
                chunks: float(chunks.len()),
                bytes,
                parser: bytes / 1e6 / speed(payload.text.len(), parsed),
                reader: bytes / 1e6 / speed(payload.text.len(), read_times),
                times: share(read_times, parsed),
                allocations: float(usize::try_from(count).unwrap_or(usize::MAX)) * 1e3 / bytes,
                calls: replies::read(&reader, &chunks),
                calls_expected: replies::calls_in(&payload),
            };
            writeln!(out, "{row}")?;
            verdicts.extend(Verdict::of_reply(payload.name, &row));
            if row.calls != row.calls_expected {
                let (title, size) = (payload.title, size_title(size));
                problems.push(format!("LOST: calls of {title}, chunks of {size}"));
            }
        }
    }
    Ok(verdicts)
}

/// Prints the rows of values of growing length; events are consumed and nothing is assembled.
fn print_lengths(
    options: &Options,
    effort: Effort,
    out: &mut impl Write,
    problems: &mut Vec<String>,
) -> Result<Vec<Flatness>, Box<dyn Error>> {
    let lengths = if options.quick {
        lengths::QUICK_LENGTHS
    } else {
        lengths::LENGTHS
    };
    let effort = Effort {
        rounds: effort.rounds / 2,
        ..effort
    };
    writeln!(out, "-- MB/s by the length of a value, nothing assembled")?;
    writeln!(out, "{}", lengths_head(&lengths))?;
    let mut rows = Vec::new();
    for (name, dialect, syntax) in lengths::dialects() {
        let values = lengths.map(|length| Values::new(&dialect, syntax, length));
        let values = values.into_iter().collect::<Result<Vec<_>, _>>()?;
        for size in lengths::SIZES {
            if !options.wants_size(size) {
                continue;
            }
            let chunks = values.iter().map(|values| values.chunks(size));
            let chunks: Vec<_> = chunks.collect();
            let is_whole = Cell::new(true);
            let runs: Vec<_> = values
                .iter()
                .zip(&chunks)
                .map(|(values, chunks)| {
                    let is_whole = &is_whole;
                    move || is_whole.set(values.read(chunks) && is_whole.get())
                })
                .collect();
            let runs: Vec<&dyn Fn()> = runs.iter().map(|run| run as &dyn Fn()).collect();
            let times = interleaved(effort, &runs);
            let speeds = values
                .iter()
                .zip(&times)
                .map(|(values, times)| best_speed(values.len(), times));
            let row = Flatness {
                dialect: name,
                size,
                speeds: speeds.collect(),
            };
            writeln!(out, "{row}")?;
            rows.push(row);
            if !is_whole.get() {
                let size = size_title(size);
                problems.push(format!("LOST: values in {name}, chunks of {size}"));
            }
        }
    }
    Ok(rows)
}

/// Returns one row for each mode.
fn measure(
    payload: &Payload,
    size: Option<usize>,
    chunks: &[&str],
    parser: &Parser,
    effort: Effort,
) -> [Row; 3] {
    let copy = || copy_loop::read(chunks, payload.first_byte);
    let readings = Mode::ALL.map(|mode| move || reading::read(parser, chunks, mode));
    let finder = memmem::Finder::new(payload.start);
    let search = || {
        black_box(finder.find_iter(payload.text.as_bytes()).count());
    };
    let mut runs: Vec<&dyn Fn()> = vec![&copy];
    runs.extend(readings.iter().map(|reading| reading as &dyn Fn()));
    if size.is_none() {
        runs.push(&search);
    }
    let mut times = interleaved(effort, &runs).into_iter();
    let copy_times = times.next().unwrap_or_default();
    let mode_times = Mode::ALL.map(|_| times.next().unwrap_or_default());
    let search_times = times.next();
    let bytes = payload.text.len();
    let mut mode_times = mode_times.into_iter();
    Mode::ALL.map(|mode| {
        let times = mode_times.next().unwrap_or_default();
        let count = allocations(|| reading::read(parser, chunks, mode));
        Row {
            payload: payload.title,
            size,
            speed: speed(bytes, &times),
            loop_speed: speed(bytes, &copy_times),
            ratio: share(&copy_times, &times),
            search: search_times
                .as_ref()
                .map(|search| (speed(bytes, search), share(search, &times))),
            allocations: float(usize::try_from(count).unwrap_or(usize::MAX)) * 1000.0
                / float(bytes),
        }
    })
}

/// Returns millions of bytes per second in the fastest round. Lengths are compared by the parser's best speed,
/// because other load slows nearly every round of the longest value.
fn best_speed(bytes: usize, times: &[Duration]) -> f64 {
    let best = times.iter().min().copied().unwrap_or_default();
    float(bytes) / best.as_secs_f64() / 1e6
}

/// Returns millions of bytes per second, the median of the rounds.
fn speed(bytes: usize, times: &[Duration]) -> f64 {
    let speeds = times
        .iter()
        .map(|time| float(bytes) / time.as_secs_f64() / 1e6);
    median(speeds.collect())
}

/// Returns the ratio of both speeds, round by round.
fn share(of: &[Duration], times: &[Duration]) -> f64 {
    let shares = of.iter().zip(times);
    median(
        shares
            .map(|(of, time)| of.div_duration_f64(*time))
            .collect(),
    )
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a speed needs three digits, not sixteen"
)]
fn float(count: usize) -> f64 {
    count as f64
}
