//! Replies written once for all dialects.
//!
//! A line that begins with `@` is a call: `@write:w1:r1 path=b text="one\ntwo"`, name, id and dependencies, then its
//! arguments, whose values are words or JSON strings. In the emoji syntax ids are omitted. Other text is unchanged;
//! `{1}` is the id of the first call if none is written.

use plaincall_agent::plaincall::Toolbox;
use plaincall_agent::plaincall::prompt::render::{EmojiText, spell_emoji};
use plaincall_agent::plaincall::syntax::{Call, Dialect, Syntax, render};
use plaincall_agent::plaincall::tool::Arguments;

/// Returns a text in a dialect.
pub(crate) fn spelled(text: &str, dialect: &Dialect, tools: &Toolbox) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        match line.strip_prefix('@') {
            Some(call) => out.push_str(&spelled_call(call.trim_end(), dialect, tools)),
            None => out.push_str(line),
        }
    }
    with_ids(&out, dialect)
}

/// Returns a text with the ids of calls.
pub(crate) fn with_ids(text: &str, dialect: &Dialect) -> String {
    let name = match dialect.syntax() {
        Some(Syntax::Emoji) => "call",
        _ => "gadget",
    };
    let mut text = text.to_owned();
    for number in 1..10 {
        text = text.replace(&format!("{{{number}}}"), &format!("{name}_{number}"));
    }
    text
}

fn spelled_call(line: &str, dialect: &Dialect, tools: &Toolbox) -> String {
    let (head, mut rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut head = head.split(':');
    let name = head.next().unwrap();
    let id = head.next();
    let dependencies = head.next().map(|ids| ids.split(',').collect());
    let mut pairs = Vec::new();
    while let Some((key, value)) = rest.trim_start().split_once('=') {
        let text: String;
        if value.starts_with('"') {
            let mut values = serde_json::Deserializer::from_str(value).into_iter::<String>();
            text = values
                .next()
                .unwrap()
                .unwrap_or_else(|error| panic!("{line}: {error}"));
            rest = &value[values.byte_offset()..];
        } else {
            let end = value.find(' ').unwrap_or(value.len());
            text = value[..end].to_owned();
            rest = &value[end..];
        }
        pairs.push((key, text));
    }
    let arguments: Vec<(&str, &str)> = pairs.iter().map(|(key, text)| (*key, &**text)).collect();
    let call = if dialect.syntax() == Some(Syntax::Emoji) {
        let bound = Arguments::from_pairs(arguments.iter().copied()).unwrap();
        let spelled = match tools.get(name) {
            Some(tool) => {
                spell_emoji(tool.spec(), &bound).unwrap_or_else(|error| panic!("{line}: {error}"))
            }
            None => EmojiText::default(),
        };
        let (raw_args, body) = (&spelled.raw_args, &spelled.body);
        render(
            &Call::Emoji {
                name,
                raw_args,
                body,
            },
            dialect,
        )
    } else {
        let dependencies = dependencies.unwrap_or_default();
        render(
            &Call::Block {
                name,
                id,
                dependencies,
                arguments,
            },
            dialect,
        )
    };
    call.unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// Returns whether a text matches a pattern, in which an ellipsis matches any text.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.trim_end().split('…');
    let Some(mut rest) = text
        .trim_end()
        .strip_prefix(parts.next().unwrap_or_default())
    else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, between)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
