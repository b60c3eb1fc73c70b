//! The line and the body of an emoji call as named arguments (`spec/emoji.md`, binding to named parameters).

use std::fmt;

use plaincall_syntax::{Span, is_blank};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::argument_error::quoted;
use crate::arguments::{Arguments, Leaf, Text};
use crate::bind::{Misfit, Problem, Undeclared, fits, takes};
use crate::call::ToolCall;
use crate::json_text;
use crate::reading::Reading;
use crate::tool::{Parameter, ParameterKind, ToolSpec};
use crate::usage::{Usage, UsageBody};

/// Binds the call; what does not fit goes to `problems`.
pub(crate) fn bind_emoji(
    tool: &ToolSpec,
    call: &ToolCall,
    problems: &mut Vec<Problem>,
) -> Arguments {
    let usage = tool.usage();
    let mut arguments = Arguments::default();
    let line = Line {
        text: call.raw_args().unwrap_or_default(),
        span: call.raw_args_span().unwrap_or_default(),
    };
    let body = call.body().unwrap_or_default();
    let body_span = call
        .body_span()
        .unwrap_or(Span::new(call.span.end, call.span.end));
    if let UsageBody::Json = usage.body {
        if line.text.contains(|c| !is_blank(c)) {
            let message = format!(
                "{} stands on the line, which must be empty: the form of the call is `{usage}`",
                quoted(line.text.trim_matches(is_blank))
            );
            problems.push(Problem::new("line_not_empty", "", line.span, message));
        }
        json_body(tool, body, body_span, &mut arguments, problems);
        return arguments;
    }
    positional(&usage, &line, &mut arguments, problems);
    match usage.body {
        UsageBody::Parameter(parameter) => {
            // There is no other way to leave an optional body out.
            if parameter.required || !body.is_empty() {
                place(&mut arguments, parameter, body, body_span, Reading::String);
            }
        }
        UsageBody::Nothing if body.contains(|c: char| !is_blank(c) && c != '\n' && c != '\r') => {
            problems.push(body_not_blank(&usage, call, body, body_span));
        }
        UsageBody::Nothing | UsageBody::Json => {}
    }
    arguments
}

/// The line of a call and where it stands.
struct Line<'c> {
    text: &'c str,
    span: Span,
}

impl<'c> Line<'c> {
    /// Its words and where each begins.
    fn words(&self) -> impl Iterator<Item = (usize, &'c str)> {
        let text = self.text;
        text.split(is_blank)
            .filter(|word| !word.is_empty())
            .map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
    }

    /// What stands from `at` on, trimmed.
    fn rest(&self, at: usize) -> &'c str {
        self.text
            .get(at..)
            .unwrap_or_default()
            .trim_matches(is_blank)
    }

    fn span_of(&self, at: usize, text: &str) -> Span {
        if self.span.len() != self.text.len() {
            // Replaced bytes stand in the header: no place inside it is known.
            return self.span;
        }
        let start = self.span.start + at;
        Span::new(start, start + text.len())
    }
}

fn positional(
    usage: &Usage<'_>,
    line: &Line<'_>,
    arguments: &mut Arguments,
    problems: &mut Vec<Problem>,
) {
    let mut words = line.words();
    for item in &usage.line {
        let Some((at, word)) = words.next() else {
            return;
        };
        let text = if item.takes_rest { line.rest(at) } else { word };
        let span = line.span_of(at, text);
        let parameter = item.parameter;
        if let Err(misfit) = fits(parameter.kind, text) {
            problems.push(Problem::wrong_type(&parameter.pointer(), span, &misfit));
        } else {
            place(
                arguments,
                parameter,
                text,
                span,
                Reading::of(parameter.kind),
            );
        }
        if item.takes_rest {
            return;
        }
    }
    if let Some((at, _)) = words.next() {
        let surplus = line.rest(at);
        let message = format!(
            "{} is too much on the line: the form of the call is `{usage}`",
            quoted(surplus)
        );
        problems.push(Problem::new(
            "surplus_on_line",
            "",
            line.span_of(at, surplus),
            message,
        ));
    }
}

fn body_not_blank(usage: &Usage<'_>, call: &ToolCall, body: &str, span: Span) -> Problem {
    let name = usage.name;
    let message = if call.marker_in_value {
        format!(
            "{name} takes no body, and the body holds another call: the end marker of this call was forgotten, so both must be written again"
        )
    } else {
        let begin = quoted(body.trim_start());
        format!(
            "{name} takes no body, and the body begins with {begin}: close the call right behind its header; the form of the call is `{usage}`"
        )
    };
    Problem::new("body_not_blank", "", span, message)
}

fn place(
    arguments: &mut Arguments,
    parameter: &Parameter,
    text: &str,
    span: Span,
    reading: Reading,
) -> bool {
    let leaf = Leaf {
        pointer: parameter.pointer().into(),
        pointer_span: span,
        text: Text::Own(text.into()),
        span,
        reading,
    };
    arguments.place_member(&parameter.name, leaf).is_ok()
}

/// The members of a JSON object, each with its text.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Members, A::Error> {
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

fn json_body(
    tool: &ToolSpec,
    body: &str,
    span: Span,
    arguments: &mut Arguments,
    problems: &mut Vec<Problem>,
) {
    let blank = |c: char| c.is_ascii_whitespace();
    let json = body.trim_matches(blank);
    if json.is_empty() && tool.parameters.iter().all(|parameter| !parameter.required) {
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
            problems.push(Problem::new("body_not_json", "", span, message));
            return;
        }
    };
    let mut undeclared = Undeclared::new(tool);
    for (name, raw) in members {
        let Some(parameter) = tool.get(&name) else {
            let pointer = crate::pointer::escape(&name);
            problems.push(undeclared.problem(&pointer, span));
            continue;
        };
        match member(parameter.kind, raw.get()) {
            Ok((text, reading)) => {
                if !place(arguments, parameter, &text, span, reading) {
                    let pointer = parameter.pointer();
                    let message = format!("`{pointer}` stands twice in the body");
                    problems.push(Problem::new("duplicate_pointer", &pointer, span, message));
                }
            }
            Err(misfit) => problems.push(Problem::wrong_type(&parameter.pointer(), span, &misfit)),
        }
    }
}

/// The text of a member, if it is of the kind that is declared.
fn member(kind: ParameterKind, raw: &str) -> Result<(String, Reading), Misfit> {
    let misfit = |found: String| Misfit {
        expected: kind.in_words(),
        found,
    };
    let value =
        json_text::parse(raw).map_err(|error| misfit(format!("{} ({error})", quoted(raw))))?;
    match (kind, value) {
        (ParameterKind::String | ParameterKind::Any, serde_json::Value::String(text)) => {
            Ok((text, Reading::String))
        }
        (ParameterKind::Any, _) => Ok((raw.to_owned(), Reading::Json)),
        (ParameterKind::String, _) | (_, serde_json::Value::String(_)) => Err(misfit(quoted(raw))),
        (kind, _) => match fits(kind, raw) {
            Ok(()) => Ok((raw.to_owned(), Reading::of(kind))),
            Err(misfit) => Err(misfit),
        },
    }
}
