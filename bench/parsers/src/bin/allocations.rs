//! Prints the allocations of readers: one line for each PAYLOAD CHUNK READER on the command line.
//!
//! This is a separate program because counting takes time, which must not affect the measured times.

use std::error::Error;

use alloc_tracker::{Allocator, Session};
use plaincall_bench_parsers::logical;
use plaincall_bench_parsers::readers::Reader;
use plaincall_bench_parsers::table::size_title;
use plaincall_bench_parsers::{SIZES, cut};

/// Counts every allocation of the process.
#[global_allocator]
static ALLOCATOR: Allocator<std::alloc::System> = Allocator::system();

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let payloads = logical::all();
    let mut readers = Reader::all()?;
    for words in words.chunks(3) {
        let [payload, size, reader] = words else {
            return Err("three words are needed for each line".into());
        };
        let payload = payloads.iter().find(|one| one.name == payload);
        let size = SIZES.into_iter().find(|one| size_title(*one) == *size);
        let reader = readers.get_mut(reader.parse::<usize>()?);
        let (Some(payload), Some(size), Some(reader)) = (payload, size, reader) else {
            return Err(format!("no such line: {}", words.join(" ")).into());
        };
        let text = reader.format.write(payload);
        let chunks = cut(&text, size);
        println!("{}", allocations(|| reader.assemble(&chunks)));
    }
    Ok(())
}

/// Returns the number of allocations of `run`. Each growth of a string counts.
fn allocations(run: impl FnOnce()) -> u64 {
    let session = Session::new().no_stdout().no_file();
    let operation = session.operation("run");
    {
        let _span = operation.measure_thread().iterations(1);
        run();
    }
    let report = session.to_report();
    let operations = report.operations();
    operations
        .map(|(_, operation)| operation.total_allocations_count())
        .sum()
}
