//! The language-neutral form of a grammar: characters, patterns and rules.

use std::mem;

/// The largest code point.
const LAST: u32 = 0x0010_FFFF;
/// A literal of this many bytes counts as more than one part: engines keep each character.
const LONG: usize = 64;

/// A set of characters: ranges of code points, sorted, neither overlapping nor adjacent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Characters(Vec<(u32, u32)>);

impl Characters {
    pub(crate) fn any() -> Self {
        Self(vec![(0, LAST)])
    }

    pub(crate) fn one(character: char) -> Self {
        Self(vec![(character.into(), character.into())])
    }

    pub(crate) fn one_of(characters: &str) -> Self {
        Self::of_ranges(characters.chars().map(|one| (one.into(), one.into())))
    }

    pub(crate) fn of_ranges(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut all: Vec<(u32, u32)> = ranges.into_iter().collect();
        all.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(all.len());
        for (first, last) in all {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last);
                }
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    /// The ASCII letters, digits and `_`.
    pub(crate) fn of_ascii_words() -> Self {
        let ascii = [('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
        Self::of_ranges(ascii.map(|(first, last)| (first.into(), last.into())))
    }

    /// The ASCII letters, digits and `_`, and every character that is not ASCII.
    pub(crate) fn of_words() -> Self {
        Self::of_ascii_words().or(&Self::of_ranges([(0x80, LAST)]))
    }

    pub(crate) fn not(&self) -> Self {
        let mut gaps = Vec::new();
        let mut next = 0;
        for (first, last) in &self.0 {
            if *first > next {
                gaps.push((next, first - 1));
            }
            next = last + 1;
        }
        if next <= LAST {
            gaps.push((next, LAST));
        }
        Self(gaps)
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        self.not().or(&other.not()).not()
    }

    pub(crate) fn or(&self, other: &Self) -> Self {
        Self::of_ranges(self.0.iter().chain(&other.0).copied())
    }

    pub(crate) fn without(&self, characters: &str) -> Self {
        self.and(&Self::one_of(characters).not())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, character: char) -> bool {
        let code = u32::from(character);
        let mut ranges = self.0.iter();
        ranges.any(|(first, last)| *first <= code && code <= *last)
    }

    pub(crate) fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// Returns the form in which most engines read it fastest: the ranges, and whether they are the excluded ones.
    pub(crate) fn shortest(&self) -> (Self, bool) {
        let is_open = self.0.last().is_some_and(|(_, last)| *last == LAST);
        if is_open {
            (self.not(), true)
        } else {
            (self.clone(), false)
        }
    }
}

/// Texts of a language: a regular expression that may also refer to rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    Literal(String),
    Characters(Characters),
    Sequence(Vec<Self>),
    Choice(Vec<Self>),
    Repeat {
        of: Box<Self>,
        least: u32,
        most: Option<u32>,
    },
    /// The texts of a rule.
    Rule(usize),
    /// A text of an automaton, such as a JSON string.
    Text(usize),
}

impl Pattern {
    pub(crate) fn literal(text: impl Into<String>) -> Self {
        Self::Literal(text.into())
    }

    pub(crate) fn one_of(characters: &str) -> Self {
        Self::Characters(Characters::one_of(characters))
    }

    pub(crate) fn any_text() -> Self {
        Self::Characters(Characters::any()).repeat(0, None)
    }

    pub(crate) fn digits(least: u32, most: u32) -> Self {
        Self::one_of("0123456789").repeat(least, Some(most))
    }

    pub(crate) fn sequence(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut all = Vec::new();
        for part in parts {
            match (part, all.last_mut()) {
                (Self::Sequence(parts), _) => all.extend(parts),
                (Self::Literal(text), _) if text.is_empty() => {}
                (Self::Literal(text), Some(Self::Literal(before))) => before.push_str(&text),
                (part, _) => all.push(part),
            }
        }
        match all.as_mut_slice() {
            [only] => mem::replace(only, Self::Choice(Vec::new())),
            _ => Self::Sequence(all),
        }
    }

    pub(crate) fn choice(options: impl IntoIterator<Item = Self>) -> Self {
        let mut all: Vec<Self> = Vec::new();
        for option in options {
            match (option, all.last_mut()) {
                (Self::Choice(options), _) => all.extend(options),
                (Self::Characters(more), Some(Self::Characters(known))) => *known = known.or(&more),
                (option, _) => all.push(option),
            }
        }
        all.dedup();
        match all.as_mut_slice() {
            [only] => mem::replace(only, Self::Choice(Vec::new())),
            _ => Self::Choice(all),
        }
    }

    pub(crate) fn repeat(self, least: u32, most: Option<u32>) -> Self {
        if most == Some(0) {
            return Self::literal("");
        }
        Self::Repeat {
            of: Box::new(self),
            least,
            most,
        }
    }

    pub(crate) fn optional(self) -> Self {
        self.repeat(0, Some(1))
    }

    /// Returns the number of its parts.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Sequence(parts) | Self::Choice(parts) => {
                let sizes = parts.iter().map(Self::size);
                sizes.fold(1, usize::saturating_add)
            }
            Self::Repeat { of, least, most } => {
                // Engines write repetitions out.
                let times = most.unwrap_or(*least).max(1);
                let times = usize::try_from(times).unwrap_or(usize::MAX);
                of.size().saturating_mul(times).saturating_add(1)
            }
            Self::Literal(text) if text.len() >= LONG => text.len() / 2,
            _ => 1,
        }
    }

    /// Visits the rules and texts that it refers to.
    pub(crate) fn references(&self, visit: &mut dyn FnMut(&Self)) {
        match self {
            Self::Sequence(parts) | Self::Choice(parts) => {
                for part in parts {
                    part.references(visit);
                }
            }
            Self::Repeat { of, .. } => of.references(visit),
            Self::Rule(_) | Self::Text(_) => visit(self),
            Self::Literal(_) | Self::Characters(_) => {}
        }
    }

    /// Returns `true` if the empty text is one of its texts. A rule counts as never empty.
    pub(crate) fn may_be_empty(&self) -> bool {
        match self {
            Self::Literal(text) => text.is_empty(),
            Self::Sequence(parts) => parts.iter().all(Self::may_be_empty),
            Self::Choice(options) => options.iter().any(Self::may_be_empty),
            Self::Repeat { of, least, .. } => *least == 0 || of.may_be_empty(),
            Self::Characters(_) | Self::Rule(_) | Self::Text(_) => false,
        }
    }

    /// Returns the beginnings of its texts, of about this many characters, and how many are missing.
    pub(crate) fn begin(&self, most: usize) -> (Self, usize) {
        match self {
            _ if most == 0 => (Self::literal(""), 0),
            Self::Literal(text) => {
                let begin: String = text.chars().take(most).collect();
                let left = most - begin.chars().count();
                (Self::literal(begin), left)
            }
            Self::Sequence(parts) => {
                let mut left = most;
                let begins = parts.iter().map(|part| {
                    let (begin, missing) = part.begin(left);
                    left = missing;
                    begin
                });
                (Self::sequence(begins.collect::<Vec<Self>>()), left)
            }
            Self::Choice(options) => {
                let begins = options.iter().map(|option| option.begin(most));
                let (begins, left): (Vec<Self>, Vec<usize>) = begins.unzip();
                (Self::choice(begins), left.into_iter().min().unwrap_or(most))
            }
            Self::Repeat { least: 0, .. } => (self.clone(), most),
            other => (other.clone(), most - 1),
        }
    }

    /// Returns the texts that are texts of this pattern if a line end follows them; `None` if there are none. Rules are
    /// ignored.
    pub(crate) fn before_line_end(&self) -> Option<Self> {
        match self {
            Self::Literal(text) => text.strip_suffix('\n').map(Self::literal),
            Self::Characters(characters) => characters.has('\n').then(|| Self::literal("")),
            Self::Sequence(parts) => {
                let mut options = Vec::new();
                for (index, part) in parts.iter().enumerate().rev() {
                    if let Some(end) = part.before_line_end() {
                        let before = parts.iter().take(index).cloned();
                        options.push(Self::sequence(before.chain([end])));
                    }
                    if !part.may_be_empty() {
                        break;
                    }
                }
                (!options.is_empty()).then(|| Self::choice(options))
            }
            Self::Choice(options) => {
                let options: Vec<Self> = options.iter().filter_map(Self::before_line_end).collect();
                (!options.is_empty()).then(|| Self::choice(options))
            }
            Self::Repeat { of, least, most } => {
                let most = most.map(|most| most.saturating_sub(1));
                let before = (**of).clone().repeat(least.saturating_sub(1), most);
                Some(Self::sequence([before, of.before_line_end()?]))
            }
            Self::Rule(_) | Self::Text(_) => None,
        }
    }

    /// Returns `true` if it refers to no rule, so that a regular expression can express it.
    pub(crate) fn is_regular(&self) -> bool {
        match self {
            Self::Literal(_) | Self::Characters(_) => true,
            Self::Sequence(parts) | Self::Choice(parts) => parts.iter().all(Self::is_regular),
            Self::Repeat { of, .. } => of.is_regular(),
            Self::Rule(_) | Self::Text(_) => false,
        }
    }
}
