//! The parts of the prompt for the block syntax (`spec/prompt.md` 2).

use plaincall_syntax::Call;

use super::PromptPart;
use super::need::Need;
use super::teaching::{Teaching, results, tools_heading};

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
        PromptPart::NestedValues => {
            let what = teaching.needed(&[
                (Need::Object, "each field of an object"),
                (Need::List, "each item of a list"),
            ]);
            let path = |path: &str| format!("`{argument}{path}`");
            let object = [path("user/name")].into_iter();
            let list = [path("tags/0"), path("tags/1")].into_iter();
            let paths = object.filter(|_| teaching.needs(Need::Object));
            let paths = paths.chain(list.filter(|_| teaching.needs(Need::List)));
            let paths: Vec<String> = paths.collect();
            if paths.is_empty() {
                return None;
            }
            let (what, paths) = (what.join(" and "), paths.join(", "));
            format!("- Write {what} separately, with a path: {paths}.")
        }
        PromptPart::EmptyValues => {
            let empty = teaching.needed(&[
                (Need::List, "`[]` is an empty list"),
                (Need::Object, "`{}` an empty object"),
                (Need::Null, "`null` is null where the tool accepts null"),
            ]);
            if empty.is_empty() {
                return None;
            }
            format!("- {}.", empty.join(", "))
        }
        PromptPart::SeveralCalls if teaching.one_call => {
            "- Write at most one call in a reply.".to_owned()
        }
        PromptPart::SeveralCalls => {
            "- You may write several calls, one after another. They run in parallel. A call that needs the \
             result of another belongs in a later reply."
                .to_owned()
        }
        PromptPart::Dependencies if teaching.has_dependencies() => format!(
            "- To make a call wait for others, give calls ids and list those ids after its own: \
             `{start}tool_name:id:dep1,dep2`."
        ),
        PromptPart::Dependencies | PromptPart::Tools => return None,
        PromptPart::MarkerInValue => marker_in_value(teaching),
        PromptPart::Results => results(teaching),
        PromptPart::ToolsHeading => tools_heading(&teaching.needed(&[
            (Need::Optional, "`x?` is optional"),
            (Need::Default, "`= 5` is the default"),
            (
                Need::Choice,
                "`\"a\" | \"b\"` or `one of [\"a\",\"b\"]` choose one (written without quotes)",
            ),
            (Need::List, "`[T]` list of T"),
            (Need::Object, "`{}` object with these fields"),
            (Need::OtherNames, "`*` any other name"),
        ])),
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
        teaching.call(&Call::Block {
            name,
            id: None,
            dependencies: Vec::new(),
            arguments: vec![(parameter, value)],
        })
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
