//! The parts of the prompt for the block syntax (`spec/prompt.md` 2).

use plaincall_syntax::Call;

use super::PromptPart;
use super::teaching::{Teaching, results};

pub(super) fn teach(part: PromptPart, teaching: &Teaching<'_>) -> Option<String> {
    let Teaching {
        start,
        end,
        argument,
        ..
    } = teaching;
    Some(match part {
        PromptPart::Introduction => "# Calling tools\n\n\
             You can use tools. To call one, write this as plain text in your reply, and start each marker on a new \
             line:"
            .to_owned(),
        PromptPart::Form => form(teaching)?,
        PromptPart::Values => format!(
            "- End each call with `{end}`.\n\
             - For each parameter write one `{argument}` line with its name. The value follows on the next line, \
             exactly as is: no quotes, no `\\n`, no code fence, as many lines as it needs."
        ),
        PromptPart::NestedValues => format!(
            "- Write each field of an object and each item of a list separately, with a path: `{argument}user/name`, \
             `{argument}tags/0`, `{argument}tags/1`."
        ),
        PromptPart::EmptyValues => "- `[]` is an empty list, `{}` an empty object. `null` is null where the tool accepts \
             null."
            .to_owned(),
        PromptPart::SeveralCalls if teaching.one_call => {
            "- Write at most one call in a reply.".to_owned()
        }
        PromptPart::SeveralCalls => {
            "- You may write several calls, one after another. They run in parallel. A call that needs the \
             result of another belongs in a later reply."
                .to_owned()
        }
        PromptPart::Dependencies if teaching.with_dependencies => format!(
            "- To make a call wait for others, give calls ids and list those ids after its own: \
             `{start}tool_name:id:dep1,dep2`."
        ),
        PromptPart::Dependencies | PromptPart::Tools => return None,
        PromptPart::MarkerInValue => marker_in_value(teaching),
        PromptPart::Results => results(teaching),
        PromptPart::Example => {
            let calls = example(teaching)?;
            format!("Example reply, with tools that you do not have:\n\n{calls}")
        }
        PromptPart::ToolsHeading => "# Your tools\n\n\
             `x?` is optional, `= 5` is the default, `\"a\" | \"b\"` or `one of [\"a\",\"b\"]` choose one \
             (written without quotes), `[T]` \
             list of T, `{}` object with these fields, `*` any other name, `//` comment."
            .to_owned(),
        PromptPart::Closing => {
            format!("Use only these tools and parameters. End each call with `{end}`.")
        }
    })
}

fn form(teaching: &Teaching<'_>) -> Option<String> {
    let words = [
        ("tool_name", "parameter", "value"),
        ("NAME", "NAME", "VALUE"),
        ("x", "y", "z"),
    ];
    words.into_iter().find_map(|(name, parameter, value)| {
        teaching.calls(&[Call::Block {
            name,
            id: None,
            dependencies: Vec::new(),
            arguments: vec![(parameter, value)],
        }])
    })
}

fn marker_in_value(teaching: &Teaching<'_>) -> String {
    let end = &teaching.end;
    match teaching.escapes(&[&teaching.argument, end]) {
        Some(escapes) => format!(
            "- To write a marker inside a value, put a backslash before its last character: {escapes}."
        ),
        None if teaching.counts_anywhere() => {
            "- A value must not contain any of these markers.".to_owned()
        }
        None => {
            format!("- No line of a value may begin with one of these markers or end with `{end}`.")
        }
    }
}

fn example(teaching: &Teaching<'_>) -> Option<String> {
    let with_ids = teaching.with_dependencies;
    let save = Call::Block {
        name: "save_note",
        id: with_ids.then_some("n1"),
        dependencies: Vec::new(),
        arguments: vec![
            ("title", "Plan for \"May\""),
            ("text", "# Plan\n- Buy paint\n- Don't wait"),
            ("tags/0", "home"),
            ("tags/1", "garden"),
        ],
    };
    let send = Call::Block {
        name: "send_mail",
        id: with_ids.then_some("m1"),
        dependencies: if with_ids { vec!["n1"] } else { Vec::new() },
        arguments: vec![
            ("to/name", "Ann Lee"),
            ("to/email", "ann@example.com"),
            ("files", "[]"),
            ("reply_to", "null"),
        ],
    };
    if teaching.one_call {
        teaching.calls(&[send])
    } else {
        teaching.calls(&[save, send])
    }
}
