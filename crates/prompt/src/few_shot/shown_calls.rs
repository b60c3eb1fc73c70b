//! Calls that a model copied from an example (`spec/prompt.md` 3.3).

use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use plaincall_reply::Untrusted;
use plaincall_tool::Arguments;

/// The call of an example. As JSON, it is an object with `name`, `arguments`, and `missing` if that does not follow from them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Recorded", into = "Recorded")]
pub struct ShownCall {
    name: String,
    arguments: Value,
    /// Its values that the conversation does not contain.
    missing: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Recorded {
    name: String,
    arguments: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missing: Option<Vec<String>>,
}

impl From<Recorded> for ShownCall {
    fn from(recorded: Recorded) -> Self {
        let missing = recorded.missing;
        Self {
            missing: missing.unwrap_or_else(|| values(&recorded.arguments)),
            name: recorded.name,
            arguments: recorded.arguments,
        }
    }
}

impl From<ShownCall> for Recorded {
    fn from(call: ShownCall) -> Self {
        let missing = (call.missing != values(&call.arguments)).then_some(call.missing);
        let ShownCall {
            name, arguments, ..
        } = call;
        Self {
            name,
            arguments,
            missing,
        }
    }
}

/// The calls of the examples that a model reads, and which of their values the conversation contains.
///
/// A call that equals one of them counts as copied as long as the conversation does not contain all its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShownCalls(Vec<ShownCall>);

impl ShownCall {
    /// Creates the call of an example with the arguments that its tool would get.
    pub fn new(name: &str, arguments: &Arguments) -> Self {
        let arguments = arguments.to_value();
        Self {
            name: name.to_owned(),
            missing: values(&arguments),
            arguments,
        }
    }

    /// Returns whether the conversation contains all values of the call.
    fn is_known(&self) -> bool {
        self.missing.is_empty()
    }
}

impl FromIterator<ShownCall> for ShownCalls {
    fn from_iter<I: IntoIterator<Item = ShownCall>>(calls: I) -> Self {
        Self(calls.into_iter().collect())
    }
}

impl ShownCalls {
    /// Returns the calls with values that the conversation does not contain.
    pub fn unknown(&self) -> impl Iterator<Item = &ShownCall> {
        self.0.iter().filter(|call| !call.is_known())
    }

    pub(super) fn extend(&mut self, calls: impl IntoIterator<Item = ShownCall>) {
        self.0.extend(calls);
    }

    /// Notes which values a text of the conversation contains. The texts of the model do not count.
    pub fn observe(&mut self, text: &Untrusted<'_>) {
        if self.unknown().next().is_none() {
            return;
        }
        let text = plain(text.raw());
        for call in &mut self.0 {
            call.missing.retain(|value| !contains(&text, value));
        }
    }

    /// Returns whether a call equals that of an example with values that the conversation does not contain. Case, white space
    /// and signs do not matter.
    pub fn is_copied(&self, name: &str, arguments: &Arguments) -> bool {
        let mut unknown = self.unknown().filter(|call| call.name == name);
        unknown.any(|call| is_same(&call.arguments, &arguments.to_value()))
    }
}

/// Returns the texts and numbers in a value.
fn values(value: &Value) -> Vec<String> {
    let mut values = Vec::new();
    add_values(value, &mut values);
    values
}

fn add_values(value: &Value, values: &mut Vec<String>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => values.push(plain(&number.to_string())),
        Value::String(text) => values.push(plain(text)),
        Value::Array(items) => items.iter().for_each(|item| add_values(item, values)),
        Value::Object(fields) => fields.values().for_each(|field| add_values(field, values)),
    }
    values.retain(|value| !value.is_empty());
}

fn is_same(left: &Value, right: &Value) -> bool {
    let text = |value: &Value| match value {
        Value::String(text) => Some(plain(text)),
        Value::Number(number) => Some(plain(&number.to_string())),
        _ => None,
    };
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| is_same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let same = |(key, value)| right.get(key).is_some_and(|other| is_same(value, other));
            left.len() == right.len() && left.iter().all(same)
        }
        _ => left == right || text(left).is_some() && text(left) == text(right),
    }
}

/// Returns the letters and digits of a text in lower case, with one blank between words.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() {
            plain.extend(c.to_lowercase());
        } else if !plain.is_empty() && !plain.ends_with(' ') {
            plain.push(' ');
        }
    }
    plain.truncate(plain.trim_end().len());
    plain
}

/// Returns whether a text contains whole words. Scripts without blanks between words have no word boundaries.
fn contains(text: &str, words: &str) -> bool {
    let is_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let (text, words) = (text.as_bytes(), words.as_bytes());
    let (first, last) = (is_word(words.first()), is_word(words.last()));
    memmem::find_iter(text, words).any(|at| {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        let after = text.get(at + words.len());
        !(first && is_word(before) || last && is_word(after))
    })
}
