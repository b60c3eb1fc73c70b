//! Every way to cut a text into chunks that is worth trying.

use std::collections::BTreeSet;

use plaincall_syntax::{ByteParser, Dialect};

use crate::merged::{merge, merged, merged_of_chunks};

/// Up to this length every pair of splits is tried, in bytes.
const PAIRS: usize = 160;
/// Texts longer than this are also cut at random.
const LONG: usize = 512;

/// Checks that the merged events of a text are the same for every single split, for chunks of one character, for
/// every pair of splits of a short text, and for `random` random ways to cut a long one. Returns the number of ways.
///
/// # Panics
/// When they are not the same, or when spans do not tile.
pub fn check(text: &str, dialect: &Dialect, random: usize) -> usize {
    let whole = merged(text, dialect).unwrap_or_else(|error| panic!("{error}: {dialect:?}"));
    let edges: Vec<usize> = (0..=text.len())
        .filter(|&at| text.is_char_boundary(at))
        .collect();
    let mut count = 0;
    let mut check_cuts = |cuts: &[usize]| {
        let mut from = 0;
        let chunks: Vec<&str> = cuts
            .iter()
            .chain([&text.len()])
            .map(|&to| &text[std::mem::replace(&mut from, to)..to])
            .collect();
        let found = merged_of_chunks(chunks.iter().copied(), dialect)
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found, whole, "cut as {chunks:?} with {dialect:?}");
        count += 1;
    };
    check_cuts(&edges);
    for (index, &edge) in edges.iter().enumerate() {
        check_cuts(&[edge]);
        if text.len() <= PAIRS {
            for &second in &edges[index + 1..] {
                check_cuts(&[edge, second]);
            }
        }
    }
    if text.len() > LONG {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..random {
            let mut cuts = BTreeSet::new();
            for _ in 0..=next(&mut state) % 12 {
                let at = usize::try_from(next(&mut state)).unwrap_or_default() % edges.len();
                cuts.insert(edges[at]);
            }
            check_cuts(&cuts.into_iter().collect::<Vec<_>>());
        }
    }
    count + check_bytes(text, dialect)
}

/// The same through the byte door, at every single byte.
fn check_bytes(text: &str, dialect: &Dialect) -> usize {
    let whole = merged(text, dialect).unwrap_or_else(|error| panic!("{error}"));
    let bytes = text.as_bytes();
    for at in 0..=bytes.len() {
        let mut parser = ByteParser::new(dialect).unwrap_or_else(|error| panic!("{error}"));
        let mut events = Vec::new();
        for chunk in [&bytes[..at], &bytes[at..]] {
            events.extend(parser.feed(chunk));
        }
        events.extend(parser.finish());
        assert_eq!(
            merge(events),
            whole,
            "bytes cut at {at} with {dialect:?}: {text:?}"
        );
    }
    bytes.len() + 1
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 16
}
