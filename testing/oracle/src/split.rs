//! Splits of a text into chunks: its events must be the same for all of them.

use plaincall_syntax::{ByteParser, Dialect, Parser};

use crate::agreement::{Agreement, agrees, bytes_agree};
use crate::arbitrary_texts::Random;
use crate::merged::{Merged, merge, merged};

/// The maximum length, in bytes, of texts that are split at pairs of places. Longer ones are split at random.
pub const LONG: usize = 512;

/// The share of the splits that is tried.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    /// One of this many pairs of places of a short text; 1 is each.
    pub pairs: usize,
    /// One of this many places of a long text.
    pub places: usize,
    /// Random ways to split a long text.
    pub random: usize,
}

/// The numbers of splits that were tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ways {
    /// In two, at each place between characters.
    pub single: usize,
    /// In two, at each byte, through the byte entry.
    pub bytes: usize,
    /// In three.
    pub pairs: usize,
    /// In some or many, at random; and in single characters.
    pub random: usize,
}

impl Ways {
    /// Adds the numbers of the other.
    pub fn add(&mut self, other: Self) {
        self.single += other.single;
        self.bytes += other.bytes;
        self.pairs += other.pairs;
        self.random += other.random;
    }
}

/// Splits the text into chunks of `size` bytes, or slightly more to keep characters whole.
pub fn chunks(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (chunk, behind) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
        rest = behind;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// Checks that a text gives the same events for every split, `share` of each kind.
///
/// # Panics
/// When they are not the same, or when spans do not tile.
pub fn check(text: &str, dialect: &Dialect, share: Share) -> Ways {
    let fresh = Parser::new(dialect).unwrap_or_else(|error| panic!("{error}: {dialect:?}"));
    let whole = merged(text, dialect).unwrap_or_else(|error| panic!("{error}: {dialect:?}"));
    let cutter = Cutter {
        text,
        dialect,
        fresh,
        whole,
        edges: (0..=text.len())
            .filter(|&at| text.is_char_boundary(at))
            .collect(),
    };
    let step = if text.len() > LONG { share.places } else { 1 };
    let mut ways = Ways {
        bytes: cutter.check_bytes(step),
        ..Ways::default()
    };
    cutter.check_at(&cutter.edges);
    ways.random += 1;
    for index in (0..cutter.edges.len()).step_by(step) {
        ways.single += 1;
        ways.pairs += cutter.check_behind(index, share.pairs);
    }
    if text.len() > LONG {
        let mut random = Random::new(text.len() as u64);
        for _ in 0..share.random {
            let most = if random.one_in(16) {
                text.len() / 8
            } else {
                12
            };
            let count = 1 + random.below(most);
            let mut cuts: Vec<usize> = (0..count)
                .map(|_| cutter.edges[random.below(cutter.edges.len())])
                .collect();
            cuts.sort_unstable();
            cutter.check_at(&cuts);
            ways.random += 1;
        }
    }
    ways
}

struct Cutter<'t> {
    text: &'t str,
    dialect: &'t Dialect,
    fresh: Parser,
    whole: Vec<Merged>,
    /// The positions at which a text can be split, including its beginning and its end.
    edges: Vec<usize>,
}

impl Cutter<'_> {
    /// Cuts at these places, which are in order.
    fn check_at(&self, cuts: &[usize]) {
        let mut from = 0;
        let ends = cuts.iter().copied().chain([self.text.len()]);
        let chunks = ends.map(|to| &self.text[std::mem::replace(&mut from, to)..to]);
        let agreement = Agreement::new(&self.whole, self.text);
        let is_same = agrees(agreement, self.fresh.clone(), chunks);
        assert!(is_same, "{}", self.place(cuts));
    }

    /// Cuts at this place, and at this and another one behind it. Returns the number of pairs.
    fn check_behind(&self, index: usize, share: usize) -> usize {
        let first = self.edges[index];
        let mut parser = self.fresh.clone();
        let events = merge(parser.feed(&self.text[..first]));
        let begun = Agreement::after(&self.whole, self.text, &events);
        let begun = begun.unwrap_or_else(|| panic!("{}", self.place(&[first])));
        let rest = [&self.text[first..]];
        let is_same = agrees(begun.clone(), parser.clone(), rest);
        assert!(is_same, "{}", self.place(&[first]));
        if self.text.len() > LONG {
            return 0;
        }
        let mut count = 0;
        // A prime, so that with a share other pairs are tried at each place.
        for &second in self.edges[index..]
            .iter()
            .skip(index * 7919 % share)
            .step_by(share)
        {
            let rest = [&self.text[first..second], &self.text[second..]];
            let is_same = agrees(begun.clone(), parser.clone(), rest);
            assert!(is_same, "{}", self.place(&[first, second]));
            count += 1;
        }
        count
    }

    /// The same through the byte entry, at one byte of so many. Returns the number of ways.
    fn check_bytes(&self, step: usize) -> usize {
        let fresh = ByteParser::new(self.dialect).unwrap_or_else(|error| panic!("{error}"));
        let bytes = self.text.as_bytes();
        let places = (0..=bytes.len()).step_by(step);
        for at in places.clone() {
            let agreement = Agreement::new(&self.whole, self.text);
            let is_same = bytes_agree(agreement, fresh.clone(), [&bytes[..at], &bytes[at..]]);
            assert!(is_same, "as bytes, {}", self.place(&[at]));
        }
        places.count()
    }

    fn place(&self, cuts: &[usize]) -> String {
        format!(
            "cut at {cuts:?} the events are not those of the whole: {:?}, {:?}",
            self.text, self.dialect
        )
    }
}
