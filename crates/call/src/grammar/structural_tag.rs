//! Structural tags of `XGrammar`.

use serde_json::{Value, json};

use super::arguments::{ArgumentValue, Lines};
use super::emoji::{EmojiBody, EmojiForm};
use super::exclusion::header;
use super::pattern::Pattern;
use super::{CallForm, Form, Grammar, MostCalls, gbnf, lark};

pub(super) fn print(grammar: &Grammar) -> Value {
    let excluded = &grammar.markers.all;
    let format = if grammar.most == MostCalls::None {
        json!({"type": "any_text", "excludes": excluded})
    } else {
        let start = &grammar.markers.start;
        let others: Vec<&String> = excluded.iter().filter(|one| *one != start).collect();
        let tags: Vec<Value> = grammar
            .calls
            .iter()
            .map(|call| tag(grammar, call))
            .collect();
        json!({
            "type": "triggered_tags",
            "triggers": [start],
            "tags": tags,
            "at_least_one": grammar.needs_call,
            "stop_after_first": grammar.most == MostCalls::One,
            "excludes": others,
        })
    };
    json!({"type": "structural_tag", "format": format})
}

fn tag(grammar: &Grammar, call: &CallForm) -> Value {
    let markers = &grammar.markers;
    let (begin, content) = match &call.form {
        Form::Block(arguments) if grammar.has_ids => {
            let header = pattern(grammar, &header(&markers.all));
            let arguments = lines(grammar, arguments);
            (call.name.clone(), sequence(vec![header, arguments]))
        }
        Form::Block(arguments) => (format!("{}\n", call.name), lines(grammar, arguments)),
        Form::Emoji(EmojiForm { line, body }) => {
            let line = Pattern::sequence([line.clone(), Pattern::literal("]")]);
            let line = pattern(grammar, &line);
            let text = || {
                let any = json!({"type": "any_text", "excludes": markers.all});
                sequence(vec![literal("\n"), any])
            };
            let body = match body {
                EmojiBody::Pattern(body) => pattern(grammar, body),
                EmojiBody::Text { is_required: true } => text(),
                EmojiBody::Text { is_required: false } => optional(&text()),
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

fn lines(grammar: &Grammar, written: &Lines) -> Value {
    match written {
        Lines::Argument { pointer, value } => {
            let begin = literal(&format!("{}{pointer}\n", grammar.markers.arg));
            let value = match value {
                ArgumentValue::Text => json!({"type": "any_text", "excludes": grammar.markers.all}),
                ArgumentValue::Pattern(value) => pattern(grammar, value),
            };
            sequence(vec![begin, value, literal("\n")])
        }
        Lines::Sequence(parts) => {
            let parts = parts.iter().map(|(is_required, part)| {
                let part = lines(grammar, part);
                if *is_required { part } else { optional(&part) }
            });
            sequence(parts.collect())
        }
        Lines::Choice(options) => {
            let options: Vec<Value> = options.iter().map(|one| lines(grammar, one)).collect();
            json!({"type": "or", "elements": options})
        }
    }
}

fn pattern(grammar: &Grammar, written: &Pattern) -> Value {
    match written {
        Pattern::Literal(text) => literal(text),
        Pattern::Choice(options) if !options.is_empty() => {
            let options: Vec<Value> = options.iter().map(|one| pattern(grammar, one)).collect();
            json!({"type": "or", "elements": options})
        }
        regular if regular.is_regular() => {
            json!({"type": "regex", "pattern": lark::regex(regular)})
        }
        other => {
            let rules = gbnf::json_rules(grammar);
            let root = gbnf::pattern(other);
            json!({"type": "grammar", "grammar": format!("root ::= {root}\n{rules}")})
        }
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
