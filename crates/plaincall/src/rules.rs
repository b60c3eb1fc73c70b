//! Rules: data that allows calls, denies them, or asks the gate.

mod command_line;
mod json;
mod meaning;
mod path;
mod pattern;
mod spelling;
mod values;

use std::ops::Deref;

use plaincall_tool::Effect;
use serde::{Deserialize, Serialize};

pub(crate) use command_line::{command_words, expanded_commands, without_prefix};
pub(crate) use meaning::{Meaning, Meanings};
pub use pattern::Pattern;

use crate::request::Request;
use spelling::Fit;
use values::Values;

/// A list of rules, of which the first match decides about a call (`spec/running.md`, "Rules"). Dereferences to a slice.
///
/// Rules take precedence over [`Decision::Always`](crate::Decision::Always) and over the gate.
///
/// ```
/// use plaincall::{Rules, rules::Rule};
///
/// let rules = Rules::new([
///     Rule::deny(["*"], "key files are private").argument("path", "**.key"),
///     Rule::allow(["read-*", "list"]).argument("path", "src/**"),
///     Rule::ask(["publish"]),
/// ]);
/// assert_eq!(rules.len(), 3);
/// ```
///
/// The same value can be written in several ways, so an argument matches *certainly*, *possibly* or *not*. A rule that
/// **allows** needs certain matches; a rule that **denies** needs possible ones. A rule that **asks** and matches only
/// possibly does not decide: later rules may still deny; if they allow or do not match, the gate is asked.
///
/// Rules compare text. They do not access the file system, and know neither symbolic links nor the base directory of a
/// relative path. On Windows and macOS, possible matches ignore case. A list of allowed values is safer than a list of denied ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// A rule: the calls that it matches, and its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rule {
    /// The names of the tools; one of the patterns must match.
    pub tools: Vec<Pattern>,
    /// The effect of the tool. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Patterns for arguments by JSON Pointer; all must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<(String, Pattern)>,
    /// The verdict on matching calls.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The verdict of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The call runs, without asking the gate.
    Allow,
    /// The gate is asked, even after [`Decision::Always`](crate::Decision::Always).
    Ask,
    /// The call is denied, without asking the gate.
    Deny {
        /// The reason, for the model.
        reason: String,
    },
}

impl Rule {
    /// Creates a rule that allows calls of these tools.
    pub fn allow<T: Into<Pattern>>(tools: impl IntoIterator<Item = T>) -> Self {
        Self::new(tools, Verdict::Allow)
    }

    /// Creates a rule that asks the gate about calls of these tools.
    pub fn ask<T: Into<Pattern>>(tools: impl IntoIterator<Item = T>) -> Self {
        Self::new(tools, Verdict::Ask)
    }

    /// Creates a rule that denies calls of these tools, with a reason for the model.
    pub fn deny<T: Into<Pattern>>(
        tools: impl IntoIterator<Item = T>,
        reason: impl Into<String>,
    ) -> Self {
        let reason = reason.into();
        Self::new(tools, Verdict::Deny { reason })
    }

    /// Creates a rule with this verdict on calls of these tools.
    pub fn new<T: Into<Pattern>>(tools: impl IntoIterator<Item = T>, verdict: Verdict) -> Self {
        Self {
            tools: tools.into_iter().map(Into::into).collect(),
            effect: None,
            arguments: Vec::new(),
            verdict,
        }
    }

    /// Restricts the rule to tools with this effect.
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = Some(effect);
        self
    }

    /// Restricts the rule to calls whose argument at this JSON Pointer matches the pattern.
    pub fn argument(mut self, pointer: impl Into<String>, pattern: impl Into<Pattern>) -> Self {
        self.arguments.push((pointer.into(), pattern.into()));
        self
    }

    /// Returns whether the rule applies to a tool with this name and effect.
    pub(crate) fn is_about(&self, name: &str, effect: Effect) -> bool {
        self.effect.is_none_or(|wanted| wanted == effect)
            && self.tools.iter().any(|pattern| pattern.matches(name))
    }

    fn fit(&self, request: &Request, values: &Values<'_>) -> Fit {
        if !self.is_about(&request.name, request.effect) {
            return Fit::No;
        }
        let mut least = Fit::Yes;
        let mut missing = 0;
        for (pointer, pattern) in &self.arguments {
            let found = values.fit(pointer, pattern);
            missing += usize::from(found.is_none());
            least = least.min(found.unwrap_or(Fit::Perhaps));
            if least == Fit::No {
                return Fit::No;
            }
        }
        if missing > 0 && missing == self.arguments.len() {
            return Fit::No;
        }
        least
    }
}

impl Rules {
    /// Creates a list of rules.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        rules.into_iter().collect()
    }

    /// Appends a rule.
    pub fn push(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// Evaluates the rules on a call. Returns `None` if no rule matches, so that the gate decides.
    pub fn verdict(&self, request: &Request) -> Option<Verdict> {
        let values = Values::new(&request.arguments, &request.meanings);
        let mut may_ask = false;
        for rule in &self.rules {
            match (&rule.verdict, rule.fit(request, &values)) {
                (_, Fit::No) | (Verdict::Allow, Fit::Perhaps) => {}
                (Verdict::Ask, Fit::Perhaps) => may_ask = true,
                (Verdict::Allow, Fit::Yes) if may_ask => return Some(Verdict::Ask),
                (verdict, _) => return Some(verdict.clone()),
            }
        }
        may_ask.then_some(Verdict::Ask)
    }
}

impl Deref for Rules {
    type Target = [Rule];

    fn deref(&self) -> &[Rule] {
        &self.rules
    }
}

impl FromIterator<Rule> for Rules {
    fn from_iter<R: IntoIterator<Item = Rule>>(rules: R) -> Self {
        Self {
            rules: rules.into_iter().collect(),
        }
    }
}
