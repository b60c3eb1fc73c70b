//! A JSON object as pointers and texts.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::ArgumentError;
use crate::Arguments;
use crate::Limits;
use crate::ToolSpec;
use crate::absent::given;
use crate::argument_error::quoted;
use crate::bind::Problems;
use crate::bind::block::bind_block;
use crate::bind_arguments;
use crate::decimal::scalar_text;
use crate::pointer::unusable_key;
use crate::pointer::{Pointer, escape, is_bad_index, is_index};
use crate::schema::{AllowedValues, Kinds, SchemaReader, is_same};

static OPEN: Value = Value::Bool(true);

/// Converts a JSON object to pairs of pointer and text, in order, for a block call (`spec/block.md` 9).
///
/// The pairs must parse to the same arguments: by coercion without a tool, by its schema with one. With a schema, a
/// declared string may be any text, and a value without pointers, such as an empty list, is written as JSON.
///
/// ```
/// use plaincall_tool::flatten;
/// use serde_json::json;
///
/// let pairs = |value: serde_json::Value| flatten(value.as_object().expect("an object"), None);
/// assert_eq!(
///     pairs(json!({"path": "a.txt", "at": {"line": 3}}))?,
///     [("path".to_owned(), "a.txt".to_owned()), ("at/line".to_owned(), "3".to_owned())]
/// );
/// assert_eq!(pairs(json!({"zip": "2134"})).unwrap_err().pointer, "zip");
/// # Ok::<(), plaincall_tool::ArgumentError>(())
/// ```
///
/// # Errors
/// Returns an error, with the pointer, for a value that would change: a string that parses as another type, null, an
/// empty list or object, or a key that a pointer cannot express.
pub fn flatten(
    object: &Map<String, Value>,
    tool: Option<&ToolSpec>,
) -> Result<Vec<(String, String)>, ArgumentError> {
    let reader = match tool {
        Some(tool) => tool.schema().reader(),
        None => SchemaReader::new(&OPEN),
    };
    let object = &*tool.map_or(Cow::Borrowed(object), |tool| given(object, tool));
    let root = reader.narrow_to(&reader.root(), &Value::Object(object.clone()));
    let mut writer = Writer {
        reader: &reader,
        pairs: Vec::new(),
        limits: Limits::default(),
    };
    for (key, value) in object {
        let pointer = escape(key);
        check_key(key, &pointer)?;
        writer.add(&pointer, 1, value, &reader.member(&root, key))?;
    }
    let pairs = writer.pairs;
    let Some(tool) = tool else {
        return Ok(pairs);
    };
    // All texts together decide which alternative they match, so they must be parsed.
    let borrowed = pairs.iter().map(|(pointer, text)| (&**pointer, &**text));
    let written = Arguments::from_pairs_for(tool, borrowed)?;
    let mut problems = Problems::default();
    let back = bind_block(tool, &written, &mut problems).to_value();
    if let Some(problem) = problems.first() {
        return Err(refuse(&problem.pointer, problem.message.clone()));
    }
    let mut different = object
        .iter()
        .filter(|(key, value)| back.get(key).is_none_or(|back| !is_same(back, value)));
    match different.next() {
        None => Ok(pairs),
        Some((key, value)) => {
            let found = back.get(key.as_str()).map(Value::to_string);
            Err(comes_back(&escape(key), value, &found.unwrap_or_default()))
        }
    }
}

/// Converts arguments like [`flatten`], for a call of the tool. The error reports all problems in one message, as
/// binding does, including unknown and missing arguments.
///
/// # Errors
/// Returns the errors of [`flatten`] and of validation.
pub fn flatten_call(
    object: &Map<String, Value>,
    tool: &ToolSpec,
) -> Result<Vec<(String, String)>, String> {
    flatten(object, Some(tool)).map_err(|error| {
        let object = given(object, tool);
        let texts = object.iter().map(|(key, value)| {
            let text = scalar_text(value).unwrap_or_else(|| value.to_string());
            (escape(key), text)
        });
        let texts: Vec<_> = texts.collect();
        let pairs = texts.iter().map(|(pointer, text)| (&**pointer, &**text));
        let bound = Arguments::from_pairs_for(tool, pairs)
            .ok()
            .and_then(|arguments| bind_arguments(tool, &arguments).err());
        let problems = bound.unwrap_or_default();
        let name = |pointer: &str| Pointer::beginning(pointer, 1).to_owned();
        let is_reported = problems
            .iter()
            .any(|problem| name(&problem.pointer) == name(&error.pointer));
        let own = (!is_reported).then(|| error.to_string());
        let messages = problems.into_iter().map(|problem| problem.message);
        let messages: Vec<String> = own.into_iter().chain(messages).collect();
        messages.join("; ")
    })
}

struct Writer<'w, 's> {
    reader: &'w SchemaReader<'s>,
    pairs: Vec<(String, String)>,
    limits: Limits,
}

impl<'s> Writer<'_, 's> {
    /// Adds a value. Recurses as deep as a pointer may be.
    fn add(
        &mut self,
        pointer: &str,
        depth: usize,
        value: &Value,
        allowed: &AllowedValues<'s>,
    ) -> Result<(), ArgumentError> {
        let allowed = &self.reader.narrow_to(allowed, value);
        let before = self.pairs.len();
        let by_parts = match value {
            Value::Array(items) if !items.is_empty() && !allowed.has_keys_only() => {
                self.items(pointer, depth, items, allowed)
            }
            Value::Object(members) if !members.is_empty() => {
                self.members(pointer, depth, members, allowed)
            }
            _ => return self.text(pointer, value, allowed),
        };
        let is_unknown = allowed.is_open() && allowed.alternatives.len() == 1;
        let Some(error) = by_parts.err() else {
            return Ok(());
        };
        if is_unknown {
            return Err(error);
        }
        // A value that pointers cannot express may be written as JSON.
        self.pairs.truncate(before);
        self.text(pointer, value, allowed).map_err(|_| error)
    }

    fn items(
        &mut self,
        pointer: &str,
        depth: usize,
        items: &[Value],
        allowed: &AllowedValues<'s>,
    ) -> Result<(), ArgumentError> {
        self.check_depth(pointer, depth)?;
        if !allowed.kinds().has(Kinds::LIST) {
            return Err(unfit(pointer, &Value::Array(items.to_vec()), allowed));
        }
        items.iter().enumerate().try_for_each(|(index, item)| {
            let below = self.reader.item(allowed, index);
            self.add(&format!("{pointer}/{index}"), depth + 1, item, &below)
        })
    }

    fn members(
        &mut self,
        pointer: &str,
        depth: usize,
        members: &Map<String, Value>,
        allowed: &AllowedValues<'s>,
    ) -> Result<(), ArgumentError> {
        self.check_depth(pointer, depth)?;
        if !allowed.kinds().has(Kinds::OBJECT) {
            return Err(unfit(pointer, &Value::Object(members.clone()), allowed));
        }
        let counts = |(at, key): (usize, &String)| *key == at.to_string();
        let is_first_index = members.keys().next().is_some_and(|key| is_index(key));
        let looks_like_a_list = if allowed.states_keys() {
            members.keys().enumerate().all(counts)
        } else {
            is_first_index
        };
        if looks_like_a_list && !allowed.prefers_keys() {
            let message = "its keys are list indices, so it would be read as a list";
            return Err(refuse(pointer, message));
        }
        for (key, member) in members {
            let pointer = format!("{pointer}/{}", escape(key));
            if !(allowed.states_keys() && is_bad_index(key)) {
                check_key(key, &pointer)?;
            }
            let below = self.reader.member(allowed, key);
            self.add(&pointer, depth + 1, member, &below)?;
        }
        Ok(())
    }

    fn text(
        &mut self,
        pointer: &str,
        value: &Value,
        allowed: &AllowedValues<'s>,
    ) -> Result<(), ArgumentError> {
        let text = match value {
            Value::Null | Value::Array(_) | Value::Object(_) => value.to_string(),
            scalar => scalar_text(scalar).unwrap_or_default(),
        };
        let spelling = self.reader.spelling(allowed, &text);
        if spelling.type_error.is_some()
            || !(allowed.is_open() || self.reader.allows(allowed, value))
        {
            return Err(unfit(pointer, value, allowed));
        }
        let back = spelling.text_type.value(&text);
        if !is_same(&back, value) {
            return Err(comes_back(pointer, value, &back.to_string()));
        }
        let most = self.limits.arguments;
        if self.pairs.len() >= most {
            let message = format!("a call has at most {most} arguments");
            return Err(refuse(pointer, message));
        }
        self.pairs.push((pointer.to_owned(), text));
        Ok(())
    }

    fn check_depth(&self, pointer: &str, depth: usize) -> Result<(), ArgumentError> {
        let most = self.limits.depth();
        if depth >= most {
            let message = format!("a pointer has at most {most} segments");
            return Err(refuse(pointer, message));
        }
        Ok(())
    }
}

fn comes_back(pointer: &str, value: &Value, found: &str) -> ArgumentError {
    let kind = match value {
        Value::String(_) => "the string",
        Value::Number(_) => "the number",
        _ => "the value",
    };
    let (value, found) = (quoted(&value.to_string()), quoted(found));
    refuse(pointer, format!("{kind} {value} would be read as {found}"))
}

fn unfit(pointer: &str, value: &Value, allowed: &AllowedValues<'_>) -> ArgumentError {
    let message = format!(
        "expected {}, found {}",
        allowed.in_words(),
        quoted(&value.to_string())
    );
    refuse(pointer, message)
}

pub fn refuse(pointer: &str, message: impl Into<String>) -> ArgumentError {
    ArgumentError::at(pointer, message.into())
}

fn check_key(key: &str, pointer: &str) -> Result<(), ArgumentError> {
    match unusable_key(key) {
        Some(reason) => Err(refuse(pointer, format!("a key {reason}"))),
        None => Ok(()),
    }
}
