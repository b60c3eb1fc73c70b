//! Layers of settings.

use serde_json::json;

use crate::{Node, Origin, Value, child};

/// The reason that the model receives for rules of an untrusted project.
const UNTRUSTED_REASON: &str = "a rule of the project denies this call";

/// All layers, in increasing precedence.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Layers {
    /// The defaults.
    pub defaults: Node,
    /// The user's file.
    pub user: Node,
    /// The project's file, as far as it is trusted.
    pub project: Node,
    /// Environment variables.
    pub environment: Node,
    /// The name of the agent whose values apply, if it exists.
    pub agent: Option<String>,
    /// Command line options.
    pub options: Node,
}

impl Layers {
    /// Merges the layers into one tree, in which each value has its origin. A model, an agent, an MCP server and a list are taken as a whole
    /// from the highest layer that has them. Rules are combined: `deny` rules of the project come first, its others last.
    pub fn merge(mut self) -> Node {
        let (own, untrusted) = (take_rules(&mut self.user), take_rules(&mut self.project));
        let (first, last): (Vec<_>, Vec<_>) =
            untrusted.into_iter().partition(|rule| is(rule, "deny"));
        let rules: Vec<Node> = first.into_iter().chain(own).chain(last).collect();
        let mut merged = self.defaults;
        for layer in [self.user, self.project, self.environment] {
            put(&mut merged, layer);
        }
        let agent = self.agent.map(|name| child("/agents", &name));
        if let Some(mut agent) = agent.and_then(|pointer| merged.get(&pointer).cloned()) {
            // These are about the agent as a tool, and its own tools. At the top level, `agents` is the table of all agents.
            for key in ["description", "agents"] {
                agent.remove("", key);
            }
            let sources = ["tools", "builtin", "mcp"];
            if sources
                .iter()
                .any(|key| agent.get(&child("", key)).is_some())
            {
                for key in sources {
                    merged.remove("", key);
                }
            }
            put(&mut merged, agent);
        }
        put(&mut merged, self.options);
        if !rules.is_empty() {
            set_rules(&mut merged, rules);
        }
        merged
    }
}

/// Puts a layer on top of others.
fn put(merged: &mut Node, layer: Node) {
    for (one, other) in [("system", "system_file"), ("system_file", "system")] {
        if layer.get(&format!("/{one}")).is_some() {
            merged.remove("", other);
        }
    }
    for whole in ["/models", "/agents", "/mcp/servers"] {
        let entries = layer.get(whole).and_then(Node::table);
        for name in entries.into_iter().flat_map(|entries| entries.keys()) {
            merged.remove(whole, name);
        }
    }
    merged.overlay(layer);
}

/// Returns the restrictions from the file of an untrusted project: `deny` rules, and `ask` rules, which come last.
/// The model does not receive their texts. Also returns descriptions of the ignored parts.
pub fn untrusted(mut project: Node) -> (Node, Vec<String>) {
    let mut rules = take_rules(&mut project);
    let names = project.table().into_iter().flat_map(|it| it.keys());
    let mut ignored: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if rules.iter().any(|rule| is(rule, "allow")) {
        ignored.push("rules that allow".to_owned());
        rules.retain(|rule| !is(rule, "allow"));
    }
    for rule in rules.iter_mut().filter(|rule| is(rule, "deny")) {
        let reason = Node::new(json!(UNTRUSTED_REASON), Origin::Default);
        rule.set("/reason", reason);
    }
    let mut kept = Node::default();
    set_rules(&mut kept, rules);
    (kept, ignored)
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
