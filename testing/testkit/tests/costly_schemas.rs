//! Schemas that would take hours and all memory without limits. Steps and allocations are counted, never times.

#![allow(clippy::expect_used, reason = "a test fails by a panic")]

mod hostile;

use alloc_tracker::Allocator;
use plaincall_grammar::{Engine, GrammarError, GrammarOptions, grammar};
use plaincall_reply::{Document, ReplyCheck, Stop, Unclosed, bind};
use plaincall_syntax::Dialect;
use plaincall_tool::definitions::{UsableTools, read_usable_tools};
use plaincall_tool::{Parameter, ParameterKind, ToolSpec};
use serde_json::{Value, json};

use hostile::{definition, table};
use plaincall_testkit::allocations::allocations;

#[global_allocator]
static ALLOCATOR: Allocator<std::alloc::System> = Allocator::system();

fn usable(parameters: &Value) -> UsableTools {
    read_usable_tools([definition(parameters).as_str()])
}

/// Binds a call of the tool `t` with this text of its parameter `x`. Returns the problems.
fn problems(tool: &ToolSpec, x: &str) -> String {
    let text = format!("!!!GADGET_START:t\n!!!ARG:x\n{x}\n!!!GADGET_END");
    let document = Document::parse(&text, &Dialect::block()).expect("a valid dialect");
    let call = document.calls().next().expect("a call");
    let problems = bind(tool, call).err().into_iter().flatten();
    let messages: Vec<String> = problems.map(|problem| problem.message).collect();
    messages.join("\n")
}

/// Four times the schema may take about four times the work to read.
#[test]
fn reading_a_hostile_schema_takes_linear_work() {
    for row in table() {
        let n = row.sizes[0].min(16);
        let [(one, length), (four, longer)] = [n, 4 * n].map(|n| {
            let text = definition(&(row.parameters)(n));
            let work = allocations(|| drop(read_usable_tools([text.as_str()])));
            (work, u64::try_from(text.len()).expect("a short text"))
        });
        let most = one.max(2000) * longer / length * 2;
        assert!(four <= most, "{}: {one} allocations, then {four}", row.name);
    }
}

/// The budgets bound every operation, also with schemas that are used as they are.
#[test]
fn calls_and_grammars_of_hostile_schemas_take_bounded_work() {
    for row in table() {
        let n = row.sizes[0].min(8);
        let tools = usable(&(row.parameters)(n)).tools;
        // JSON that is nested too deeply is not a definition.
        let Some(tool) = tools.first() else {
            continue;
        };
        for value in (row.values)(n).into_iter().take(1) {
            let work = allocations(|| drop(problems(tool, &value.to_string())));
            assert!(work <= 3_000_000, "{} {n}: {work} allocations", row.name);
        }
        let work = allocations(|| {
            let made = grammar([tool], &Dialect::block(), &GrammarOptions::new());
            drop(made.map(|made| made.text(Engine::LlamaCpp)));
        });
        assert!(work <= 3_000_000, "{} {n}: {work} allocations", row.name);
    }
}

#[test]
fn a_schema_whose_steps_double_is_loosened_at_its_place() {
    for name in [
        "anyOf of two references",
        "allOf of two references",
        "not of anyOf",
        "references like Fibonacci's numbers",
        "unevaluatedProperties of unions",
        "mutual anyOf",
    ] {
        let row = table().find(|row| row.name == name);
        let row = row.expect("a row of the table");
        let read = usable(&(row.parameters)(40));
        let reason = read
            .changed
            .first()
            .map(|changed| changed.reason.to_string());
        let expected =
            "at /0/parameters/properties/x: validating a value by this schema takes too many steps";
        assert_eq!(reason.as_deref(), Some(expected), "{name}");
        let tool = read.tools.first().expect("a tool");
        assert_eq!(problems(tool, "long text"), "", "{name}");
    }
    let long =
        json!({"properties": {"x": {"pattern": "a".repeat(300_000)}, "y": {"pattern": "a"}}});
    let read = usable(&long);
    let reason = read
        .changed
        .first()
        .map(|changed| changed.reason.to_string());
    let expected =
        "at /0/parameters/properties/x/pattern: the patterns take too many steps to compile";
    assert_eq!(reason.as_deref(), Some(expected));
}

#[test]
fn a_value_that_takes_too_many_steps_is_invalid() {
    let row = table().find(|row| row.name == "mutual anyOf of objects");
    let read = usable(&(row.expect("a row of the table").parameters)(16));
    assert!(read.changed.is_empty(), "{:?}", read.changed);
    let tool = read.tools.first().expect("a tool");
    assert_eq!(
        problems(tool, r#"{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}"#),
        "t cannot be called with these arguments: validating them by its schema takes too many steps; send simpler values"
    );
    // To list why is more work than to decide.
    let forms = (0..6000).map(|at| json!({"minLength": 100 + at}));
    let forms = json!({"properties": {"x": {"anyOf": forms.collect::<Vec<_>>()}}});
    let read = usable(&forms);
    let tool = read.tools.first().expect("a tool");
    assert_eq!(problems(tool, &"a".repeat(100)), "");
    assert_eq!(
        problems(tool, &"a".repeat(99)),
        "t cannot be called with these arguments: they do not match its schema, and listing all violations takes too many steps; send simpler values"
    );
}

/// The schema takes about 20,000 steps for each value, so that about 1,000 calls take what a reply may.
#[test]
fn the_calls_of_one_reply_share_their_steps() {
    let forms = (0..6000).map(|at| json!({"minLength": 1, "maxLength": 100 + at}));
    let forms = json!({"properties": {"x": {"allOf": forms.collect::<Vec<_>>()}}});
    let read = usable(&forms);
    let costly = read.tools.first().expect("a tool");
    let cheap = ToolSpec::new("cheap").parameter(Parameter::new("x", ParameterKind::String));
    let tools = [costly, &cheap];
    let valid = |name: &str| {
        let call = format!("!!!GADGET_START:{name}\n!!!ARG:x\na\n!!!GADGET_END\n");
        let text = call.repeat(1500);
        let dialect = Dialect::block();
        let check = ReplyCheck::new(&dialect, Unclosed::Reject).expect("a dialect");
        let document = Document::read(text, &dialect, &tools[..], check, Stop::Natural);
        let document = document.expect("a dialect");
        let calls: Vec<_> = document.decided().collect();
        let rejected = calls
            .iter()
            .find_map(|call| call.rejection().map(ToString::to_string));
        let first = calls.first().expect("a call").may_run();
        (
            first,
            calls.iter().filter(|call| call.may_run()).count(),
            rejected,
        )
    };
    assert_eq!(valid("cheap"), (true, 1500, None));
    let (first, count, rejected) = valid(&costly.name);
    assert!(first && (20..1400).contains(&count), "{count} calls");
    assert!(
        rejected
            .expect("a rejected call")
            .contains("checking the calls of this reply by their schemas takes too many steps"),
    );
}

#[test]
fn a_grammar_that_is_too_large_names_the_place_and_a_looser_schema() {
    let long = json!({"properties": {"x": {"const": "a".repeat(300_000)}}});
    let tools = usable(&long).tools;
    let error = grammar(&tools, &Dialect::block(), &GrammarOptions::new()).expect_err("too large");
    let GrammarError::TooLarge {
        pointer, keyword, ..
    } = &error
    else {
        unreachable!("{error}");
    };
    assert_eq!((&**pointer, *keyword), ("x", "const"));
    assert_eq!(
        error.to_string(),
        "the grammar has more than 100000 parts, or takes too many steps: `const` of `x` of the tool `t` is too large; give it the schema {}, or offer fewer tools"
    );
}

#[test]
fn long_values_and_usual_schemas_are_validated() {
    let person = json!({"type": "object", "required": ["kind", "name"], "properties": {"kind": {"const": "person"}, "name": {"type": "string", "minLength": 1}, "tags": {"type": "array", "items": {"type": "string"}}}});
    let team = json!({"type": "object", "required": ["kind", "members"], "properties": {"kind": {"const": "team"}, "members": {"type": "array", "items": {"$ref": "#/$defs/any"}}}});
    let bot = json!({"type": "object", "required": ["kind", "owner"], "properties": {"kind": {"const": "bot"}, "owner": {"$ref": "#/$defs/any"}}});
    let any = json!({"properties": {"x": {"$ref": "#/$defs/any"}}, "$defs": {"any": {"oneOf": [person, team, bot]}}});
    let mut value = json!({"kind": "person", "name": "n", "tags": ["a", "b"]});
    for _ in 0..12 {
        value = json!({"kind": "team", "members": [value, {"kind": "bot", "owner": value}]});
    }
    let tool = |schema: &Value| {
        let read = usable(schema);
        assert!(read.changed.is_empty(), "{:?}", read.changed);
        read.tools.into_iter().next().expect("a tool")
    };
    assert_eq!(problems(&tool(&any), &value.to_string()), "");
    let numbers =
        json!({"properties": {"x": {"type": "array", "items": {"type": "integer", "minimum": 0}}}});
    let numbers = tool(&numbers);
    let long = vec!["7"; 100_000].join(",");
    assert_eq!(problems(&numbers, &format!("[{long}]")), "");
    let found = problems(&numbers, &format!("[{},-1]", vec!["7"; 1_000].join(",")));
    assert_eq!(found, "`x/1000`: expected at least 0, found `-1`");
}
