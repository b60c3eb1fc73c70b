//! Rules: what may run, what may not and about what somebody is asked, as data.

mod command_line;
mod json;
mod meaning;
mod path;
mod pattern;
mod spelling;
mod values;

use std::ops::Deref;

use plaincall_call::Effect;
use serde::{Deserialize, Serialize};

pub(crate) use command_line::{command_words, expanded_commands, without_prefix};
pub(crate) use meaning::{Meaning, Meanings};
pub use pattern::Pattern;

use crate::request::Request;
use spelling::Fit;
use values::Values;

/// What a run is told beforehand about calls that want to run: a slice of rules, of which the first rule that fits decides
/// (`spec/running.md`, "Rules").
///
/// They are asked before answers that hold for all later calls of a tool, and before the gate.
///
/// ```
/// use plaincall::{Rules, rules::Rule};
///
/// let rules = Rules::new([
///     Rule::deny(["*"], "keys stay where they are").argument("path", "**.key"),
///     Rule::allow(["read-*", "list"]).argument("path", "src/**"),
///     Rule::ask(["publish"]),
/// ]);
/// assert_eq!(rules.len(), 3);
/// ```
///
/// One value can often be written in several ways, so what a rule makes of an argument is *sure*, *possible* or
/// *excluded*. A rule that **allows** fits only if it is sure of everything; one that **denies** fits if it is possible.
/// One that **asks** and is not sure does not decide: rules behind it may still deny, but where they would allow, or say
/// nothing, somebody is asked.
///
/// Rules look at texts. They do not know the file system: which folder any other relative path begins in, and where a
/// symbolic link leads. So a list of what is allowed is safer than one of what is not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// What one rule says, and about which calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The names of the tools it is about; one of these must fit.
    pub tools: Vec<Pattern>,
    /// The effect that the tool must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// What the arguments must be, all of them: JSON Pointers as a model writes them, and what stands there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<(String, Pattern)>,
    /// What it says about the calls that it fits.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What a rule says about a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It may run; nobody is asked.
    Allow,
    /// The gate is asked, even if it has allowed all calls of the tool before.
    Ask,
    /// It may not run; nobody is asked.
    Deny {
        /// Why, in words for the model.
        reason: String,
    },
}

impl Rule {
    /// A rule by which calls of these tools may run.
    pub fn allow<T: Into<Pattern>>(tools: impl IntoIterator<Item = T>) -> Self {
        Self::new(tools, Verdict::Allow)
    }

    /// A rule by which the gate is asked about calls of these tools.
    pub fn ask<T: Into<Pattern>>(tools: impl IntoIterator<Item = T>) -> Self {
        Self::new(tools, Verdict::Ask)
    }

    /// A rule by which calls of these tools may not run; the model reads the reason.
    pub fn deny<T: Into<Pattern>>(
        tools: impl IntoIterator<Item = T>,
        reason: impl Into<String>,
    ) -> Self {
        let reason = reason.into();
        Self::new(tools, Verdict::Deny { reason })
    }

    fn new<T: Into<Pattern>>(tools: impl IntoIterator<Item = T>, verdict: Verdict) -> Self {
        Self {
            tools: tools.into_iter().map(Into::into).collect(),
            effect: None,
            arguments: Vec::new(),
            verdict,
        }
    }

    /// Restricts it to tools with this effect.
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = Some(effect);
        self
    }

    /// Restricts it to calls whose argument at this pointer fits the pattern.
    pub fn argument(mut self, pointer: impl Into<String>, pattern: impl Into<Pattern>) -> Self {
        self.arguments.push((pointer.into(), pattern.into()));
        self
    }

    /// Whether it is about tools of this name and effect.
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
    /// These rules in this order.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        rules.into_iter().collect()
    }

    /// Adds a rule behind the others.
    pub fn push(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// What they say about a call; `None` if no rule says anything, and the gate decides.
    pub fn verdict(&self, request: &Request) -> Option<Verdict> {
        let values = Values::new(&request.arguments, &request.meanings);
        let mut is_to_ask = false;
        for rule in &self.rules {
            match (&rule.verdict, rule.fit(request, &values)) {
                (_, Fit::No) | (Verdict::Allow, Fit::Perhaps) => {}
                (Verdict::Ask, Fit::Perhaps) => is_to_ask = true,
                (Verdict::Allow, Fit::Yes) if is_to_ask => return Some(Verdict::Ask),
                (verdict, _) => return Some(verdict.clone()),
            }
        }
        is_to_ask.then_some(Verdict::Ask)
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
