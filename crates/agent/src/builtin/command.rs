//! `run_command`: runs a shell command in the directory.

use std::time::Duration;

use plaincall::command::CommandError;
use plaincall::tool::{Parameter, ToolSpec};
use plaincall::{Command, Effect, Tool};

use crate::builtin::BuiltinTool;
use crate::builtin::workspace::Workspace;

/// How much of the output of a command is kept, in bytes. Half of it is the end.
const KEPT: usize = 32 << 10;

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) timeout: Duration,
    pub(super) environment: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(2),
            environment: Vec::new(),
        }
    }
}

pub(super) fn tool(workspace: &Workspace, settings: &Settings) -> Result<Tool, CommandError> {
    let seconds = settings.timeout.as_secs_f64();
    let spec = ToolSpec::new(BuiltinTool::RunCommand.name())
        .describe(format!(
            "Runs a shell command (sh) in the directory and returns its output. It has no stdin and is killed after {seconds} seconds. Processes that it leaves in the background are ended."
        ))
        .parameter(
            Parameter::from_schema(
                "command",
                serde_json::json!({"type": "string", "examples": ["ls -l | head"]}),
            )
            .describe("The command line."),
        )
        .effect(Effect::Write)
        .body("command");
    let command = Command::script_of("command")
        .tools_directory(&workspace.root.path)
        .directory("{directory:tools}")
        .environment(settings.environment.iter().cloned())
        .output_limit(KEPT)
        .keep_both_ends();
    Ok(Tool::command(spec, command)?.timeout(settings.timeout))
}
