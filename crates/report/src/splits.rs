//! Whether the result depends on chunk boundaries.

use std::{fmt, mem};

use plaincall_reply::{ReplyCheck, Stop, Unclosed, document::DocumentReader};
use plaincall_syntax::{Dialect, DialectError};
use plaincall_tool::{Limits, NoTools};

/// The largest chunk size tried, in bytes. Every smaller size is tried too.
const MAX_CHUNK: usize = 64;
/// The maximum length of a text for which every pair of splits is tried, in bytes.
const MAX_PAIRED: usize = 512;
/// The maximum number of bytes parsed for single splits. If the square of the length is larger, splits are sampled.
const MAX_PARSED: u64 = 1 << 28;

/// The splits to try for a text: chunks of every size up to 64 bytes, a split at every byte, and for short texts at every pair
/// of bytes. Each is a list of positions. For long texts, single splits are evenly spaced samples. `Display` states
/// what is tried.
#[derive(Clone, Copy, Debug)]
pub struct Splits {
    /// The length of the text, in bytes.
    length: usize,
    /// The distance of single splits.
    step: usize,
}

impl Splits {
    /// Returns the splits of a text of this many bytes.
    pub fn new(length: usize) -> Self {
        let step = distance(u64::try_from(length).unwrap_or(u64::MAX));
        Self {
            length,
            step: usize::try_from(step).unwrap_or(usize::MAX),
        }
    }

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.sizes() + self.singles() + self.pairs()
    }

    /// Returns the split with this index: the positions of its boundaries.
    pub fn get(&self, index: usize) -> Option<Vec<usize>> {
        if index < self.sizes() {
            let size = index + 1;
            return Some((size..self.length).step_by(size).collect());
        }
        let index = index - self.sizes();
        if index < self.singles() {
            return Some(vec![1 + index * self.step]);
        }
        let mut rest = index - self.singles();
        if rest >= self.pairs() {
            return None;
        }
        (1..self.length).find_map(|first| {
            let after = self.length - first - 1;
            let pair = (rest < after).then(|| vec![first, first + 1 + rest]);
            rest = rest.saturating_sub(after);
            pair
        })
    }

    /// Returns all of them, in order.
    pub fn iter(self) -> impl Iterator<Item = Vec<usize>> {
        (0..self.count()).filter_map(move |index| self.get(index))
    }

    /// The number of chunk sizes.
    fn sizes(&self) -> usize {
        self.length.saturating_sub(1).min(MAX_CHUNK)
    }

    fn singles(&self) -> usize {
        self.length.saturating_sub(1).div_ceil(self.step)
    }

    fn pairs(&self) -> usize {
        if self.length > MAX_PAIRED {
            return 0;
        }
        let places = self.length.saturating_sub(1);
        places * places.saturating_sub(1) / 2
    }
}

impl fmt::Display for Splits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sizes() {
            0 => return f.write_str("no boundary"),
            1 => f.write_str("chunks of 1 byte; ")?,
            most => write!(f, "chunks of 1 to {most} bytes; ")?,
        }
        match self.step {
            1 => f.write_str("every boundary")?,
            step => write!(f, "every {step}{} boundary", ending(step))?,
        }
        if self.pairs() > 0 {
            f.write_str("; every pair of boundaries")?;
        }
        Ok(())
    }
}

/// Returns the distance of single splits for a text of this many bytes. Its square needs more than 32 bits.
fn distance(length: u64) -> u64 {
    length.saturating_mul(length).div_ceil(MAX_PARSED).max(1)
}

fn ending(number: usize) -> &'static str {
    match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    }
}

/// A text and its result without a split.
pub struct SplitCheck<'t> {
    bytes: &'t [u8],
    dialect: &'t Dialect,
    whole: String,
}

impl<'t> SplitCheck<'t> {
    /// Parses the text.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub fn new(bytes: &'t [u8], dialect: &'t Dialect) -> Result<Self, DialectError> {
        Ok(Self {
            bytes,
            dialect,
            whole: document(bytes, &[], dialect)?,
        })
    }

    /// Parses the text with this split. If the result differs, returns a sentence about the difference.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub fn difference(&self, splits: &[usize]) -> Result<Option<String>, DialectError> {
        let split = document(self.bytes, splits, self.dialect)?;
        let whole = &self.whole;
        Ok((split != *whole).then(|| {
            format!("split at the bytes {splits:?}, the result is {split} instead of {whole}")
        }))
    }
}

/// Parses a text that arrives in chunks and returns its document as JSON.
fn document(bytes: &[u8], splits: &[usize], dialect: &Dialect) -> Result<String, DialectError> {
    let check = ReplyCheck::new(dialect, Unclosed::Reject)?;
    let limits = Limits::for_reading();
    let mut reader = DocumentReader::new(dialect, NoTools, check, limits)?;
    let mut from = 0;
    for &to in splits.iter().chain([&bytes.len()]) {
        let chunk = bytes.get(mem::replace(&mut from, to)..to);
        reader.feed(chunk.unwrap_or_default());
    }
    // All keys of a document are strings.
    Ok(serde_json::to_string(&reader.finish(Stop::Broken)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pairs_of_a_short_text() {
        let splits = Splits::new(5);
        let all: Vec<_> = splits.iter().collect();
        assert_eq!(all.len(), splits.count());
        assert_eq!(all[0], [1, 2, 3, 4]);
        assert_eq!(all[4..8], [vec![1], vec![2], vec![3], vec![4]]);
        let pairs = [[1, 2], [1, 3], [1, 4], [2, 3], [2, 4], [3, 4]];
        assert_eq!(all[8..], pairs.map(|pair| pair.to_vec()));
        assert_eq!(splits.get(14), None);
        assert_eq!(
            splits.to_string(),
            "chunks of 1 to 4 bytes; every boundary; every pair of boundaries"
        );
        assert_eq!(Splits::new(1).count(), 0);
    }

    #[test]
    fn single_splits_of_a_long_text_are_samples_over_all_of_it() {
        // The squares of these lengths need more than 32 bits.
        for (length, step, words) in [
            (65_536, 16, "every 16th boundary"),
            (65_537, 17, "every 17th boundary"),
            (100_000, 38, "every 38th boundary"),
            (1_000_000, 3726, "every 3726th boundary"),
        ] {
            let splits = Splits::new(length);
            assert_eq!(splits.step, step);
            assert_eq!(splits.count(), 64 + (length - 1).div_ceil(step));
            assert_eq!(
                splits.to_string(),
                format!("chunks of 1 to 64 bytes; {words}")
            );
            let last = splits.get(splits.count() - 1).unwrap();
            assert!(last[0] < length && last[0] + step >= length, "{last:?}");
        }
        assert!(distance(5_000_000_000) > 5_000_000_000);
        assert_eq!([21, 42, 113].map(ending), ["st", "nd", "th"]);
    }
}
