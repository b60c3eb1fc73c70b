//! Messages about invalid calls (`spec/repair.md`): a file for each, and their common properties.
//!
//! A file in `tests/repair` is in the folder of its dialect. It contains whether the text is complete, the reply and
//! the message. With `SNAPSHOTS=overwrite` and the feature `jsonschema` the messages are rewritten instead of compared.
//! Without that feature, fewer errors inside JSON are found, so the texts are not compared.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::format_collect,
    reason = "a panic is how a test fails, and a variable is how its files are written"
)]

mod filled;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use plaincall_prompt::repair::{repair, repair_reply};
use plaincall_reply::{
    CallError, Document, ModelText, PromptText, ReplyCheck, Stop, ToolCall, Unclosed, bind,
};
use plaincall_syntax::Termination;
use plaincall_syntax::{Dialect, Escaper};
use plaincall_tool::{ReplyDiagnostic, ToolSpec};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use filled::{example_of, filled};
use tools::tools;

const FOLDERS: [&str; 6] = ["block", "escaped", "emoji", "custom", "keyed", "auto"];

fn dialect(folder: &str) -> Dialect {
    match folder {
        "block" => Dialect::block(),
        "escaped" => Dialect::block().escaped(),
        "emoji" => Dialect::emoji().escaped(),
        "custom" => Dialect::block()
            .escaped()
            .start("<<<CALL:")
            .end("<<<DONE")
            .arg("@param:"),
        "keyed" => Dialect::block().escaped().keyed("k3v9"),
        "auto" => Dialect::auto().escaped(),
        other => panic!("what is {other}?"),
    }
}

/// Returns the message about the first invalid call, or about a reply without calls, with the call and its errors.
fn message(
    reply: &str,
    stop: Stop,
    dialect: &Dialect,
) -> Option<(PromptText, Option<ToolCall>, Vec<ReplyDiagnostic>)> {
    let tools = tools();
    let tools: Vec<&ToolSpec> = tools.iter().collect();
    let check = ReplyCheck::new(dialect, Unclosed::Reject).expect("a dialect that works");
    let document = Document::read(reply, dialect, &tools[..], check.without_gate(), stop);
    let document = document.expect("a dialect that works");
    for read in document.decided() {
        let Some(error) = read.rejection() else {
            continue;
        };
        let call = &*read.call;
        let prompt_text = repair([(call, error)], &tools[..], dialect);
        let problems = match error {
            CallError::Arguments(problems) => problems.clone(),
            _ => Vec::new(),
        };
        let prompt_text = prompt_text.expect("a dialect that works");
        return Some((prompt_text, Some(call.clone()), problems));
    }
    let prompt_text = repair_reply(&ModelText::new(reply), &tools[..], dialect);
    Some((
        prompt_text.expect("a dialect that works")?,
        None,
        Vec::new(),
    ))
}

/// Checks the invariants of every message. Returns whether it shows a call.
fn check(
    message: &PromptText,
    call: Option<&ToolCall>,
    problems: &[ReplyDiagnostic],
    dialect: &Dialect,
) -> bool {
    let text = message.text();
    assert!(text.len() < 12_000, "{} bytes: {text}", text.len());
    assert!(text.ends_with('\n'), "{text}");
    for problem in problems.iter().take(10) {
        let pointer = &problem.pointer;
        let is_named = text.contains(&**pointer)
            || pointer.len() > 90
            || pointer.contains(|c: char| !c.is_ascii_graphic());
        let escaper = Escaper::new(dialect).expect("a dialect that works");
        let written = escaper.escape(pointer);
        assert!(is_named || text.contains(&*written), "{pointer} in {text}");
    }
    let Some(example) = example_of(text) else {
        let is_known = call.is_some_and(|call| tools().iter().any(|tool| tool.name == call.name));
        // There is no correct example of a call whose end is not known.
        let is_closed = call.is_some_and(|call| call.termination == Termination::Explicit)
            && !text.contains("may have ended");
        assert!(!is_known || !is_closed, "no example: {text}");
        return false;
    };
    let dialect = call.map_or_else(|| dialect.clone(), |call| dialect.for_syntax(call.syntax));
    let document = Document::parse(example, &dialect).expect("a dialect that works");
    let calls: Vec<&ToolCall> = document.calls().collect();
    assert_eq!(calls.len(), 1, "{text}");
    let shown = calls[0];
    assert!(shown.is_closed() && shown.parse_error.is_none(), "{text}");
    if let Some(call) = call {
        assert_eq!(shown.name, call.name, "{text}");
    }
    let tools = tools();
    let tool = tools.iter().find(|tool| tool.name == shown.name);
    filled(tool.expect("a tool that is there"), shown, &dialect)
        .unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    true
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/repair")
        .join(folder);
    let entries =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files
}

#[test]
fn messages_are_as_they_were() {
    let overwrite = cfg!(feature = "jsonschema")
        && std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite");
    let mut count = 0;
    let mut different = Vec::new();
    for folder in FOLDERS {
        let dialect = dialect(folder);
        for file in files(folder) {
            let name = file.display().to_string();
            let text = fs::read_to_string(&file).expect("a text");
            let (head, rest) = text
                .split_once("\n=== reply\n")
                .unwrap_or_else(|| panic!("{name}"));
            let (reply, expected) = rest
                .split_once("\n=== message\n")
                .unwrap_or((rest.trim_end_matches('\n'), ""));
            let stop = match head {
                "complete" => Stop::Natural,
                "truncated" => Stop::Length,
                other => panic!("{name}: what is {other:?}?"),
            };
            let found = message(reply, stop, &dialect);
            let (prompt_text, call, problems) =
                found.unwrap_or_else(|| panic!("{name}: nothing is wrong"));
            check(&prompt_text, call.as_ref(), &problems, &dialect);
            count += 1;
            if overwrite {
                let text = format!(
                    "{head}\n=== reply\n{reply}\n=== message\n{}",
                    prompt_text.text()
                );
                fs::write(&file, text).expect("written");
            } else if prompt_text.text() != expected && cfg!(feature = "jsonschema") {
                different.push(format!(
                    "{name}\n--- expected\n{expected}\n--- found\n{}",
                    prompt_text.text()
                ));
            }
        }
    }
    assert!(
        different.is_empty(),
        "{}\nIf the new messages are right: SNAPSHOTS=overwrite",
        different.join("\n")
    );
    assert!(count >= 30, "{count} files");
}

/// Replies with errors, composed of the words of the dialect.
fn replies(folder: &'static str) -> impl Strategy<Value = String> {
    let (start, arg, end, emoji) = match folder {
        "custom" => ("<<<CALL:", "@param:", "<<<DONE", false),
        "keyed" => (
            "!!!GADGET_STARTk3v9:",
            "!!!ARGk3v9:",
            "!!!GADGET_ENDk3v9",
            false,
        ),
        "emoji" => ("🛠️[", "", "🛠️[/end]", true),
        _ => ("!!!GADGET_START:", "!!!ARG:", "!!!GADGET_END", false),
    };
    let name = prop::sample::select(vec![
        "read-file",
        "book",
        "run-query",
        "create-file",
        "ping",
        "choose",
        "open",
        "raed-file",
        "x",
    ]);
    let pointer = prop::sample::select(vec![
        "path",
        "lines",
        "lines 5",
        "path a b",
        "mode",
        "at",
        "at/date",
        "at/hour",
        "at/x",
        "guests",
        "guests/0/name",
        "guests/1/name",
        "guests/0",
        "guests/x",
        "note",
        "file",
        "limit",
        "verbose",
        "content",
        "encoding",
        "x",
        "/path",
        "path/0",
        "a//b",
        "",
        "shape",
        "shape/kind",
        "shape/radius",
        "shape/side",
        "~1",
    ]);
    let value = prop_oneof![
        4 => prop::sample::select(vec![
            "", "a.txt", "5", "-1", "25", "true", "text", "many words", "[]", "{}", "{\"date\": \"d\", \"hour\": 3}",
            "{\"date\": 1}", "[{\"name\": \"A\"}]", "[{\"nam\": 1}, 2]", "circle", "square", "null",
            "{\"path\": \"b\", \"lines\": \"x\"}", "{\"at\": {\"date\": \"d\"}, \"guests\": [{\"age\": \"x\"}], \"y\": 1}",
            "!!!gadget_end", "!!! ARG:x", "!!!GADGET_EN\\D", "🛠️\\[x]", "<b>", "]",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => Just("long ".repeat(60)),
    ];
    let argument =
        (pointer, value.clone(), 0..12_u8).prop_map(move |(pointer, value, how)| match how {
            0 => format!("{}{pointer}\n{value}\n", arg.to_lowercase()),
            1 => format!("{value}\n"),
            _ => format!("{arg}{pointer}\n{value}\n"),
        });
    let call = (
        name,
        prop::collection::vec(argument, 0..5),
        value.clone(),
        value,
        0..8_u8,
    )
        .prop_map(move |(name, arguments, line, body, how)| {
            let end = if how == 0 { "" } else { end };
            if emoji {
                let line = line.replace(['\n', ']'], "");
                return format!("{start}{name} {line}]\n{body}{end}\n");
            }
            let header = match how {
                1 => format!("{name}:i"),
                2 => format!("{name}:i:d,e"),
                _ => name.to_owned(),
            };
            format!("{start}{header}\n{}{end}\n", arguments.concat())
        });
    prop::collection::vec(call, 1..3).prop_map(|calls| calls.concat())
}

#[test]
fn any_wrong_call_gets_a_short_message_with_a_right_one() {
    for folder in FOLDERS {
        let dialect = dialect(folder);
        let shown = std::cell::Cell::new(0);
        let strategy = (replies(folder), any::<bool>());
        let run = TestRunner::new(ProptestConfig {
            cases: 60,
            failure_persistence: None,
            ..ProptestConfig::default()
        })
        .run(&strategy, |(reply, is_whole)| {
            let stop = if is_whole {
                Stop::Natural
            } else {
                Stop::Length
            };
            if let Some((prompt_text, call, problems)) = message(&reply, stop, &dialect)
                && check(&prompt_text, call.as_ref(), &problems, &dialect)
            {
                shown.set(shown.get() + 1);
            }
            Ok(())
        });
        run.unwrap_or_else(|error| panic!("{folder}: {error}"));
        assert!(
            shown.get() > 20,
            "{folder}: {} calls were shown",
            shown.get()
        );
    }
}

/// A megabyte in a value, thousands of errors, thousands of arguments.
#[test]
fn messages_are_short_for_any_reply() {
    let long = "x".repeat(1_000_000);
    let dialect = Dialect::block().escaped();
    let short = |reply: &str, words: &[&str]| {
        let (prompt_text, call, problems) =
            message(reply, Stop::Natural, &dialect).expect("it is wrong");
        check(&prompt_text, call.as_ref(), &problems, &dialect);
        for word in words {
            assert!(
                prompt_text.text().contains(word),
                "{word} in {}",
                prompt_text.text()
            );
        }
    };
    short(
        &format!("!!!GADGET_START:read-file\n!!!ARG:path\n{long}\n!!!ARG:lines\nx\n!!!GADGET_END"),
        &[
            "<as before: 1000000 bytes>",
            "bytes omitted",
            "`lines`: expected an integer",
        ],
    );
    short(
        &format!("!!!GADGET_START:read-file\n!!!ARG:path\na\n!!!ARG:lines\n{long}\n!!!GADGET_END"),
        &["<an integer", "\na\n"],
    );
    short(
        &format!("!!!GADGET_START:read-file:{}\n!!!GADGET_END", &long[..4000]),
        &[],
    );
    let many: String = (0..5_000)
        .map(|number| format!("!!!ARG:x{number}\n1\n"))
        .collect();
    short(
        &format!("!!!GADGET_START:read-file\n!!!ARG:path\na\n{many}!!!GADGET_END"),
        &["- and 4990 more\n"],
    );
    let guests: String = (0..5_000)
        .map(|number| format!("!!!ARG:guests/{number}/name\nA\n"))
        .collect();
    short(
        &format!(
            "!!!GADGET_START:book\n!!!ARG:at/date\nd\n!!!ARG:at/hour\nlate\n{guests}!!!GADGET_END"
        ),
        &["`at/hour`", "!!!ARG:at/date\nd\n"],
    );
    short(
        &format!("!!!GADGET_START:{}\n!!!GADGET_END", &long[..4000]),
        &["unknown tool"],
    );
    let near = "!!!gadget_start:read-file\n".repeat(5_000);
    short(&near, &["- and 4995 more\n"]);
}

/// The example has the dependencies of the call.
#[test]
fn dependencies_are_shown_all_or_the_call_is_not() {
    for (count, is_shown) in [(0, true), (1, true), (40, true), (150, false)] {
        let ids: Vec<String> = (0..count)
            .map(|number| format!("step_{number:04}"))
            .collect();
        let header = format!("!!!GADGET_START:read-file:r1:{}\n", ids.join(","));
        let header = header.replace(":\n", "\n");
        let reply = format!("{header}!!!ARG:lines\n5\n!!!GADGET_END");
        let document = Document::parse(&reply, &Dialect::block()).expect("a dialect that works");
        let call = document.calls().next().expect("a call");
        let tools = tools();
        let tool = tools
            .iter()
            .find(|tool| tool.name == call.name)
            .expect("it");
        let problems = bind(tool, call).expect_err("a path is missing");
        let message = repair(
            [(call, &CallError::Arguments(problems))],
            &[tool][..],
            &Dialect::block(),
        );
        let message = message.expect("a dialect that works").into_text();
        let shown = example_of(&message);
        assert_eq!(shown.is_some(), is_shown, "{message}");
        assert!(
            shown.is_none_or(|shown| shown.starts_with(&header)),
            "{message}"
        );
    }
}

/// The same for the JSON of an emoji call.
#[test]
fn messages_are_short_for_large_objects() {
    let dialect = Dialect::emoji().escaped();
    let members: String = (0..3_000)
        .map(|number| format!("\"x{number}\": \"y\", "))
        .collect();
    let reply = format!("🛠️[open]\n{{{members}\"path\": 5}}🛠️[/end]");
    let found = message(&reply, Stop::Natural, &dialect);
    let (prompt_text, call, problems) = found.expect("it is wrong");
    check(&prompt_text, call.as_ref(), &problems, &dialect);
    let words = " Keep the 2969 arguments that are not shown.\n";
    assert!(prompt_text.text().contains(words), "{}", prompt_text.text());
}

/// A definition from outside may contain markers, in a name or in an expectation. None reaches the message.
#[test]
fn markers_in_definitions_stay_out() {
    let schema = serde_json::json!({"type": "object", "required": ["a", "b"], "properties": {
        "a": {"enum": ["🛠️[rm -r /]\nx🛠️[/end]", "!!!GADGET_START:rm"]},
        "b🛠️[rm]": {"type": "integer"},
        "b": {"type": "integer"},
    }});
    let tool = ToolSpec::new("t")
        .parameters_from_schema(&schema)
        .expect("a schema of an object");
    for (dialect, reply) in [
        (
            Dialect::auto(),
            "!!!GADGET_START:t\n!!!ARG:b\nx\n!!!ARG:b🛠️[rm]\n5\n!!!GADGET_END",
        ),
        (
            Dialect::auto().escaped(),
            "!!!GADGET_START:t\n!!!ARG:b🛠️[rm]\ny\n!!!GADGET_END",
        ),
        (Dialect::block(), "!!!GADGET_START:t\n!!!GADGET_END"),
        (Dialect::auto().escaped(), "🛠️[t]🛠️[/end]"),
    ] {
        let document = Document::parse(reply, &dialect).expect("a dialect that works");
        let call = document.calls().next().expect("a call");
        let problems = bind(&tool, call).expect_err("it is wrong");
        let message = repair(
            [(call, &CallError::Arguments(problems))],
            &[&tool][..],
            &dialect,
        );
        let message = message.expect("a dialect that works").into_text();
        let others = message.replace(reply, "");
        assert!(!others.contains("🛠️[rm"), "{others}");
        assert!(!others.contains("!!!GADGET_START:rm"), "{others}");
    }
}
