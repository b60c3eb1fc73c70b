//! The near misses of markers at the beginning of a line, as patterns (`spec/common.md` 9).
//!
//! They match all near misses and a little more, so that the grammar stays small (`spec/grammar.md` 3.2).

use plaincall_syntax::is_blank;

use crate::pattern::{Characters, Pattern};

/// How many characters of a marker's word are excluded behind a part of its sigil.
const BEGIN: usize = 4;

/// The near misses of the block syntax.
pub(crate) fn of_block(markers: &[String], is_escaped: bool) -> Vec<Pattern> {
    let is_bare = |marker: &&String| Word::of(marker).is_none();
    let bare = markers.iter().filter(is_bare).map(|marker| loose(marker));
    let words: Vec<Word> = markers
        .iter()
        .filter_map(|marker| Word::of(marker))
        .collect();
    let spelled = words.iter().flat_map(Word::spelled);
    let half = words.iter().flat_map(Word::half);
    let mut all: Vec<Pattern> = Vec::new();
    for pattern in bare
        .chain(spelled)
        .chain(half)
        .chain(renamed(&words, is_escaped))
    {
        if !all.contains(&pattern) {
            all.push(pattern);
        }
    }
    all
}

/// The near misses of the emoji syntax.
pub(crate) fn of_emoji(markers: &[String]) -> Vec<Pattern> {
    let tails = markers
        .iter()
        .filter_map(|marker| marker.get(marker.find('[')?..));
    let mut tails: Vec<&str> = tails.filter(|tail| tail.len() > 1).collect();
    tails.dedup();
    let signs = tails.into_iter().flat_map(other_signs);
    markers
        .iter()
        .map(|marker| loose(marker))
        .chain(signs)
        .collect()
}

fn blank() -> Pattern {
    Pattern::one_of(" \t\u{3000}")
}

fn blanks() -> Pattern {
    blank().repeat(0, None)
}

/// A character in either case, full-width or not.
fn folded(character: char) -> Pattern {
    let either = either_case(&String::from(character));
    Pattern::choice([either].into_iter().chain(wide(character)))
}

/// The full-width forms of a character.
fn wide(character: char) -> Option<Pattern> {
    let cases = [
        character.to_ascii_lowercase(),
        character.to_ascii_uppercase(),
    ];
    let wide = cases.into_iter().filter(char::is_ascii_graphic);
    let wide = wide.filter_map(|one| char::from_u32(u32::from(one) + 0xFEE0));
    let wide: String = wide.collect();
    (!wide.is_empty()).then(|| Pattern::one_of(&wide))
}

/// The same in either case.
fn either_case(text: &str) -> Pattern {
    let either = |c: char| {
        Pattern::one_of(&String::from_iter([
            c.to_ascii_lowercase(),
            c.to_ascii_uppercase(),
        ]))
    };
    Pattern::sequence(text.chars().map(either))
}

/// A marker with other letter cases, full-width characters, and blanks between its characters (`spec/common.md` 9, rule 1).
fn loose(marker: &str) -> Pattern {
    let parts = marker.chars().enumerate().flat_map(|(index, character)| {
        let before = (index > 0 && !is_blank(character)).then(blanks);
        before.into_iter().chain([folded(character)])
    });
    Pattern::sequence(parts)
}

/// The end marker with another emoji, or without one.
fn other_signs(tail: &str) -> [Pattern; 2] {
    let emoji = Characters::of_ranges([(0x2300, 0x23FF), (0x2600, 0x27BF), (0x1F000, 0x1FAFF)]);
    let sign = [
        Pattern::Characters(emoji),
        Pattern::one_of("\u{FE0F}").optional(),
        Pattern::literal(tail),
    ];
    [either_case(tail), Pattern::sequence(sign)]
}

/// A block marker in three parts (`spec/common.md` 9, rule 2).
#[derive(Debug)]
struct Word {
    sigil: String,
    core: String,
    tail: String,
}

impl Word {
    fn of(marker: &str) -> Option<Self> {
        let is_core = char::is_alphanumeric;
        let (sigil, rest) = marker.split_at_checked(marker.find(is_core)?)?;
        let last = rest.char_indices().rev().find(|(_, one)| is_core(*one))?;
        let (core, tail) = rest.split_at_checked(last.0 + last.1.len_utf8())?;
        Some(Self {
            sigil: sigil.to_owned(),
            core: core.to_owned(),
            tail: tail.to_owned(),
        })
    }

    /// Whether its sigil is so long that a line that begins with it and a word is rare. Then the first characters of its word
    /// are enough to exclude a near miss, which keeps the grammar small.
    fn has_long_sigil(&self) -> bool {
        self.sigil.chars().nth(1).is_some()
    }

    /// The part of the word and the tail that is excluded behind a part of the sigil.
    fn begin(&self) -> String {
        let all = self.core.chars().chain(self.tail.chars());
        all.take(if self.has_long_sigil() {
            BEGIN
        } else {
            usize::MAX
        })
        .collect()
    }

    /// The marker with other letter cases, full-width characters, and blanks between its characters (rule 1).
    fn spelled(&self) -> Vec<Pattern> {
        let begin = self.begin();
        if !self.has_long_sigil() {
            return vec![loose(&format!("{}{begin}", self.sigil))];
        }
        // A word directly after the sigil is excluded by rule 3. So something must be between them, or in the sigil.
        let sigil: Vec<char> = self.sigil.chars().collect();
        let deviation = |at: usize| {
            let exact: String = sigil.iter().take(at).collect();
            let next = sigil.get(at).copied();
            let blank = (at > 0).then(|| {
                Pattern::sequence([
                    blank().repeat(1, None),
                    next.map_or(Pattern::literal(""), folded),
                ])
            });
            let wide = next.and_then(wide);
            let rest: String = sigil
                .iter()
                .skip(at + 1)
                .chain(&begin.chars().collect::<Vec<_>>())
                .collect();
            let deviations = Pattern::choice(blank.into_iter().chain(wide));
            Pattern::sequence([Pattern::literal(exact), deviations, blanks(), loose(&rest)])
        };
        (0..=sigil.len()).map(deviation).collect()
    }

    /// The marker with less of its sigil, or without its tail (rule 2).
    fn half(&self) -> Vec<Pattern> {
        let core = || either_case(&self.core);
        let line_end = || {
            Pattern::sequence([
                Pattern::one_of(" \t").repeat(0, None),
                Pattern::one_of("\r").optional(),
                Pattern::literal("\n"),
            ])
        };
        let suffixes = self.sigil.char_indices().skip(1).map(|(at, _)| at);
        let ends = suffixes.chain((!self.sigil.is_empty()).then_some(self.sigil.len()));
        let mut all: Vec<Pattern> = ends
            .filter_map(|at| {
                let sigil = self.sigil.get(at..)?;
                let bare = sigil.is_empty() && self.tail.is_empty();
                let parts = [
                    Pattern::literal(sigil),
                    core(),
                    Pattern::literal(&*self.tail),
                ];
                let end = bare.then(line_end);
                Some(Pattern::sequence(parts.into_iter().chain(end)))
            })
            .collect();
        if !self.tail.is_empty() && self.sigil.is_empty() {
            all.push(Pattern::sequence([core(), line_end()]));
        }
        all
    }

    /// The marker without its tail (rule 2), and a word that shares a part with it or begins with it (rule 3). An escaped marker
    /// stays possible in an escaped dialect.
    fn shared(&self, is_escaped: bool) -> Pattern {
        let word = || Pattern::Characters(Characters::of_words());
        let parts = self.core.split('_').map(either_case);
        let part = Pattern::sequence([
            Pattern::sequence([word().repeat(0, None), Pattern::literal("_")]).optional(),
            Pattern::choice(parts),
            Pattern::sequence([Pattern::literal("_"), word().repeat(0, None)]).optional(),
        ]);
        let begins = Pattern::sequence([either_case(&self.core), word().repeat(0, None)]);
        let not_word = Characters::of_words().not();
        let not_word = not_word.without(if is_escaped { "\\" } else { "" });
        // Without a tail, the word must end.
        let named = Pattern::choice([part, begins]);
        let word = if self.tail.is_empty() {
            Pattern::sequence([named, Pattern::Characters(not_word)])
        } else {
            let without_tail = [either_case(&self.core), Pattern::Characters(not_word)];
            let without_tail = (!self.sigil.is_empty()).then(|| Pattern::sequence(without_tail));
            let with_tail = Pattern::sequence([named, Pattern::literal(&*self.tail)]);
            Pattern::choice(without_tail.into_iter().chain([with_tail]))
        };
        Pattern::sequence([Pattern::literal(&*self.sigil), word])
    }
}

/// The renamed markers (rule 3). After a sigil of two characters or more, any word is excluded: such lines are rare, and the
/// grammar stays small. In an escaped dialect, an escaped marker is still possible.
fn renamed(words: &[Word], is_escaped: bool) -> Vec<Pattern> {
    let mut all = Vec::new();
    let mut sigils: Vec<&str> = Vec::new();
    for word in words {
        if !word.has_long_sigil() {
            all.push(word.shared(is_escaped));
        } else if !sigils.contains(&&*word.sigil) {
            sigils.push(&word.sigil);
        }
    }
    for sigil in sigils {
        let escaped = words
            .iter()
            .filter(|word| is_escaped && word.sigil == sigil);
        let escaped = escaped.filter_map(|word| {
            let mut stem = format!("{}{}", word.core, word.tail);
            let last = stem.pop()?;
            Some(format!("{stem}\\{last}"))
        });
        all.extend(deviations(sigil, &escaped.collect::<Vec<_>>()));
    }
    all
}

/// Every text with this sigil and a word, up to the character that no escaped marker has there.
fn deviations(sigil: &str, escaped: &[String]) -> Vec<Pattern> {
    let mut prefixes: Vec<&str> = escaped
        .iter()
        .flat_map(|one| {
            one.char_indices()
                .map(|(at, _)| one.get(..at).unwrap_or_default())
        })
        .chain([""])
        .collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    let deviation = |prefix: &str| {
        let next = escaped
            .iter()
            .filter_map(|one| one.strip_prefix(prefix)?.chars().next());
        let next: String = next.collect();
        let first = if prefix.is_empty() {
            Characters::of_words()
        } else {
            Characters::any()
        };
        let text = Pattern::literal(format!("{sigil}{prefix}"));
        Pattern::sequence([text, Pattern::Characters(first.without(&next))])
    };
    prefixes.into_iter().map(deviation).collect()
}
