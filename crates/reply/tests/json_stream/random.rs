//! Random calls, split at random, with pointers in any order.

use plaincall_syntax::{Dialect, Syntax};
use plaincall_testkit::json_streams::stream_all;
use plaincall_tool::{Limits, ToolSpec};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::Value;

use crate::json_stream::tools::{emoji_tools, tool, unknown};

/// The invariants of every call, however it is split.
fn check_text(
    text: &str,
    dialect: &Dialect,
    sizes: &[usize],
    shape: &ToolSpec,
    tool: Option<&ToolSpec>,
    limits: Limits,
) -> Result<usize, TestCaseError> {
    let mut chunks = Vec::new();
    let mut rest = text;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, left) = rest.split_at(plaincall_syntax::ceil_char_boundary(
            rest,
            (*size).min(rest.len()),
        ));
        chunks.push(chunk);
        rest = left;
    }
    let cut = stream_all(chunks, dialect, shape, tool, limits);
    let whole = stream_all([text], dialect, shape, tool, limits);
    prop_assert_eq!(cut.len(), whole.len());
    let mut closed = 0;
    for (call, whole) in cut.iter().zip(&whole) {
        prop_assert_eq!(&call.rest, &whole.rest);
        if call.fault.is_none() {
            prop_assert_eq!(call.begun(), whole.begun());
        }
        let Some(bound) = &call.bound else {
            // Not bound, so it is never closed.
            prop_assert!(serde_json::from_str::<Value>(&call.begun()).is_err());
            continue;
        };
        match &call.rest {
            Ok(rest) => {
                closed += 1;
                let is_flat = |pointer: &str| !pointer.contains('/');
                if call.call.syntax == Syntax::Block && bound.iter().all(|one| is_flat(one.pointer))
                {
                    // Without parts nothing is held back.
                    let end = if bound.is_empty() { "{}" } else { "}" };
                    prop_assert_eq!(rest, end);
                }
                let json = call.begun() + rest;
                prop_assert_eq!(&json, &bound.to_value().to_string());
                prop_assert_eq!(
                    serde_json::from_str::<Value>(&json).ok(),
                    Some(bound.to_value())
                );
            }
            Err(error) => prop_assert!(false, "{error} {:?}", call.call.arguments),
        }
    }
    Ok(closed)
}

const POINTERS: &[(&str, &str)] = &[
    ("s", "text"),
    ("o/x", "text"),
    ("o/y", "text"),
    ("n", "number"),
    ("l/0", "text"),
    ("l/1", "text"),
    ("l/2/k", "text"),
    ("d/e/f", "text"),
    ("d/e/g", "text"),
    ("d/h", "text"),
    ("p/0", "text"),
    ("p/1", "text"),
    ("i", "integer"),
    ("t", "boolean"),
    ("a", "text"),
    ("text", "text"),
    ("o/0", "text"),
    ("p/2", "text"),
    ("o", "object"),
    ("l", "list"),
    ("/s", "text"),
    ("no", "text"),
    ("o//", "text"),
    ("-1", "text"),
];

fn value(kind: &'static str) -> BoxedStrategy<String> {
    let texts =
        |texts: &[&'static str]| prop::sample::select(texts.to_vec()).prop_map(str::to_owned);
    let arbitrary = prop::collection::vec(
        prop::sample::select(vec![
            "5",
            "0",
            "-",
            ".",
            " ",
            "\t",
            "\n",
            "\r",
            "true",
            "null",
            "x",
            "\"",
            "\\",
            "\u{1}",
            "é",
            "𝄞",
            "/",
            "[",
            "!!!ARG:",
            "🛠️[a",
            "\u{7f}",
            "\u{2028}",
        ]),
        0..6,
    );
    let fitting = match kind {
        "number" => texts(&["5", "-0.5", "+1e3", " 007 ", "1.50", "-0"]).boxed(),
        "integer" => texts(&["5", "-17", "+1e3", " 007 ", "1.0"]).boxed(),
        "boolean" => texts(&["true", " false\t"]).boxed(),
        "object" => texts(&["{}", "{\"b\": 1.50,\n \"a\": [null]}"]).boxed(),
        "list" => texts(&["[]", "[1, {\"b\": 1e3}]"]).boxed(),
        _ => texts(&[
            "5",
            "007",
            "true",
            "null",
            "",
            " ",
            "1.50",
            "-0",
            "3.14159265358979323846",
        ])
        .boxed(),
    };
    let arbitrary = arbitrary.prop_map(|pieces| pieces.concat());
    if kind == "text" {
        prop_oneof![fitting, arbitrary].boxed()
    } else {
        prop_oneof![9 => fitting, 1 => arbitrary].boxed()
    }
}

/// Block calls: often valid, with arguments in the order of the list above or in any other.
fn block_calls() -> impl Strategy<Value = String> {
    let right = prop::sample::subsequence(POINTERS[..16].to_vec(), 0..9);
    let any = prop::sample::subsequence(POINTERS.to_vec(), 0..6);
    let grouped = prop::sample::select(vec![
        vec!["l/0", "l/1", "s", "l/2/k"],
        vec!["d/e/f", "d/e/g", "d/h", "text", "a"],
        vec!["d/h", "d/e/f", "s", "d/e/g", "text"],
        vec!["p/0", "p/1", "o/x", "o/y", "s"],
        vec!["o/x", "p/0", "o/y", "p/1", "n"],
        vec!["p/0", "p/1", "s", "p/2"],
    ])
    .prop_map(|names| {
        names
            .iter()
            .filter_map(|name| POINTERS.iter().find(|(one, _)| one == name))
            .copied()
            .collect()
    });
    let pointers = prop_oneof![
        2 => right.clone(),
        2 => right.prop_shuffle(),
        1 => any.prop_shuffle(),
        3 => grouped,
    ];
    let arguments = pointers.prop_flat_map(|pointers: Vec<(&'static str, &'static str)>| {
        pointers
            .into_iter()
            .map(|(pointer, kind)| {
                value(kind).prop_map(move |value| format!("!!!ARG:{pointer}\n{value}\n"))
            })
            .collect::<Vec<_>>()
    });
    let ends = prop::sample::select(vec!["!!!GADGET_END\n", "", "!!!GADGET_START:B\n"]);
    (arguments, ends)
        .prop_map(|(arguments, end)| format!("!!!GADGET_START:A\n{}{end}", arguments.concat()))
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1_usize..12, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn block_calls_become_their_value(text in block_calls(), sizes in sizes(), is_tight in any::<bool>()) {
        let dialect = Dialect::block();
        let mut tight = Limits::for_running();
        tight.value_bytes = Some(8);
        tight.arguments = 4;
        let limits = if is_tight { tight } else { Limits::default() };
        let tool = tool();
        check_text(&text, &dialect, &sizes, &tool, Some(&tool), limits)?;
        check_text(&text, &dialect, &sizes, &unknown(), None, limits)?;
    }

    #[test]
    fn emoji_calls_become_their_value(
        tool in prop::sample::select(emoji_tools()),
        line in prop::sample::select(vec!["", "a.txt", "a.txt 7", "7 a.txt", "1.5", " 7  a b ", "\"q\" 007"]),
        body in prop_oneof![
            value("text"),
            Just("{\"path\": \"a\", \"content\": \"\\u0001\", \"mode\": 7}".to_owned()),
            Just("\n".to_owned()),
        ],
        end in prop::sample::select(vec!["🛠️[/end]", ""]),
        sizes in sizes(),
    ) {
        let text = format!("🛠️[A {line}]\n{body}{end}");
        check_text(&text, &Dialect::emoji(), &sizes, &tool, Some(&tool), Limits::default())?;
    }
}

/// Enough of the random calls above are valid.
#[test]
fn many_of_the_random_calls_are_right() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut closed = 0;
    for _ in 0..500 {
        let text = block_calls()
            .new_tree(&mut runner)
            .expect("a call")
            .current();
        let tool = tool();
        closed += check_text(
            &text,
            &Dialect::block(),
            &[3],
            &tool,
            Some(&tool),
            Limits::default(),
        )
        .expect("the property holds");
    }
    assert!(closed > 150, "{closed} of 500");
}
