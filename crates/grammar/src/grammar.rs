//! The grammar of replies, in the notation of any engine.

use std::collections::BTreeSet;

use plaincall_syntax::{Dialect, DialectError, MarkerUse, Syntax};

use crate::arguments::{ArgumentValue, Lines};
use crate::automaton::Automaton;
use crate::emoji::{EmojiBody, EmojiForm};
use crate::error::GrammarError;
use crate::exclusion::Exclusion;
use crate::pattern::Pattern;
use crate::text::Texts;
use crate::unheld::Unheld;

/// The maximum number of parts of rules, in the copies that each value has in a structural tag.
const MOST_COPIED: usize = 1_000_000;

/// The characters of JSON outside strings.
const JSON_SIGNS: &str = "[]{},:+-.0123456789eEtrufalsn";

/// A grammar of replies, in the notation of any engine.
#[derive(Clone, Debug)]
pub struct Grammar {
    pub(crate) markers: Markers,
    pub(crate) prose: Exclusion,
    pub(crate) value: Exclusion,
    /// Any text of a value.
    pub(crate) free_text: Automaton,
    pub(crate) texts: Texts,
    pub(crate) calls: Vec<CallForm>,
    pub(crate) rules: Vec<Pattern>,
    pub(crate) unheld: Vec<Unheld>,
    pub(crate) needs_call: bool,
    /// The maximum number of calls.
    pub(crate) most: usize,
    pub(crate) has_ids: bool,
    pub(crate) reasoning: Option<Reasoning>,
}

#[derive(Clone, Debug)]
pub(crate) struct CallForm {
    pub(crate) name: String,
    pub(crate) form: Form,
}

#[derive(Clone, Debug)]
pub(crate) enum Form {
    Block(Lines),
    Emoji(EmojiForm),
}

#[derive(Clone, Debug)]
pub(crate) struct Reasoning {
    pub(crate) open: String,
    pub(crate) close: String,
    /// Whether the reply begins inside reasoning.
    pub(crate) is_open: bool,
}

/// The markers that the grammar writes, and all that it excludes.
#[derive(Clone, Debug)]
pub(crate) struct Markers {
    pub(crate) start: String,
    pub(crate) end: String,
    pub(crate) arg: String,
    pub(crate) all: Vec<String>,
}

impl Markers {
    pub(crate) fn of(dialect: &Dialect) -> Result<Self, DialectError> {
        let forms = dialect.without_reasoning().markers()?;
        // The first form is the canonical one.
        let of = |wanted: fn(MarkerUse) -> bool| {
            let found = forms.iter().find(|form| wanted(form.usage));
            found.map_or_else(String::new, |form| form.text.clone())
        };
        Ok(Self {
            start: of(|usage| matches!(usage, MarkerUse::Start(_))),
            end: of(|usage| matches!(usage, MarkerUse::End(_))),
            arg: of(|usage| usage == MarkerUse::Argument),
            all: forms.iter().map(|form| form.text.clone()).collect(),
        })
    }

    /// Checks that the text around a marker cannot make it another one, and that JSON contains none.
    pub(crate) fn check(&self, syntax: Syntax) -> Result<(), GrammarError> {
        let written = match syntax {
            Syntax::Block => vec![&self.start],
            Syntax::Emoji => vec![&self.start, &self.end],
        };
        let overlaps = |marker: &String| {
            let mut ends = marker.char_indices().skip(1);
            ends.any(|(at, _)| {
                let end = marker.get(at..).unwrap_or_default();
                written.iter().any(|written| written.starts_with(end))
            })
        };
        let is_json = |marker: &String| {
            marker.contains('"') || marker.chars().all(|one| JSON_SIGNS.contains(one))
        };
        match self
            .all
            .iter()
            .find(|marker| overlaps(marker) || is_json(marker))
        {
            None => Ok(()),
            Some(marker) => Err(GrammarError::Marker {
                marker: marker.clone(),
            }),
        }
    }
}

impl Grammar {
    /// Returns the keywords of the schemas that no notation of the grammar enforces; [`unheld_by`](Self::unheld_by) returns those of one
    /// engine. The ids of calls and dependencies on unknown calls are not checked either.
    pub fn unheld(&self) -> &[Unheld] {
        &self.unheld
    }

    /// Returns the pointer of the first value with which a structural tag, where each value has its own copy of the rules, would be
    /// too large.
    pub(crate) fn first_copied_too_often(&self) -> Option<String> {
        let sizes: Vec<usize> = self.rules.iter().map(Pattern::size).collect();
        let mut left = MOST_COPIED;
        let mut too_often = None;
        for call in &self.calls {
            let Form::Block(lines) = &call.form else {
                continue;
            };
            lines.arguments(&mut |pointer, value| {
                let ArgumentValue::Pattern(pattern) = value else {
                    return;
                };
                let mut reached = BTreeSet::new();
                let mut open = vec![pattern];
                while let (Some(one), None) = (open.pop(), &too_often) {
                    one.references(&mut |reference| {
                        let Pattern::Rule(rule) = reference else {
                            return;
                        };
                        if reached.insert(*rule) {
                            open.extend(self.rules.get(*rule));
                            left -= left.min(sizes.get(*rule).copied().unwrap_or_default());
                        }
                    });
                    if left == 0 {
                        too_often = Some(pointer.to_owned());
                    }
                }
            });
        }
        too_often
    }

    /// Returns `true` if a value may be any text, and the other texts that calls or rules contain.
    pub(crate) fn used_texts(&self) -> (bool, BTreeSet<usize>) {
        let (mut is_free, mut used) = (false, BTreeSet::new());
        let mut patterns: Vec<&Pattern> = self.rules.iter().collect();
        for call in &self.calls {
            match &call.form {
                Form::Block(lines) => lines.arguments(&mut |_, value| match value {
                    ArgumentValue::Text => is_free = true,
                    ArgumentValue::Limited(text) => used.extend([*text]),
                    ArgumentValue::Pattern(pattern) => patterns.push(pattern),
                }),
                Form::Emoji(EmojiForm { line, body }) => {
                    patterns.push(line);
                    match body {
                        EmojiBody::Text { limited: None, .. } => is_free = true,
                        EmojiBody::Text { limited, .. } => used.extend(*limited),
                        EmojiBody::Pattern(pattern) => patterns.push(pattern),
                    }
                }
            }
        }
        for pattern in patterns {
            pattern.references(&mut |one| {
                if let Pattern::Text(text) = one {
                    used.insert(*text);
                }
            });
        }
        (is_free, used)
    }

    /// Returns the texts whose limits a structural tag enforces.
    pub(crate) fn limited_in_tag(&self) -> BTreeSet<usize> {
        self.texts.in_tag(self.used_texts().1)
    }

    /// Returns the limits of strings that other texts than these enforce.
    pub(crate) fn limits_without(
        &self,
        is_limited: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = &Unheld> {
        let (_, mut texts) = self.used_texts();
        texts.retain(|index| !is_limited(*index));
        let texts = texts
            .into_iter()
            .filter_map(|index| self.texts.all.get(index));
        texts.flat_map(|text| &text.limits)
    }
}
