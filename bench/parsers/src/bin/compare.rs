//! Compares Plaincall's parser with others and prints one table: `compare FOLDER`.
//!
//! FOLDER contains `llmist.mjs` and its packages; the payloads for it are written there. The exit status is 1 if
//! Plaincall does not keep its promised lead.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use plaincall_bench_parsers::formats::Format;
use plaincall_bench_parsers::kept::Kept;
use plaincall_bench_parsers::logical::{self, Logical};
use plaincall_bench_parsers::measure::best;
use plaincall_bench_parsers::readers::Reader;
use plaincall_bench_parsers::table::{HEAD, Row, size_title};
use plaincall_bench_parsers::{SIZES, cut};
use serde_json::{Value, json};

/// The goal: the minimum speed-up over the best other Rust parser of tool calls, on the first payload.
const AIM: f64 = 10.0;
const PROMISED_PAYLOAD: &str = "calls";
/// The minimum speed-up over llmist at chunks of this size.
const PROMISED_SIZE: Option<usize> = Some(4);

const PLAINCALL: &str = "Plaincall";
const LLMIST: &str = "llmist";
/// The promised speed-up over these formats, where they stream arguments.
const PROMISED: [&str; 2] = ["dynamo-parsers-v2", LLMIST];
/// Parsers of plain JSON, which find no calls between texts. They are reference points, not competitors.
const YARDSTICKS: [&str; 1] = ["jiter"];

type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("compare: `compare FOLDER`, where FOLDER contains llmist.mjs and its packages");
        return ExitCode::from(2);
    };
    if cfg!(debug_assertions) {
        eprintln!("compare: the figures of an unoptimised build mean nothing");
        return ExitCode::from(2);
    }
    match run(Path::new(&folder)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One measurement.
struct Measured {
    /// The index of the reader.
    reader: usize,
    row: Row,
}

fn run(folder: &Path) -> Fallible<bool> {
    let mut readers = Reader::all()?;
    let streams: Vec<bool> = readers.iter_mut().map(Reader::streams).collect();
    // The first payload is read in every format. The other payloads are read only in the formats in which a parser
    // was the fastest at least once.
    let mut wanted: Vec<usize> = (0..readers.len()).collect();
    let mut table: Vec<Measured> = Vec::new();
    let mut others: Vec<Row> = Vec::new();
    for logical in logical::all() {
        let mut quickest = Vec::new();
        for size in SIZES.into_iter().rev() {
            let measured = measure(&logical, size, &mut readers, &streams, &wanted);
            let (shown, left) = quickest_of_each(measured, &readers, &streams);
            quickest.extend(shown.iter().map(|one| one.reader));
            table.extend(shown);
            if logical.name == PROMISED_PAYLOAD {
                others.extend(left.into_iter().map(|one| one.row));
            }
        }
        if logical.name == PROMISED_PAYLOAD {
            quickest.sort_unstable();
            quickest.dedup();
            wanted = quickest;
        }
    }
    count(&mut table)?;
    let mut rows: Vec<Row> = table.into_iter().map(|measured| measured.row).collect();
    rows.extend(llmist(folder, &rows)?);
    let place = |row: &Row| {
        let payload = logical::all()
            .iter()
            .position(|one| one.name == row.payload);
        (payload, row.size.unwrap_or(usize::MAX))
    };
    rows.sort_by_key(place);
    others.sort_by_key(place);
    print_table(&rows);
    for logical in logical::all() {
        println!("`{}`: {}", logical.name, logical.title);
    }
    println!("\nThe other formats, slower on `{PROMISED_PAYLOAD}` or with fewer calls kept:\n");
    print_table(&others);
    Ok(verdict(&rows))
}

fn print_table(rows: &[Row]) {
    println!("{HEAD}");
    for row in rows {
        println!("{row}");
    }
    println!();
}

fn measure(
    logical: &Logical,
    size: Option<usize>,
    readers: &mut [Reader],
    streams: &[bool],
    wanted: &[usize],
) -> Vec<Measured> {
    let mut measured = Vec::new();
    let texts: Vec<String> = readers
        .iter()
        .map(|reader| reader.format.write(logical))
        .collect();
    let chunks: Vec<Vec<&str>> = texts.iter().map(|text| cut(text, size)).collect();
    let mut runs: Vec<Box<dyn FnMut() + '_>> = Vec::new();
    for (index, reader) in readers.iter_mut().enumerate() {
        if !wanted.contains(&index) {
            continue;
        }
        let chunks = &chunks[index];
        let found = reader.collect(chunks);
        if let Some(error) = &found.error {
            eprintln!(
                "compare: {}, {}, `{}` in chunks of {}: {error}",
                reader.parser,
                reader.name,
                logical.name,
                size_title(size)
            );
        }
        measured.push(Measured {
            reader: index,
            row: Row {
                payload: logical.name,
                size,
                parser: format!("{}, {}", reader.parser, reader.name),
                streams: streams[index],
                bytes: texts[index].len(),
                seconds: f64::NAN,
                plaincall: f64::NAN,
                allocations: None,
                kept: Kept::compare(logical, &found),
            },
        });
        runs.push(Box::new(move || reader.assemble(chunks)));
    }
    let times = best(&mut runs);
    for (measured, time) in measured.iter_mut().zip(&times) {
        measured.row.seconds = *time;
        measured.row.plaincall = times[0];
    }
    measured
}

/// Both syntaxes of Plaincall, and for each other parser the fastest of the formats that kept most calls: one that
/// streams arguments, and one that waits for the whole call. The remaining formats follow.
fn quickest_of_each(
    measured: Vec<Measured>,
    readers: &[Reader],
    streams: &[bool],
) -> (Vec<Measured>, Vec<Measured>) {
    let mut shown: Vec<Measured> = Vec::new();
    let mut left = Vec::new();
    for one in measured {
        let parser = readers[one.reader].parser;
        let before = shown.iter_mut().find(|other| {
            parser != PLAINCALL
                && readers[other.reader].parser == parser
                && streams[other.reader] == streams[one.reader]
        });
        match before {
            None => shown.push(one),
            Some(before) => {
                let rank = |row: &Row| (row.kept.calls, -row.seconds);
                if rank(&one.row) > rank(&before.row) {
                    left.push(std::mem::replace(before, one));
                } else {
                    left.push(one);
                }
            }
        }
    }
    (shown, left)
}

/// Adds the numbers of allocations, which another program counts.
fn count(table: &mut [Measured]) -> Fallible<()> {
    let program = std::env::current_exe()?.with_file_name("allocations");
    let mut command = Command::new(&program);
    for measured in &*table {
        let row = &measured.row;
        command.args([row.payload, &size_title(row.size)]);
        command.arg(measured.reader.to_string());
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{} failed", program.display()).into());
    }
    let output = String::from_utf8(output.stdout)?;
    for (measured, line) in table.iter_mut().zip(output.lines()) {
        measured.row.allocations = Some(line.parse()?);
    }
    Ok(())
}

/// Runs llmist on the same payloads, in the block syntax.
fn llmist(folder: &Path, rows: &[Row]) -> Fallible<Vec<Row>> {
    let payloads = folder.join("payloads");
    fs::create_dir_all(&payloads)?;
    for logical in logical::all() {
        let calls: Vec<_> = logical.calls().collect();
        let texts: Vec<_> = logical.texts().collect();
        let text = Format::Block.write(&logical);
        fs::write(payloads.join(format!("{}.txt", logical.name)), text)?;
        let expected = json!({"calls": calls, "texts": texts}).to_string();
        fs::write(payloads.join(format!("{}.json", logical.name)), expected)?;
    }
    let mut node = Command::new("node");
    node.arg(folder.join("llmist.mjs")).arg(&payloads);
    let output = node.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err("node failed".into());
    }
    let output = String::from_utf8(output.stdout)?;
    let mut added = Vec::new();
    for line in output.lines() {
        let line: Value = serde_json::from_str(line)?;
        let number = |key: &str| line[key].as_u64().and_then(|one| usize::try_from(one).ok());
        let size = number("size");
        let same = |row: &&Row| line["payload"] == row.payload && row.size == size;
        let plaincall = rows.iter().find(same).ok_or("llmist read something else")?;
        let mut row = plaincall.clone();
        LLMIST.clone_into(&mut row.parser);
        row.streams = true;
        row.allocations = None;
        row.seconds = line["seconds"].as_f64().ok_or("no seconds")?;
        row.kept.calls = number("calls").ok_or("no calls")?;
        row.kept.text = number("text").ok_or("no text")?;
        added.push(row);
    }
    Ok(added)
}

/// Prints the speed-up of Plaincall over each parser, and returns whether the promises hold.
fn verdict(rows: &[Row]) -> bool {
    let mut all = true;
    let mut judge = |parser: &str, streams: bool, size| {
        let here = rows.iter().filter(|row| {
            row.payload == PROMISED_PAYLOAD
                && row.size == size
                && row.streams == streams
                && name_of(row) == parser
        });
        let Some(best) = here.min_by(|one, other| one.ratio().total_cmp(&other.ratio())) else {
            return;
        };
        let is_reached = best.ratio() >= AIM;
        let is_promised = streams && PROMISED.contains(&parser);
        all &= is_reached || !is_promised;
        println!(
            "chunks of {}, {}: {:.1} times {}{}",
            size_title(size),
            if streams {
                "arguments as they arrive"
            } else {
                "whole calls"
            },
            best.ratio(),
            best.parser,
            match (is_reached, is_promised) {
                (true, _) => String::new(),
                (false, true) => format!(", BROKEN: at least {AIM} are promised"),
                (false, false) => format!(", not the {AIM} that are the aim"),
            }
        );
    };
    let mut parsers: Vec<&str> = rows.iter().map(name_of).collect();
    parsers.sort_unstable();
    parsers.dedup();
    parsers.retain(|name| ![PLAINCALL, LLMIST].contains(name) && !YARDSTICKS.contains(name));
    for size in SIZES.into_iter().rev() {
        for streams in [true, false] {
            for parser in &parsers {
                judge(parser, streams, size);
            }
        }
    }
    judge(LLMIST, true, PROMISED_SIZE);
    all
}

/// The parser's name, without that of the format.
fn name_of(row: &Row) -> &str {
    row.parser.split(',').next().unwrap_or_default()
}
