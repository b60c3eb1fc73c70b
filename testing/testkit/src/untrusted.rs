//! Untrusted text: prompt texts and their properties (`spec/untrusted.md` 3), checked in a slow and obvious way.

use std::ops::Range;

use plaincall_reply::untrusted::Origin;
use plaincall_reply::{ModelText, PromptText, PromptTextBuilder, Trusted, Untrusted};
use plaincall_syntax::Dialect;

use crate::examples;
use crate::merged::{Kind, merged};

/// All kinds of dialects, in the words of `spec/README.md`.
pub const FORMS: &[&str] = &[
    "block",
    "block escaped",
    "block anywhere",
    "block key=k3v9q2x8",
    "block start=<<<START: end=<<<END: arg=@param:",
    "block escaped start=ab end=ba! arg=::",
    "block start=## end=#### arg=###",
    "emoji",
    "emoji strict",
    "emoji self-closing",
    "emoji escaped key=k1",
    "auto",
    "auto escaped",
    "auto anywhere strict self-closing",
    "auto reasoning=<think>,</think>",
    "auto escaped reasoning=<think>,</think> in-reasoning",
];

/// Returns the dialect that these words of `spec/README.md` describe.
///
/// # Panics
/// Panics if a word is unknown.
pub fn dialect(words: &str) -> Dialect {
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    examples::dialect(&words).unwrap_or_else(|word| panic!("what is {word:?}?"))
}

/// Returns the positions of a dialect's markers, wherever they may count.
///
/// # Panics
/// Panics if the dialect is invalid.
pub fn markers_in(text: &str, dialect: &Dialect) -> Vec<Range<usize>> {
    let markers = dialect.markers().expect("a dialect that works");
    let at = |marker: &str| -> Vec<Range<usize>> {
        let places = text.char_indices().map(|(at, _)| at);
        let here = places.filter(|at| text[*at..].starts_with(marker));
        here.map(|at| at..at + marker.len()).collect()
    };
    markers.iter().flat_map(|marker| at(&marker.text)).collect()
}

/// Returns the positions of the headers of calls.
///
/// # Panics
/// Panics if the dialect is invalid.
pub fn headers_in(text: &str, dialect: &Dialect) -> Vec<Range<usize>> {
    let events = merged(text, dialect).expect("a dialect that works");
    let is_start = |kind: &Kind| matches!(kind, Kind::BlockCall { .. } | Kind::EmojiCall { .. });
    let starts = events.into_iter().filter(|event| is_start(&event.kind));
    starts.map(|event| event.span).collect()
}

/// Returns whether two ranges overlap.
pub fn overlap(one: &Range<usize>, two: &Range<usize>) -> bool {
    one.start < two.end && two.start < one.end
}

/// Returns the first marker or header that overlaps an untrusted part, which is an error.
///
/// # Panics
/// Panics if the dialect is invalid.
pub fn breach(prompt_text: &PromptText, dialect: &Dialect) -> Option<String> {
    let text = prompt_text.text();
    let untrusted: Vec<Range<usize>> = prompt_text
        .parts()
        .iter()
        .filter(|part| part.origin == Origin::Untrusted)
        .map(|part| part.span.range())
        .collect();
    let touched = |span: &Range<usize>| untrusted.iter().any(|part| overlap(part, span));
    let marker = markers_in(text, dialect).into_iter().find(touched);
    let header = headers_in(text, dialect).into_iter().find(touched);
    marker
        .map(|span| format!("the marker {:?} in {text:?}", &text[span]))
        .or_else(|| header.map(|span| format!("the header {:?} in {text:?}", &text[span])))
}

/// One text of a prompt text.
#[derive(Clone, Debug)]
pub struct Text {
    /// The author.
    pub origin: Origin,
    /// Its text.
    pub text: String,
}

/// Returns the chunks of a text that is split after each of `sizes` characters in turn.
pub fn chunks<'t>(text: &'t str, sizes: &[usize]) -> Vec<&'t str> {
    let mut found = Vec::new();
    let mut rest = text;
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let at = rest
            .char_indices()
            .nth(size)
            .map_or(rest.len(), |(at, _)| at);
        let (chunk, behind) = rest.split_at(at);
        found.push(chunk);
        rest = behind;
    }
    found
}

/// Returns the prompt text of these texts.
///
/// # Panics
/// Panics if a dialect is invalid.
pub fn build(dialects: &[Dialect], texts: &[Text]) -> PromptText {
    let mut builder = PromptTextBuilder::new(dialects).expect("dialects that work");
    for Text { origin, text } in texts {
        match origin {
            Origin::Trusted => {
                builder.trusted(Trusted::assert(text.as_str()));
            }
            Origin::Model => {
                builder.model(&ModelText::new(text.as_str()));
            }
            Origin::Untrusted => {
                builder.untrusted(&Untrusted::new(text.as_str()));
            }
        }
    }
    builder.finish()
}

/// Returns the escaped text as `spec/common.md` 6.2 defines it, for the markers of several dialects.
///
/// # Panics
/// Panics if a dialect is invalid.
pub fn naive_escape(text: &str, dialects: &[Dialect]) -> String {
    let markers: Vec<String> = dialects
        .iter()
        .flat_map(|dialect| dialect.markers().unwrap())
        .map(|marker| marker.text)
        .collect();
    let mut written = String::new();
    for c in text.chars() {
        let mut ahead = written.trim_end_matches('\\').to_owned();
        ahead.push(c);
        if markers.iter().any(|marker| ahead.ends_with(&**marker)) {
            written.push('\\');
        }
        written.push(c);
    }
    written
}
