//! Runs the tools of durable runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use plaincall_reply::untrusted::EchoGuard;
use plaincall_tool::Limits;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{CallStart, DurableSettings};
use crate::attempt::{Attempt, Ended};
use crate::call_arguments::bind_pairs;
use crate::context::{Context, RunContext};
use crate::cut::cut;
use crate::policy::Echoes;
use crate::result::Status;
use crate::tool::Tool;
use crate::trace::Parent;
use crate::whole_results::WholeResults;

/// The longest error of a truncated end, in bytes.
const ERROR: usize = 64 << 10;

/// How a started call ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallEnd(pub(crate) Ended);

impl CallEnd {
    /// Returns the end of a call whose tool cannot run, with an error for the model.
    pub fn failed(error: impl Into<String>) -> Self {
        Self(Ended::failed(error.into()))
    }

    /// Truncates an output of more than so many bytes, and an error of more than 64 KiB, with a note at the end.
    pub fn truncated(mut self, limit: usize) -> Self {
        let long = |text: &str, limit| {
            let total = text.len();
            (total > limit).then(|| cut(text, limit, total as u64, "", false))
        };
        if let Some(output) = self.0.output.as_deref().and_then(|text| long(text, limit)) {
            self.0.output = Some(output.into());
        }
        if let Some(error) = self.0.error.as_deref().and_then(|text| long(text, ERROR)) {
            self.0.error = Some(error);
        }
        self
    }

    /// Returns the status.
    pub fn status(&self) -> Status {
        self.0.outcome.into()
    }
}

/// Runs the tools of durable runs on this machine. Clones share it.
#[derive(Clone)]
pub struct ToolRunner {
    settings: DurableSettings,
    shared: Arc<RunContext>,
}

impl fmt::Debug for ToolRunner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.settings.toolbox.iter().map(Tool::name);
        formatter.debug_list().entries(tools).finish()
    }
}

impl ToolRunner {
    pub(super) fn new(
        settings: DurableSettings,
        current_directory: PathBuf,
        environment: BTreeMap<OsString, OsString>,
    ) -> Self {
        let dialect = std::slice::from_ref(&settings.dialect);
        let guard = EchoGuard::new(dialect).ok();
        Self {
            shared: Arc::new(RunContext {
                directory: None,
                current_directory,
                environment,
                whole_results: WholeResults::new(settings.policy.result_limit, false).into(),
                rules: settings.rules.clone(),
                guard: guard.filter(|_| settings.policy.echoes == Echoes::Held),
            }),
            settings,
        }
    }

    /// Sets the directory of `{directory:current}`, an absolute path, and the variables of
    /// [`RunBuilder::environment`](crate::RunBuilder::environment).
    pub fn with(
        self,
        current_directory: PathBuf,
        environment: BTreeMap<OsString, OsString>,
    ) -> Self {
        Self::new(self.settings, current_directory, environment)
    }

    /// Runs the tool of a call within its time limit, until `cancellation` is cancelled. The tool can read the idempotency key
    /// ([`Context::idempotency_key`]). Dropping the future stops the tool.
    ///
    /// If this machine does not have the tool, or the tool rejects the arguments, the call ends as `error`; nothing is run.
    pub async fn run(
        &self,
        start: CallStart,
        idempotency_key: impl Into<Arc<str>>,
        cancellation: CancellationToken,
    ) -> CallEnd {
        let Some(tool) = self.settings.toolbox.get(&start.name) else {
            let name = &start.name;
            return CallEnd(Ended::failed(format!("this worker has no tool `{name}`")));
        };
        // They were checked against the limits when the call appeared.
        let limits = Limits::default();
        let arguments = match bind_pairs(&tool.spec, &start.arguments.0, &limits) {
            Ok(arguments) => arguments,
            Err(error) => return CallEnd(Ended::failed(error)),
        };
        let attempt = Attempt {
            code: tool.code.clone(),
            arguments: Arc::new(arguments),
            context: Context {
                call: start.call,
                id: start.id,
                name: start.name,
                cancellation: cancellation.child_token(),
                dependencies: start.dependencies,
                grace: tool.policy.grace,
                shared: Arc::clone(&self.shared),
                observed: Arc::default(),
                idempotency_key: Some(idempotency_key.into()),
            },
            timeout: tool.policy.timeout,
            transform: None,
            parent: Parent::here(),
            number: start.attempt,
        };
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(attempt.run(Instant::now(), cancellation));
        let ended = match tasks.join_next_with_id().await {
            Some(Ok((_, ended))) => ended,
            Some(Err(error)) => Ended::panicked(&crate::driver::panic_text(error)),
            None => Ended::cancelled(None),
        };
        CallEnd(ended)
    }
}
