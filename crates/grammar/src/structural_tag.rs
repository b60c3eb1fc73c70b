//! Structural tags of `XGrammar`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::arguments::{ArgumentValue, Lines};
use crate::emoji::{EmojiBody, EmojiForm};
use crate::exclusion::header;
use crate::gbnf;
use crate::grammar::{CallForm, Form, Grammar};
use crate::pattern::Pattern;

pub(crate) fn print(grammar: &Grammar) -> Value {
    let limited = &grammar.limited_in_tag();
    let prose = || any_text(grammar);
    let newline = || optional(&literal("\n"));
    let call = || {
        let tags = grammar.calls.iter().map(|call| tag(grammar, call, limited));
        json!({"type": "or", "elements": tags.collect::<Vec<Value>>()})
    };
    // A line end is part of each call.
    let calls = |least: usize| {
        let content = sequence(vec![call(), newline()]);
        json!({"type": "repeat", "min": least, "max": grammar.most, "content": content})
    };
    let format = match (grammar.needs_call, grammar.most) {
        (true, _) => sequence(vec![newline(), newline(), calls(1)]),
        (false, 0) => prose(),
        (false, _) => sequence(vec![prose(), calls(0)]),
    };
    json!({"type": "structural_tag", "format": format})
}

fn any_text(grammar: &Grammar) -> Value {
    json!({"type": "any_text", "excludes": grammar.markers.all})
}

/// A text, or any if its limits are not enforced.
fn text(grammar: &Grammar, text: Option<usize>, limited: &BTreeSet<usize>) -> Value {
    match text.filter(|text| limited.contains(text)) {
        Some(text) => pattern(grammar, &Pattern::Text(text), limited),
        None => any_text(grammar),
    }
}

fn tag(grammar: &Grammar, call: &CallForm, limited: &BTreeSet<usize>) -> Value {
    let markers = &grammar.markers;
    let (begin, content) = match &call.form {
        Form::Block(arguments) if grammar.has_ids => {
            let header = pattern(grammar, &header(&markers.all), limited);
            let arguments = lines(grammar, arguments, limited);
            (call.name.clone(), sequence(vec![header, arguments]))
        }
        Form::Block(arguments) => (
            format!("{}\n", call.name),
            lines(grammar, arguments, limited),
        ),
        Form::Emoji(EmojiForm { line, body }) => {
            let line = Pattern::sequence([line.clone(), Pattern::literal("]")]);
            let line = pattern(grammar, &line, limited);
            let body = match body {
                EmojiBody::Pattern(body) => pattern(grammar, body, limited),
                EmojiBody::Text {
                    is_required,
                    limited: index,
                } => {
                    let text = text(grammar, *index, limited);
                    let text = sequence(vec![literal("\n"), text]);
                    if *is_required { text } else { optional(&text) }
                }
            };
            (call.name.clone(), sequence(vec![line, body]))
        }
    };
    // A line end follows the end marker, so that no letter does.
    json!({
        "type": "tag",
        "begin": format!("{}{begin}", markers.start),
        "content": content,
        "end": format!("{}\n", markers.end),
    })
}

fn lines(grammar: &Grammar, written: &Lines, limited: &BTreeSet<usize>) -> Value {
    match written {
        Lines::Argument { pointer, value } => {
            let begin = literal(&format!("{}{pointer}\n", grammar.markers.arg));
            let value = match value {
                ArgumentValue::Text => any_text(grammar),
                ArgumentValue::Limited(index) => text(grammar, Some(*index), limited),
                ArgumentValue::Pattern(value) => pattern(grammar, value, limited),
            };
            sequence(vec![begin, value, literal("\n")])
        }
        Lines::Sequence(parts) => {
            let parts = parts.iter().map(|(is_required, part)| {
                let part = lines(grammar, part, limited);
                if *is_required { part } else { optional(&part) }
            });
            sequence(parts.collect())
        }
        Lines::Choice(options) => {
            let options: Vec<Value> = options
                .iter()
                .map(|one| lines(grammar, one, limited))
                .collect();
            json!({"type": "or", "elements": options})
        }
    }
}

/// `XGrammar`'s regular expressions have no escapes of code points, and its class `.` has no line end. Its EBNF is complete.
fn pattern(grammar: &Grammar, written: &Pattern, limited: &BTreeSet<usize>) -> Value {
    match written {
        Pattern::Literal(text) => literal(text),
        other => json!({"type": "grammar", "grammar": gbnf::alone(grammar, other, limited)}),
    }
}

fn literal(text: &str) -> Value {
    json!({"type": "const_string", "value": text})
}

fn optional(content: &Value) -> Value {
    json!({"type": "optional", "content": content})
}

fn sequence(mut elements: Vec<Value>) -> Value {
    match elements.len() {
        0 => literal(""),
        1 => elements.remove(0),
        _ => json!({"type": "sequence", "elements": elements}),
    }
}
