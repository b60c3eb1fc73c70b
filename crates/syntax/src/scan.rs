//! The search for positions where one of a few texts may begin, without examining every byte.
//!
//! A position is found by its first byte. In long text, many positions are compared at once, for the first byte and
//! a second one after it; the compiler uses vector instructions for this. In short text, eight bytes are compared
//! as one number. Long text is searched for the common prefix of all texts with `memmem`, if there is one. Each candidate
//! is then compared with the first bytes of all texts at once, so that a lone `!` in prose costs very little.

use memchr::memmem::Finder;

/// The maximum number of different pairs of bytes for the search in blocks.
const PAIRS: usize = 3;

/// The size of a block, in bytes.
const BLOCK: usize = 16;

/// The size of a common chunk, in bytes. Such a text is searched entirely before the results are examined.
const SHORT: usize = 24;
const LONG: usize = 128;

/// Finds the positions where texts may begin.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    firsts: Firsts,
    /// With a single pair: eight times its first byte. This makes the most common case branch-free.
    one: Option<u64>,
    /// The common prefix of all texts, if it is longer than a byte.
    common: Option<Box<Finder<'static>>>,
    /// The first byte of a text, and the byte `distance` after it; the last pair is repeated to fill the array.
    pairs: [(u8, u8); PAIRS],
    distance: usize,
    begins: Box<[Begin]>,
}

/// The first bytes of the texts.
#[derive(Clone, Copy, Debug)]
enum Firsts {
    None,
    /// A single pair.
    One(u8),
    /// Few enough to search for each.
    Few([u8; PAIRS]),
    /// A bit for each byte.
    Many([u64; 4]),
}

/// The first bytes of a text, at most eight, as a number and a mask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Begin {
    word: u64,
    mask: u64,
}

impl Scan {
    pub(crate) fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let texts: Vec<&[u8]> = texts
            .map(str::as_bytes)
            .filter(|text| !text.is_empty())
            .collect();
        let shortest = texts.iter().map(|text| text.len()).min().unwrap_or(1);
        // Bytes at a larger distance are more selective: characters of one script share their first two.
        let distance = (shortest - 1).min(2);
        let byte = |text: &[u8], at: usize| text.get(at).copied().unwrap_or_default();
        let mut pairs: Vec<(u8, u8)> = texts
            .iter()
            .map(|text| (byte(text, 0), byte(text, distance)))
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        let firsts = match *pairs.as_slice() {
            [] => Firsts::None,
            [(one, _)] => Firsts::One(one),
            _ if pairs.len() <= PAIRS => Firsts::Few(padded(&pairs).map(|(first, _)| first)),
            _ => Firsts::Many(bits(pairs.iter().map(|(first, _)| *first))),
        };
        let common = common_beginning(&texts);
        let common = (common.len() > 1).then(|| Box::new(Finder::new(common).into_owned()));
        let mut begins: Vec<Begin> = Vec::new();
        let mut by_length = texts;
        by_length.sort_by_key(|text| text.len());
        for text in by_length {
            let begin = Begin::of(text);
            if !begins.iter().any(|shorter| shorter.agrees(begin)) {
                begins.push(begin);
            }
        }
        let one = match firsts {
            Firsts::One(one) => Some(u64::from_ne_bytes([one; 8])),
            _ => None,
        };
        Self {
            firsts,
            one,
            common,
            pairs: padded(&pairs),
            distance,
            begins: begins.into(),
        }
    }

    /// Returns the bytes with which a text begins: bit `n % 64` of number `n / 64` for byte `n`.
    pub(crate) fn first_bytes(&self) -> [u64; 4] {
        match self.firsts {
            Firsts::None => [0; 4],
            Firsts::One(one) => bits([one].into_iter()),
            Firsts::Few(few) => bits(few.into_iter()),
            Firsts::Many(many) => many,
        }
    }

    /// Returns how many bytes at the front begin none of the texts.
    #[allow(
        clippy::inline_always,
        reason = "measured: a call costs as much as the look at a few bytes"
    )]
    #[inline(always)]
    pub(crate) fn plain_len(&self, text: &[u8]) -> usize {
        if text.len() <= 8 {
            let word = word(text);
            let hits = match self.one {
                Some(one) => zeros(word ^ one),
                None => self.hits(word),
            };
            if hits == 0 {
                return text.len();
            }
        }
        self.plain_len_out_of_line(text)
    }

    #[inline(never)]
    fn plain_len_out_of_line(&self, text: &[u8]) -> usize {
        if let (Some(common), true) = (&self.common, text.len() > LONG) {
            return self.next_common(common, text, 0).unwrap_or(text.len());
        }
        if matches!(text.len(), SHORT..=LONG) && self.lacks_pairs(text) {
            return text.len();
        }
        let place = match self.one {
            Some(_) if text.len() <= 8 => self.pair_place(text),
            _ => first_place(self.hits(word(text))),
        };
        match text.get(place..) {
            None => text.len(),
            Some(rest) if self.may_begin(rest) => place,
            Some(_) => self.next(text, place).unwrap_or(text.len()),
        }
    }

    /// In a text of at most eight bytes: returns the position of the pair, or of its first byte if the second is beyond the
    /// end, otherwise a position outside the text. There is only one pair.
    #[inline]
    fn pair_place(&self, text: &[u8]) -> usize {
        let [(first, later), ..] = self.pairs;
        let word = word(text);
        let known = text.len().saturating_sub(self.distance);
        let absent = if known < 8 {
            u64::MAX << (8 * known)
        } else {
            0
        };
        let laters = each_zero(word ^ (ONES * u64::from(later))) >> (8 * self.distance);
        let hits = each_zero(word ^ (ONES * u64::from(first))) & (laters | absent);
        first_place(hits)
    }

    /// Returns whether a text as long as a common chunk contains none of the pairs, nor a first byte too near its end.
    #[inline]
    fn lacks_pairs(&self, text: &[u8]) -> bool {
        let near_end = text
            .last_chunk()
            .map_or(0, |last| u64::from_le_bytes(*last));
        let near_end = near_end >> (64 - 8 * self.distance.clamp(1, 2));
        let [one, two, three] = self.pairs;
        self.hits(near_end) == 0
            && match self.firsts {
                Firsts::None | Firsts::Many(_) => false,
                Firsts::One(_) => lacks(text, self.distance, [one]),
                Firsts::Few(_) if two == three => lacks(text, self.distance, [one, two]),
                Firsts::Few(_) => lacks(text, self.distance, self.pairs),
            }
    }

    /// Returns the first position at or after `from` where one of the texts begins, or may begin at a truncated end.
    pub(crate) fn next(&self, text: &[u8], mut from: usize) -> Option<usize> {
        let is_long = text.len().saturating_sub(from) > LONG;
        if let (Some(common), true) = (&self.common, is_long) {
            return self.next_common(common, text, from);
        }
        loop {
            let at = self.next_first(text, from)?;
            if self.may_begin(text.get(at..)?) {
                return Some(at);
            }
            from = at + 1;
        }
    }

    /// Returns the same if all texts have a common prefix.
    fn next_common(&self, common: &Finder, text: &[u8], mut from: usize) -> Option<usize> {
        let needle = common.needle();
        while let Some(found) = common.find(text.get(from..)?) {
            let mut at = from + found;
            // In a run, as of `!`, the next match is at the next position.
            while let Some(rest) = text.get(at..).filter(|rest| rest.starts_with(needle)) {
                if self.may_begin(rest) {
                    return Some(at);
                }
                at += 1;
            }
            from = at;
        }
        // At a truncated end, a text may be shorter than the common prefix.
        let near_end = text.len().saturating_sub(needle.len() - 1).max(from);
        (near_end..text.len()).find(|at| {
            let rest = text.get(*at..);
            rest.is_some_and(|rest| needle.starts_with(rest))
        })
    }

    /// Returns whether the first eight bytes of `rest` match one of the texts, as far as both go.
    #[inline]
    fn may_begin(&self, rest: &[u8]) -> bool {
        let begun = Begin::of(rest);
        self.begins.iter().any(|begin| begin.agrees(begun))
    }

    /// Returns the next position of a first byte that the blocks do not exclude.
    #[inline]
    fn next_first(&self, text: &[u8], from: usize) -> Option<usize> {
        let mut at = match self.firsts {
            Firsts::None => return None,
            Firsts::One(_) => self.skip_one(text, from),
            Firsts::Few(_) => self.skip_few(text, from),
            Firsts::Many(ref bits) => {
                let rest = text.get(from..)?;
                let found = rest.iter().position(|byte| is_in(bits, *byte));
                return found.map(|index| from + index);
            }
        };
        while let Some(rest @ [_, ..]) = text.get(at..) {
            let hits = self.hits(word(rest));
            if hits != 0 {
                let place = first_place(hits);
                return (place < rest.len()).then_some(at + place);
            }
            at += 8;
        }
        None
    }

    #[inline(never)]
    fn skip_one(&self, text: &[u8], from: usize) -> usize {
        let [pair, ..] = self.pairs;
        skip::<16>(text, from, self.distance, |first, later| {
            has(first, later, pair)
        })
    }

    #[inline(never)]
    fn skip_few(&self, text: &[u8], from: usize) -> usize {
        let [one, two, three] = self.pairs;
        let mut at = from;
        if text.len().saturating_sub(from) > LONG {
            at = skip::<32>(text, from, self.distance, |first, later| {
                has(first, later, one) | has(first, later, two) | has(first, later, three)
            });
        }
        skip::<16>(text, at, self.distance, |first, later| {
            has(first, later, one) | has(first, later, two) | has(first, later, three)
        })
    }

    /// Returns a bit in the highest position of the first byte of `word` that begins a text, and perhaps of later ones; if
    /// many bytes begin a text, always of the first position.
    #[inline]
    fn hits(&self, word: u64) -> u64 {
        match self.firsts {
            Firsts::None => 0,
            Firsts::One(one) => equal_to(word, one),
            Firsts::Few([one, two, three]) => {
                equal_to(word, one) | equal_to(word, two) | equal_to(word, three)
            }
            Firsts::Many(_) => 1 << 7,
        }
    }
}

impl Begin {
    #[inline]
    pub(crate) fn of(text: &[u8]) -> Self {
        let unused = 8 - text.len().min(8);
        Self {
            word: word(text),
            mask: if unused == 8 {
                0
            } else {
                u64::MAX >> (8 * unused)
            },
        }
    }

    /// Returns whether the two match as far as both go.
    #[inline]
    pub(crate) const fn agrees(self, other: Self) -> bool {
        (self.word ^ other.word) & self.mask & other.mask == 0
    }
}

/// Creates the set of these bytes, a bit for each.
pub(crate) fn bits(bytes: impl Iterator<Item = u8>) -> [u64; 4] {
    let mut bits = [0; 4];
    for byte in bytes {
        if let Some(word) = bits.get_mut(usize::from(byte / 64)) {
            *word |= 1_u64 << (byte % 64);
        }
    }
    bits
}

/// Returns whether `byte` is in the set.
#[inline]
pub(crate) fn is_in(bits: &[u64; 4], byte: u8) -> bool {
    bits.get(usize::from(byte / 64))
        .is_some_and(|word| word & (1_u64 << (byte % 64)) != 0)
}

/// Returns the common prefix of all texts, of which at most the first eight bytes count.
fn common_beginning<'t>(texts: &[&'t [u8]]) -> &'t [u8] {
    let Some((first, others)) = texts.split_first() else {
        return &[];
    };
    let agrees = |len: &usize| {
        let begin = first.get(..*len);
        begin.is_some_and(|begin| others.iter().all(|other| other.starts_with(begin)))
    };
    let len = (1..=first.len().min(8)).take_while(agrees).last();
    first.get(..len.unwrap_or(0)).unwrap_or_default()
}

fn padded(pairs: &[(u8, u8)]) -> [(u8, u8); PAIRS] {
    let last = pairs.last().copied().unwrap_or_default();
    std::array::from_fn(|index| pairs.get(index).copied().unwrap_or(last))
}

/// Returns the first bytes of `text` as a little-endian number, padded with zeros.
#[inline]
pub(crate) fn word(text: &[u8]) -> u64 {
    if let Some(eight) = text.first_chunk::<8>() {
        return u64::from_le_bytes(*eight);
    }
    if let (Some(front), Some(back)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        let (front, back) = (u32::from_le_bytes(*front), u32::from_le_bytes(*back));
        return u64::from(front) | u64::from(back) << (8 * (text.len() - 4));
    }
    match *text {
        [one] => u64::from(one),
        [one, two] => u64::from_le_bytes([one, two, 0, 0, 0, 0, 0, 0]),
        [one, two, three] => u64::from_le_bytes([one, two, three, 0, 0, 0, 0, 0]),
        _ => 0,
    }
}

/// Returns a bit in the highest position of the first byte of `word` that equals `byte`, and perhaps of later ones.
#[inline]
const fn equal_to(word: u64, byte: u8) -> u64 {
    zeros(word ^ (ONES * byte as u64))
}

const ONES: u64 = u64::MAX / 255;

/// Returns the same for zero bytes.
#[inline]
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & (ONES << 7)
}

/// Returns a bit in the highest position of every zero byte, and no other.
#[inline]
const fn each_zero(word: u64) -> u64 {
    const LOW: u64 = ONES * 0x7F;
    !(((word & LOW) + LOW) | word | LOW)
}

/// Returns the position of the first byte in `hits`; 8 if there is none.
#[inline]
const fn first_place(hits: u64) -> usize {
    (hits.trailing_zeros() / 8) as usize
}

/// Returns whether none of the pairs is at any position except the last `distance` ones; `false` if the text is too short.
#[inline]
fn lacks<const N: usize>(text: &[u8], distance: usize, pairs: [(u8, u8); N]) -> bool {
    let firsts = text
        .len()
        .checked_sub(distance)
        .and_then(|end| text.get(..end));
    let (Some(firsts), Some(laters)) = (firsts, text.get(distance..)) else {
        return false;
    };
    let (Some(first), Some(later)) = (firsts.last_chunk::<BLOCK>(), laters.last_chunk()) else {
        return false;
    };
    let firsts = firsts.chunks_exact(BLOCK).map_while(<[u8]>::first_chunk);
    let laters = laters.chunks_exact(BLOCK).map_while(<[u8]>::first_chunk);
    // The last block may overlap the previous one.
    let blocks = firsts.zip(laters).chain([(first, later)]);
    let found = blocks.fold(false, |found, (first, later)| {
        pairs
            .iter()
            .fold(found, |found, pair| found | has(first, later, *pair))
    });
    !found
}

/// Advances `at` over all blocks of `N` positions that `has` excludes. The last block may overlap the previous one.
#[inline]
fn skip<const N: usize>(
    text: &[u8],
    mut at: usize,
    distance: usize,
    has: impl Fn(&[u8; N], &[u8; N]) -> bool,
) -> usize {
    let Some(last) = text.len().checked_sub(N + distance) else {
        return at;
    };
    while at < last + N {
        let start = at.min(last);
        let first = text.get(start..).and_then(|rest| rest.first_chunk::<N>());
        let later = text
            .get(start + distance..)
            .and_then(|rest| rest.first_chunk::<N>());
        match (first, later) {
            (Some(first), Some(later)) if !has(first, later) => at = start + N,
            _ => return at,
        }
    }
    at
}

/// Returns whether the pair is at one of the positions.
#[allow(
    clippy::needless_bitwise_bool,
    reason = "without branches the loop becomes vector instructions"
)]
#[inline]
fn has<const N: usize>(first: &[u8; N], later: &[u8; N], pair: (u8, u8)) -> bool {
    let places = first.iter().zip(later);
    places.fold(false, |found, (first, later)| {
        found | ((*first == pair.0) & (*later == pair.1))
    })
}

#[cfg(test)]
mod tests {
    use super::{Begin, Firsts, Scan, bits, each_zero, equal_to, first_place, is_in, skip, word};

    /// The definition: the first position where a text's first eight bytes, or the rest of the text, match.
    fn naive(texts: &[&str], text: &[u8], from: usize) -> Option<usize> {
        (from..text.len()).find(|&at| {
            texts.iter().any(|wanted| {
                let len = wanted.len().min(8).min(text.len() - at);
                wanted.as_bytes()[..len] == text[at..at + len]
            })
        })
    }

    #[test]
    fn every_place_is_found() {
        let sets: &[&[&str]] = &[
            &[],
            &["!!!GADGET_START:", "!!!GADGET_END", "!!!ARG:"],
            &["!!!GADGET_START:", "!!!ARG:", "\n"],
            &["\u{1F6E0}[", "\u{1F6E0}\u{FE0F}[", "\u{11F}\u{178}["],
            &["ab", "ba", "cc"],
            &["aabaaabaX", "aabaaabaY", "aabaaabaaaba"],
            &["\u{1F6E0}\u{FE0F}[", "\u{1F6E0}\u{FE0F}[/end]"],
            &["ab", "b", "cx", "dx", "ex"],
            &["\0\0", "\u{7f}\u{80}"],
        ];
        let pieces = [
            "!",
            "!!!",
            "!!!ARG:",
            "!!!GADGET_END",
            "\n",
            "\r\n",
            "a",
            "b",
            "cc",
            "aaba",
            "aabaaab",
            "x",
            "\0",
            "\u{7f}",
            "\u{80}",
            "\u{1F6E0}",
            "\u{FE0F}",
            "\u{1F680}",
            "[",
            "plain text, up to a block ",
            "plain text without anything in it, twice as long as a block and a little more ",
        ];
        let mut seed = 1_u64;
        let mut below = |bound: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(seed >> 33).expect("31 bits") % bound
        };
        for texts in sets {
            let scan = Scan::of(texts.iter().copied());
            for _ in 0..2_000 {
                let count = below(12);
                let text: String = (0..count).map(|_| pieces[below(pieces.len())]).collect();
                let from = below(text.len() + 1);
                let found = scan.next(text.as_bytes(), from);
                assert_eq!(
                    found,
                    naive(texts, text.as_bytes(), from),
                    "{texts:?} in {text:?} from {from}"
                );
                let plain = scan.plain_len(text.as_bytes());
                let expected = naive(texts, text.as_bytes(), 0).unwrap_or(text.len());
                assert_eq!(plain, expected, "{texts:?} in {text:?}");
            }
        }
    }

    /// All methods return the same positions; they differ only in speed.
    #[test]
    fn the_quickest_way_is_taken() {
        let check = |texts: &[&str], firsts: &str, common: Option<&str>| {
            let scan = Scan::of(texts.iter().copied());
            let found = match scan.firsts {
                Firsts::None => "none",
                Firsts::One(one) => {
                    assert_eq!(scan.one, Some(u64::from_ne_bytes([one; 8])));
                    "one"
                }
                Firsts::Few(_) => "few",
                Firsts::Many(_) => "many",
            };
            let needle = scan.common.as_ref().map(|common| common.needle());
            assert_eq!(
                (found, needle),
                (firsts, common.map(str::as_bytes)),
                "{texts:?}"
            );
        };
        check(&[], "none", None);
        check(
            &["!!!GADGET_START:", "!!!GADGET_END"],
            "one",
            Some("!!!GADGE"),
        );
        check(&["!!!ARG:", "!!!GADGET_END"], "one", Some("!!!"));
        check(&["!a", "!b"], "few", None);
        check(&["!ab", "!bb"], "one", None);
        check(&["ab", "\n", "cd"], "few", None);
        check(&["ab", "\n", "cd", "ef"], "many", None);
    }

    #[test]
    fn text_without_marker_pairs_is_skipped() {
        let check = |texts: &[&str], text: &str, lacks: bool, hits: u64| {
            let scan = Scan::of(texts.iter().copied());
            assert_eq!(
                scan.lacks_pairs(text.as_bytes()),
                lacks,
                "{texts:?} in {text:?}"
            );
            assert_eq!(
                scan.hits(word(text.as_bytes())),
                hits,
                "{texts:?} in {text:?}"
            );
        };
        let (one, few) = (&["!!!A", "!!!B"], &["!!!", "\n\n", "#?#"]);
        check(one, "more than a block, but without one", true, 0);
        check(one, "more than a block, with! one of! us", true, 0);
        check(one, "more than a block, with more of!!!", false, 0);
        check(one, "more than a block, with one at its!", false, 0);
        check(one, "!ore than a block, with one at 0", true, 1 << 7);
        check(few, "more than a block, but without one", true, 0);
        check(few, "more than a block, with! \n two of.", true, 0);
        check(few, "more than a block, with one: #?# .", false, 0);
        check(few, "mo#e than a block, with one: \n\n .", false, 1 << 23);
        check(&["a", "b", "c", "d"], "more than a block", false, 1 << 7);
        check(&[], "more than a block", false, 0);
    }

    #[test]
    fn blocks_without_the_pair_are_walked_over() {
        for (len, distance, expected) in [
            (15, 0, 0),
            (16, 0, 16),
            (17, 2, 0),
            (18, 2, 16),
            (50, 2, 48),
        ] {
            let found = skip::<16>(&vec![b'x'; len], 0, distance, |_, _| false);
            assert_eq!(found, expected, "{len}, {distance}");
        }
        let found = skip::<16>(&[b'x'; 50], 3, 2, |first, _| first.len() < 16);
        assert_eq!(found, 48);
        assert_eq!(skip::<16>(&[b'x'; 50], 3, 2, |_, _| true), 3);
    }

    #[test]
    fn a_word_is_the_first_eight_bytes() {
        for len in 0..12 {
            let text: Vec<u8> = (1..=len).collect();
            let mut bytes = [0; 8];
            let used = text.len().min(8);
            bytes[..used].copy_from_slice(&text[..used]);
            assert_eq!(word(&text), u64::from_le_bytes(bytes), "{len}");
            let mask = Begin::of(&text).mask;
            assert_eq!(mask.count_ones() as usize, 8 * used, "{len}");
        }
    }

    #[test]
    fn the_first_equal_byte_is_exact() {
        for byte in [0_u8, 1, b'!', 0x7F, 0x80, 0xFF] {
            for at in 0..8 {
                let mut bytes = [byte ^ 1; 8];
                bytes[at] = byte;
                let hits = equal_to(u64::from_le_bytes(bytes), byte);
                assert_eq!(first_place(hits), at, "{byte} at {at}");
            }
            assert_eq!(equal_to(u64::from_le_bytes([byte ^ 1; 8]), byte), 0);
            assert_eq!(first_place(0), 8);
        }
    }

    #[test]
    fn each_zero_byte_is_found_and_no_other() {
        for other in [1_u8, 0x7F, 0x80, 0x81, 0xFF] {
            for zeros in 0_u8..=255 {
                let is_zero = |at: usize| zeros & (1 << at) != 0;
                let word =
                    u64::from_le_bytes(std::array::from_fn(
                        |at| {
                            if is_zero(at) { 0 } else { other }
                        },
                    ));
                let expected =
                    u64::from_le_bytes(std::array::from_fn(
                        |at| {
                            if is_zero(at) { 0x80 } else { 0 }
                        },
                    ));
                assert_eq!(each_zero(word), expected, "{other} and zeros at {zeros:b}");
            }
        }
    }

    #[test]
    fn the_pair_is_found_in_few_bytes() {
        let check = |texts: &[&str], text: &str, expected: usize| {
            let scan = Scan::of(texts.iter().copied());
            let found = scan.pair_place(text.as_bytes());
            assert_eq!(found, expected, "{texts:?} in {text:?}");
        };
        let far = &["!!!ARG:", "!?!END"];
        check(far, "", 8);
        check(far, "x != y", 8);
        check(far, "!x!y", 0);
        check(far, "a !x", 2);
        check(far, "a! x", 8);
        check(far, "x! !..!", 1);
        check(far, "abcdef!g", 6);
        check(far, "abcde!gh", 8);
        check(&["!a", "!ab"], "!b !a", 3);
        check(&["!a", "!ab"], "!b !", 3);
        check(&["!", "!ab"], "x!", 1);
        check(&["!", "!ab"], "abcdefg!", 7);
        check(&["\0", "\0a"], "ab", 2);
    }

    #[test]
    fn a_set_of_bytes_holds_what_was_put_in() {
        let set = bits([0, 63, 64, 255].into_iter());
        for byte in 0..=255 {
            assert_eq!(
                is_in(&set, byte),
                [0, 63, 64, 255].contains(&byte),
                "{byte}"
            );
        }
    }
}
