//! Layers of settings, one over the other.

use serde_json::json;

use crate::{Node, Origin, Value};

/// What the rules of a project say to the model as long as its words are not trusted.
const UNTRUSTED_REASON: &str = "a rule of the project denies this call";

/// All layers, from the furthest to the nearest.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    /// What holds if nothing else is set.
    pub defaults: Node,
    /// The user's own file.
    pub user: Node,
    /// The project's file, as far as it counts.
    pub project: Node,
    /// Variables of the environment.
    pub environment: Node,
    /// Options of the command line.
    pub options: Node,
}

impl Layers {
    /// The layers as one tree, in which each value knows its origin. A model, an MCP server and a list are taken whole from
    /// the nearest layer that has them. Rules are kept together: those of the project that deny come first, its others last.
    pub fn merge(mut self) -> Node {
        let (own, untrusted) = (take_rules(&mut self.user), take_rules(&mut self.project));
        let (first, last): (Vec<_>, Vec<_>) =
            untrusted.into_iter().partition(|rule| is(rule, "deny"));
        let rules: Vec<Node> = first.into_iter().chain(own).chain(last).collect();
        let mut merged = self.defaults;
        for layer in [self.user, self.project, self.environment, self.options] {
            for (one, other) in [("system", "system_file"), ("system_file", "system")] {
                if layer.get(&format!("/{one}")).is_some() {
                    merged.remove("", other);
                }
            }
            for whole in ["/models", "/mcp/servers"] {
                let entries = layer.get(whole).and_then(Node::table);
                for name in entries.into_iter().flat_map(|entries| entries.keys()) {
                    merged.remove(whole, name);
                }
            }
            merged.overlay(layer);
        }
        if !rules.is_empty() {
            set_rules(&mut merged, rules);
        }
        merged
    }
}

/// What counts of a project's file that is not trusted, which is what forbids: rules that deny, and rules that ask, which
/// come after all others. The model reads no words of them. Also what was left out, in words.
pub fn untrusted(mut project: Node) -> (Node, Vec<String>) {
    let mut rules = take_rules(&mut project);
    let names = project.table().into_iter().flat_map(|it| it.keys());
    let mut left_out: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if rules.iter().any(|rule| is(rule, "allow")) {
        left_out.push("rules that allow".to_owned());
        rules.retain(|rule| !is(rule, "allow"));
    }
    for rule in rules.iter_mut().filter(|rule| is(rule, "deny")) {
        let reason = Node::new(json!(UNTRUSTED_REASON), Origin::Default);
        rule.set("/reason", reason);
    }
    let mut kept = Node::default();
    set_rules(&mut kept, rules);
    (kept, left_out)
}

fn set_rules(tree: &mut Node, rules: Vec<Node>) {
    let value = Value::List(rules);
    let rules = Node {
        value,
        ..Node::default()
    };
    tree.set("/rules", rules);
}

fn is(rule: &Node, word: &str) -> bool {
    matches!(rule.get("/verdict").map(|verdict| &verdict.value), Some(Value::Text(text)) if text == word)
}

fn take_rules(layer: &mut Node) -> Vec<Node> {
    match layer.remove("", "rules") {
        Some(Node {
            value: Value::List(rules),
            ..
        }) => rules,
        _ => Vec::new(),
    }
}
