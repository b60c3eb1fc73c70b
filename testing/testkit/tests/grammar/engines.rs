//! Other engines give the same verdicts as llguidance, and what they write is valid. `cargo xtask engines` runs them
//! (`testing/testkit/engines`); here are the texts.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;

use plaincall_grammar as grammar;
use plaincall_grammar::{Choice, Grammar, GrammarOptions, grammar};
use plaincall_prompt::render::{JsonCall, render_call};
use plaincall_syntax::Dialect;
use plaincall_testkit::recordings::recordings;
use plaincall_tool::ToolSpec;
use serde_json::{Value, json};

use super::engine::Engine;
use super::valid_calls::ValidCall;
use super::walks::{Case, Tally, altered, ends, wishes};
use plaincall_oracle::arbitrary_texts::Random;

/// The number of random grammars, and of valid calls. `ENGINE_CASES` sets it.
fn cases() -> u64 {
    #[allow(clippy::disallowed_methods, reason = "it sets the size of the test")]
    let cases = std::env::var("ENGINE_CASES");
    cases.map_or(200, |cases| cases.parse().expect("a number"))
}
/// The texts that llguidance writes for each grammar.
const WALKS: usize = 3;

fn folder() -> PathBuf {
    #[allow(clippy::disallowed_methods, reason = "it locates the files")]
    let folder = std::env::var_os("ENGINES");
    folder.expect("`cargo xtask engines` sets it").into()
}

/// Decides which verdict on a text is expected from a structural tag (`spec/grammar.md` 6).
struct TagOracle {
    end: String,
    markers: Vec<String>,
    prose: llguidance::Matcher,
}

impl TagOracle {
    fn new(engine: &Engine, tools: &[ToolSpec], dialect: &Dialect) -> Self {
        let none = GrammarOptions::new().choice(Choice::None);
        let prose = grammar(tools, dialect, &none).unwrap();
        let forms = dialect.markers().unwrap();
        Self {
            end: end_marker(dialect),
            markers: forms.into_iter().map(|form| form.text).collect(),
            prose: engine.compile(&prose.lark()),
        }
    }

    /// Returns `None` if the text has a near miss at the beginning of a line, which a tag does not exclude.
    fn verdict(&self, text: &str, is_accepted: bool) -> Option<bool> {
        let mut parts = vec![text];
        for marker in &self.markers {
            parts = parts.iter().flat_map(|part| part.split(marker)).collect();
        }
        let mut parts = parts.into_iter();
        let begin = parts.next().map(str::to_owned);
        // Not the beginning of a line.
        let mut parts = begin
            .into_iter()
            .chain(parts.map(|part| format!("x{part}")));
        let is_clean = parts.all(|part| part.contains('\0') || Engine::accepts(&self.prose, &part));
        // A line end follows each call.
        is_clean.then(|| is_accepted && !text.ends_with(&self.end))
    }
}

fn end_marker(dialect: &Dialect) -> String {
    let forms = dialect.markers().unwrap();
    let end = forms
        .iter()
        .find(|form| matches!(form.usage, plaincall_syntax::MarkerUse::End(_)));
    end.unwrap().text.clone()
}

/// Writes a grammar in all notations, with texts and llguidance's verdicts on them.
fn record(
    engine: &Engine,
    grammar: &Grammar,
    tools: &[ToolSpec],
    dialect: &Dialect,
    mut texts: Vec<String>,
) -> Value {
    let start = engine.compile(&grammar.lark());
    let tag = dialect
        .reasoning_markers()
        .is_none()
        .then(|| TagOracle::new(engine, tools, dialect));
    // A tag may accept strings that are too long.
    let is_looser = [grammar::Engine::Vllm, grammar::Engine::LlGuidance]
        .iter()
        .any(|engine| grammar.unheld_by(*engine).len() > grammar.unheld().len());
    let end = end_marker(dialect);
    let with_line_ends = texts.iter().filter(|text| text.ends_with(&end));
    let with_line_ends: Vec<String> = with_line_ends.map(|text| format!("{text}\n")).collect();
    texts.extend(with_line_ends);
    let texts = texts.into_iter().map(|text| {
        let is_accepted = Engine::accepts(&start, &text);
        let tag = tag.as_ref().filter(|_| is_accepted || !is_looser);
        let by_tag = tag.and_then(|tag| tag.verdict(&text, is_accepted));
        json!({"text": text, "accepted": is_accepted, "accepted_by_tag": by_tag})
    });
    json!({
        "gbnf": grammar.gbnf(),
        "tag": tag.is_some().then(|| grammar.structural_tag()),
        "texts": texts.collect::<Vec<Value>>(),
        "wishes": wishes(dialect),
        "ends": ends(dialect),
    })
}

#[test]
#[ignore = "it writes files for other engines: `cargo xtask engines` runs it"]
fn write_texts() {
    let engine = Engine::new();
    let mut file = File::create(folder().join("texts.jsonl")).unwrap();
    for seed in 0..cases() {
        let random = &mut Random::new(seed);
        if let Some(case) = Case::new(seed, random) {
            let start = engine.compile(&case.grammar.lark());
            let (wishes, ends) = (wishes(&case.dialect), ends(&case.dialect));
            let walks = (0..WALKS)
                .filter_map(|_| engine.walk(&mut start.deep_clone(), random, &wishes, &ends));
            let walks: Vec<String> = walks.collect();
            let mut texts = walks.clone();
            texts.extend(walks.iter().flat_map(|text| altered(text, random)));
            let mut record = record(&engine, &case.grammar, &case.tools, &case.dialect, texts);
            record["walk"] = json!(seed);
            writeln!(file, "{record}").unwrap();
        }
        if let Some(call) = ValidCall::new(seed) {
            let mut texts = call.broken();
            texts.insert(0, call.text.clone());
            let tools = [call.tool];
            let record = record(&engine, &call.grammar, &tools, &call.dialect, texts);
            writeln!(file, "{record}").unwrap();
        }
    }
}

#[test]
#[ignore = "it reads what XGrammar wrote: `cargo xtask engines` runs it"]
fn texts_of_xgrammar_are_valid() {
    let engine = Engine::new();
    let mut tally = Tally::default();
    let mut near_misses = 0;
    for line in fs::read_to_string(folder().join("xgrammar.jsonl"))
        .unwrap()
        .lines()
    {
        let written: Value = serde_json::from_str(line).unwrap();
        let seed = written["walk"].as_u64().unwrap();
        let mut case = Case::new(seed, &mut Random::new(seed)).unwrap();
        let is_tag = written["notation"] == "tag";
        if is_tag {
            case.unheld = case.grammar.unheld_by(grammar::Engine::Vllm);
        }
        let tag = is_tag.then(|| TagOracle::new(&engine, &case.tools, &case.dialect));
        for text in written["texts"].as_array().unwrap() {
            let text = text.as_str().unwrap();
            if tag
                .as_ref()
                .is_some_and(|tag| tag.verdict(text, true).is_none())
            {
                near_misses += 1;
                continue;
            }
            tally.texts += 1;
            case.check(text, &mut tally);
        }
    }
    eprintln!("{tally:?}, {near_misses} with a near miss");
    assert!(
        tally.texts as u64 > cases() * 5 / 2 && tally.calls > tally.texts / 2,
        "{tally:?}"
    );
}

/// A text in the calls that are measured.
const CODE: &str = "fn main() {\n    let sum: u64 = (1..=10).filter(|n| n % 2 == 0).sum();\n    println!(\"{sum}\");\n}\n";

/// Writes the grammars of the 24 tools of a coding agent, and a reply of six calls, as text and as JSON.
#[test]
#[ignore = "it writes a file to measure engines: `cargo xtask engines --figures` runs it"]
fn write_figures() {
    let all = recordings();
    let recording = all.iter().find(|one| one.client == "agent on Messages");
    let request: Value = serde_json::from_str(&recording.unwrap().requests[0]).unwrap();
    let listed = request["tools"].as_array().unwrap();
    let listed: Vec<(&str, &Value)> = listed
        .iter()
        .filter(|tool| tool.get("defer_loading").is_none())
        .map(|tool| (tool["name"].as_str().unwrap(), &tool["input_schema"]))
        .collect();
    let tools = listed.iter().map(|(name, schema)| {
        let tool = ToolSpec::new(*name).parameters_from_schema(schema);
        tool.unwrap()
    });
    let tools: Vec<ToolSpec> = tools.collect();
    let dialect = Dialect::block().escaped();
    let arguments = json!({"path": "src/main.rs", "text": CODE});
    let calls = tools.iter().take(6).map(|tool| {
        let call = JsonCall::new(&tool.name, arguments.as_object().unwrap());
        render_call(&call, Some(tool), &dialect).unwrap() + "\n"
    });
    let text: String = calls.collect();
    let objects = listed.iter().map(|(name, schema)| {
        json!({
            "type": "object",
            "properties": {"name": {"const": name}, "arguments": schema},
            "required": ["name", "arguments"],
            "additionalProperties": false,
        })
    });
    let objects: Vec<Value> = objects.collect();
    let calls = tools.iter().take(6);
    let calls = calls.map(|tool| format!(r#"{{"name":"{}","arguments":{arguments}}}"#, tool.name));
    let calls: Vec<String> = calls.collect();
    let grammar = grammar(&tools, &dialect, &GrammarOptions::new()).unwrap();
    let figures = json!({
        "tools": tools.len(),
        "text": format!("I read the file first, and then I change it.\n{text}"),
        "json": format!("[{}]", calls.join(",")),
        "gbnf": grammar.gbnf(),
        "lark": grammar.lark(),
        "tag": grammar.structural_tag(),
        "schema": {"type": "array", "items": {"anyOf": objects}},
    });
    fs::write(folder().join("figures.json"), figures.to_string()).unwrap();
}
