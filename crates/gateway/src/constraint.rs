//! Grammars for constrained decoding, as fields of the request to the model server (`spec/gateway.md` 12).

use std::sync::{Arc, Mutex, PoisonError};

use plaincall_grammar::{Engine, GrammarError, GrammarOptions, grammar};
use plaincall_syntax::Dialect;
use plaincall_tool::ToolSpec;
use plaincall_wire::openai::{ChatCompletionRequest, constrained};

use crate::compiled::CompiledDialect;
use crate::reply::plan::{ReplyMode, ReplyPlan};
use crate::tools::{Choice, OfferedTools};

/// The maximum number of cached grammars for a set of tools.
const MAX_GRAMMARS: usize = 8;
/// Their maximum total length, in bytes.
const MAX_BYTES: usize = 2 << 20;

/// The replies to a request that a grammar allows.
#[derive(Clone, Debug)]
pub(crate) struct Constraint {
    offer: Arc<OfferedTools>,
    compiled: Arc<CompiledDialect>,
    choice: Choice,
    one_call: bool,
}

impl Constraint {
    /// Returns the constraint of a reply; `None` if it has no calls, or the client constrains it itself.
    pub(crate) fn of(plan: &ReplyPlan, upstream: &ChatCompletionRequest<'_>) -> Option<Self> {
        let is_own = upstream.response_format.is_some()
            // A field must not be in the request twice, even if it is `null`.
            || constrained::REQUEST_FIELDS.iter().any(|name| upstream.unknown.get(name).is_some());
        let has_calls = plan.mode == ReplyMode::Calls && plan.choice != Choice::None;
        (has_calls && !is_own).then(|| Self {
            offer: Arc::clone(&plan.offer),
            compiled: Arc::clone(&plan.compiled),
            choice: plan.choice.clone(),
            one_call: plan.one_call,
        })
    }

    /// Returns whether the grammar was made before, so that [`members`](Self::members) takes no time.
    #[cfg(feature = "server")]
    pub(crate) fn is_known(&self, engine: Engine) -> bool {
        self.offer.grammars.find(&self.key(engine)).is_some()
    }

    /// Returns the fields for this engine, as the members of a JSON object without its braces.
    pub(crate) fn members(&self, engine: Engine) -> Members {
        let key = self.key(engine);
        if let Some(known) = self.offer.grammars.find(&key) {
            return known;
        }
        let made = self.make(engine);
        self.offer.grammars.keep(key, made.clone());
        made
    }

    fn make(&self, engine: Engine) -> Members {
        let tools = self.offer.iter();
        let tools: Vec<&ToolSpec> = tools
            .filter(|tool| self.choice.allows(&tool.name))
            .collect();
        let mut options = GrammarOptions::new().choice(if self.choice.is_required() {
            plaincall_grammar::Choice::Required
        } else {
            plaincall_grammar::Choice::Auto
        });
        if self.one_call {
            options = options.one_call();
        }
        let grammar = grammar(tools, &self.compiled.dialect, &options)?;
        let fields = serde_json::Value::from(grammar.request_fields(engine)).to_string();
        let members = fields
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        Ok(members.unwrap_or_default().into())
    }

    fn key(&self, engine: Engine) -> GrammarKey {
        GrammarKey {
            engine,
            dialect: self.compiled.dialect.clone(),
            choice: self.choice.clone(),
            one_call: self.one_call,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct GrammarKey {
    engine: Engine,
    dialect: Dialect,
    choice: Choice,
    one_call: bool,
}

/// The members of a request, or why there is no grammar.
type Members = Result<Arc<str>, GrammarError>;

/// The grammars that were made for a set of tools, the latest last.
#[derive(Debug, Default)]
pub(crate) struct Grammars(Mutex<Vec<(GrammarKey, Members)>>);

impl Grammars {
    fn find(&self, key: &GrammarKey) -> Option<Members> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = kept.iter();
        kept.find(|(known, _)| known == key)
            .map(|(_, made)| made.clone())
    }

    fn keep(&self, key: GrammarKey, made: Members) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((key, made));
        let length = |made: &Members| made.as_ref().map_or(0, |members| members.len());
        let total =
            |kept: &[(_, Members)]| kept.iter().map(|(_, made)| length(made)).sum::<usize>();
        while kept.len() > MAX_GRAMMARS || total(&kept) > MAX_BYTES {
            drop(kept.remove(0));
        }
    }
}
