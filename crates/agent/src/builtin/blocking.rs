//! Runs file tools on blocking threads.

use std::time::{Duration, Instant};

use plaincall::{Context, Effect, Tool, ToolResult};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::builtin::BuiltinTool;
use crate::builtin::rules::PathRules;
use crate::builtin::workspace::{RelPath, Workspace};

/// The time limit of a walk over many files. Then it returns what it has.
const TIME_LIMIT: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(super) struct Stop {
    token: CancellationToken,
    until: Instant,
}

impl Stop {
    #[cfg(test)]
    pub(super) fn set() -> Self {
        let token = CancellationToken::new();
        token.cancel();
        Self {
            token,
            until: Instant::now() + TIME_LIMIT,
        }
    }

    pub(super) fn is_set(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Whether the time limit has passed.
    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.is_set() {
            return Err("the call was cancelled; nothing was changed".to_owned());
        }
        if self.is_late() {
            return Err(format!(
                "timed out after {} seconds; nothing was changed",
                TIME_LIMIT.as_secs()
            ));
        }
        Ok(())
    }
}

pub(super) struct CallScope<'w> {
    tool: BuiltinTool,
    pub(super) workspace: &'w Workspace,
    pub(super) context: &'w Context,
    pub(super) stop: &'w Stop,
}

impl CallScope<'_> {
    /// The rules of the run for files, for a call with this path.
    pub(super) fn rules(&self, path: &str) -> PathRules<'_> {
        PathRules::new(self.context, self.workspace, self.tool, path)
    }

    /// Resolves a path that the model wrote. Returns an error if a rule denies access to the file.
    pub(super) fn written(&self, path: &str) -> Result<RelPath, String> {
        let written = self.workspace.written(path)?;
        self.rules(path).check(self.workspace, &written)?;
        Ok(written)
    }
}

/// Makes a tool for files. Tools that write run one at a time.
pub(super) fn file_tool<T>(
    workspace: Workspace,
    tool: BuiltinTool,
    effect: Effect,
    work: fn(&T, &CallScope<'_>) -> Result<String, String>,
) -> Tool
where
    T: DeserializeOwned + JsonSchema + Send + 'static,
{
    let root = workspace.root.path.clone();
    let made = Tool::new(tool.name(), move |arguments: T, context: Context| {
        let workspace = workspace.clone();
        async move {
            let changing = match effect {
                Effect::Read => None,
                _ => Some(workspace.root.changing.clone().lock_owned().await),
            };
            let of_call = context.clone();
            let work = move |stop: &Stop| {
                let _changing = changing;
                let scope = CallScope {
                    tool,
                    workspace: &workspace,
                    context: &of_call,
                    stop,
                };
                work(&arguments, &scope)
            };
            blocking(&context, work).await
        }
    });
    let made = made.effect(effect).path_below("path", &root);
    match effect {
        Effect::Read => made,
        _ => made.works_in(root),
    }
}

/// Runs blocking work. The work is stopped when the call ends early.
async fn blocking<F>(context: &Context, work: F) -> ToolResult
where
    F: FnOnce(&Stop) -> Result<String, String> + Send + 'static,
{
    let token = context.cancellation().child_token();
    // The call may also be dropped.
    let _guard = token.clone().drop_guard();
    let stop = Stop {
        token,
        until: Instant::now() + TIME_LIMIT,
    };
    match spawn_blocking(move || work(&stop)).await {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err("the tool crashed; check what it changed before you continue".into()),
    }
}
