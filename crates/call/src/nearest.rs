//! The name that was probably meant, and what a model hears that has called a tool which is not there.

use plaincall_syntax::floor_char_boundary;
use std::borrow::Cow;
use std::fmt::Write as _;

/// How many tools a message for the model names.
const NAMED_IN_A_SENTENCE: usize = 50;
/// How much of a name it shows, in bytes.
const LONGEST_SHOWN: usize = 100;
/// Longer texts than this, in characters, are near to nothing.
const LONGEST: usize = 256;

/// The name that was probably meant: the one that takes the fewest changes, if it takes few, else one that begins so; of
/// several the first. It is for a suggestion in a message, never to be taken instead of what is written.
///
/// A change adds a character, leaves one out, puts one in the place of another or changes two neighbours over; case does
/// not count. Of a pattern counts what stands before its first `*` or `?`.
///
/// ```
/// use plaincall_call::names::nearest_name;
///
/// assert_eq!(nearest_name("raed_file", ["write_file", "read_file"]), Some("read_file"));
/// assert_eq!(nearest_name("shell", ["write_file", "read_file"]), None);
/// ```
pub fn nearest_name<'n>(
    written: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let small = written.to_lowercase();
    let begin = small.split(['*', '?']).next().unwrap_or_default();
    let letters = begin.chars().count();
    let most = (letters / 3).clamp(1, 3);
    if letters == 0 || letters > LONGEST {
        return None;
    }
    let is_pattern = begin.len() < small.len();
    let found = names.into_iter().filter_map(|name| {
        let mut known = name.to_lowercase();
        let is_begun = letters >= 3 && known.starts_with(begin);
        if is_pattern {
            known = known.chars().take(letters).collect();
        }
        let may_be_near = known.chars().count().abs_diff(letters) <= most;
        match may_be_near.then(|| strsim::osa_distance(begin, &known)) {
            Some(few) if few <= most && few < letters => Some((few, name)),
            _ if is_begun => Some((usize::MAX, name)),
            _ => None,
        }
    });
    let nearest = found.min_by_key(|(changes, _)| *changes);
    nearest.map(|(_, name)| name)
}

/// The end of a message about a name that does not exist: the name that was probably meant, or nothing if none is near.
pub fn did_you_mean<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    match nearest_name(written, names) {
        Some(name) => format!("; did you mean `{}`?", shortened(name, LONGEST_SHOWN)),
        None => String::new(),
    }
}

/// What a model hears that has called a tool which is not there: the tools there are, and the nearest as a suggestion.
pub fn unknown_tool<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let mut sentence = format!("unknown tool `{}`; ", shortened(written, LONGEST_SHOWN));
    if names.is_empty() {
        sentence.push_str("no tools are available");
        return sentence;
    }
    sentence.push_str("available tools: ");
    for (place, name) in names.iter().take(NAMED_IN_A_SENTENCE).enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        let _ = write!(sentence, "{comma}`{}`", shortened(name, LONGEST_SHOWN));
    }
    if let more @ 1.. = names.len().saturating_sub(NAMED_IN_A_SENTENCE) {
        let _ = write!(sentence, " and {more} more");
    }
    sentence.push_str(&did_you_mean(written, names));
    sentence
}

/// The beginning of a text of at most so many bytes, with dots if that is not all.
pub(crate) fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    match text.get(..floor_char_boundary(text, most)) {
        Some(begin) if begin.len() < text.len() => Cow::Owned(format!("{begin}…")),
        _ => Cow::Borrowed(text),
    }
}
