//! Suggestions for misspelled names, and the message for unknown tools.

use plaincall_syntax::floor_char_boundary;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The number of tools that a message for the model names.
const NAMED_IN_A_SENTENCE: usize = 50;
/// The maximum length of a name in a message, in bytes.
const LONGEST_SHOWN: usize = 100;
/// Longer texts, in characters, get no suggestion.
const LONGEST: usize = 256;

/// Returns the name that was probably meant: the one with the fewest changes if there are few, otherwise one that
/// begins with the text; the first of several. Use it only for a suggestion in a message, never in place of the written
/// name.
///
/// A change inserts, removes or replaces a character or swaps two neighbors; case is ignored. For a pattern, only the
/// text before its first `*` or `?` counts.
///
/// ```
/// use plaincall_names::nearest_name;
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

/// Returns the end of a message about an unknown name: a suggestion, or nothing if no name is near.
pub fn did_you_mean<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    match nearest_name(written, names) {
        Some(name) => format!("; did you mean `{}`?", shortened(name, LONGEST_SHOWN)),
        None => String::new(),
    }
}

/// Returns the message for a model that called an unknown tool: the available tools, and the nearest one as a
/// suggestion.
pub fn unknown_tool<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let mut sentence = format!("unknown tool `{}`", shortened(written, LONGEST_SHOWN));
    if names.is_empty() {
        sentence.push_str(": there are no tools, so answer without a call");
        return sentence;
    }
    let suggestion = did_you_mean(written, names.iter().copied());
    sentence.push_str(&suggestion);
    sentence.push_str(match (suggestion.as_str(), names.len()) {
        ("", 1) => ": use ",
        ("", _) => ": use one of ",
        (_, 1) => return sentence,
        _ => " Use one of ",
    });
    for (place, name) in names.iter().take(NAMED_IN_A_SENTENCE).enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        let _ = write!(sentence, "{comma}`{}`", shortened(name, LONGEST_SHOWN));
    }
    if let more @ 1.. = names.len().saturating_sub(NAMED_IN_A_SENTENCE) {
        let _ = write!(sentence, " and {more} more");
    }
    sentence
}

/// Returns a text of at most `most` bytes, shortened with an ellipsis.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    match text.get(..floor_char_boundary(text, most)) {
        Some(begin) if begin.len() < text.len() => Cow::Owned(format!("{begin}…")),
        _ => Cow::Borrowed(text),
    }
}
