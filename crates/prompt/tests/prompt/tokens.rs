//! The list of tools takes at most the tokens of the same tools as minified JSON.

use std::sync::LazyLock;

use plaincall_syntax::Dialect;
use plaincall_tool::ToolSpec;
use serde_json::{Map, Value, json};
use tiktoken_rs::CoreBPE;

use crate::prompt::keywords::{pairs, wrapped};
use crate::prompt::{listed, minified, tool_of, tool_sets};

static ENCODING: LazyLock<CoreBPE> =
    LazyLock::new(|| tiktoken_rs::o200k_base().expect("the encoding is part of the crate"));

/// Returns the number of tokens of a text.
pub(crate) fn tokens(text: &str) -> usize {
    ENCODING.encode_ordinary(text).len()
}

/// The tokens of the list and of the JSON.
fn check(name: &str, tools: &[ToolSpec], dialect: &Dialect) -> (usize, usize) {
    let list = listed(tools, dialect);
    let json = minified(tools);
    let counts = (tokens(&list), tokens(&json));
    assert!(
        counts.0 <= counts.1,
        "{name}: {} tokens, as JSON {}\n{list}\n{json}",
        counts.0,
        counts.1
    );
    counts
}

#[test]
fn lists_of_tools_are_short() {
    println!("tools         block  emoji   JSON  block/JSON");
    for (name, tools) in tool_sets() {
        let (block, json) = check(&name, &tools, &Dialect::block());
        let (emoji, _) = check(&name, &tools, &Dialect::emoji());
        let percent = 100 * block / json;
        println!("{name:12} {block:6} {emoji:6} {json:6}  {percent:3} %");
        for tool in &tools {
            check(&tool.name, std::slice::from_ref(tool), &Dialect::block());
            check(&tool.name, std::slice::from_ref(tool), &Dialect::emoji());
        }
    }
}

/// Both schemas of each pair, in a parameter, a list, a union, a definition and a schema without a notation.
#[test]
fn every_keyword_is_short() {
    let (mut list, mut json) = (0, 0);
    for (one, other) in pairs() {
        for schema in [&one, &other] {
            let tools = wrapped(schema);
            for tool in [0, 1, 7, 12, 15]
                .iter()
                .filter_map(|place| tools[*place].as_ref())
            {
                let counts = check("keyword", std::slice::from_ref(tool), &Dialect::block());
                list += counts.0;
                json += counts.1;
            }
            if let Some(tool) = &tools[0] {
                check("keyword", std::slice::from_ref(tool), &Dialect::emoji());
            }
        }
    }
    let percent = 100 * list / json;
    println!("keywords: {list} tokens, as JSON {json}: {percent} %");
}

/// Long lists of values, which are short in JSON.
#[test]
fn long_enumerations_are_short() {
    for length in [1, 2, 3, 4, 5, 20, 200] {
        let values: Vec<String> = (0..length).map(|at| format!("value_{at}")).collect();
        for count in [1, 30] {
            for schema in [
                json!({"enum": values}),
                json!({"type": "string", "enum": values}),
            ] {
                let members = (0..count).map(|at| (format!("p{at}"), schema.clone()));
                let properties: Map<String, Value> = members.collect();
                let tool = tool_of(&json!({"properties": properties})).expect("a schema");
                check("values", &[tool], &Dialect::block());
            }
        }
    }
}
