//! The parts of the prompt for the emoji syntax (`spec/prompt.md` 2).

use std::fmt::Write as _;

use plaincall_syntax::Call;

use super::PromptPart;
use super::need::Need;
use super::teaching::{Teaching, results, tools_heading};

pub(super) fn teach(part: PromptPart, teaching: &Teaching<'_>) -> Option<String> {
    let end = &teaching.end;
    Some(match part {
        PromptPart::Introduction => "# Calling tools\n\n\
             To use a tool, write this as plain text in your reply:"
            .to_owned(),
        PromptPart::Form => form(teaching)?,
        PromptPart::Values => values(teaching),
        PromptPart::NestedValues if teaching.needs(Need::JsonBody) => {
            let is_first = !teaching.needs(Need::TextBody);
            format!(
                "- `(body: one JSON object)`: all parameters are in the body as JSON, none on \
                 the line.{}",
                if is_first { no_body(teaching) } else { "" }
            )
        }
        PromptPart::EmptyValues if teaching.needs(Need::Null) => {
            let json = teaching.needs(Need::JsonBody);
            let json = if json {
                ", in JSON also `[]` and `{}`"
            } else {
                ""
            };
            format!("- Empty values: `null`{json}.")
        }
        PromptPart::SeveralCalls if teaching.one_call => {
            "- Write at most one call in a reply.".to_owned()
        }
        PromptPart::SeveralCalls => {
            "- Write several calls one after another; they run in order.".to_owned()
        }
        PromptPart::NestedValues
        | PromptPart::EmptyValues
        | PromptPart::Dependencies
        | PromptPart::Tools => return None,
        PromptPart::MarkerInValue if !has_body(teaching) => return None,
        PromptPart::MarkerInValue => match teaching.escapes(&[end]) {
            Some(escapes) => {
                format!("- In a body, put a backslash before a marker's last character: {escapes}.")
            }
            None => format!("- A body cannot contain `{end}`."),
        },
        PromptPart::Results => results(teaching),
        PromptPart::ToolsHeading => {
            // The rule for the line may have explained it.
            let optional = !teaching.needs(Need::OptionalOnLine) && teaching.needs(Need::Optional);
            let mut signs: Vec<&str> = optional.then_some("`x?` is optional").into_iter().collect();
            signs.extend(teaching.needed(&[
                (Need::Default, "`= 5` default"),
                (Need::Choice, "`|` or"),
                (Need::List, "`[T]` list of T"),
                (Need::OtherNames, "`*` any other name"),
            ]));
            tools_heading(&signs)
        }
        PromptPart::Closing => format!("Use only these tools. End each call with `{end}`."),
    })
}

/// Returns how the first line of a tool shows its calls.
fn values(teaching: &Teaching<'_>) -> String {
    let mut text = format!(
        "- End each call with `{}`.\n- The first line of each tool below is its usage.",
        teaching.end
    );
    if teaching.needs(Need::Line) {
        text.push_str(
            " Write values in that order, separated by spaces: no names, no quotes, no `]`.",
        );
    }
    let signs = teaching.needed(&[
        (
            Need::OptionalOnLine,
            "`x?` is optional if nothing follows it",
        ),
        (Need::RestOfLine, "`x...` takes the rest of the line"),
    ]);
    if !signs.is_empty() {
        let _ = write!(text, " {}.", signs.join(", "));
    }
    if teaching.needs(Need::TextBody) {
        text.push_str("\n- `(body: x)`: the body is the value of x, exactly as is.");
        text.push_str(no_body(teaching));
    }
    text
}

fn has_body(teaching: &Teaching<'_>) -> bool {
    teaching.needs(Need::TextBody) || teaching.needs(Need::JsonBody)
}

fn no_body(teaching: &Teaching<'_>) -> &'static str {
    if teaching.needs(Need::NoBody) {
        " Otherwise the body is empty."
    } else {
        ""
    }
}

fn form(teaching: &Teaching<'_>) -> Option<String> {
    let has_line = teaching.needs(Need::Line);
    let has_body = has_body(teaching);
    let words = [
        ("tool_name", "values", "body\n"),
        ("NAME", "VALUES", "BODY\n"),
        ("x", "y", "z\n"),
    ];
    words.into_iter().find_map(|(name, raw_args, body)| {
        teaching.call(&Call::Emoji {
            name,
            raw_args: if has_line { raw_args } else { "" },
            body: if has_body { body } else { "" },
        })
    })
}
