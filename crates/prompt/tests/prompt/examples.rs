//! The examples in prompts: the parser reads them, and their tools accept the arguments that the prompt describes.

use plaincall_prompt::{PromptOptions, PromptPart, prompt};
use plaincall_reply::{Document, ToolCall, bind};
use plaincall_syntax::{Call, Dialect, Escaper, MarkerUse, Syntax, Termination, render};
use plaincall_tool::ToolSpec;
use serde_json::json;

/// The dialects for which the examples are tested.
fn dialects() -> Vec<Dialect> {
    let blocks = [
        Dialect::block(),
        Dialect::block()
            .start("<<<START:")
            .end("<<<END")
            .arg("@param:"),
        Dialect::block().start("{{call ").end("{{end}}").arg("{{"),
        Dialect::block().start("##").end("####").arg("###"),
        Dialect::block().keyed("k3v9q2x8"),
        Dialect::block().markers_anywhere(),
        Dialect::block().reasoning("<think>", "</think>"),
    ];
    let emojis = [
        Dialect::emoji(),
        Dialect::emoji().strict(),
        Dialect::emoji().self_closing(),
        Dialect::emoji().keyed("k3v9q2x8"),
        Dialect::emoji()
            .reasoning("<think>", "</think>")
            .in_reasoning(),
    ];
    let all: Vec<Dialect> = blocks.into_iter().chain(emojis).collect();
    all.iter()
        .cloned()
        .chain(all.iter().cloned().map(Dialect::escaped))
        .collect()
}

fn variants() -> Vec<PromptOptions> {
    vec![
        PromptOptions::new(),
        PromptOptions::new().without_dependencies(),
        PromptOptions::new().one_call(),
    ]
}

/// The tool of the placeholders.
fn placeholder(syntax: Syntax) -> ToolSpec {
    let text = json!({"type": "string"});
    let schema = match syntax {
        Syntax::Block => json!({"properties": {"parameter": text}, "required": ["parameter"]}),
        Syntax::Emoji => {
            json!({"properties": {"line": text, "text": text}, "required": ["line", "text"]})
        }
    };
    let tool = ToolSpec::new("tool_name").parameters_from_schema(&schema);
    let tool = tool.expect("a tool");
    match syntax {
        Syntax::Block => tool,
        Syntax::Emoji => tool.body("text"),
    }
}

#[test]
fn the_form_gives_what_it_claims() {
    for dialect in dialects() {
        let syntax = dialect.syntax().expect("a syntax");
        for options in variants() {
            let made = prompt([], &dialect, &options).expect("a dialect that works");
            let text = made.part(PromptPart::Form).expect("a form");
            // Reasoning that the template opened has ended when the calls begin.
            let text = match &dialect {
                dialect if format!("{dialect:?}").contains("in_reasoning: true") => {
                    format!("</think>{text}")
                }
                _ => text.to_owned(),
            };
            let document = Document::parse(&text, &dialect).expect("a dialect that works");
            let diagnostics = &document.diagnostics;
            assert!(diagnostics.is_empty(), "{diagnostics:?}\n{text}");
            let calls: Vec<&ToolCall> = document.calls().collect();
            let [call] = calls[..] else {
                panic!("{} calls in {text}", calls.len());
            };
            let arguments = bind(&placeholder(syntax), call);
            let arguments = arguments.unwrap_or_else(|problems| panic!("{problems:?}"));
            let expected = match syntax {
                Syntax::Block => json!({"parameter": "value"}),
                Syntax::Emoji => json!({"line": "values", "text": "body\n"}),
            };
            assert_eq!(arguments.to_value(), expected);
            assert_eq!(call.termination, Termination::Explicit);
            assert!(call.is_id_automatic && call.dependencies.is_empty());
        }
    }
}

/// The instruction for a marker in a value matches the escape.
#[test]
fn the_escape_is_described_correctly() {
    for dialect in dialects().into_iter().filter(Dialect::is_escaped) {
        let made = prompt([], &dialect, &PromptOptions::new()).expect("a dialect that works");
        let text = made
            .part(PromptPart::MarkerInValue)
            .expect("a sentence about it");
        let shown: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
        assert!(!shown.is_empty());
        let markers = dialect.markers().expect("markers");
        let escaper = Escaper::new(&dialect).expect("a dialect that works");
        for shown in shown {
            let marker = escaper.unescape(shown);
            assert_ne!(marker, shown);
            assert!(markers.iter().any(|known| known.text == marker), "{marker}");
        }
        let reasoning = markers
            .iter()
            .filter(|one| one.usage == MarkerUse::Reasoning);
        for marker in reasoning {
            let written = escaper.escape(&marker.text);
            assert!(text.contains(&format!("`{written}`")), "{text}");
        }
    }
}

/// Without an escape some values cannot be written; the prompt states which.
#[test]
fn values_that_cannot_be_written_without_an_escape_are_stated() {
    let shown = |dialect: &Dialect| {
        let made = prompt([], dialect, &PromptOptions::new()).expect("a dialect that works");
        let part = made.part(PromptPart::MarkerInValue);
        part.expect("a sentence about it").to_owned()
    };
    let can_hold = |dialect: &Dialect, value: &str| {
        let call = match dialect.syntax() {
            Some(Syntax::Emoji) => Call::Emoji {
                name: "a",
                raw_args: "",
                body: value,
            },
            _ => Call::Block {
                name: "a",
                id: None,
                dependencies: Vec::new(),
                arguments: vec![("a", value)],
            },
        };
        render(&call, dialect).is_ok()
    };
    let block = Dialect::block();
    assert!(shown(&block).contains("No line of a value may begin with"));
    assert!(!can_hold(&block, "a\n!!!ARG:b") && !can_hold(&block, "a!!!GADGET_END\nb"));
    assert!(can_hold(&block, "a !!!ARG:b") && can_hold(&block, "a!!!GADGET_END b"));
    let anywhere = Dialect::block().markers_anywhere();
    assert!(shown(&anywhere).contains("must not contain any"));
    assert!(!can_hold(&anywhere, "a !!!ARG:b"));
    let emoji = Dialect::emoji();
    assert!(shown(&emoji).contains(&emoji.end_marker(Syntax::Emoji)));
    assert!(!can_hold(&emoji, "a 🛠️[/end] b") && can_hold(&emoji, "a 🛠️[b]"));
}

/// Pointers, headers and other code in the sentences are valid too.
#[test]
fn pieces_in_sentences_are_right() {
    for dialect in dialects()
        .into_iter()
        .filter(|dialect| dialect.syntax() == Some(Syntax::Block))
    {
        let made = prompt([], &dialect, &PromptOptions::new()).expect("a dialect that works");
        let pieces = |part: PromptPart| -> Vec<String> {
            let text = made.part(part).expect("the part");
            text.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect()
        };
        let header = pieces(PromptPart::Dependencies).pop().expect("a header");
        let mut text = format!("{header}\n");
        for path in pieces(PromptPart::NestedValues) {
            text.push_str(&path);
            text.push_str("\nx\n");
        }
        text.push_str(&dialect.end_marker(Syntax::Block));
        let document = Document::parse(&text, &dialect).expect("a dialect that works");
        let call = document.calls().next().expect("a call");
        assert_eq!((call.name.as_str(), call.id.as_str()), ("tool_name", "id"));
        assert_eq!(call.dependencies, ["dep1", "dep2"]);
        assert_eq!(
            serde_json::to_value(&call.arguments).expect("JSON"),
            json!({"user": {"name": "x"}, "tags": ["x", "x"]})
        );
    }
}

/// Parsing the prompt itself finds the example calls, and no others.
#[test]
fn nothing_else_is_a_call() {
    let meant = [PromptPart::Form, PromptPart::Dependencies];
    for dialect in dialects() {
        let made = prompt([], &dialect, &PromptOptions::new()).expect("a dialect that works");
        let document = Document::parse(made.text(), &dialect).expect("a dialect that works");
        for call in document.calls() {
            let start = call.span.start;
            let mut parts = made.parts().iter();
            let found = parts.find(|(_, span)| span.range().contains(&start));
            let (part, _) = found.expect("a part");
            assert!(
                meant.contains(part),
                "{dialect:?}: {part:?}\n{}",
                made.text()
            );
        }
    }
}
