//! What is known about arguments before they are there, as far as a stream of their JSON needs it.

use std::sync::Arc;

use plaincall_syntax::is_blank;
use serde_json::Value;

use crate::arguments::Arguments;
use crate::bind::emoji::bind_line;
use crate::coerce::coerce;
use crate::pointer::{Pointer, PointerError, is_bad_index, is_index, segments};
use crate::schema::{Expected, ExpectedParts, ExpectedValue};
use crate::tool::ToolSpec;
use crate::tool::usage::UsageBody;

/// What is known about a call's arguments while they are written (`spec/json-stream.md` 2).
///
/// A place is named by its segments, unescaped, from the root on. What a shape says must be what binding does later:
/// [`JsonStream::close`](crate::JsonStream::close) refuses a text that differs. Where in doubt, say less:
/// [`ExpectedValue::Later`] and [`ExpectedParts::Later`] are always right.
pub trait Shape {
    /// What may stand at a place to which a pointer leads.
    fn value(&self, place: &[&str]) -> ExpectedValue;

    /// What may stand at a place that a pointer passes through. The root is an object; asked for it, this tells
    /// whether all segments that begin a pointer are keys.
    fn parts(&self, place: &[&str]) -> ExpectedParts;

    /// What may stand at each place that a pointer passes through: at the root, at its first segment, and so on to the
    /// last but one.
    fn way(&self, place: &[&str]) -> Vec<ExpectedParts> {
        let above = |count: usize| self.parts(place.get(..count).unwrap_or_default());
        (0..place.len()).map(above).collect()
    }

    /// Whether the last segment of a place is named letter by letter, so that it may hold blanks.
    fn spells(&self, _place: &[&str]) -> bool {
        false
    }

    /// The JSON value of a whole text at a place; `None` if it does not fit.
    fn read(&self, place: &[&str], text: &str) -> Option<Value>;

    /// What becomes of the line of a call in the emoji syntax, and of its body.
    fn emoji(&self, raw_args: &str) -> EmojiShape;
}

/// What becomes of a call in the emoji syntax.
#[derive(Clone, Debug)]
pub enum EmojiShape {
    /// Only the whole call tells.
    Whole,
    /// The line does not fit: the call is wrong.
    Wrong,
    /// The line gives arguments, and the body may give one more.
    Named {
        /// What the line gives.
        line: Arguments,
        /// The string parameter that takes the body.
        body: Option<EmojiBody>,
    },
}

/// The string parameter that takes the body of an emoji call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmojiBody {
    /// Its name.
    pub name: String,
    /// Whether an empty body counts as left out.
    pub is_optional: bool,
}

/// The shape of arguments of which nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnknownShape;

impl Shape for UnknownShape {
    fn value(&self, _place: &[&str]) -> ExpectedValue {
        ExpectedValue::Guessed
    }

    fn parts(&self, _place: &[&str]) -> ExpectedParts {
        ExpectedParts::ByPointers
    }

    fn read(&self, _place: &[&str], text: &str) -> Option<Value> {
        Some(coerce(text).into())
    }

    fn emoji(&self, _raw_args: &str) -> EmojiShape {
        EmojiShape::Whole
    }
}

impl ToolSpec {
    /// What the schema says about a place, if it declares the parameter.
    fn expects<T>(&self, place: &[&str], ask: impl FnOnce(&Expected<'_, '_>) -> T) -> Option<T> {
        let reader = self.schema().reader();
        let expected = Expected::at(&reader, place);
        let is_parameter = |name: &&str| self.get(name).is_some();
        (expected.is_declared() || place.first().is_none_or(is_parameter)).then(|| ask(&expected))
    }
}

#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the methods by name have lifetimes that are not general enough"
)]
impl Shape for ToolSpec {
    fn value(&self, place: &[&str]) -> ExpectedValue {
        self.expects(place, |expected| expected.value())
            .unwrap_or(ExpectedValue::Nothing)
    }

    fn parts(&self, place: &[&str]) -> ExpectedParts {
        self.expects(place, |expected| expected.parts())
            .unwrap_or(ExpectedParts::Nothing)
    }

    fn way(&self, place: &[&str]) -> Vec<ExpectedParts> {
        Expected::way(&self.schema().reader(), place)
    }

    fn spells(&self, place: &[&str]) -> bool {
        let Some((last, above)) = place.split_last() else {
            return false;
        };
        self.expects(above, |expected| expected.spells(last))
            .unwrap_or(false)
    }

    fn read(&self, place: &[&str], text: &str) -> Option<Value> {
        self.expects(place, |expected| expected.read(text))?
    }

    fn emoji(&self, raw_args: &str) -> EmojiShape {
        let usage = self.usage();
        let body = match usage.body {
            UsageBody::Json => return EmojiShape::Whole,
            // The body may decide how the line is read.
            _ if self.schema().reader().root().alternatives.len() > 1 => return EmojiShape::Whole,
            UsageBody::Nothing => None,
            UsageBody::Parameter(parameter) => Some(EmojiBody {
                name: parameter.name.clone(),
                is_optional: !parameter.required,
            }),
        };
        match bind_line(self, &usage, raw_args) {
            Some(line) => EmojiShape::Named { line, body },
            None => EmojiShape::Wrong,
        }
    }
}

/// Whoever points to a shape knows what it knows.
macro_rules! shape_behind {
    ($($pointer:ty),*) => {
        $(impl<S: Shape + ?Sized> Shape for $pointer {
            fn value(&self, place: &[&str]) -> ExpectedValue {
                (**self).value(place)
            }

            fn parts(&self, place: &[&str]) -> ExpectedParts {
                (**self).parts(place)
            }

            fn way(&self, place: &[&str]) -> Vec<ExpectedParts> {
                (**self).way(place)
            }

            fn spells(&self, place: &[&str]) -> bool {
                (**self).spells(place)
            }

            fn read(&self, place: &[&str], text: &str) -> Option<Value> {
                (**self).read(place, text)
            }

            fn emoji(&self, raw_args: &str) -> EmojiShape {
                (**self).emoji(raw_args)
            }
        })*
    };
}

shape_behind!(&S, Arc<S>);

/// Reads a pointer, where a shape says which segments are keys. Gives also what the pointer passes through.
pub(crate) fn placed<'t>(
    text: &'t str,
    depth: usize,
    shape: &impl Shape,
) -> Result<(Pointer<'t>, Vec<ExpectedParts>), PointerError> {
    let segments = segments(text, depth)?;
    let place: Vec<&str> = segments.iter().map(|segment| &**segment).collect();
    let way = shape.way(&place);
    let mut keys = Vec::with_capacity(segments.len());
    for (at, (segment, parts)) in place.iter().zip(&way).enumerate() {
        let here = place.get(..=at).unwrap_or_default();
        if segment.contains(is_blank) && !shape.spells(here) {
            return Err(PointerError::value_on_line(text));
        }
        // Only what looks like an index makes a difference. What is not known yet is no error yet.
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
