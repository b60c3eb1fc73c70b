//! The information about future arguments that a stream of their JSON needs.

use std::borrow::Cow;

use plaincall_syntax::is_blank;
use serde_json::Value;

use plaincall_tool::Arguments;
use plaincall_tool::ToolSpec;
use plaincall_tool::absent::{is_absent_text, may_be_absent};
use plaincall_tool::bind::emoji::bind_line;
use plaincall_tool::pointer::{Pointer, PointerError, is_bad_index, is_index, segments};
use plaincall_tool::schema::{Expected, ExpectedParts, ExpectedValue, SchemaReader};
use plaincall_tool::usage::UsageBody;

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

/// The place of a value in the arguments, and the information of the schema about it.
pub(crate) struct Place<'t> {
    pub(crate) pointer: Pointer<'t>,
    /// The parts at each step of the pointer after the root: at its first segment, and so on up to its parent.
    pub(crate) way: Vec<ExpectedParts>,
    pub(crate) value: ExpectedValue,
    /// Whether the text decides if the parameter is absent.
    pub(crate) may_be_absent: bool,
}

/// Converts a complete text to the JSON value at a pointer; `None` if it does not match.
pub(crate) fn read(tool: &ToolSpec, place: &[Box<str>], text: &str) -> Option<Value> {
    let reader = tool.schema().reader();
    expected(&reader, place).read(text)
}

/// Returns whether a text means that the parameter is absent, where it may be.
pub(crate) fn is_absent(tool: &ToolSpec, place: &[Box<str>], text: &str) -> bool {
    let reader = tool.schema().reader();
    is_absent_text(&reader, expected(&reader, place).allowed(), text)
}

fn expected<'r, 's>(reader: &'r SchemaReader<'s>, place: &[Box<str>]) -> Expected<'r, 's> {
    let mut expected = Expected::root(reader);
    for segment in place {
        expected.step(segment);
    }
    expected
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

/// Parses a pointer; the schema decides which segments are keys.
pub(crate) fn placed<'t>(
    text: &'t str,
    depth: usize,
    tool: &ToolSpec,
) -> Result<Place<'t>, PointerError> {
    let segments = segments(text, depth)?;
    let reader = tool.schema().reader();
    let mut here = Expected::root(&reader);
    let is_parameter = |name: &Cow<'_, str>| tool.get(name).is_some() || here.declares(name);
    let is_known = segments.first().is_some_and(is_parameter);
    let mut way = Vec::new();
    let mut keys = Vec::with_capacity(segments.len());
    for (depth, segment) in segments.iter().enumerate() {
        if segment.contains(is_blank) && !(is_known && here.spells(segment)) {
            return Err(PointerError::value_on_line(text));
        }
        if depth > 0 {
            way.push(here.parts());
        }
        let parts = || way.last().copied().unwrap_or_else(|| here.parts());
        let may_be_key = || matches!(parts(), ExpectedParts::Object { .. } | ExpectedParts::Later);
        // Only a segment that looks like an index matters. A segment that is not known yet is not an error.
        let is_digits = is_index(segment) || is_bad_index(segment);
        let is_key = is_digits && may_be_key();
        if !is_key && is_bad_index(segment) {
            return Err(PointerError::invalid_index(segment));
        }
        keys.push(is_key);
        here.step(segment);
    }
    let value = if is_known {
        here.value()
    } else {
        ExpectedValue::Nothing
    };
    let is_whole = matches!(value, ExpectedValue::Whole | ExpectedValue::Nothing);
    let may_be_absent = is_whole
        && matches!(&*segments, [name] if may_be_absent(tool, &reader, name, here.allowed()));
    let pointer = Pointer {
        text,
        segments,
        keys,
    };
    Ok(Place {
        pointer,
        way,
        value,
        may_be_absent,
    })
}
