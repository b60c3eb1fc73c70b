//! Objects and their members.

use std::collections::HashSet;

use plaincall_syntax::Syntax;
use serde_json::{Map, Value};

use super::keywords::Keywords;
use super::scalar::spelled_pattern;
use super::words::{ONE_LINE, Words, comment, json, line_end};
use super::{Need, Notation};
use plaincall_names::pointers::escape;

const CLOSED: &str = "only these";

/// The members of an object.
#[derive(Default)]
pub(crate) struct Members {
    pub(crate) lines: Vec<String>,
    is_closed: bool,
    needs_lines: bool,
}

impl<'s> Notation<'s, '_> {
    pub(super) fn object(&mut self, keywords: &mut Keywords<'s>, indent: usize) -> Words {
        self.needs.insert(Need::Object);
        let mut members = self.members(keywords, indent + 1, |_| true);
        if members.lines.is_empty() {
            return Words::atom(if members.is_closed { "{}" } else { "object" });
        }
        if members.is_closed {
            members.lines.push(CLOSED.to_owned());
        }
        let length: usize = members.lines.iter().map(|line| line.len() + 2).sum();
        if !members.needs_lines && length <= ONE_LINE {
            return Words::atom(format!("{{{}}}", members.lines.join(", ")));
        }
        let mut text = "{".to_owned();
        for line in &members.lines {
            text.push_str(&line_end(indent + 1));
            text.push_str(line);
        }
        text.push_str(&line_end(indent));
        text.push('}');
        Words::atom(text)
    }

    /// Writes the members that the keywords of objects describe, as far as they are shown.
    pub(crate) fn members(
        &mut self,
        keywords: &mut Keywords<'s>,
        indent: usize,
        is_shown: impl Fn(&str) -> bool,
    ) -> Members {
        let mut members = Members::default();
        let properties = keywords
            .take_whole("properties", Value::is_object)
            .and_then(Value::as_object);
        let required = required(keywords, properties);
        let shown = properties.into_iter().flatten();
        for (name, schema) in shown.filter(|(name, _)| is_shown(name)) {
            let is_required = required.contains(&name.as_str());
            let mark = if is_required { "" } else { "?" };
            self.needs.extend((!is_required).then_some(Need::Optional));
            let key = format!("{}{mark}", self.key(name));
            self.member(&mut members, &key, schema, indent);
        }
        let patterns = keywords
            .take_whole("patternProperties", Value::is_object)
            .and_then(Value::as_object);
        for (pattern, schema) in patterns.into_iter().flatten() {
            self.member(&mut members, &spelled_pattern(pattern), schema, indent);
        }
        match keywords.take_whole("additionalProperties", |_| true) {
            None => {}
            Some(Value::Bool(false)) => members.is_closed = true,
            Some(schema) => {
                self.needs.insert(Need::OtherNames);
                self.member(&mut members, "*", schema, indent);
            }
        }
        members
    }

    fn member(&mut self, members: &mut Members, key: &str, schema: &'s Value, indent: usize) {
        let (words, description) = self.described(schema, indent);
        let mut line = format!("{key}: {}", words.text);
        let description = comment(&description);
        members.needs_lines |= !description.is_empty() || line.contains('\n');
        describe(&mut line, &description);
        members.lines.push(line);
    }

    /// Writes a key, and its pointer if that differs.
    fn key(&self, name: &str) -> String {
        let is_plain = name
            .starts_with(|first: char| first.is_alphabetic() || first == '_' || first == '$')
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '$' | '-' | '.'));
        if is_plain {
            return name.to_owned();
        }
        let key = json(&name.into());
        match (self.syntax, escape(name)) {
            (Syntax::Block, pointer) if pointer != name => {
                format!("{key} (written {})", comment(&pointer))
            }
            _ => key,
        }
    }
}

/// Adds a description. The description of an entry with several lines is on its first line.
pub(crate) fn describe(text: &mut String, description: &str) {
    if !description.trim().is_empty() {
        let at = text.find('\n').unwrap_or(text.len());
        text.insert_str(at, &format!(" // {}", description.trim()));
    }
}

/// Returns the required members. Those that no property declares stay with the remaining keywords.
fn required<'s>(
    keywords: &mut Keywords<'s>,
    properties: Option<&'s Map<String, Value>>,
) -> HashSet<&'s str> {
    let are_names = |value: &Value| {
        let names = value.as_array();
        names.is_some_and(|names| names.iter().all(Value::is_string))
    };
    let Some(Value::Array(names)) = keywords.take_whole("required", are_names) else {
        return HashSet::new();
    };
    let is_declared =
        |name: &&str| properties.is_some_and(|properties| properties.contains_key(*name));
    let names = names.iter().filter_map(Value::as_str);
    let (declared, others): (Vec<&str>, Vec<&str>) = names.partition(is_declared);
    if !others.is_empty() {
        keywords.put("required", others.into());
    }
    declared.into_iter().collect()
}
