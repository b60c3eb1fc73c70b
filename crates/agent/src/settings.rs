//! The settings that all conversations of an agent share.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use plaincall::prompt::few_shot::{FewShot, FewShotExample, few_shot};
use plaincall::prompt::{Prompt, PromptOptions, prompt};
use plaincall::reply::{PromptTextBuilder, Trusted};
use plaincall::run::RunBuilder;
use plaincall::syntax::DialectError;
use plaincall::{Dialect, Gate, Policy, Rules, Run, RunEvent, Tool, Toolbox};
use plaincall_grammar::{Constrain, Grammar, GrammarError, GrammarOptions, grammar};

use crate::answer::AgentErrorKind;
use crate::grammar::{KnownGrammar, Made, without_blocking};
use crate::limits::{AgentLimits, OnNoToolCall};
use crate::model::{Model, Retries};
use crate::user::User;

/// The length of a conversation's key, and its characters.
const KEY_LENGTH: usize = 8;
const KEY: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";

/// The settings of an agent.
pub(crate) struct Settings {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) tools: Toolbox,
    /// The tools of the run: its own, and those that only subagents can call.
    pub(crate) run_tools: Toolbox,
    pub(crate) subagents: Vec<Subagent>,
    pub(crate) dialect: Dialect,
    pub(crate) is_keyed: bool,
    pub(crate) system: String,
    pub(crate) rules: Rules,
    pub(crate) gate: Option<Arc<dyn Gate>>,
    pub(crate) user: Option<Arc<dyn User>>,
    pub(crate) policy: Policy,
    pub(crate) limits: AgentLimits,
    pub(crate) on_no_tool_call: OnNoToolCall,
    pub(crate) environment: BTreeMap<OsString, OsString>,
    pub(crate) directory_in: Option<PathBuf>,
    pub(crate) retries: Retries,
    pub(crate) prompt: PromptOptions,
    /// The few-shot examples, and how many are shown.
    pub(crate) examples: Vec<FewShotExample>,
    pub(crate) few_shot: usize,
    pub(crate) transform: Option<Arc<Transform>>,
    pub(crate) observers: Vec<Arc<Observe>>,
    pub(crate) known_grammar: KnownGrammar,
}

/// An agent that is a tool of another.
#[derive(Clone, Debug)]
pub(crate) struct Subagent {
    pub(crate) name: String,
    pub(crate) settings: Arc<Settings>,
}

/// Transforms a text of a tool, given the name of the tool.
type Transform = dyn Fn(&str, String) -> String + Send + Sync;
type Observe = dyn Fn(&RunEvent) + Send + Sync;

impl Settings {
    /// Returns the settings of the subagent with this name, at any depth.
    pub(crate) fn agent(&self, name: &str) -> Option<&Arc<Self>> {
        self.subagents.iter().find_map(|own| {
            if own.name == name {
                Some(&own.settings)
            } else {
                own.settings.agent(name)
            }
        })
    }

    pub(crate) fn fresh_key(&self) -> Result<Option<String>, AgentErrorKind> {
        if !self.is_keyed {
            return Ok(None);
        }
        let mut key = String::with_capacity(KEY_LENGTH);
        while key.len() < KEY_LENGTH {
            let mut bytes = [0; 16];
            getrandom::fill(&mut bytes).map_err(|_| AgentErrorKind::Random)?;
            // Bytes above the last multiple of 36 would bias the key.
            let fair = bytes.iter().filter(|&&byte| byte < 252);
            let drawn = fair.filter_map(|&byte| KEY.get(usize::from(byte) % KEY.len()));
            let missing = KEY_LENGTH - key.len();
            key.extend(drawn.take(missing).map(|&byte| char::from(byte)));
        }
        Ok(Some(key))
    }

    /// Returns a builder of a run with these tools, and with the rules, the transform and the observers.
    pub(crate) fn run(&self, tools: Toolbox) -> RunBuilder {
        let mut run = Run::builder(tools).rules(self.rules.clone());
        if let Some(transform) = &self.transform {
            let transform = Arc::clone(transform);
            run = run.transform(move |tool, text| transform(tool, text));
        }
        for observer in &self.observers {
            let observer = Arc::clone(observer);
            run = run.observer(move |event: &RunEvent| observer(event));
        }
        run
    }

    /// The prompt with the tools; `None` without tools.
    pub(crate) fn prompt(&self, dialect: &Dialect) -> Result<Option<Prompt>, DialectError> {
        let specs = self.tools.iter().map(Tool::spec);
        let has_tools = !self.tools.is_empty();
        has_tools
            .then(|| prompt(specs, dialect, &self.prompt))
            .transpose()
    }

    /// The examples that are shown as messages.
    pub(crate) fn shown_examples(&self, dialect: &Dialect) -> Result<FewShot, DialectError> {
        let tools: Vec<_> = self.tools.iter().map(Tool::spec).collect();
        few_shot(&self.examples, &tools, dialect, self.few_shot)
    }

    /// The system prompt: how to call tools, their list, and the system text.
    pub(crate) fn system_message(&self, dialect: &Dialect) -> Result<String, DialectError> {
        let mut prompt_text = PromptTextBuilder::new(std::slice::from_ref(dialect))?;
        if let Some(taught) = self.prompt(dialect)? {
            prompt_text.trusted(Trusted::assert(taught.into_text()));
            if !self.system.is_empty() {
                prompt_text.trusted("\n");
            }
        }
        prompt_text.trusted(Trusted::assert(self.system.as_str()));
        Ok(prompt_text.finish().into_text())
    }
}

impl Settings {
    /// Returns the grammar of replies in this dialect; `None` if the model does not constrain them, or there are no tools. If
    /// the tools have no grammar, the outer result is an error only if the model demands one.
    pub(crate) async fn grammar(
        self: &Arc<Self>,
        model: &dyn Model,
        dialect: &Dialect,
    ) -> Result<Result<Option<Arc<Grammar>>, GrammarError>, AgentErrorKind> {
        let constrain = model.constrains();
        if constrain == Constrain::Never || self.tools.is_empty() {
            return Ok(Ok(None));
        }
        let made = match self.known_grammar.get(dialect) {
            Some(known) => known,
            None => self.make_grammar(dialect.clone()).await,
        };
        match made {
            Err(error) if constrain.is_demanded() => Err(AgentErrorKind::Settings(format!(
                "replies cannot be constrained: {error}"
            ))),
            made => Ok(made.map(Some)),
        }
    }

    async fn make_grammar(self: &Arc<Self>, dialect: Dialect) -> Made {
        let settings = Arc::clone(self);
        without_blocking(move || {
            let tools = settings.tools.iter().map(Tool::spec);
            let made = grammar(tools, &dialect, &GrammarOptions::new().ids()).map(Arc::new);
            settings.known_grammar.keep(dialect, made.clone());
            made
        })
        .await
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Settings")
            .field("model", &self.model.name())
            .field("tools", &self.tools)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
