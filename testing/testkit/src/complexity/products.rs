//! Subjects whose cost must not be a product: many calls of many tools, many turns with many results, many definitions with many
//! references. Only the length of the text counts, which sets how many of each there are.

use plaincall_prompt::history::{
    PastCall, ResultMessage, TurnPart, history, in_call_order, results,
};
use plaincall_prompt::{PromptOptions, prompt};
use plaincall_reply::invented::InventedResults;
use plaincall_reply::untrusted::EchoGuard;
use plaincall_reply::{Document, ReplyCheck, Stop, Unclosed, Untrusted};
use plaincall_syntax::Dialect;
use plaincall_tool::{ToolSet, ToolSpec};
use serde_json::{Map, Value, json};

use super::subjects::{Subject, WORKS, subject};

pub(super) fn products() -> Vec<Subject> {
    // For so many bytes of the text there is one of each.
    let of = |name: &str, bytes: usize, work: fn(usize)| {
        subject(name, move |input| work(input.text.len() / bytes))
    };
    vec![
        of("tools in a prompt", 64, tools_in_a_prompt),
        of("calls times tools", 64, calls_of_tools),
        of("invented results times tools", 8, invented_results),
        of("calls times quoted calls", 64, calls_and_quotations),
        of("turns times results", 64, turns_with_results),
        of(
            "definitions times references",
            64,
            definitions_with_references,
        ),
    ]
}

fn names(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("tool_{number}"))
}

fn text_tool(name: String) -> ToolSpec {
    let schema = json!({"properties": {"x": {"type": "string"}}, "required": ["x"]});
    let tool = ToolSpec::new(name).parameters_from_schema(&schema);
    tool.expect(WORKS)
}

fn call(name: &str) -> String {
    format!("!!!GADGET_START:{name}\n!!!ARG:x\nvalue of {name}\n!!!GADGET_END\n")
}

fn tools_in_a_prompt(count: usize) {
    let tools: Vec<ToolSpec> = names(count).map(text_tool).collect();
    drop(prompt(&tools, &Dialect::block(), &PromptOptions::new()).expect(WORKS));
}

/// Reads a reply that calls each of the tools, and then one that does not exist.
fn calls_of_tools(count: usize) {
    let dialect = Dialect::block();
    let tools = ToolSet::new(names(count).map(text_tool)).expect("different names");
    let mut reply: String = names(count).map(|name| call(&name)).collect();
    reply.push_str(&call("tool_x"));
    let check = ReplyCheck::new(&dialect, Unclosed::Run).expect(WORKS);
    let document = Document::read(&reply, &dialect, Some(&tools), check, Stop::Natural);
    let document = document.expect(WORKS);
    assert_eq!(document.calls().count(), count + 1);
}

/// Reads results that a reply invents for other tools than the many that it called.
fn invented_results(count: usize) {
    let mut invented = InventedResults::default();
    for name in names(count) {
        invented.call(&name);
        drop(invented.text(&format!("Result 1 of 1: tool {name}_\n")));
    }
}

/// Looks for each call of a reply in a text that quotes as many calls of the same tool.
fn calls_and_quotations(count: usize) {
    let dialect = Dialect::block();
    let mut guard = EchoGuard::new(std::slice::from_ref(&dialect)).expect(WORKS);
    let quoted = |number: usize| call("note").replace("value", &format!("entry {number}"));
    guard.observe(&Untrusted::new((0..count).map(quoted).collect::<String>()));
    let made = |number: usize| call("note").replace("value", &format!("other {number}"));
    let reply: String = (0..count).map(made).collect();
    let document = Document::parse(&reply, &dialect).expect(WORKS);
    let echoes = document
        .calls()
        .filter(|call| guard.echo_of(call).is_some());
    assert_eq!(echoes.count(), 0);
}

/// Renders turns with a call each, and their results in another order.
fn turns_with_results(count: usize) {
    let dialect = Dialect::auto().escaped();
    let arguments: Map<String, Value> = [("x".to_owned(), json!("a"))].into_iter().collect();
    let names: Vec<String> = names(count).collect();
    let called = |name| TurnPart::Called(PastCall::new(Untrusted::new(name), &arguments));
    let turn: Vec<TurnPart<'_>> = names.iter().map(called).collect();
    drop(history(&turn, &dialect, |_| None).expect(WORKS));
    let text = |name| Untrusted::new(name);
    let given = names.iter().rev();
    let given = given.map(|name| ResultMessage::new(text(name), text(name)).output(text(name)));
    let calls = names.iter().map(|name| (text(name), text(name)));
    let ordered = in_call_order(calls, given.collect());
    assert_eq!(ordered.len(), count);
    drop(results(&ordered, &dialect).expect(WORKS));
}

/// Reads, lists and validates with definitions that refer twice to the next one, which itself is referred to by all.
fn definitions_with_references(count: usize) {
    let next = |number: usize| json!({"$ref": format!("#/$defs/d{number}")});
    let definition = |number: usize| {
        let schema = json!({"type": "object", "properties": {
            "a": next(number + 1), "b": next(number + 1), "last": next(count)}});
        (format!("d{number}"), schema)
    };
    let mut definitions: Map<String, Value> = (0..count).map(definition).collect();
    definitions.insert(format!("d{count}"), json!({"type": "string"}));
    let schema = json!({"properties": {"x": next(0)}, "$defs": definitions});
    let tool = ToolSpec::new("tool_0").parameters_from_schema(&schema);
    let tool = tool.expect(WORKS);
    drop(prompt([&tool], &Dialect::block(), &PromptOptions::new()).expect(WORKS));
    let reply = call("tool_0").replace("ARG:x", "ARG:x/a/b/last");
    let tools = ToolSet::new([tool]).expect("one tool");
    let check = ReplyCheck::new(&Dialect::block(), Unclosed::Run).expect(WORKS);
    let read = Document::read(
        &reply,
        &Dialect::block(),
        Some(&tools),
        check,
        Stop::Natural,
    );
    assert_eq!(read.expect(WORKS).calls().count(), 1);
}
