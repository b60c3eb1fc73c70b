//! An entry of the list of tools (`spec/prompt.md` 3).

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::num::NonZeroUsize;

use plaincall_syntax::Syntax;
use serde_json::Value;

use super::need::{Need, Needs};
use super::notation::{Keywords, Notation, References, comment, describe, json};
use super::shortened::{shortened, shortened_schema};
use plaincall_reply::Untrusted;
use plaincall_tool::{ToolSpec, usage::UsageBody};

/// Writes the entry of a tool: its usage, description and parameters, on several lines.
///
/// Its first line begins with `## `, and no other line does, regardless of the definition. Each description has at most
/// `length` characters. Adds what the entry shows.
pub(super) fn list_tool(
    tool: &ToolSpec,
    syntax: Syntax,
    length: Option<NonZeroUsize>,
    needs: &mut Needs,
) -> Untrusted<'static> {
    Need::add_usage(needs, tool);
    let name = match syntax {
        Syntax::Block => comment(&tool.name),
        Syntax::Emoji => comment(&tool.usage().to_string()),
    };
    let mut text = format!("## {name}\n");
    let description = shortened(&tool.description, length);
    describe_in_lines(&mut text, &description);
    let mut document = without_call_examples(tool.schema().document());
    if let Some(length) = length {
        shortened_schema(document.to_mut(), length);
    }
    let whole = json(&document);
    let mut shown = Needs::new();
    match in_notation(tool, &document, &description, syntax, &mut shown) {
        Some(notation) if notation.len() <= whole.len() => {
            needs.extend(shown);
            text.push_str(&notation);
        }
        _ => {
            needs.extend(Need::OF_ANY);
            text.push_str(&whole);
            text.push('\n');
        }
    }
    Untrusted::new(text)
}

fn describe_in_lines(text: &mut String, description: &str) {
    let is_line_end = |c| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    for line in description.split(is_line_end).map(comment) {
        if !line.trim().is_empty() {
            text.push_str("// ");
            text.push_str(&line);
            text.push('\n');
        }
    }
}

/// Returns the schema without the examples that are listed as calls. Others can only be JSON.
fn without_call_examples(document: &Value) -> Cow<'_, Value> {
    let is_example = |examples: &Value| {
        let examples = examples.as_array();
        examples.is_some_and(|examples| examples.iter().any(Value::is_object))
    };
    if !document.get("examples").is_some_and(is_example) {
        return Cow::Borrowed(document);
    }
    let mut document = document.clone();
    if let Some(Value::Array(examples)) = document.get_mut("examples") {
        examples.retain(|example| !example.is_object());
        if let (true, Value::Object(keywords)) = (examples.is_empty(), &mut document) {
            keywords.shift_remove("examples");
        }
    }
    Cow::Owned(document)
}

/// Writes the parameters; `None` if the schema has references that the notation cannot name.
fn in_notation(
    tool: &ToolSpec,
    document: &Value,
    described: &str,
    syntax: Syntax,
    needs: &mut Needs,
) -> Option<String> {
    let mut keywords = Keywords::new(document.as_object()?);
    let mut notation = Notation::new(References::of(document)?, syntax, needs);
    let mut text = String::new();
    for definitions in ["$defs", "definitions"] {
        keywords.take(definitions);
    }
    let description = keywords.take_text("description").unwrap_or_default();
    if description != described {
        describe_in_lines(&mut text, &description);
    }
    if keywords.describes_more_than_members() {
        text.push_str(&notation.whole(keywords, 0));
        text.push('\n');
    } else {
        keywords.take_if("type", |kind| kind == "object");
        let given = names_with_room(tool, syntax);
        let has_room = |name: &str| given.as_ref().is_none_or(|names| names.contains(name));
        let members = notation.members(&mut keywords, 0, has_room);
        let rest = notation.rest(&keywords).map(|rest| format!("& {rest}"));
        // Undeclared parameters are errors anyway, so `additionalProperties: false` adds nothing.
        let is_empty = members.lines.is_empty() && rest.is_none();
        let nothing = is_empty.then(|| "(no parameters)".to_owned());
        for line in members.lines.into_iter().chain(nothing).chain(rest) {
            text.push_str(&line);
            text.push('\n');
        }
    }
    while let Some((name, mut words, description)) = notation.next_definition() {
        describe(&mut words, &comment(&description));
        let _ = writeln!(text, "{name} = {words}");
    }
    Some(text)
}

/// Returns the parameters that a call of the syntax can express; `None` for all.
fn names_with_room(tool: &ToolSpec, syntax: Syntax) -> Option<HashSet<&str>> {
    let usage = match syntax {
        Syntax::Block => return None,
        Syntax::Emoji => tool.usage(),
    };
    let body = match usage.body {
        UsageBody::Json => return None,
        UsageBody::Parameter(body) => Some(body),
        UsageBody::Nothing => None,
    };
    let line = usage.line.iter().map(|item| item.parameter);
    Some(line.chain(body).map(|one| one.name.as_str()).collect())
}
