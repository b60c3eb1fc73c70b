//! Conversion of a text to the type that a schema requires (`spec/block.md` 7.7.1).

use serde_json::Value;

use super::allowed_values::{AllowedValues, SchemaReader};
use super::kinds::Kinds;
use crate::ConversionRule;
use crate::argument_error::quoted;
use crate::json_text;
use crate::text_type::{TextType, decimal, trimmed};

#[derive(Debug)]
pub struct TypeError {
    pub(crate) expected: String,
    pub(crate) found: String,
    /// Whether the type is correct, and a part of a list or object is not.
    pub(crate) is_inside: bool,
}

/// How a text is read, and whether the result is allowed.
#[derive(Debug)]
pub struct Spelling {
    pub text_type: TextType,
    pub(crate) rule: ConversionRule,
    pub type_error: Option<TypeError>,
}

/// Returns the values that a text may be other than a string, for the allowed types, in the order of preference.
pub(crate) fn candidates(kinds: Kinds, text: &str) -> impl Iterator<Item = (TextType, Value)> {
    let readings = [
        (Kinds::NULL, TextType::Null),
        (Kinds::BOOLEAN, TextType::Boolean),
        (Kinds::FRACTION, TextType::Number),
        (Kinds::WHOLE, TextType::Integer),
        (Kinds::LIST | Kinds::OBJECT, TextType::Json),
    ];
    readings
        .into_iter()
        .filter(move |(kind, _)| kinds.has_any(*kind))
        .filter_map(move |(_, text_type)| Some((text_type, text_type.fitting(text)?)))
        // Scalars are read from one line, by rules of their own.
        .filter(move |(text_type, value)| {
            let has_parts = value.is_array() || value.is_object();
            *text_type != TextType::Json || (has_parts && kinds.has(Kinds::of(value)))
        })
}

impl<'s> SchemaReader<'s> {
    /// Returns how the text of a value is read at a location.
    pub fn spelling(&self, allowed: &AllowedValues<'s>, text: &str) -> Spelling {
        let stated = allowed.stated();
        let kinds = stated.kinds();
        let is_beside_string = kinds.has(Kinds::STRING)
            && (stated.takes_any_text() || self.allows(&stated, &Value::from(text)));
        let fitting = |text_type, rule| Spelling {
            text_type,
            rule,
            type_error: None,
        };
        let mut found = candidates(kinds, text).filter(|(_, value)| self.allows(&stated, value));
        if is_beside_string {
            let is_described = |value: &Value| {
                let mut described = stated.alternatives.iter();
                value.is_object()
                    && described.any(|one| one.describes_object() && self.is_fitting(one, value))
            };
            let is_meant = |(text_type, value): &(TextType, Value)| {
                is_described(value) || text_type.fitting_beside_string(text).is_some()
            };
            let meant = found.find(is_meant);
            return match meant {
                Some((text_type, _)) => fitting(text_type, ConversionRule::Exact),
                None if kinds == Kinds::STRING => {
                    fitting(TextType::String, ConversionRule::Declared)
                }
                None => fitting(TextType::String, ConversionRule::Text),
            };
        }
        if let Some((text_type, _)) = found.next() {
            return fitting(text_type, ConversionRule::Declared);
        }
        if allowed.is_open() {
            return fitting(TextType::Coerced, ConversionRule::Undeclared);
        }
        let strings = stated.only(Kinds::STRING);
        if strings.is_listed() && self.allows(&strings, &Value::from(trimmed(text))) {
            return fitting(TextType::Listed, ConversionRule::Declared);
        }
        // A text that does not match stays a string, if a string is allowed or there is no other type.
        let nearest = if kinds.has(Kinds::STRING) {
            None
        } else {
            candidates(kinds, text).next()
        };
        let is_inside = nearest
            .as_ref()
            .is_some_and(|(text_type, _)| *text_type == TextType::Json);
        Spelling {
            text_type: nearest.map_or(TextType::String, |(text_type, _)| text_type),
            rule: ConversionRule::Declared,
            type_error: Some(type_error(&stated, kinds, text, is_inside)),
        }
    }

    /// Returns how a value written as JSON is read at a location.
    pub(crate) fn json_spelling(
        &self,
        allowed: &AllowedValues<'s>,
        value: &Value,
        text: &str,
    ) -> Spelling {
        let text_type = match (value, TextType::Integer.fitting(text)) {
            (Value::String(_), _) => TextType::String,
            (Value::Number(_), Some(_)) if !allowed.kinds().has(Kinds::FRACTION) => {
                TextType::Integer
            }
            _ => TextType::Json,
        };
        if allowed.is_open() || self.allows(allowed, value) {
            return Spelling {
                text_type,
                rule: ConversionRule::Json,
                type_error: None,
            };
        }
        let kinds = allowed.kinds();
        let has_parts = value.is_array() || value.is_object();
        let mut type_error = type_error(
            allowed,
            kinds,
            text,
            has_parts && kinds.has(Kinds::of(value)),
        );
        type_error.found = quoted(text);
        Spelling {
            text_type,
            rule: ConversionRule::Json,
            type_error: Some(type_error),
        }
    }
}

fn type_error(allowed: &AllowedValues<'_>, kinds: Kinds, text: &str, is_inside: bool) -> TypeError {
    let mut found = quoted(text);
    let mut expected = allowed.in_words();
    if let Some(number) = decimal(text) {
        if kinds.without(Kinds::NULL) == Kinds::WHOLE
            && number.is_whole()
            && number.integer().is_none()
        {
            "an integer of at most 64 bits".clone_into(&mut expected);
        } else if kinds.has(Kinds::NUMBER)
            && number.float().is_none()
            && (number.has_point || number.integer().is_none())
        {
            "a number that fits into 64 bits".clone_into(&mut expected);
        }
    }
    let is_json =
        kinds.has_any(Kinds::LIST | Kinds::OBJECT) && text.trim_start().starts_with(['[', '{']);
    if is_json {
        if let Err(error) = json_text::parse(text) {
            found = format!("invalid JSON: {error}");
        }
    }
    TypeError {
        expected,
        found,
        is_inside,
    }
}
