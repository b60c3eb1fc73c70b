//! `check --every-split`: the text is read in many ways of chunks, and each is held against the whole.

use std::time::{Duration, Instant};

use plaincall_syntax::Dialect;
use serde::Serialize;

use crate::commands::check::progress::Progress;
use crate::commands::check::sameness::{Difference, Whole};
use crate::status::{Failure, Interruption};

/// Long texts also come in chunks of this length, once for each place that the first may begin at: so every byte is the
/// border of two chunks.
const STRIP: usize = 64;
/// The most places at which a random way cuts.
const CUTS: usize = 12;

/// How much is tried.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    /// Up to this length every pair of places is tried, in bytes: there are half as many as its square.
    pairs: usize,
    /// How many bytes are read for the places of one split. Up to the root of it, every place is tried.
    splits: usize,
    /// How often a text that is too long for pairs is cut at random, and how many bytes are read for it.
    random: usize,
    random_bytes: usize,
}

impl Effort {
    /// Some seconds for a text of any usual length: a text full of calls is read at some dozen MiB a second.
    pub(super) const USUAL: Self = Self {
        pairs: 512,
        splits: 1 << 28,
        random: 10_000,
        random_bytes: 1 << 26,
    };
}

/// What was tried, and what came of it.
pub(super) struct Proof {
    pub(super) groups: Vec<Group>,
    pub(super) took: Duration,
    pub(super) disagreement: Option<Disagreement>,
    /// Whether it was called off before all ways were tried.
    pub(super) is_interrupted: bool,
}

/// Ways of one kind.
#[derive(Serialize)]
pub(super) struct Group {
    /// How the text was cut.
    pub(super) cut: Cut,
    /// In how many ways that was.
    pub(super) ways: usize,
    /// Whether these are all ways of the kind.
    pub(super) all: bool,
    /// The kind in words.
    #[serde(skip)]
    pub(super) words: String,
}

/// How a text is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cut {
    /// Into single bytes.
    Bytes,
    /// Into two chunks.
    Once,
    /// Into three chunks.
    Twice,
    /// Into chunks of [`STRIP`] bytes.
    Strips,
    /// At up to [`CUTS`] random places.
    Random,
}

impl Cut {
    fn words(self, all: bool) -> String {
        match (self, all) {
            (Self::Bytes, _) => "one byte at a time".to_owned(),
            (Self::Once, true) => "in two chunks, split at every byte".to_owned(),
            (Self::Once, false) => {
                "in two chunks, split at places spread evenly: all of them would take too long"
                    .to_owned()
            }
            (Self::Twice, _) => "in three chunks, split at every pair of bytes".to_owned(),
            (Self::Strips, _) => {
                format!("in chunks of {STRIP} bytes, so that every byte once begins a chunk")
            }
            (Self::Random, _) => format!("split at up to {CUTS} random places"),
        }
    }
}

/// One way to cut a text.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Way {
    /// At these places, in order.
    At(Vec<usize>),
    /// At the first place, and then after every so many bytes.
    Each { first: usize, step: usize },
}

impl Way {
    /// The text in its chunks.
    fn chunks<'b>(&'b self, bytes: &'b [u8]) -> impl Iterator<Item = &'b [u8]> {
        let (places, first, step) = match self {
            Self::At(places) => (places.as_slice(), bytes.len(), 1),
            Self::Each { first, step } => (&[][..], *first, *step),
        };
        let each = (first..bytes.len()).step_by(step);
        let ends = places.iter().copied().chain(each).chain([bytes.len()]);
        ends.scan(0, |from, to| bytes.get(std::mem::replace(from, to)..to))
    }

    fn words(&self) -> String {
        match self {
            Self::At(places) => {
                let places: Vec<String> = places.iter().map(ToString::to_string).collect();
                format!("cut in front of byte {}", places.join(", "))
            }
            Self::Each { step: 1, .. } => "one byte at a time".to_owned(),
            Self::Each { first, step } => {
                format!("in a chunk of {first} bytes and then chunks of {step}")
            }
        }
    }
}

/// A way to cut the text that changes what it says.
#[derive(Debug)]
pub(super) struct Disagreement {
    pub(super) difference: Difference,
    /// The way, in words.
    pub(super) way: String,
}

impl Proof {
    /// Reads the text in every way that is tried, up to the first that does not agree.
    pub(super) fn attempt(
        bytes: &[u8],
        dialect: &Dialect,
        effort: Effort,
        seed: u64,
        progress: &mut Progress,
        interruption: &Interruption,
    ) -> Result<Self, Failure> {
        let begun = Instant::now();
        let mut attempt = Attempt {
            bytes,
            whole: Whole::read(bytes, dialect)?,
            groups: Vec::new(),
            progress,
            interruption,
        };
        let tried = interruption.heeded(|| attempt.all_ways(effort, seed));
        attempt.progress.end();
        let (disagreement, is_interrupted) = match tried {
            Ok(()) => (None, false),
            Err(Stop::Interrupted) => (None, true),
            Err(Stop::Disagrees(way)) => {
                let difference = attempt.whole.difference(way.chunks(bytes))?;
                let way = way.words();
                (Some(Disagreement { difference, way }), false)
            }
        };
        Ok(Self {
            groups: attempt.groups,
            took: begun.elapsed(),
            disagreement,
            is_interrupted,
        })
    }

    /// How many ways were tried.
    pub(super) fn ways(&self) -> usize {
        self.groups.iter().map(|group| group.ways).sum()
    }
}

struct Attempt<'t> {
    bytes: &'t [u8],
    whole: Whole,
    groups: Vec<Group>,
    progress: &'t mut Progress,
    interruption: &'t Interruption,
}

/// Why not all ways were tried.
enum Stop {
    /// This one does not agree with the whole.
    Disagrees(Way),
    Interrupted,
}

impl Attempt<'_> {
    /// Tries all ways, up to the first that does not agree.
    fn all_ways(&mut self, effort: Effort, seed: u64) -> Result<(), Stop> {
        let length = self.bytes.len();
        // Between any two bytes the text can be cut.
        let places = length.saturating_sub(1);
        if places == 0 {
            return Ok(());
        }
        let is_short = length <= effort.pairs;
        let splits = places.min(effort.splits / length).max(1);
        let is_long = splits < places;
        let pairs = places * (places - 1) / 2;
        let random = effort.random.min(effort.random_bytes / length).max(1);
        self.progress.begin(
            1 + splits + if is_short { pairs } else { random } + if is_long { STRIP } else { 0 },
        );

        let bytes = Way::Each { first: 1, step: 1 };
        self.group(Cut::Bytes, true, [bytes])?;
        let place = |index: usize| 1 + index * places / splits;
        let once = (0..splits).map(|index| Way::At(vec![place(index)]));
        self.group(Cut::Once, !is_long, once)?;
        if is_long {
            let strips = (1..=STRIP).map(|first| Way::Each { first, step: STRIP });
            self.group(Cut::Strips, true, strips)?;
        }
        if is_short {
            let twice =
                (1..length).flat_map(|first| (first + 1..length).map(move |next| [first, next]));
            return self.group(
                Cut::Twice,
                true,
                twice.map(|places| Way::At(places.to_vec())),
            );
        }
        let mut draw = Draw(seed);
        let at_random = (0..random).map(|_| {
            let count = 1 + draw.below(CUTS);
            let mut at: Vec<usize> = (0..count).map(|_| 1 + draw.below(places)).collect();
            at.sort_unstable();
            at.dedup();
            Way::At(at)
        });
        self.group(Cut::Random, false, at_random)
    }

    /// Tries ways of one kind.
    fn group(
        &mut self,
        cut: Cut,
        all: bool,
        ways: impl IntoIterator<Item = Way>,
    ) -> Result<(), Stop> {
        let mut group = Group {
            cut,
            ways: 0,
            all,
            words: cut.words(all),
        };
        let mut tried = Ok(());
        for way in ways {
            if self.interruption.has_come() {
                group.all = false;
                group.words.push_str(" (not all of these: interrupted)");
                tried = Err(Stop::Interrupted);
                break;
            }
            if !self.whole.is_said_by(way.chunks(self.bytes)) {
                return Err(Stop::Disagrees(way));
            }
            group.ways += 1;
            self.progress.step();
        }
        if group.ways > 0 {
            self.groups.push(group);
        }
        tried
    }
}

/// Numbers that look random and are the same for the same seed: `SplitMix64`.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        let bound = u64::try_from(bound.max(1)).unwrap_or(u64::MAX);
        usize::try_from(mixed % bound).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use plaincall_syntax::Dialect;

    use super::{Cut, Draw, Effort, Proof, STRIP, Way};
    use crate::commands::check::progress::Progress;
    use crate::environment::Environment;
    use crate::options::Color;
    use crate::status::Interruption;

    fn check(way: &Way, text: &str, expected: &[&str]) {
        let chunks: Vec<&[u8]> = way.chunks(text.as_bytes()).collect();
        let expected: Vec<&[u8]> = expected.iter().map(|chunk| chunk.as_bytes()).collect();
        assert_eq!(chunks, expected, "{way:?}");
    }

    #[test]
    fn ways_cut_where_they_say() {
        check(&Way::At(vec![2]), "abcde", &["ab", "cde"]);
        check(&Way::At(vec![1, 4]), "abcde", &["a", "bcd", "e"]);
        check(&Way::Each { first: 1, step: 1 }, "abc", &["a", "b", "c"]);
        check(
            &Way::Each { first: 2, step: 3 },
            "abcdefg",
            &["ab", "cde", "fg"],
        );
        check(&Way::Each { first: 9, step: 3 }, "abc", &["abc"]);
    }

    #[test]
    fn strips_begin_once_at_every_byte() {
        let text = [b'x'; 3 * STRIP + 5];
        let mut borders = Vec::new();
        for first in 1..=STRIP {
            let way = Way::Each { first, step: STRIP };
            let ends = way.chunks(&text).scan(0, |end, chunk| {
                *end += chunk.len();
                Some(*end)
            });
            borders.extend(ends.filter(|&end| end < text.len()));
        }
        borders.sort_unstable();
        assert_eq!(borders, (1..text.len()).collect::<Vec<_>>());
    }

    #[test]
    fn draws_reach_every_number() {
        let mut draw = Draw(0);
        let drawn: BTreeSet<usize> = (0..200).map(|_| draw.below(7)).collect();
        assert_eq!(drawn, (0..7).collect());
        assert_ne!(Draw(0).below(1 << 30), Draw(1).below(1 << 30));
    }

    /// A proof with little effort for a text of so many bytes.
    fn attempt(length: usize, interruption: &Interruption) -> Proof {
        let effort = Effort {
            pairs: 20,
            splits: 10_000,
            random: 30,
            random_bytes: 5_000,
        };
        let text: Vec<u8> = b"a !!!GADGET_\xff \\"
            .iter()
            .copied()
            .cycle()
            .take(length)
            .collect();
        let mut progress = Progress::new(Color::Never, &Environment::read());
        let dialect = Dialect::auto();
        Proof::attempt(&text, &dialect, effort, 1, &mut progress, interruption).unwrap()
    }

    /// What is tried of a text of so many bytes.
    fn check_groups(length: usize, expected: &[(Cut, usize, bool)]) {
        let proof = attempt(length, &Interruption::new());
        assert!(proof.disagreement.is_none() && !proof.is_interrupted);
        let groups: Vec<_> = proof
            .groups
            .iter()
            .map(|it| (it.cut, it.ways, it.all))
            .collect();
        assert_eq!(groups, expected, "{length}");
    }

    #[test]
    fn an_interruption_ends_it() {
        let interruption = Interruption::new();
        interruption.come();
        let proof = attempt(100, &interruption);
        assert!(proof.is_interrupted && proof.disagreement.is_none());
        assert_eq!(proof.ways(), 0);
    }

    #[test]
    fn effort_is_bounded() {
        check_groups(0, &[]);
        check_groups(1, &[]);
        check_groups(2, &[(Cut::Bytes, 1, true), (Cut::Once, 1, true)]);
        check_groups(
            20,
            &[
                (Cut::Bytes, 1, true),
                (Cut::Once, 19, true),
                (Cut::Twice, 171, true),
            ],
        );
        check_groups(
            100,
            &[
                (Cut::Bytes, 1, true),
                (Cut::Once, 99, true),
                (Cut::Random, 30, false),
            ],
        );
        check_groups(
            500,
            &[
                (Cut::Bytes, 1, true),
                (Cut::Once, 20, false),
                (Cut::Strips, STRIP, true),
                (Cut::Random, 10, false),
            ],
        );
        check_groups(
            20_000,
            &[
                (Cut::Bytes, 1, true),
                (Cut::Once, 1, false),
                (Cut::Strips, STRIP, true),
                (Cut::Random, 1, false),
            ],
        );
    }
}
