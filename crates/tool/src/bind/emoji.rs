//! The line and the body of an emoji call, bound to named parameters (`spec/emoji.md`, binding to named parameters).

use std::collections::HashSet;
use std::fmt;

use plaincall_syntax::{Span, is_blank};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::Arguments;
use crate::ConversionRule;
use crate::ReplyDiagnostic;
use crate::ToolSpec;
use crate::absent::{given, is_absent};
use crate::argument_error::quoted;
use crate::arguments::{Leaf, Text};
use crate::bind::{Problems, Undeclared, takes};
use crate::json_text;
use crate::pointer::escape;
use crate::schema::TypeError;
use crate::spec::usage::{Usage, UsageBody, UsageItem};
use crate::text_type::TextType;
use crate::tree::ROOT;

/// The texts of an emoji call.
#[derive(Clone, Copy)]
pub struct EmojiParts<'c> {
    pub line: Line<'c>,
    pub body: Line<'c>,
    /// Whether the body contains a whole marker.
    pub has_marker: bool,
}

pub fn bind_emoji(tool: &ToolSpec, parts: EmojiParts<'_>, problems: &mut Problems) -> Arguments {
    let usage = tool.usage();
    let mut arguments = Arguments::default();
    let EmojiParts { line, body, .. } = parts;
    if let UsageBody::Json = usage.body {
        if line.text.contains(|c| !is_blank(c)) {
            let message = format!(
                "unexpected {} on the line, which must be empty; usage: `{usage}`",
                quoted(line.text.trim_matches(is_blank))
            );
            let code = "line_not_empty";
            problems.push(ReplyDiagnostic::of_definition(code, "", line.span, message));
        }
        json_body(tool, body, &mut arguments, problems);
        return arguments;
    }
    let surplus = positional(&usage, &line, &mut arguments);
    let given = match usage.body {
        // An empty body is the only way to omit an optional one.
        UsageBody::Parameter(parameter) if parameter.required || !body.text.is_empty() => {
            Some(parameter)
        }
        _ => None,
    };
    if let Some(parameter) = given {
        let name = &parameter.name;
        let (text_type, rule) = (TextType::String, ConversionRule::Body);
        place(&mut arguments, name, body.text, body.span, text_type, rule);
    }
    read_line(tool, &usage, &mut arguments, problems);
    if let Some(surplus) = surplus {
        problems.push(surplus);
    }
    let is_filled = body
        .text
        .contains(|c: char| !is_blank(c) && c != '\n' && c != '\r');
    if usage.body == UsageBody::Nothing && is_filled {
        problems.unrecoverable(body_not_blank(&usage, parts));
    }
    arguments
}

/// A text of a call, and its location.
#[derive(Clone, Copy)]
pub struct Line<'c> {
    pub text: &'c str,
    pub span: Span,
}

impl<'c> Line<'c> {
    fn words(&self) -> impl Iterator<Item = (usize, &'c str)> {
        let text = self.text;
        text.split(is_blank)
            .filter(|word| !word.is_empty())
            .map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
    }

    fn rest(&self, at: usize) -> &'c str {
        self.text
            .get(at..)
            .unwrap_or_default()
            .trim_matches(is_blank)
    }

    fn span_of(&self, at: usize, text: &str) -> Span {
        if self.span.len() != self.text.len() {
            // It contains replaced bytes or an escape, so locations inside it are not known.
            return self.span;
        }
        let start = self.span.start + at;
        Span::new(start, start + text.len())
    }
}

/// Assigns the words of the line to the parameters, and reports surplus words.
fn positional(
    usage: &Usage<'_>,
    line: &Line<'_>,
    arguments: &mut Arguments,
) -> Option<ReplyDiagnostic> {
    let mut words = line.words();
    for item in &usage.line {
        let (at, word) = words.next()?;
        let text = if item.takes_rest { line.rest(at) } else { word };
        let span = line.span_of(at, text);
        place(
            arguments,
            &item.parameter.name,
            text,
            span,
            TextType::Coerced,
            ConversionRule::Undeclared,
        );
        if item.takes_rest {
            return None;
        }
    }
    let (at, _) = words.next()?;
    let surplus = line.rest(at);
    let message = format!(
        "unexpected {} on the line; usage: `{usage}`",
        quoted(surplus)
    );
    let span = line.span_of(at, surplus);
    Some(ReplyDiagnostic::of_definition(
        "surplus_on_line",
        "",
        span,
        message,
    ))
}

/// Reads the words of the line according to the schema, which may depend on the other arguments.
fn read_line(
    tool: &ToolSpec,
    usage: &Usage<'_>,
    arguments: &mut Arguments,
    problems: &mut Problems,
) {
    let reader = tool.schema().reader();
    arguments.remove_absent(tool, &reader);
    let form = reader.narrow(reader.root(), arguments, ROOT);
    for item in &usage.line {
        let name = &item.parameter.name;
        let Some(index) = arguments.leaf_of_member(name) else {
            continue;
        };
        let Some(leaf) = arguments.leaves.get(index) else {
            continue;
        };
        let here = reader.member(&form, name);
        let text = arguments.text(leaf);
        let spelling = reader.spelling(&here, text);
        if let Some(type_error) = &spelling.type_error {
            problems.type_error(&item.parameter.pointer(), leaf.span, type_error);
        }
        if let Some(leaf) = arguments.leaves.get_mut(index) {
            leaf.text_type = spelling.text_type;
            leaf.rule = spelling.rule;
        }
    }
    problems.steps += reader.steps_taken();
}

/// Returns the arguments on the line of a call; `None` if it is invalid or lacks a required one.
pub fn bind_line(tool: &ToolSpec, usage: &Usage<'_>, raw_args: &str) -> Option<Arguments> {
    let line = Line {
        text: raw_args,
        span: Span::default(),
    };
    let mut arguments = Arguments::default();
    let mut problems = Problems::default();
    let surplus = positional(usage, &line, &mut arguments);
    read_line(tool, usage, &mut arguments, &mut problems);
    let is_there = |item: &UsageItem<'_>| arguments.has_member(&item.parameter.name);
    let mut required = usage.line.iter().filter(|item| item.parameter.required);
    let is_right = surplus.is_none() && problems.first().is_none() && required.all(is_there);
    is_right.then_some(arguments)
}

fn body_not_blank(usage: &Usage<'_>, parts: EmojiParts<'_>) -> ReplyDiagnostic {
    let name = usage.name;
    let message = if parts.has_marker {
        format!(
            "{name} takes no body, but the body contains another call: end this call first, then send the other one again too"
        )
    } else {
        let begin = quoted(parts.body.text.trim_start());
        format!(
            "{name} takes no body, but the body begins with {begin}: end the call right after its header; usage: `{usage}`"
        )
    };
    ReplyDiagnostic::of_definition("body_not_blank", "", parts.body.span, message)
}

pub(crate) fn place(
    arguments: &mut Arguments,
    name: &str,
    text: &str,
    span: Span,
    text_type: TextType,
    rule: ConversionRule,
) -> bool {
    let leaf = Leaf {
        pointer: escape(name).into(),
        pointer_span: span,
        text: Text::Own(text.into()),
        span,
        text_type,
        rule,
    };
    arguments.place_member(name, leaf).is_ok()
}

/// The members of a JSON object, each with its text as a slice of the input.
struct Members<'b>(Vec<(String, &'b RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = access.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

fn json_body(tool: &ToolSpec, body: Line<'_>, arguments: &mut Arguments, problems: &mut Problems) {
    let blank = |c: char| c.is_ascii_whitespace();
    let json = body.text.trim_matches(blank);
    if json.is_empty()
        && tool
            .parameters()
            .iter()
            .all(|parameter| !parameter.required)
    {
        return;
    }
    let Members(members) = match serde_json::from_str(json) {
        Ok(members) => members,
        Err(error) => {
            let cause = if json.starts_with('{') {
                json_text::phrase(&error)
            } else {
                format!("it is {}", quoted(json))
            };
            let message = format!(
                "the body of {} must be one JSON object, but {cause}; {}",
                tool.name,
                takes(tool)
            );
            let code = "body_not_json";
            problems.unrecoverable(ReplyDiagnostic::of_definition(code, "", body.span, message));
            return;
        }
    };
    let reader = tool.schema().reader();
    let whole_root = reader.root();
    let whole: Map<String, Value> = members
        .iter()
        .filter_map(|(name, raw)| Some((name.clone(), json_text::parse(raw.get()).ok()?)))
        .collect();
    let whole = Value::Object(given(&whole, tool).into_owned());
    let root = reader.narrow_to(&whole_root, &whole);
    let mut undeclared = Undeclared::new(tool);
    let mut seen = HashSet::new();
    for (name, raw) in members {
        let pointer = escape(&name);
        let raw = raw.get();
        let span = body.span_of(raw.as_ptr() as usize - body.text.as_ptr() as usize, raw);
        if tool.get(&name).is_none() && !root.declares(&name) {
            problems.push(undeclared.problem(&pointer, span));
            continue;
        }
        let here = reader.member(&root, &name);
        let value = match json_text::parse(raw) {
            Ok(value) => value,
            Err(error) => {
                let type_error = TypeError {
                    expected: here.in_words(),
                    found: format!("{} ({error})", quoted(raw)),
                    is_inside: false,
                };
                problems.type_error(&pointer, span, &type_error);
                continue;
            }
        };
        let is_again = !seen.insert(name.clone());
        if !is_again && is_absent(tool, &reader, &whole_root, &name, &value) {
            continue;
        }
        let spelling = reader.json_spelling(&here, &value, raw);
        if let Some(type_error) = &spelling.type_error {
            problems.type_error(&pointer, span, type_error);
        }
        let text = match &value {
            Value::String(text) => text,
            _ => raw,
        };
        let (text_type, rule) = (spelling.text_type, spelling.rule);
        if is_again || !place(arguments, &name, text, span, text_type, rule) {
            let message = format!("duplicate key `{pointer}` in the body");
            let code = "duplicate_pointer";
            problems.push(ReplyDiagnostic::of_definition(
                code, &pointer, span, message,
            ));
        }
    }
    problems.steps += reader.steps_taken();
}
