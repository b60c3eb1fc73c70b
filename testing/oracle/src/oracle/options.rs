//! The options of a dialect as plain data.

use plaincall_syntax::{Dialect, Syntax};

use super::{Family, Role};

type Setter = fn(Dialect) -> Dialect;

/// The options of a dialect (`spec/common.md` 12).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own"
)]
pub struct Options {
    /// `None` is the automatic dialect.
    pub syntax: Option<Syntax>,
    /// The custom start marker of the block syntax.
    pub start: Option<String>,
    /// The custom end marker of the block syntax.
    pub end: Option<String>,
    /// The custom argument marker of the block syntax.
    pub arg: Option<String>,
    /// The key that is part of every marker.
    pub key: Option<String>,
    /// Whether there is an escape.
    pub escaped: bool,
    /// Whether markers count anywhere in a call, block syntax.
    pub anywhere: bool,
    /// Whether the canonical sign alone is a sign, emoji syntax.
    pub strict: bool,
    /// Whether ` /]` closes a call, emoji syntax.
    pub self_closing: bool,
    /// The markers of reasoning.
    pub reasoning: Option<(String, String)>,
    /// Whether reasoning opens only as the first non-blank text, or directly after a call or reasoning.
    pub leading: bool,
    /// Whether the text begins in reasoning.
    pub in_reasoning: bool,
}

impl Options {
    /// The options that these words of `spec/README.md` name.
    ///
    /// Words that name no option, such as the class of an example, are passed over.
    pub fn of_words<'w>(words: impl IntoIterator<Item = &'w str>) -> Self {
        let mut options = Self::default();
        for word in words {
            let (word, value) = word.split_once('=').unwrap_or((word, ""));
            match word {
                "block" => options.syntax = Some(Syntax::Block),
                "emoji" => options.syntax = Some(Syntax::Emoji),
                "start" => options.start = Some(value.to_owned()),
                "end" => options.end = Some(value.to_owned()),
                "arg" => options.arg = Some(value.to_owned()),
                "key" => options.key = Some(value.to_owned()),
                "escaped" => options.escaped = true,
                "anywhere" => options.anywhere = true,
                "strict" => options.strict = true,
                "self-closing" => options.self_closing = true,
                "in-reasoning" => options.in_reasoning = true,
                "reasoning" | "leading-reasoning" => {
                    options.leading = word != "reasoning";
                    let (open, close) = value.split_once(',').unwrap_or_default();
                    options.reasoning = Some((open.to_owned(), close.to_owned()));
                }
                _ => {}
            }
        }
        options
    }

    /// The words that name these options.
    pub fn words(&self) -> String {
        let syntax = self.syntax.map_or("auto", Syntax::name);
        let mut words = vec![syntax.to_owned()];
        let reasoning_word = if self.leading {
            "leading-reasoning"
        } else {
            "reasoning"
        };
        let reasoning = self.reasoning.as_ref();
        let reasoning = reasoning.map(|(open, close)| format!("{open},{close}"));
        for (word, value) in [
            ("start", &self.start),
            ("end", &self.end),
            ("arg", &self.arg),
            ("key", &self.key),
            (reasoning_word, &reasoning),
        ] {
            words.extend(value.as_ref().map(|value| format!("{word}={value}")));
        }
        for (word, is_set) in [
            ("escaped", self.escaped),
            ("anywhere", self.anywhere),
            ("strict", self.strict),
            ("self-closing", self.self_closing),
            ("in-reasoning", self.in_reasoning),
        ] {
            words.extend(is_set.then(|| word.to_owned()));
        }
        words.join(" ")
    }

    /// The same as a dialect, by the dialect's own setters.
    pub fn dialect(&self) -> Dialect {
        let mut dialect = match self.syntax {
            Some(Syntax::Block) => Dialect::block(),
            Some(Syntax::Emoji) => Dialect::emoji(),
            None => Dialect::auto(),
        };
        if let Some(start) = &self.start {
            dialect = dialect.start(start);
        }
        if let Some(end) = &self.end {
            dialect = dialect.end(end);
        }
        if let Some(arg) = &self.arg {
            dialect = dialect.arg(arg);
        }
        if let Some(key) = &self.key {
            dialect = dialect.keyed(key);
        }
        if let Some((open, close)) = &self.reasoning {
            dialect = if self.leading {
                dialect.leading_reasoning(open, close)
            } else {
                dialect.reasoning(open, close)
            };
        }
        let flags: [(bool, Setter); 5] = [
            (self.escaped, Dialect::escaped),
            (self.anywhere, Dialect::markers_anywhere),
            (self.strict, Dialect::strict),
            (self.self_closing, Dialect::self_closing),
            (self.in_reasoning, Dialect::in_reasoning),
        ];
        for (_, set) in flags.into_iter().filter(|(wanted, _)| *wanted) {
            dialect = set(dialect);
        }
        dialect
    }

    /// Whether these options make no dialect (`spec/common.md` 1.3, 7, 12).
    pub fn are_refused(&self) -> bool {
        let block_alone =
            self.start.is_some() || self.end.is_some() || self.arg.is_some() || self.anywhere;
        let of_the_other = match self.syntax {
            Some(Syntax::Block) => self.strict || self.self_closing,
            Some(Syntax::Emoji) => block_alone,
            None => false,
        };
        let bad_key = self.key.as_ref().is_some_and(|key| {
            !(1..=32).contains(&key.len()) || !key.chars().all(|c| c.is_ascii_alphanumeric())
        });
        let without_markers = self.in_reasoning && self.reasoning.is_none();
        of_the_other || bad_key || without_markers || self.has_bad_marker()
    }

    fn has_bad_marker(&self) -> bool {
        let short = |marker: &String| marker.chars().count() < 2;
        let own = [&self.start, &self.end, &self.arg];
        let markers = self.marker_texts();
        own.into_iter().flatten().any(short)
            || markers.iter().any(short)
            || markers
                .iter()
                .any(|marker| marker.len() > 64 || marker.contains(['\r', '\n', '\\']))
            || (1..markers.len()).any(|last| markers[..last].contains(&markers[last]))
    }

    /// Every marker of the dialect, keyed: block start, end, argument; emoji start and end of each sign; reasoning.
    pub fn marker_texts(&self) -> Vec<String> {
        self.markers().into_iter().map(|(text, _)| text).collect()
    }

    /// Every marker of the dialect, keyed, with what it is for.
    pub(super) fn markers(&self) -> Vec<(String, Role)> {
        let mut markers = Vec::new();
        if self.syntax != Some(Syntax::Emoji) {
            for (own, default, role) in [
                (&self.start, "!!!GADGET_START:", Role::BlockStart),
                (&self.end, "!!!GADGET_END", Role::BlockEnd),
                (&self.arg, "!!!ARG:", Role::BlockArgument),
            ] {
                markers.push((self.keyed(own.as_deref().unwrap_or(default)), role));
            }
        }
        if self.syntax != Some(Syntax::Block) {
            for (sign, family) in [
                ("\u{1F6E0}\u{FE0F}", Family::Tool),
                ("\u{1F6E0}", Family::Tool),
                (
                    "\u{11F}\u{178}\u{203A}\u{A0}\u{EF}\u{B8}",
                    Family::MisDecoded,
                ),
                (
                    "\u{11F}\u{178}\u{203A}\u{20}\u{EF}\u{B8}",
                    Family::MisDecoded,
                ),
            ] {
                markers.push((self.keyed(&format!("{sign}[")), Role::EmojiStart(family)));
                markers.push((self.keyed(&format!("{sign}[/end]")), Role::EmojiEnd(family)));
                if self.strict {
                    break;
                }
            }
        }
        if let Some((open, close)) = &self.reasoning {
            markers.push((open.clone(), Role::ReasoningOpen));
            markers.push((close.clone(), Role::ReasoningClose));
        }
        markers
    }

    /// The marker with the key before its last `:` or `[`, else at its end.
    fn keyed(&self, marker: &str) -> String {
        let (before, after) = marker.split_at(marker.rfind([':', '[']).unwrap_or(marker.len()));
        [before, self.key.as_deref().unwrap_or_default(), after].concat()
    }
}
