//! The settings of durable runs, which must be the same on every machine.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use plaincall_reply::Stop;
use plaincall_syntax::Dialect;

use super::{DurableRun, ToolRunner};
use crate::command::template::Piece;
use crate::cut::READ_RESULT;
use crate::event::{RunBegin, RunEvent};
use crate::policy::Policy;
use crate::replay::{Replayed, beginning, check_tools, replay};
use crate::rules::Rules;
use crate::run::{RunError, RunParts, needs, run_begin};
use crate::toolbox::Toolbox;

/// The tools, the dialect, the policy and the rules of runs. Clones share the tools.
#[derive(Clone, Debug)]
pub struct DurableSettings {
    pub(super) toolbox: Arc<Toolbox>,
    pub(super) dialect: Dialect,
    pub(super) policy: Policy,
    pub(super) rules: Rules,
}

/// The error for a tool that cannot run on any machine on its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("the tool `{tool}` {what}, but the calls of a durable run may run on different machines")]
pub struct Unsupported {
    /// The name of the tool.
    pub tool: String,
    /// The property that prevents it.
    pub what: &'static str,
}

impl DurableSettings {
    /// Creates settings with these tools and the defaults of a run.
    ///
    /// # Errors
    /// Returns an error if a tool delegates to calls that it submits, reads earlier results or uses the run's directory.
    pub fn new(toolbox: Toolbox) -> Result<Self, Unsupported> {
        for tool in toolbox.iter() {
            let what = if tool.policy.delegates || tool.policy.submitted_only {
                "submits calls or is only submitted"
            } else if tool.name() == READ_RESULT {
                "reads the results of other calls"
            } else if needs(tool, &Piece::RunDirectory) {
                "uses `{directory:run}`"
            } else {
                continue;
            };
            let tool = tool.name().to_owned();
            return Err(Unsupported { tool, what });
        }
        Ok(Self {
            toolbox: Arc::new(toolbox),
            dialect: Dialect::default().for_reply(),
            policy: Policy::default(),
            rules: Rules::default(),
        })
    }

    /// Sets the dialect of the model, which is used [for replies](Dialect::for_reply). Default: [`Dialect::auto`].
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect.for_reply();
        self
    }

    /// Sets limits and order of the calls. Default: [`Policy::default`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Lowers the [`dependency_limit`](crate::Policy::dependency_limit) of the policy to at most so many bytes.
    pub fn dependency_limit(mut self, bytes: usize) -> Self {
        self.policy.dependency_limit = self.policy.dependency_limit.min(bytes);
        self
    }

    /// Sets the rules. Default: none.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// Returns the tools.
    pub fn tools(&self) -> &Toolbox {
        &self.toolbox
    }

    /// Returns the dialect of the model's replies.
    pub fn model_dialect(&self) -> &Dialect {
        &self.dialect
    }

    /// Returns what runs the tools.
    pub fn runner(&self) -> ToolRunner {
        ToolRunner::new(self.clone(), PathBuf::new(), BTreeMap::new())
    }

    /// Returns the first event of a new run that starts now. The engine must journal it.
    pub fn begin(&self, note: serde_json::Value) -> RunBegin {
        run_begin(self.policy, &self.toolbox, &self.rules, note)
    }

    /// Starts a run.
    ///
    /// # Errors
    /// Returns an error if the dialect is invalid, or if these tools are not those of the first event.
    pub fn start(&self, begin: RunBegin) -> Result<DurableRun, RunError> {
        check_tools(&begin.tools, &self.toolbox)?;
        let history = [RunEvent::Run(Box::new(begin))];
        let (mut run, _) = self.restore(&history)?;
        let [begin] = history;
        run.run_state.events.insert(0, begin);
        Ok(run)
    }

    /// Continues a run after its last turn, given its events. Calls of that turn that have not ended are cancelled; those of
    /// tools that write and had started end as `unknown`.
    ///
    /// # Errors
    /// Returns an error if the dialect is invalid, or if the events do not follow from these settings.
    pub fn resume(&self, history: &[RunEvent]) -> Result<DurableRun, RunError> {
        let (mut run, replayed) = self.restore(history)?;
        let mut items = Vec::new();
        if run.run_state.is_open() {
            items = run.reader.finish(Stop::Broken).items;
        }
        let (at, state) = (run.at, &mut run.run_state);
        let has_unended = state.is_open() || state.has_unended();
        if has_unended || !replayed.pending.is_empty() {
            state.resume(replayed, has_unended, at);
        }
        if has_unended {
            state.end_all_as_unknown(at);
            state.apply(RunEvent::reply_end(Stop::Broken, None), items, at);
            state.commands.clear();
        }
        Ok(run)
    }

    fn restore(&self, history: &[RunEvent]) -> Result<(DurableRun, Replayed), RunError> {
        let begin = beginning(history)?;
        check_tools(&begin.tools, &self.toolbox)?;
        let (dialect, rules) = (&self.dialect, self.rules.clone());
        let mut parts = RunParts::new(&self.toolbox, dialect, begin.policy, rules, history)?;
        parts.run_state.begin_replay(HashMap::new());
        let replayed = replay(history, true, &mut parts.run_state, &mut parts.reader, None)?;
        for event in parts.definitions {
            parts.run_state.apply(event, Vec::new(), replayed.at);
        }
        parts.run_state.has_gate = true;
        let run = DurableRun {
            run_state: parts.run_state,
            reader: parts.reader,
            received: parts.received,
            began_unix_ms: begin.began_unix_ms,
            at: replayed.at,
        };
        Ok((run, replayed))
    }
}
