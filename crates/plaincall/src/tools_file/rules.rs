//! The tables `[[rules]]`.
//!
//! A rule that can never apply is an error: a misspelled rule would allow what it should deny.

use plaincall_config::tools::{self, RuleTable};
use plaincall_config::{Document, Location, Value, child};
use plaincall_names::{did_you_mean, pointers::unescape};
use plaincall_tool::{Effect, Parameter, ToolSpec};

use super::Known;
use crate::cut::READ_RESULT;
use crate::rules::{Pattern, Rule, Rules, Verdict};

const NAMED: usize = 20;

pub(super) fn rules(document: &mut Document, known: &[Known]) -> Rules {
    let mut rules = Rules::default();
    let Some(node) = document.root().get("/rules") else {
        return rules;
    };
    let Value::List(list) = &node.value else {
        let message = format!(
            "`rules` is {}; write `[[rules]]` for each rule",
            node.kind()
        );
        document.problem(&Location::value("/rules"), message);
        return rules;
    };
    for index in 0..list.len() {
        let at = format!("/rules/{index}");
        let before = document.count();
        let Some(table) = document.read::<RuleTable>(&at) else {
            continue;
        };
        let mut reader = Reader {
            document,
            known,
            at,
        };
        let rule = reader.rule(&table);
        if let Some(rule) = rule.filter(|_| reader.document.count() == before) {
            reader.reject_decided(&rule, &rules);
            rules.push(rule);
        }
    }
    rules
}

struct Reader<'d> {
    document: &'d mut Document,
    known: &'d [Known],
    at: String,
}

impl Known {
    fn may_match(&self, rule: &Rule) -> bool {
        match &self.spec {
            Some(spec) => rule.is_about(&self.name, spec.effect),
            None => rule.tools.iter().any(|pattern| pattern.matches(&self.name)),
        }
    }
}

impl Reader<'_> {
    fn value(&self, pointer: &str) -> Location {
        Location::value(format!("{}/{pointer}", self.at))
    }

    fn problem(&mut self, place: &Location, message: impl Into<String>) {
        self.document.problem(place, message);
    }

    fn rule(&mut self, table: &RuleTable) -> Option<Rule> {
        for (place, message) in table.problems(&self.at) {
            self.problem(&place, message);
        }
        let verdict = match (table.verdict, &table.reason) {
            (tools::Verdict::Allow, _) => Verdict::Allow,
            (tools::Verdict::Ask, _) => Verdict::Ask,
            (tools::Verdict::Deny, reason) => Verdict::Deny {
                reason: reason.clone().unwrap_or_default(),
            },
        };
        let tools = self.tools(&table.tools.0);
        let mut rule = Rule {
            tools: tools?,
            effect: table.effect,
            arguments: Vec::new(),
            verdict,
        };
        if self.document.is_wrong(&format!("{}/effect", self.at)) {
            return None;
        }
        let known = self.known;
        let about: Vec<&Known> = known.iter().filter(|tool| tool.may_match(&rule)).collect();
        if about.is_empty() && !rule.is_about(READ_RESULT, Effect::Read) {
            let message =
                "no matching tool has this effect; the default effect of a tool is `write`";
            self.problem(&self.value("effect"), message);
            return None;
        }
        let is_empty = matches!(&table.arguments, Some(all) if all.is_empty());
        if is_empty && !self.document.is_wrong(&format!("{}/arguments", self.at)) {
            let message = "`arguments` is empty; omit it, or name an argument, for example { path = \"src/**\" }";
            self.problem(&self.value("arguments"), message);
        }
        for (pointer, text) in table.arguments.iter().flatten() {
            let at = child(&format!("{}/arguments", self.at), pointer);
            let is_known_wrong = self.document.is_wrong(&at);
            let found = wrong_pointer(pointer, &about).filter(|_| !is_known_wrong);
            if let Some(message) = found {
                self.problem(&Location::key(&at), message);
            }
            let pattern = Pattern::new(text);
            if rule.verdict == Verdict::Allow && pattern.allows_nothing() {
                let message = format!(
                    "`{text}` never allows anything: a pattern with a wildcard does not match values with a segment `.` or `..`, a backslash or a control character"
                );
                self.problem(&Location::Value(at), message);
            }
            rule.arguments.push((pointer.clone(), pattern));
        }
        Some(rule)
    }

    fn tools(&mut self, texts: &[String]) -> Option<Vec<Pattern>> {
        if texts.is_empty() && !self.document.is_wrong(&format!("{}/tools", self.at)) {
            let message = "`tools` is empty; name at least one tool";
            self.problem(&self.value("tools"), message);
        }
        let before = self.document.count();
        let mut patterns = Vec::new();
        for (index, text) in texts.iter().enumerate() {
            let at = format!("{}/tools/{index}", self.at);
            let pattern = Pattern::new(text);
            let names = || {
                self.known
                    .iter()
                    .map(|tool| tool.name.as_str())
                    .chain([READ_RESULT])
            };
            if !names().any(|name| pattern.matches(name)) {
                let near = did_you_mean(text, names());
                let listed = listed(self.known);
                let message = format!("`{text}` matches no tool of the file; {listed}{near}");
                self.problem(&Location::Value(at), message);
            }
            patterns.push(pattern);
        }
        (self.document.count() == before && !patterns.is_empty()).then_some(patterns)
    }

    /// Rejects a rule that never decides, because earlier rules decide about all its tools with any arguments.
    fn reject_decided(&mut self, rule: &Rule, before: &Rules) {
        let read_result = ToolSpec::new(READ_RESULT).effect(Effect::Read);
        let specs = self.known.iter().map(|tool| tool.spec.as_ref());
        let Some(specs) = specs
            .chain([Some(&read_result)])
            .collect::<Option<Vec<_>>>()
        else {
            return;
        };
        let is_decided = |spec: &ToolSpec| {
            let mut before = before.iter();
            before.any(|rule| rule.arguments.is_empty() && rule.is_about(&spec.name, spec.effect))
        };
        let mut about = specs
            .into_iter()
            .filter(|spec| rule.is_about(&spec.name, spec.effect));
        if about.all(is_decided) {
            let message = "earlier rules already decide about all its tools; move it before them";
            self.problem(&Location::key(&self.at), message);
        }
    }
}

fn listed(known: &[Known]) -> String {
    let shown = known.iter().take(NAMED);
    let names: Vec<String> = shown.map(|tool| format!("`{}`", tool.name)).collect();
    let more = match known.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("available tools: {}{more}", names.join(", "))
}

/// Returns the problem of a pointer that leads to no parameter of these tools.
fn wrong_pointer(pointer: &str, about: &[&Known]) -> Option<String> {
    let pointer = pointer.strip_prefix('/').unwrap_or(pointer);
    // The parameters of a tool with an invalid definition are unknown.
    let specs: Vec<&ToolSpec> = about
        .iter()
        .map(|tool| tool.spec.as_ref())
        .collect::<Option<_>>()?;
    let name = pointer.split('/').next().unwrap_or_default();
    let name = unescape(name);
    let mut found = specs.iter().filter_map(|spec| spec.get(&name)).peekable();
    if found.peek().is_none() {
        let all = specs.iter().flat_map(|spec| spec.parameters());
        let near = did_you_mean(&name, all.map(|parameter| parameter.name.as_str()));
        return Some(format!("no matching tool has a parameter `{name}`{near}"));
    }
    (pointer.contains('/') && found.all(Parameter::is_scalar))
        .then(|| format!("`{name}` is a single value, so `{pointer}` does not exist"))
}
