//! The search for markers, compared with the packed search of aho-corasick that does the same work: the first position
//! where a marker may begin, also at the end of a chunk.

use std::hint::black_box;
use std::time::Duration;

use aho_corasick::Span;
use aho_corasick::packed::{Config, MatchKind, Searcher};
use rustix::time::{ClockId, clock_gettime};

use crate::scan::Scan;

#[path = "../../../crates/syntax/src/scan.rs"]
#[allow(dead_code)]
mod scan;

const BLOCK: [&str; 3] = ["!!!GADGET_START:", "!!!GADGET_END", "!!!ARG:"];
const EMOJI: [&str; 3] = ["🛠️[", "🛠[", "ğŸ› ï¸["];
const WORDS: [&str; 12] = [
    "the",
    "a",
    "of",
    "and",
    "harbour",
    "ship",
    "result!",
    "because",
    "check",
    "café",
    "table",
    "answer: yes!",
];
const BYTES: usize = 1 << 20;
const ROUNDS: usize = 9;
/// The length of what the packed search looks for. Markers of three bytes and more have it.
const HEAD: usize = 3;

/// A packed search for the beginnings of markers.
struct Packed {
    heads: Vec<&'static [u8]>,
    searcher: Searcher,
    texts: Vec<&'static str>,
}

impl Packed {
    fn of(texts: &[&'static str]) -> Self {
        let mut heads: Vec<&[u8]> = texts.iter().map(|text| &text.as_bytes()[..HEAD]).collect();
        heads.sort_unstable();
        heads.dedup();
        let mut config = Config::new();
        let mut builder = config.match_kind(MatchKind::LeftmostFirst).builder();
        let searcher = builder.extend(heads.iter()).build().expect("few texts");
        let texts = texts.to_vec();
        Self {
            heads,
            searcher,
            texts,
        }
    }

    fn plain_len(&self, text: &[u8]) -> usize {
        let mut start = 0;
        let end = text.len();
        while let Some(found) = self.searcher.find_in(text, Span { start, end }) {
            let rest = &text[found.start()..];
            let may_begin = self.texts.iter().any(|text| {
                let length = rest.len().min(text.len());
                rest[..length] == text.as_bytes()[..length]
            });
            if may_begin {
                return found.start();
            }
            start = found.start() + 1;
        }
        let mut last = text.len().saturating_sub(HEAD - 1).max(start)..text.len();
        let may_begin =
            |place: &usize| (self.heads.iter()).any(|head| head.starts_with(&text[*place..]));
        last.find(may_begin).unwrap_or(text.len())
    }
}

/// Returns the sum of what the search skips, so that both can be compared.
fn skipped(chunks: &[&[u8]], plain_len: impl Fn(&[u8]) -> usize) -> usize {
    let mut sum = 0;
    for chunk in chunks {
        let mut rest = black_box(*chunk);
        while !rest.is_empty() {
            let length = plain_len(rest);
            sum += length;
            rest = &rest[length.max(1).min(rest.len())..];
        }
    }
    sum
}

fn time(run: impl Fn() -> usize) -> Duration {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
    let begun = now();
    black_box(run());
    now() - begun
}

fn main() {
    let mut text = String::new();
    let mut seed = 1_u64;
    while text.len() < BYTES {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        text.push_str(WORDS[(seed >> 33) as usize % WORDS.len()]);
        text.push(if (seed >> 20).is_multiple_of(12) {
            '\n'
        } else {
            ' '
        });
    }
    println!("| markers | chunk | scan, MB/s | packed, MB/s | time of packed |");
    println!("| --- | --- | --- | --- | --- |");
    let auto = [&BLOCK[..1], &EMOJI].concat();
    for (name, texts) in [("block", &BLOCK[..]), ("emoji", &EMOJI), ("auto", &auto)] {
        let scan = Scan::of(texts.iter().copied());
        let packed = Packed::of(texts);
        for size in [4, 16, 64, 256, 4096, BYTES] {
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            let ours = || skipped(&chunks, |text| scan.plain_len(text));
            let theirs = || skipped(&chunks, |text| packed.plain_len(text));
            assert_eq!(ours(), theirs(), "{name}, {size}");
            let mut best = [Duration::MAX; 2];
            for _ in 0..ROUNDS {
                best[0] = best[0].min(time(ours));
                best[1] = best[1].min(time(theirs));
            }
            let [scan, packed] = best.map(|time| text.len() as f64 / 1e6 / time.as_secs_f64());
            let ratio = scan / packed;
            println!("| {name} | {size} | {scan:.0} | {packed:.0} | {ratio:.2} |");
        }
    }
}
