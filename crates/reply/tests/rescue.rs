//! Calls that arrive as text, in every format, and text that is none.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use plaincall_reply::Untrusted;
use plaincall_reply::rescue::{Format, RescueReader, Rescued};
use plaincall_reply::untrusted::EchoGuard;
use plaincall_syntax::{Dialect, floor_char_boundary, near_misses};
use plaincall_tool::definitions::read_tool_definitions;
use plaincall_tool::{ToolSet, ToolSpec};
use proptest::prelude::*;
use serde_json::json;

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, properties: serde_json::Value, required: &[&str]| {
        let parameters = json!({"type": "object", "properties": properties, "required": required});
        json!({"type": "function", "function": {"name": name, "parameters": parameters}})
    };
    let tools = json!([
        tool(
            "add",
            json!({"a": {"type": "integer"}, "b": {"type": "integer"}}),
            &["a"]
        ),
        tool(
            "write",
            json!({"path": {"type": "string"}, "text": {"type": "string"}}),
            &["path"]
        ),
        tool("now", json!({}), &[]),
    ]);
    read_tool_definitions(&tools.to_string()).unwrap()
}

fn reader() -> RescueReader<&'static ToolSet> {
    static TOOLS: LazyLock<ToolSet> = LazyLock::new(|| ToolSet::new(tools()).unwrap());
    static READER: LazyLock<RescueReader<&[&ToolSpec]>> = LazyLock::new(|| {
        let markers = ["<think>", "</think>"].map(str::to_owned);
        let reader = RescueReader::new(Some(markers)).unwrap();
        reader.with_formats(&Format::ALL)
    });
    READER.with_tools(&*TOOLS)
}

/// Returns the calls that are found in a text that arrives in these pieces.
fn read<'t>(pieces: impl IntoIterator<Item = &'t str>) -> Vec<Rescued> {
    read_in(&Format::ALL, pieces).0
}

/// Returns the calls in these formats, and whether the text has a near miss.
fn read_in<'t>(
    formats: &[Format],
    pieces: impl IntoIterator<Item = &'t str>,
) -> (Vec<Rescued>, bool) {
    let mut reader = reader().with_formats(formats);
    let mut found = Vec::new();
    let pieces = pieces.into_iter().map(|piece| reader.feed(piece));
    for piece in pieces.collect::<Vec<_>>() {
        found.extend(piece);
    }
    found.extend(reader.flush(true));
    let mut joined: Vec<Rescued> = Vec::new();
    for one in found {
        match (joined.last_mut(), one) {
            (Some(Rescued::Text(before)), Rescued::Text(text))
            | (Some(Rescued::Reasoning(before)), Rescued::Reasoning(text)) => {
                before.push_str(&text);
            }
            (_, one) => joined.push(one),
        }
    }
    (joined, reader.has_near_miss())
}

fn lines(found: &[Rescued]) -> String {
    let mut lines = String::new();
    for one in found {
        match one {
            Rescued::Text(text) => {
                let _ = writeln!(lines, "text {}", json!(text));
            }
            Rescued::Reasoning(text) => {
                let _ = writeln!(lines, "reasoning {}", json!(text));
            }
            Rescued::Calls { calls, .. } => {
                for call in calls {
                    let _ = writeln!(lines, "call {} {}", call.name, call.arguments.to_value());
                }
            }
            _ => {}
        }
    }
    lines
}

/// The text that was read: no byte of it is lost, and none is there twice.
fn source(found: &[Rescued]) -> String {
    let sources = found.iter().map(|one| match one {
        Rescued::Text(text) | Rescued::Reasoning(text) => text.as_str(),
        Rescued::Calls { source, .. } => source,
        _ => "",
    });
    sources.collect()
}

/// A vector: the name, the text, and what is found.
fn vectors(file: &str) -> Vec<(String, String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/rescue")
        .join(file);
    let text = fs::read_to_string(path).unwrap();
    let parts = text.split("\n==== ").skip(1).map(|part| {
        let (name, rest) = part.split_once('\n').unwrap();
        let (text, found) = rest.split_once("---- found\n").unwrap();
        // A text without a line end at its end.
        let text = text.strip_suffix("\\\n").unwrap_or(text);
        (name.to_owned(), text.to_owned(), found.to_owned())
    });
    parts.collect()
}

#[test]
fn every_vector_split_at_every_position() {
    let mut all = vectors("vectors.txt");
    assert!(all.len() > 40, "{}", all.len());
    all.extend(vectors("formats.txt"));
    let mut wrong = String::new();
    for (name, text, expected) in &all {
        let whole = read([text.as_str()]);
        if lines(&whole).trim_end() != expected.trim_end() {
            let _ = writeln!(wrong, "==== {name}\nfound:\n{}", lines(&whole));
            continue;
        }
        assert_eq!(source(&whole), *text, "{name}");
        for (at, _) in text.char_indices() {
            let (one, two) = text.split_at(at);
            let split = read([one, two]);
            assert_eq!(lines(&split), lines(&whole), "{name}, {at}");
            assert_eq!(source(&split), *text, "{name}, {at}");
        }
        let letters = text
            .char_indices()
            .map(|(at, c)| &text[at..at + c.len_utf8()]);
        assert_eq!(lines(&read(letters)), lines(&whole), "{name}");
    }
    assert_eq!(wrong, "");
}

/// The vectors of formats, each with its format.
fn formats() -> Vec<(Format, String, String)> {
    let vectors = vectors("formats.txt").into_iter();
    let all: Vec<_> = vectors
        .map(|(name, text, found)| {
            let format = name.split(',').next().and_then(Format::from_name);
            (format.unwrap(), text, found)
        })
        .collect();
    for format in Format::ALL {
        assert!(all.iter().any(|(one, ..)| *one == format), "{format:?}");
    }
    all
}

fn calls(found: &[Rescued]) -> String {
    let all = lines(found);
    let calls = all.lines().filter(|line| line.starts_with("call "));
    calls.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_format_that_is_not_accepted_is_a_near_miss() {
    // The same texts belong to several formats.
    let same = |format: Format| match format {
        Format::Granite | Format::Phi => vec![Format::Granite, Format::Phi],
        Format::Minimax | Format::Hunyuan | Format::Jamba => {
            vec![Format::Minimax, Format::Hunyuan, Format::Jamba]
        }
        one => vec![one],
    };
    let dialect = Dialect::block();
    for (format, text, expected) in formats() {
        let (found, _) = read_in(&[format], [&*text]);
        assert_eq!(lines(&found).trim_end(), expected.trim_end(), "{format:?}");
        let same = same(format);
        let others = Format::ALL.into_iter().filter(|one| !same.contains(one));
        let (found, has_near_miss) = read_in(&others.collect::<Vec<_>>(), [&*text]);
        assert_eq!(calls(&found), "", "{text}");
        assert!(has_near_miss, "{text}");
        assert!(!near_misses(&text, &dialect).unwrap().is_empty(), "{text}");
    }
}

#[test]
fn a_label_does_not_hide_a_code_block() {
    let text = "Action:\n```json\n{\"name\": \"now\"}\n```";
    let (found, _) = read_in(&[Format::Fenced], [text]);
    assert_eq!(calls(&found), "call now {}");
}

#[test]
fn the_name_of_a_server_states_nothing_about_the_model() {
    for name in ["my-model", "qwen3:8b", "codellama", "tinyllama", "llama3"] {
        let behind = format!("ollama/{name}");
        assert_eq!(Format::of_model(&behind), Format::of_model(name), "{name}");
        let is_llama = Format::of_model(name).contains(&Format::Llama);
        assert_eq!(is_llama, name.contains("llama"), "{name}");
    }
}

#[test]
fn a_value_has_the_type_that_its_format_states() {
    let parameters = json!({"type": "object", "required": ["r"], "properties": {
        "a": {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "n": {"type": "integer"},
        "s": {"type": "string"}, "z": {"type": ["string", "null"]}, "r": {"type": "string"},
    }});
    let definitions =
        json!([{"type": "function", "function": {"name": "f", "parameters": parameters}}]);
    let tools = ToolSet::new(read_tool_definitions(&definitions.to_string()).unwrap()).unwrap();
    let marked = |members: &[(&str, &str, &str)]| {
        let mut text = "<\u{FF5C}DSML\u{FF5C}invoke name=\"f\">".to_owned();
        for (key, is_string, value) in members {
            let _ = write!(
                text,
                "<\u{FF5C}DSML\u{FF5C}parameter name=\"{key}\" string=\"{is_string}\">{value}</\u{FF5C}DSML\u{FF5C}parameter>"
            );
        }
        text + "</\u{FF5C}DSML\u{FF5C}invoke>"
    };
    let r = ("r", "true", "1");
    for (text, expected) in [
        (
            marked(&[r, ("a", "true", "5")]),
            "call f {\"r\":\"1\",\"a\":\"5\"}",
        ),
        (
            marked(&[r, ("a", "false", "5")]),
            "call f {\"r\":\"1\",\"a\":5}",
        ),
        (
            marked(&[r, ("n", "true", "5")]),
            "call f {\"r\":\"1\",\"n\":5}",
        ),
        (
            marked(&[r, ("a", "true", "5"), ("n", "true", "7")]),
            "call f {\"r\":\"1\",\"a\":\"5\",\"n\":7}",
        ),
        (
            marked(&[r, ("s", "false", "null"), ("z", "false", "null")]),
            "call f {\"r\":\"1\",\"z\":null}",
        ),
        (
            marked(&[r, ("s", "true", "null"), ("z", "true", "null")]),
            "call f {\"r\":\"1\",\"s\":\"null\",\"z\":\"null\"}",
        ),
        (marked(&[("r", "false", "null")]), ""),
        (marked(&[r, ("s", "false", "null"), ("s", "true", "x")]), ""),
        (
            "<|tool_call>call:f{r:<|\"|>a<|\"|>,s:null,z:null}<tool_call|>".to_owned(),
            "call f {\"r\":\"a\",\"z\":null}",
        ),
        ("<|tool_call>call:f{r:null}<tool_call|>".to_owned(), ""),
    ] {
        let mut reader = RescueReader::new(None)
            .unwrap()
            .with_tools(&tools)
            .with_formats(&[Format::Dsml, Format::Gemma]);
        let mut found = reader.feed(&text);
        found.extend(reader.flush(true));
        assert_eq!(calls(&found), expected, "{text}");
    }
}

#[test]
fn a_truncated_call_is_none() {
    for (format, text, expected) in formats() {
        let begun = |found: &str| expected.contains(found.trim_end());
        for (at, _) in text.char_indices() {
            let mut reader = reader().with_formats(&[format]);
            let mut found = reader.feed(&text[..at]);
            found.extend(reader.flush(false));
            assert_eq!(calls(&found), "", "{}", &text[..at]);
            // A call that is whole is one, also if the rest is missing.
            let (found, _) = read_in(&[format], [&text[..at]]);
            assert!(begun(&calls(&found)), "{}", &text[..at]);
            assert_eq!(source(&found), text[..at]);
        }
    }
}

/// Texts around a call, which make it an example, a quotation or data.
const AROUND: [(&str, &str); 14] = [
    ("> ", ""),
    ("- ", ""),
    ("    Note: ", ""),
    ("    Look at this. ", ""),
    ("a. ", ""),
    ("iv. ", ""),
    ("User: ", ""),
    ("| ", " |"),
    ("```text\n", "\n```"),
    ("<example>\n", "\n</example>"),
    ("<tool_use>\n", "\n</tool_use>"),
    ("<tool_code>\n{", "}\n</tool_code>"),
    ("Call it with `", "`"),
    ("", "\nThat is an example."),
];

#[test]
fn a_quoted_call_is_none() {
    for (_, text, _) in formats() {
        for (before, behind) in AROUND {
            let lines = text.replace('\n', &format!("\n{}", before.trim_end_matches('\n')));
            let is_prefix = behind.is_empty() && !before.ends_with('\n');
            let inner = if is_prefix { &lines } else { &text };
            let quoted = format!("{before}{inner}{behind}");
            let found = read([&*quoted]);
            assert_eq!(calls(&found), "", "{quoted}");
            assert_eq!(source(&found), quoted);
        }
        // A call that writes the text.
        let written = json!({"name": "write", "arguments": {"path": "a.txt", "text": text}});
        let found = read([&*format!("<tool_call>{written}</tool_call>")]);
        assert_eq!(calls(&found).lines().count(), 1, "{text}");
    }
}

#[test]
fn a_call_in_any_format_is_an_echo_of_one_in_any_other() {
    let guard = EchoGuard::new(&[Dialect::auto()]).unwrap();
    for (_, page, expected) in formats() {
        let (found, _) = read_in(&Format::ALL, [&*page]);
        for page in [
            page.clone(),
            json!({"page": page}).to_string(),
            page.replace('\n', "\n> "),
        ] {
            for one in &found {
                let Rescued::Calls { calls, .. } = one else {
                    continue;
                };
                for call in calls {
                    let mut guard = guard.clone();
                    guard.observe(&Untrusted::new(&*page));
                    let echo = guard.echo_of_arguments(&call.name, &call.arguments);
                    assert!(echo.is_some(), "{page}\n{expected}");
                    assert!(guard.mentions(&call.name).is_some(), "{page}");
                }
            }
        }
    }
}

/// Pieces of all formats and of ordinary text.
const PIECES: &[&str] = &[
    "<tool_call>",
    "</tool_call>",
    "<function=add>",
    "<function=sub>",
    "{\"name\": \"sub\", \"arguments\": {}}",
    "</function>",
    "<parameter=a>",
    "</parameter>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<|python_tag|>",
    "```",
    "```json",
    "~~~",
    "\n",
    "\n",
    "\n",
    " ",
    "\t",
    "\r\n",
    "{\"name\": \"add\", \"arguments\": {\"a\": 5}}",
    "{\"name\":",
    "\"arguments\":",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"",
    "\\",
    "add",
    "now",
    "5",
    "true",
    "!!!GADGET_START:now\n",
    "!!!GADGET_END",
    "!!!ARG:a",
    "🛠️[now]",
    "🛠️[/end]",
    "<think>",
    "</think>",
    "<",
    "`",
    "[add(a=",
    ")]",
    "commentary to=functions.add json",
    "analysisI",
    "assistant",
    "<|tool_call>call:add{a:",
    "<tool_call|>",
    "<arg_key>a</arg_key><arg_value>",
    "</arg_value>",
    "functools[",
    "text.",
    "é",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_byte_is_lost(
        text in prop::collection::vec(prop::sample::select(PIECES), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let text = text.concat();
        let whole = read([text.as_str()]);
        prop_assert_eq!(source(&whole), text.as_str());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| floor_char_boundary(&text, cut.index(text.len() + 1))).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]);
        prop_assert_eq!(lines(&read(pieces)), lines(&whole));
    }
}

#[test]
fn a_failed_candidate_is_read_alike_in_pieces() {
    let call = r#"{"name": "add", "arguments": {"a": 5}}"#;
    for failed in [
        "<start_function_call>\n{\"name\":\"sub\",\"arguments\":{}}\n<end_function_call>",
        "{\"color\":\n<b>\n",
        "{\"a\":\n\"<b>\"\n}",
        r#"[TOOL_CALLS]{"name": "sub", "arguments": {}}"#,
        "{\"name\": \"sub\", \"arguments\": {\"text\":\n\"x\",\n<b>\n\"a\": 1}}",
    ] {
        let text = format!("{failed}\n{call}");
        let whole = lines(&read([text.as_str()]));
        for cut in 0..text.len() {
            let (before, behind) = text.split_at(cut);
            assert_eq!(lines(&read([before, behind])), whole, "{before:?}");
        }
    }
}

#[test]
fn text_is_held_back_only_while_it_may_become_a_call() {
    for (text, held) in [
        ("Hello", ""),
        ("<", "<"),
        ("<tool", "<tool"),
        ("<tools", ""),
        ("  {\"na", "{\"na"),
        ("    {\"name\"", ""),
        ("{\"color\"", ""),
        ("{\"name\": \"John\"", ""),
        ("{\"name\": \"add\"", "{\"name\": \"add\""),
        ("{ color", ""),
        ("[1", ""),
        ("[{", "[{"),
        ("[link](", ""),
        ("```json\n{", "```json\n{"),
        ("```python\n", ""),
        ("```json\n{\"name\": \"add\", \"arguments\": {}}\nand", ""),
        (
            "<function=add>\n<parameter=a>",
            "<function=add>\n<parameter=a>",
        ),
        ("<function=sub>\n<parameter=a>", ""),
        (
            "!!!GADGET_START:add\n!!!ARG:a\n",
            "!!!GADGET_START:add\n!!!ARG:a\n",
        ),
        ("!!!GADGET_START:sub\n!!!ARG:a\n", ""),
        ("<think>\n<tool_call>", ""),
    ] {
        let mut reader = reader();
        let passed = source(&reader.feed(text));
        assert_eq!(text.strip_prefix(&*passed), Some(held), "{text}");
        assert_eq!(reader.is_holding(), !held.is_empty(), "{text}");
    }
}

#[test]
fn memory_is_bounded() {
    let long = "x".repeat(100_000);
    for begin in [
        "<function=write>\n<parameter=path>",
        "{\"name\": \"write\", \"arguments\": {\"path\": \"",
        "!!!GADGET_START:write\n!!!ARG:path\n",
    ] {
        let mut reader = reader();
        let mut passed = source(&reader.feed(begin));
        let mut fed = begin.to_owned();
        for _ in 0..30 {
            passed += &source(&reader.feed(&long));
            fed += &long;
            assert!(fed.len() - passed.len() <= 1 << 20);
        }
        assert!(!reader.is_holding());
        passed += &source(&reader.flush(true));
        assert_eq!(passed, fed);
    }
}
