//! The information about future arguments that a stream of their JSON needs.

use plaincall_syntax::is_blank;
use serde_json::Value;

use crate::arguments::Arguments;
use crate::bind::emoji::bind_line;
use crate::pointer::{Pointer, PointerError, is_bad_index, is_index, segments};
use crate::schema::{Expected, ExpectedParts, ExpectedValue};
use crate::tool::ToolSpec;
use crate::tool::usage::UsageBody;

#[derive(Clone, Debug)]
pub(crate) enum EmojiShape {
    /// Known only when the call is complete.
    Whole,
    /// The line does not match: the call is invalid.
    Wrong,
    /// The line holds arguments, and the body may hold one more.
    Named {
        line: Arguments,
        body: Option<EmojiBody>,
    },
}

/// The string parameter for the body of an emoji call.
#[derive(Clone, Debug)]
pub(crate) struct EmojiBody {
    pub(crate) name: String,
    /// Whether an empty body counts as omitted.
    pub(crate) is_optional: bool,
}

/// Applies `ask` to the schema at a location given by its segments, if it declares the parameter.
fn expects<T>(
    tool: &ToolSpec,
    place: &[&str],
    ask: impl FnOnce(&Expected<'_, '_>) -> T,
) -> Option<T> {
    let reader = tool.schema().reader();
    let expected = Expected::at(&reader, place);
    let is_parameter = |name: &&str| tool.get(name).is_some();
    (expected.is_declared() || place.first().is_none_or(is_parameter)).then(|| ask(&expected))
}

/// Returns the expected value at a pointer.
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method by name has lifetimes that are not general enough"
)]
pub(crate) fn value(tool: &ToolSpec, place: &[&str]) -> ExpectedValue {
    let value = expects(tool, place, |expected| expected.value());
    value.unwrap_or(ExpectedValue::Nothing)
}

/// Returns the expected parts at each step of a pointer: at the root, at its first segment, and so on up to its parent.
fn way(tool: &ToolSpec, place: &[&str]) -> Vec<ExpectedParts> {
    Expected::way(&tool.schema().reader(), place)
}

fn spells(tool: &ToolSpec, place: &[&str]) -> bool {
    let Some((last, above)) = place.split_last() else {
        return false;
    };
    expects(tool, above, |expected| expected.spells(last)).unwrap_or(false)
}

/// Converts a complete text to the JSON value at a pointer; `None` if it does not match.
pub(crate) fn read(tool: &ToolSpec, place: &[&str], text: &str) -> Option<Value> {
    expects(tool, place, |expected| expected.read(text))?
}

pub(crate) fn emoji(tool: &ToolSpec, raw_args: &str) -> EmojiShape {
    let usage = tool.usage();
    let body = match usage.body {
        UsageBody::Json => return EmojiShape::Whole,
        // The body may decide how the line is read.
        _ if tool.schema().reader().root().alternatives.len() > 1 => return EmojiShape::Whole,
        UsageBody::Nothing => None,
        UsageBody::Parameter(parameter) => Some(EmojiBody {
            name: parameter.name.clone(),
            is_optional: !parameter.required,
        }),
    };
    match bind_line(tool, &usage, raw_args) {
        Some(line) => EmojiShape::Named { line, body },
        None => EmojiShape::Wrong,
    }
}

/// Parses a pointer; the schema decides which segments are keys. Also returns the parts along the pointer.
pub(crate) fn placed<'t>(
    text: &'t str,
    depth: usize,
    tool: &ToolSpec,
) -> Result<(Pointer<'t>, Vec<ExpectedParts>), PointerError> {
    let segments = segments(text, depth)?;
    let place: Vec<&str> = segments.iter().map(|segment| &**segment).collect();
    let way = way(tool, &place);
    let mut keys = Vec::with_capacity(segments.len());
    for (at, (segment, parts)) in place.iter().zip(&way).enumerate() {
        let here = place.get(..=at).unwrap_or_default();
        if segment.contains(is_blank) && !spells(tool, here) {
            return Err(PointerError::value_on_line(text));
        }
        // Only a segment that looks like an index matters. A segment that is not known yet is not an error.
        let is_digits = is_index(segment) || is_bad_index(segment);
        let may_be_key = matches!(parts, ExpectedParts::Object { .. } | ExpectedParts::Later);
        let is_key = is_digits && may_be_key;
        if !is_key && is_bad_index(segment) {
            return Err(PointerError::invalid_index(segment));
        }
        keys.push(is_key);
    }
    let pointer = Pointer {
        text,
        segments,
        keys,
    };
    Ok((pointer, way))
}
