//! The parts of the prompt for the emoji syntax (`spec/prompt.md` 2).

use plaincall_syntax::Call;

use super::PromptPart;
use super::teaching::{Teaching, results};

pub(super) fn teach(part: PromptPart, teaching: &Teaching<'_>) -> Option<String> {
    let end = &teaching.end;
    Some(match part {
        PromptPart::Introduction => "# Calling tools\n\n\
             To use a tool, write this as plain text in your reply:"
            .to_owned(),
        PromptPart::Form => form(teaching)?,
        PromptPart::Values => format!(
            "- End each call with `{end}`.\n\
             - The first line of each tool below is its usage. Write values in that order, separated by spaces: no \
             names, no quotes, no `]`. `x?` is optional if nothing follows it, `x...` takes the rest of the line.\n\
             - `(body: x)`: the body is the value of x, exactly as is. Otherwise the body is empty."
        ),
        PromptPart::NestedValues => {
            "- `(body: one JSON object)`: all parameters are in the body as JSON, none on \
             the line."
                .to_owned()
        }
        PromptPart::EmptyValues => "- Empty values: `null`, in JSON also `[]` and `{}`.".to_owned(),
        PromptPart::SeveralCalls if teaching.one_call => {
            "- Write at most one call in a reply.".to_owned()
        }
        PromptPart::SeveralCalls => {
            "- Write several calls one after another; they run in order.".to_owned()
        }
        PromptPart::Dependencies | PromptPart::Tools => return None,
        PromptPart::MarkerInValue => match teaching.escapes(&[end]) {
            Some(escapes) => {
                format!("- In a body, put a backslash before a marker's last character: {escapes}.")
            }
            None => format!("- A body cannot contain `{end}`."),
        },
        PromptPart::Results => results(teaching),
        PromptPart::Example => {
            let calls = example(teaching)?;
            let forms = if teaching.one_call {
                "`send_mail (body: one JSON object)`"
            } else {
                "`save_note file (body: text)` and `send_mail (body: one JSON object)`"
            };
            format!("Example for {forms}:\n\n{calls}")
        }
        PromptPart::ToolsHeading => "# Your tools\n\n\
             `= 5` default, `|` or, `[T]` list of T, `*` any other name."
            .to_owned(),
        PromptPart::Closing => format!("Use only these tools. End each call with `{end}`."),
    })
}

fn form(teaching: &Teaching<'_>) -> Option<String> {
    let words = [
        ("tool_name", "values", "body\n"),
        ("NAME", "VALUES", "BODY\n"),
        ("x", "y", "z\n"),
    ];
    words.into_iter().find_map(|(name, raw_args, body)| {
        teaching.calls(&[Call::Emoji {
            name,
            raw_args,
            body,
        }])
    })
}

fn example(teaching: &Teaching<'_>) -> Option<String> {
    let save = Call::Emoji {
        name: "save_note",
        raw_args: "plan.md",
        body: "# Plan\n- Don't \"wait\"\n",
    };
    let send = Call::Emoji {
        name: "send_mail",
        raw_args: "",
        body: "{\"to\": {\"name\": \"Ann\"}, \"tags\": [\"a\", \"b\"], \"files\": [], \"reply_to\": null}\n",
    };
    if teaching.one_call {
        teaching.calls(&[send])
    } else {
        teaching.calls(&[save, send])
    }
}
