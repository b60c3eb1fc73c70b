//! The subjects: everything that parses text of a model, a user or a server.

use std::sync::Arc;

use plaincall_names::nearest_name;
use plaincall_oracle::split::chunks;
use plaincall_prompt::repair::repair_reply;
use plaincall_reply::collector::{Collected, Collector};
use plaincall_reply::openai::openai_calls;
use plaincall_reply::rescue::RescueReader;
use plaincall_reply::untrusted::EchoGuard;
use plaincall_reply::{
    Document, JsonStream, ModelText, PromptTextBuilder, ReplyCheck, Stop, ToolCall, Unclosed,
    Untrusted,
};
use plaincall_syntax::{
    ByteParser, Call, Dialect, Escaper, Event, Parser, Syntax, near_misses, render,
};
use plaincall_tool::definitions::read_tool_definitions;
use plaincall_tool::json::{coerce, parse as parse_json};
use plaincall_tool::{Arguments, Limits, ToolSet, ToolSpec, bind_arguments, flatten};
use serde_json::{Value, json};

use super::pattern::INVALID;

/// A text as a string and as bytes.
pub(super) struct Input {
    pub(super) text: String,
    bytes: Vec<u8>,
}

impl Input {
    pub(super) fn new(text: String) -> Self {
        let mut bytes = text.clone().into_bytes();
        if text.contains(INVALID) {
            let valid: Vec<&[u8]> = text.split(INVALID).map(str::as_bytes).collect();
            bytes = valid.join(&b"\xE2\x82"[..]);
        }
        Self { text, bytes }
    }
}

type Operation = Box<dyn Fn(&Input)>;

/// An operation on a text.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) work: Operation,
}

/// The chunk sizes; the last one is the whole text.
const SIZES: [usize; 4] = [1, 4, 64, usize::MAX];

pub(super) fn subject(name: impl Into<String>, work: impl Fn(&Input) + 'static) -> Subject {
    Subject {
        name: name.into(),
        work: Box::new(work),
    }
}

/// The name of the subjects that run only the parser.
pub(super) const PARSER: &str = "the parser";

pub(super) const WORKS: &str = "a valid dialect";

/// Returns the subjects that depend on a dialect.
pub(super) fn of_dialect(dialect: &Dialect) -> Vec<Subject> {
    let mut subjects = of_whole_texts(dialect);
    subjects.extend(SIZES.iter().flat_map(|size| of_chunks(dialect, *size)));
    subjects
}

/// Returns the subjects that parse chunks of a size.
fn of_chunks(dialect: &Dialect, size: usize) -> Vec<Subject> {
    let named = |name: &str, work: Operation| Subject {
        name: match size {
            usize::MAX => format!("{name}, whole"),
            _ => format!("{name}, in chunks of {size}"),
        },
        work,
    };
    let parser = Parser::new(dialect).expect(WORKS);
    let fresh = parser.clone();
    let by_text = move |input: &Input| read(&fresh, &input.text, size, |_| {});
    let bytes = ByteParser::new(dialect).expect(WORKS);
    let by_bytes = move |input: &Input| {
        let mut parser = bytes.clone();
        for chunk in input.bytes.chunks(size) {
            parser.feed(chunk).for_each(drop);
        }
        parser.finish().for_each(drop);
    };
    let (fresh, known) = (parser.clone(), tool());
    let by_schema = move |input: &Input| {
        stream(&fresh, &input.text, size, || {
            JsonStream::new(&known, Limits::default())
        });
    };
    let open = serde_json::json!({"type": "object", "additionalProperties": true});
    let open = ToolSpec::new("open").parameters_from_schema(&open);
    let open = open.expect(WORKS);
    let without_schema = move |input: &Input| {
        stream(&parser, &input.text, size, || {
            JsonStream::new(&open, Limits::default())
        });
    };
    let builder = PromptTextBuilder::new(std::slice::from_ref(dialect)).expect(WORKS);
    let prompt_text = move |input: &Input| {
        let mut builder = builder.clone();
        for chunk in chunks(&input.text, size) {
            builder.untrusted(&Untrusted::new(chunk));
        }
    };
    vec![
        named(PARSER, Box::new(by_text)),
        named("the byte parser", Box::new(by_bytes)),
        named("calls and their JSON by a schema", Box::new(by_schema)),
        named("calls and their JSON", Box::new(without_schema)),
        named("a prompt text", Box::new(prompt_text)),
    ]
}

/// Returns the subjects that process a complete text.
fn of_whole_texts(dialect: &Dialect) -> Vec<Subject> {
    let escaper = Escaper::new(dialect).expect(WORKS);
    let back = escaper.clone();
    let [near, parsed, replied, written] = [0; 4].map(|_| dialect.clone());
    let known = tool();
    let builder = PromptTextBuilder::new(std::slice::from_ref(dialect)).expect(WORKS);
    let guard = EchoGuard::new(std::slice::from_ref(dialect)).expect(WORKS);
    let call = call();
    let mut subjects = vec![
        subject("escape", move |input| drop(escaper.escape(&input.text))),
        subject("unescape", move |input| drop(back.unescape(&input.text))),
        subject("near misses", move |input| {
            drop(near_misses(&input.text, &near));
        }),
        subject("a document and its calls", move |input| {
            document(&input.text, &parsed);
        }),
        subject("a prompt text of many parts", move |input| {
            let mut builder = builder.clone();
            builder.untrusted(&Untrusted::new(&*input.text));
            for text in chunks(&input.text, 1) {
                builder.untrusted(&Untrusted::new(text)).trusted(":");
            }
        }),
        subject("the search for an echo", move |input| {
            let mut guard = guard.clone();
            guard.observe(&Untrusted::new(&*input.text));
            let _ = guard.echo_of(&call);
        }),
        subject("the repair of a reply", move |input| {
            let reply = ModelText::new(&*input.text);
            drop(repair_reply(&reply, &[&known][..], &replied));
        }),
    ];
    if let Some(syntax) = dialect.syntax() {
        subjects.push(subject("the renderer", move |input| {
            rendered(&input.text, syntax, &written);
        }));
    }
    subjects
}

/// Returns the subjects that parse a value, a name or JSON.
pub(super) fn of_values() -> Vec<Subject> {
    let tool = tool();
    let mut subjects = vec![calls_as_text(usize::MAX), calls_as_text(4)];
    subjects.extend([
        subject("coercion", |input| {
            let _ = coerce(&input.text);
        }),
        subject("JSON text, and the same as arguments", |input| {
            if let Ok(Value::Object(object)) = parse_json(&input.text) {
                drop(flatten(&object, None));
            }
        }),
        subject("a value by a schema", move |input| {
            for pointer in ["x", "s", "n", "list", "o", "either", "o/k"] {
                let pairs = [(pointer, &*input.text)];
                if let Ok(arguments) = Arguments::from_pairs_for(&tool, pairs) {
                    drop(bind_arguments(&tool, &arguments));
                    drop(arguments.to_value());
                }
            }
        }),
        subject("pointers", |input| {
            let lines = input.text.lines().map(|line| (line, "1"));
            if let Ok(arguments) = Arguments::from_pairs(lines) {
                drop(arguments.to_value());
            }
        }),
        subject("definitions of tools", |input| {
            drop(read_tool_definitions(&input.text));
        }),
        subject("a name", |input| {
            let names = input.text.split([' ', '\n']).take(1000);
            let _ = nearest_name(&input.text, ["read_file", "a*", &input.text]);
            let _ = nearest_name("read_file", names);
        }),
    ]);
    subjects
}

/// The name of the subjects that find calls in the text of a reply.
pub(super) const CALLS_AS_TEXT: &str = "calls as text";

/// Finds calls in a reply that arrives in chunks of this size.
fn calls_as_text(size: usize) -> Subject {
    let markers = ["<think>", "</think>"].map(str::to_owned);
    let reader = RescueReader::new(Some(markers)).expect(WORKS);
    let tools = Arc::new(ToolSet::new([tool()]).expect("one tool"));
    subject(
        format!("{CALLS_AS_TEXT}, in chunks of {size}"),
        move |input| {
            let mut reader = reader.with_tools(Arc::clone(&tools));
            for chunk in chunks(&input.text, size) {
                drop(reader.feed(chunk));
            }
            drop(reader.flush(true));
        },
    )
}

/// Returns a tool whose schema uses most keywords that affect parsing.
fn tool() -> ToolSpec {
    let schema = json!({"properties": {
        "x": {},
        "s": {"type": "string"},
        "n": {"type": "number"},
        "list": {"type": "array", "items": {"type": ["integer", "string"]}},
        "o": {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/tree"}}, {"$ref": "#/$defs/tree"}]},
        "a": {"$ref": "#/$defs/tree"},
    }, "$defs": {"tree": {"type": "object", "properties": {"a": {"$ref": "#/$defs/tree"}, "b": {"$ref": "#/$defs/tree"}}}}});
    let tool = ToolSpec::new("A").parameters_from_schema(&schema);
    tool.expect("a schema")
}

/// Returns a call that almost occurs at many places of some texts.
fn call() -> ToolCall {
    let call = Call::Block {
        name: "A",
        id: None,
        dependencies: Vec::new(),
        arguments: vec![("x", "1"), ("x2", "1")],
    };
    let text = render(&call, &Dialect::block()).expect("a renderable call");
    let document = Document::parse(&text, &Dialect::block()).expect(WORKS);
    document.calls().next().expect("a call").clone()
}

fn read(fresh: &Parser, text: &str, size: usize, mut take: impl FnMut(&Event<'_>)) {
    let mut parser = fresh.clone();
    for chunk in chunks(text, size) {
        for event in parser.feed(chunk) {
            take(&event);
        }
    }
    for event in parser.finish() {
        take(&event);
    }
}

/// Collects the calls and streams the JSON of each.
fn stream<'t>(fresh: &Parser, text: &str, size: usize, new: impl Fn() -> JsonStream<&'t ToolSpec>) {
    let mut collector = Collector::new(Limits::default());
    let mut open = None;
    let mut out = String::new();
    read(fresh, text, size, |event| {
        let collected = collector.push(event);
        if let Some(Collected::Started(_)) = &collected {
            open = Some(new());
        }
        if let Some(stream) = &mut open {
            out.clear();
            stream.push(event, &mut out);
            if let Some(Collected::Finished(call)) = &collected {
                let _ = stream.close(call, &call.arguments, &mut out);
            }
        }
    });
}

/// Runs everything that processes a complete text.
fn document(text: &str, dialect: &Dialect) {
    let tool = tool();
    let tools = ToolSet::new([tool]).expect("one tool");
    for tools in [None, Some(&tools)] {
        let check = ReplyCheck::new(dialect, Unclosed::Run).expect(WORKS);
        let document = Document::read(text, dialect, tools, check, Stop::Natural).expect(WORKS);
        drop(serde_json::to_string(&document));
        drop(openai_calls(&document));
    }
}

/// Renders the text as a value or body, as many arguments, and as names.
fn rendered(text: &str, syntax: Syntax, dialect: &Dialect) {
    let render = |call: &Call<'_>| drop(render(call, dialect));
    if syntax == Syntax::Emoji {
        for (raw_args, body) in [("x", text), (text, "")] {
            render(&Call::Emoji {
                name: "A",
                raw_args,
                body,
            });
        }
        return;
    }
    let lines = || text.lines().filter(|line| !line.is_empty());
    for (dependencies, arguments) in [
        (Vec::new(), vec![("x", text)]),
        (Vec::new(), lines().map(|line| (line, line)).collect()),
        (Vec::new(), lines().map(|line| ("x", line)).collect()),
        (text.split(',').collect(), Vec::new()),
    ] {
        render(&Call::Block {
            name: "A",
            id: None,
            dependencies,
            arguments,
        });
    }
}
