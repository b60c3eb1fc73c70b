//! A JSON object as arguments to write for a tool, whose schema says how they will be read.

use serde_json::{Map, Value};

use crate::argument_error::quoted;
use crate::arguments::Arguments;
use crate::bind::Problems;
use crate::bind::block::bind_block;
use crate::decimal::scalar_text;
use crate::flatten::{FlattenError, Pairs, check_key, refuse};
use crate::limits::Limits;
use crate::pointer::{escape, is_bad_index, is_index};
use crate::schema::{Kinds, Place, SchemaReader};
use crate::tool::ToolSpec;

/// The pairs of pointer and text that the schema of the tool reads as the object.
pub(crate) fn for_tool(
    object: &Map<String, Value>,
    tool: &ToolSpec,
) -> Result<Vec<(String, String)>, FlattenError> {
    let reader = tool.schema().reader();
    let whole = Value::Object(object.clone());
    let root = reader.narrow_to(&reader.root(), &whole);
    let mut writer = Writer {
        reader: &reader,
        pairs: Pairs::default(),
        depth: Limits::default().depth(),
    };
    for (key, value) in object {
        let pointer = escape(key).into_owned();
        check_key(key, &pointer)?;
        let place = reader.member(&root, key);
        writer.add(&pointer, 1, value, &place)?;
    }
    let pairs = writer.pairs.pairs;
    // Which alternative is meant is decided by all the texts together, so only reading them shows it.
    let borrowed = pairs.iter().map(|(pointer, text)| (&**pointer, &**text));
    let written = Arguments::from_pairs_for(tool, borrowed)
        .map_err(|error| refuse(&error.pointer, error.message.clone()))?;
    let mut problems = Problems::default();
    let back = bind_block(tool, &written, &mut problems).to_value();
    if let Some(problem) = problems.first() {
        return Err(refuse(&problem.pointer, problem.message.clone()));
    }
    match object
        .iter()
        .find(|(key, value)| back.get(key.as_str()) != Some(*value))
    {
        None => Ok(pairs),
        Some((key, _)) => {
            let found = back.get(key.as_str()).map(Value::to_string);
            let message = format!(
                "it would come back as {}",
                quoted(&found.unwrap_or_default())
            );
            Err(refuse(&escape(key), message))
        }
    }
}

struct Writer<'w, 's> {
    reader: &'w SchemaReader<'s>,
    pairs: Pairs,
    depth: usize,
}

impl<'s> Writer<'_, 's> {
    /// Adds a value; recurses as deep as a pointer may be.
    fn add(
        &mut self,
        pointer: &str,
        depth: usize,
        value: &Value,
        place: &Place<'s>,
    ) -> Result<(), FlattenError> {
        if place.is_open() && place.alternatives.len() == 1 {
            return self.pairs.add(pointer, depth, value);
        }
        let place = &self.reader.narrow_to(place, value);
        let before = self.pairs.pairs.len();
        let by_parts = match value {
            Value::Array(items) if !items.is_empty() && !place.has_keys_only() => {
                self.items(pointer, depth, items, place)
            }
            Value::Object(members) if !members.is_empty() => {
                self.members(pointer, depth, members, place)
            }
            _ => return self.text(pointer, value, place),
        };
        let Err(error) = by_parts else { return Ok(()) };
        // What pointers cannot spell may stand as JSON text.
        self.pairs.pairs.truncate(before);
        self.text(pointer, value, place).map_err(|_| error)
    }

    fn items(
        &mut self,
        pointer: &str,
        depth: usize,
        items: &[Value],
        place: &Place<'s>,
    ) -> Result<(), FlattenError> {
        self.check_depth(pointer, depth)?;
        if !place.kinds().has(Kinds::LIST) {
            return Err(unfit(pointer, &Value::Array(items.to_vec()), place));
        }
        items.iter().enumerate().try_for_each(|(index, item)| {
            let below = self.reader.item(place, index);
            self.add(&format!("{pointer}/{index}"), depth + 1, item, &below)
        })
    }

    fn members(
        &mut self,
        pointer: &str,
        depth: usize,
        members: &Map<String, Value>,
        place: &Place<'s>,
    ) -> Result<(), FlattenError> {
        self.check_depth(pointer, depth)?;
        if !place.kinds().has(Kinds::OBJECT) {
            return Err(unfit(pointer, &Value::Object(members.clone()), place));
        }
        let counts = |(at, key): (usize, &String)| *key == at.to_string();
        let is_first_index = members.keys().next().is_some_and(|key| is_index(key));
        let looks_like_a_list = if place.states_keys() {
            members.keys().enumerate().all(counts)
        } else {
            is_first_index
        };
        if looks_like_a_list && !place.prefers_keys() {
            let message = "its keys count items, so it would come back as a list";
            return Err(refuse(pointer, message));
        }
        for (key, member) in members {
            let pointer = format!("{pointer}/{}", escape(key));
            if !(place.states_keys() && is_bad_index(key)) {
                check_key(key, &pointer)?;
            }
            let below = self.reader.member(place, key);
            self.add(&pointer, depth + 1, member, &below)?;
        }
        Ok(())
    }

    /// Adds a value as one text.
    fn text(
        &mut self,
        pointer: &str,
        value: &Value,
        place: &Place<'s>,
    ) -> Result<(), FlattenError> {
        let text = match value {
            Value::Null | Value::Array(_) | Value::Object(_) => value.to_string(),
            scalar => scalar_text(scalar).unwrap_or_default(),
        };
        let spelling = self.reader.spelling(place, &text);
        if spelling.misfit.is_some() || !(place.is_open() || self.reader.allows(place, value)) {
            return Err(unfit(pointer, value, place));
        }
        let back = spelling.reading.value(&text);
        if back == *value {
            return self.pairs.push(pointer.to_owned(), text);
        }
        let message = format!("it would come back as {}", quoted(&back.to_string()));
        Err(refuse(pointer, message))
    }

    fn check_depth(&self, pointer: &str, depth: usize) -> Result<(), FlattenError> {
        if depth >= self.depth {
            let message = format!("a pointer has at most {} segments", self.depth);
            return Err(refuse(pointer, message));
        }
        Ok(())
    }
}

fn unfit(pointer: &str, value: &Value, place: &Place<'_>) -> FlattenError {
    let message = format!(
        "it is declared as {}, and is {}",
        place.in_words(),
        quoted(&value.to_string())
    );
    refuse(pointer, message)
}
