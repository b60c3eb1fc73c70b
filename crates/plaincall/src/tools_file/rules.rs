//! The tables `[[rules]]`: what may run, what may not and about what somebody is asked.
//!
//! A rule that means nothing is a mistake, above all one that names what is not there: a misspelled rule would leave open
//! what it should close.

use std::ops::Range;

use plaincall_call::{Effect, ToolSpec, did_you_mean};
use toml::Spanned;
use toml::de::DeValue;

use super::choice::{Choice, choice};
use super::mistake::Mistakes;
use super::table::{Entry, Table, kind};
use super::tool::effect;
use crate::cut::READ_RESULT;
use crate::rules::{Pattern, Rule, Rules, Verdict};

const KEYS: [&str; 5] = ["tools", "effect", "arguments", "verdict", "reason"];

/// How long a pattern may be, in bytes.
const LONGEST_PATTERN: usize = 1 << 10;

/// How many tools a message names.
const NAMED: usize = 20;

/// A tool of the file, and its definition if there is no mistake in it.
pub(super) struct Known<'t> {
    pub(super) name: &'t str,
    pub(super) spec: Option<ToolSpec>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Allow,
    Ask,
    Deny,
}

const WORDS: [Choice<Word>; 3] = [
    ("allow", "the call runs", Word::Allow),
    ("ask", "somebody is asked", Word::Ask),
    ("deny", "the call does not run", Word::Deny),
];

pub(super) fn rules(
    value: &Spanned<DeValue<'_>>,
    known: &[Known<'_>],
    mistakes: &mut Mistakes<'_>,
) -> Rules {
    let mut rules = Rules::default();
    let Some(list) = value.get_ref().as_array() else {
        let kind = kind(value.get_ref());
        mistakes.add(
            value.span(),
            format!("`rules` is {kind}; write `[[rules]]` for each rule"),
        );
        return rules;
    };
    for element in list {
        let DeValue::Table(table) = element.get_ref() else {
            let kind = kind(element.get_ref());
            mistakes.add(
                element.span(),
                format!("a rule is {kind}; write `[[rules]]` for each rule"),
            );
            continue;
        };
        let before = mistakes.count();
        let table = Table::new("rules", element.span(), table);
        if let Some(rule) = rule(&table, known, mistakes).filter(|_| mistakes.count() == before) {
            refuse_decided(&table, &rule, &rules, known, mistakes);
            rules.push(rule);
        }
    }
    rules
}

fn rule(table: &Table<'_, '_>, known: &[Known<'_>], mistakes: &mut Mistakes<'_>) -> Option<Rule> {
    table.refuse_other_keys("a rule", &KEYS, mistakes);
    let verdict = verdict(table, mistakes);
    let tools = if let Some(entry) = table.get("tools") {
        tools(&entry, known, mistakes)
    } else {
        let message = "the rule does not say which tools it is about; write `tools = \"NAME\"`, with `*` for any part of a name";
        mistakes.add(table.name_span(), message);
        None
    };
    let effect = match table.get("effect") {
        Some(entry) => Some(effect(&entry, mistakes)?),
        None => None,
    };
    let mut rule = Rule {
        tools: tools?,
        effect,
        arguments: Vec::new(),
        verdict: verdict?,
    };
    let about: Vec<&Known<'_>> = known.iter().filter(|tool| tool.may_fit(&rule)).collect();
    let fits_read_result = rule.is_about(READ_RESULT, Effect::Read);
    if about.is_empty() && !fits_read_result {
        let span = table
            .get("effect")
            .map_or(table.name_span(), |it| it.span());
        let message = "no tool that the rule names has this effect; a tool without `effect` counts as `write`";
        mistakes.add(span, message);
        return None;
    }
    if let Some(entry) = table.get("arguments") {
        rule.arguments = arguments(&entry, &rule.verdict, &about, mistakes)?;
    }
    Some(rule)
}

impl Known<'_> {
    /// Whether the rule is about the tool, as far as that is known.
    fn may_fit(&self, rule: &Rule) -> bool {
        match &self.spec {
            Some(spec) => rule.is_about(self.name, spec.effect),
            None => rule.tools.iter().any(|pattern| pattern.matches(self.name)),
        }
    }
}

fn verdict(table: &Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<Verdict> {
    let Some(entry) = table.get("verdict") else {
        let message = "the rule says nothing; write `verdict = \"allow\"`, `\"ask\"` or `\"deny\"`";
        mistakes.add(table.name_span(), message);
        return None;
    };
    let word = choice(&entry, "verdict", &WORDS, mistakes)?;
    let reason = table.get("reason");
    match (word, reason) {
        (Word::Deny, None) => {
            let message = "a rule that denies needs a `reason`, in words for the model: it reads why, and what to do instead";
            mistakes.add(entry.span(), message);
            None
        }
        (Word::Deny, Some(entry)) => {
            let reason = entry.string(mistakes)?.to_owned();
            Some(Verdict::Deny { reason })
        }
        (_, Some(entry)) => {
            let message = "only a rule that denies has a `reason`; nobody reads this one";
            mistakes.add(entry.key_span(), message);
            None
        }
        (Word::Allow, None) => Some(Verdict::Allow),
        (Word::Ask, None) => Some(Verdict::Ask),
    }
}

fn tools(
    entry: &Entry<'_, '_>,
    known: &[Known<'_>],
    mistakes: &mut Mistakes<'_>,
) -> Option<Vec<Pattern>> {
    let texts = entry.one_or_more_strings(mistakes)?;
    if texts.is_empty() {
        let message = "`tools` is an empty list; name a tool, or several";
        mistakes.add(entry.span(), message);
        return None;
    }
    let before = mistakes.count();
    let mut patterns = Vec::new();
    for (text, span) in texts {
        let Some(pattern) = pattern(text, span.clone(), mistakes) else {
            continue;
        };
        let names = || known.iter().map(|tool| tool.name).chain([READ_RESULT]);
        if !names().any(|name| pattern.matches(name)) {
            let near = did_you_mean(text, names());
            let message = format!(
                "`{text}` matches no tool of the file; {}{near}",
                listed(known)
            );
            mistakes.add(span, message);
        }
        patterns.push(pattern);
    }
    (mistakes.count() == before).then_some(patterns)
}

/// The names of the tools, in a sentence.
fn listed(known: &[Known<'_>]) -> String {
    let shown = known.iter().take(NAMED);
    let names: Vec<String> = shown.map(|tool| format!("`{}`", tool.name)).collect();
    let more = match known.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the tools are {}{more}", names.join(", "))
}

fn pattern(text: &str, span: Range<usize>, mistakes: &mut Mistakes<'_>) -> Option<Pattern> {
    if text.len() > LONGEST_PATTERN {
        let message = format!("a pattern has at most {LONGEST_PATTERN} bytes");
        mistakes.add(span, message);
        return None;
    }
    Some(Pattern::new(text))
}

fn arguments(
    entry: &Entry<'_, '_>,
    verdict: &Verdict,
    about: &[&Known<'_>],
    mistakes: &mut Mistakes<'_>,
) -> Option<Vec<(String, Pattern)>> {
    let DeValue::Table(table) = entry.value() else {
        entry.refuse("a table, such as { path = \"src/**\" }", mistakes);
        return None;
    };
    let before = mistakes.count();
    let mut arguments = Vec::new();
    for argument in Table::new(entry.key(), entry.key_span(), table).entries() {
        check_pointer(&argument, about, mistakes);
        let Some(text) = argument.string(mistakes) else {
            continue;
        };
        let Some(pattern) = pattern(text, argument.span(), mistakes) else {
            continue;
        };
        if *verdict == Verdict::Allow && pattern.allows_nothing() {
            let message = format!(
                "`{text}` never allows anything: a value with a segment `.` or `..`, a backslash or a control character does not fit a pattern with a wildcard"
            );
            mistakes.add(argument.span(), message);
        }
        arguments.push((argument.key().to_owned(), pattern));
    }
    if table.is_empty() {
        let message = "`arguments` is empty; leave it out, or name an argument, such as { path = \"src/**\" }";
        mistakes.add(entry.span(), message);
    }
    (mistakes.count() == before).then_some(arguments)
}

/// The pointer must lead to something that a call can have.
fn check_pointer(argument: &Entry<'_, '_>, about: &[&Known<'_>], mistakes: &mut Mistakes<'_>) {
    let pointer = argument.key();
    let pointer = pointer.strip_prefix('/').unwrap_or(pointer);
    if pointer.split('/').any(str::is_empty) {
        let message = format!("`{pointer}` leads to no argument: it has an empty part");
        mistakes.add(argument.key_span(), message);
        return;
    }
    let Some(specs) = about
        .iter()
        .map(|tool| tool.spec.as_ref())
        .collect::<Option<Vec<_>>>()
    else {
        // What a tool takes whose definition has a mistake is not known.
        return;
    };
    let (name, rest) = match pointer.split_once('/') {
        Some((name, rest)) => (name, Some(rest)),
        None => (pointer, None),
    };
    let name = name.replace("~1", "/").replace("~0", "~");
    let found: Vec<_> = specs.iter().filter_map(|spec| spec.get(&name)).collect();
    if found.is_empty() {
        let names = || {
            let all = specs.iter().flat_map(|spec| spec.parameters());
            all.map(|parameter| parameter.name.as_str())
        };
        let message = format!(
            "`{name}` is no parameter of a tool that the rule is about{}",
            did_you_mean(&name, names())
        );
        mistakes.add(argument.key_span(), message);
    } else if rest.is_some() && found.iter().all(|parameter| parameter.is_scalar()) {
        let message = format!("`{name}` is a single value, so nothing stands at `{pointer}`");
        mistakes.add(argument.key_span(), message);
    }
}

/// Refuses a rule that can never decide, since rules before it have decided about all its tools, whatever the
/// arguments.
fn refuse_decided(
    table: &Table<'_, '_>,
    rule: &Rule,
    before: &Rules,
    known: &[Known<'_>],
    mistakes: &mut Mistakes<'_>,
) {
    let read_result = ToolSpec::new(READ_RESULT).effect(Effect::Read);
    let specs = known.iter().map(|tool| tool.spec.as_ref());
    let Some(specs) = specs
        .chain([Some(&read_result)])
        .collect::<Option<Vec<_>>>()
    else {
        return;
    };
    let is_decided = |spec: &&ToolSpec| {
        let decides =
            |rule: &Rule| rule.arguments.is_empty() && rule.is_about(&spec.name, spec.effect);
        before.iter().any(decides)
    };
    let mut about = specs
        .into_iter()
        .filter(|spec| rule.is_about(&spec.name, spec.effect));
    if about.all(|spec| is_decided(&spec)) {
        let message = "the rules before this one decide about all its tools, so it never does; put it before them";
        mistakes.add(table.name_span(), message);
    }
}
