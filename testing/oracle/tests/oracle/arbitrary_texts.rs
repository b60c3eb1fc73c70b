//! Arbitrary texts: random options, markers, texts and chunks.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plaincall_oracle::agreement::{Agreement, bytes_agree};
use plaincall_oracle::arbitrary_texts::{self as generator, Generator, Random};
use plaincall_oracle::effort::{cores, setting};
use plaincall_oracle::merged::{Kind, Merged};
use plaincall_oracle::oracle::{Options, Oracle};

use plaincall_syntax::ByteParser;

use crate::oracle::accepted_options;
use crate::oracle::disagreement::{Disagreements, agree, lines};
use crate::oracle::readers::{Entry, Readers, byte_chunks};

/// The number of codes in `spec/common.md` 3.
const CODES: usize = 19;
/// The number of ways in which a call ends.
const TERMINATIONS: usize = 3;

/// The number of texts in one batch.
const BATCH: u64 = 1_000;
/// The number of texts with the same options. One of them is also parsed as bytes, some of which are not UTF-8.
const TEXTS: u64 = 8;

/// Counts of the parsed texts.
#[derive(Default)]
struct Tally {
    texts: u64,
    parses: u64,
    size: usize,
    /// Byte strings, and how many of them are not UTF-8.
    byte_strings: u64,
    invalid: u64,
    /// How often each diagnostic and each termination was expected.
    codes: BTreeMap<&'static str, u64>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.texts += other.texts;
        self.parses += other.parses;
        self.size += other.size;
        self.byte_strings += other.byte_strings;
        self.invalid += other.invalid;
        for (code, times) in other.codes {
            *self.codes.entry(code).or_default() += times;
        }
    }
}

/// Parses the texts of one batch.
fn read_batch(seed: u64, batch: u64, disagreements: &Disagreements) -> Tally {
    let mut random = Random::new(seed.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(batch));
    let place = format!("ORACLE_SEED={seed} ORACLE_BATCH={batch}");
    let mut tally = Tally::default();
    for _ in 0..BATCH / TEXTS {
        let options = accepted_options(&mut random);
        let generator = Generator::new(&options);
        let oracle = Oracle::new(&options);
        let readers = Readers::new(&options);
        for case in 0..TEXTS {
            let text = generator.text(&mut random);
            let cuts = generator::cuts(&mut random, &text);
            let expected = oracle.read(&text);
            let entries: &[Entry] = match case % 4 {
                0 => &[Entry::Text, Entry::Exact],
                1 => &[Entry::Text, Entry::Bytes],
                2 => &[Entry::Text, Entry::ExactBytes],
                _ => &[Entry::Text],
            };
            for &entry in entries {
                tally.parses += 1;
                if !agree(&readers, entry, &text, &cuts, &expected) {
                    disagreements.note(&text, &options, entry, &cuts, &place);
                }
            }
            if case == 0 {
                tally.parses += 1;
                let bytes = generator::bytes(&mut random, &text);
                tally.byte_strings += 1;
                tally.invalid += u64::from(std::str::from_utf8(&bytes).is_err());
                if let Err(report) = read_bytes(&bytes, &mut random, &oracle, &options) {
                    disagreements.push(format!("{place}\n{report}"));
                }
            }
            tally.texts += 1;
            tally.size += text.len();
            for event in expected {
                if let Kind::Diagnostic(name) | Kind::CallEnd(name) = event.kind {
                    *tally.codes.entry(name).or_default() += 1;
                }
            }
        }
    }
    tally
}

/// Checks that bytes give the events of the text in which U+FFFD replaces each invalid part, with spans that count
/// bytes. Otherwise returns a report.
fn read_bytes(
    bytes: &[u8],
    random: &mut Random,
    oracle: &Oracle,
    options: &Options,
) -> Result<(), String> {
    let text = String::from_utf8_lossy(bytes);
    let places = places_in_bytes(bytes);
    let mut expected = oracle.read(&text);
    for Merged { span, .. } in &mut expected {
        *span = places[span.start]..places[span.end];
    }
    let cuts = random.below(6);
    let mut cuts: Vec<usize> = (0..cuts).map(|_| random.below(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let agreement = Agreement::of_bytes(&expected);
    let parser = ByteParser::new(&options.dialect()).unwrap();
    let run = || bytes_agree(agreement, parser, byte_chunks(bytes, &cuts));
    if catch_unwind(AssertUnwindSafe(run)).unwrap_or(false) {
        return Ok(());
    }
    Err(format!(
        "{bytes:?}, {text:?}, cut at {cuts:?}, with {}\noracle {:#?}",
        options.words(),
        lines(&expected)
    ))
}

/// Maps each offset of the text in which U+FFFD replaces invalid bytes to an offset in the bytes.
fn places_in_bytes(bytes: &[u8]) -> Vec<usize> {
    let mut places = vec![0];
    let mut from = 0;
    for chunk in bytes.utf8_chunks() {
        places.extend(from + 1..=from + chunk.valid().len());
        from += chunk.valid().len() + chunk.invalid().len();
        if !chunk.invalid().is_empty() {
            places.extend([from; '\u{FFFD}'.len_utf8()]);
        }
    }
    places
}

#[test]
fn arbitrary_texts_match_the_oracle() {
    let least = setting("ORACLE_CASES", 1_000_000);
    let time = Duration::from_mins(setting("ORACLE_MINUTES", 0));
    let seed = setting("ORACLE_SEED", 1);
    let begun = Instant::now();
    let first = setting("ORACLE_BATCH", 0);
    let next = AtomicU64::new(first);
    let total = Mutex::new((Tally::default(), Duration::ZERO));
    let disagreements = Disagreements::default();
    eprintln!("arbitrary texts of seed {seed}");
    let read = || {
        while !disagreements.are_enough() {
            let batch = next.fetch_add(1, Ordering::Relaxed);
            if (batch - first) * BATCH >= least && begun.elapsed() >= time {
                return;
            }
            let tally = read_batch(seed, batch, &disagreements);
            let (total, reported) = &mut *total.lock().unwrap();
            total.add(tally);
            if begun.elapsed() > *reported + Duration::from_mins(1) {
                *reported = begun.elapsed();
                eprintln!("{} texts in {} s", total.texts, reported.as_secs());
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..cores() {
            scope.spawn(read);
        }
    });
    let (total, _) = total.into_inner().unwrap();
    println!(
        "arbitrary texts: {} texts of {} bytes on average, split at random and parsed {} times: each by the parser, one in 4 without \
         its fast path, one in 4 as bytes, one in 4 as bytes without it, one in {TEXTS} as bytes with invalid ones \
         ({} were not UTF-8); seed {seed}, {} s",
        total.texts,
        total.size as u64 / total.texts.max(1),
        total.parses,
        total.invalid,
        begun.elapsed().as_secs(),
    );
    println!("{:?}", total.codes);
    disagreements.done();
    let least = if total.texts < 1_000_000 { 1 } else { 100 };
    let rare = total.codes.values().filter(|times| **times < least);
    assert!(
        (total.codes.len(), rare.count()) == (CODES + TERMINATIONS, 0) || total.texts < 200_000,
        "some codes are too rare"
    );
    assert!(total.invalid > total.byte_strings / 2);
}
