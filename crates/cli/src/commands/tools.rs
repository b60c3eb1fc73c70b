//! `plaincall tools`: list, call and check tools, and write examples of them.

mod call;
mod check;
mod examples;
mod list;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::environment::Environment;
use crate::options::{AgentOptions, Color, FileOptions};
use crate::output::Output;
use crate::settings::{Configuration, ToolSetup};
use crate::status::{Failure, Outcome};

/// List, call and check tools, and write examples of them.
#[derive(Args, Debug)]
pub(crate) struct ToolsCommand {
    #[command(subcommand)]
    pub(crate) action: ToolsAction,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum ToolsAction {
    List(list::ListOptions),
    Call(call::CallOptions),
    Check(check::CheckOptions),
    Examples(examples::ExamplesOptions),
}

/// The tools to use.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Tools")]
pub(crate) struct SourceOptions {
    /// A file with command-line tools (`tools.toml`). May be repeated.
    ///
    /// `--tools`, `--builtin` and `--mcp` replace the tools of the configuration.
    #[arg(long, short, value_name = "FILE")]
    tools: Vec<PathBuf>,

    /// The built-in tools, confined to this directory.
    #[arg(long, value_name = "DIR")]
    builtin: Option<PathBuf>,

    /// A file with MCP servers (`mcpServers`). May be repeated.
    #[arg(long, value_name = "FILE")]
    mcp: Vec<PathBuf>,

    #[command(flatten)]
    files: FileOptions,
}

impl SourceOptions {
    /// Returns the configuration. If the options set tools, it has only these tools.
    fn configuration(&self, environment: &Environment) -> Result<Configuration, Failure> {
        let options = AgentOptions {
            tools: self.tools.clone(),
            builtin: self.builtin.clone(),
            mcp: self.mcp.clone(),
            files: self.files.clone(),
            ..AgentOptions::default()
        };
        let mut configuration = Configuration::of(&options, environment)?;
        let has_tools = self.builtin.is_some() || !(self.tools.is_empty() && self.mcp.is_empty());
        if has_tools {
            let settings = &mut configuration.settings;
            if self.tools.is_empty() {
                settings.tools.clear();
            }
            if self.builtin.is_none() {
                settings.builtin.directory = None;
            }
            settings.mcp.servers.clear();
            if self.mcp.is_empty() {
                settings.mcp.files.clear();
            }
        }
        Ok(configuration)
    }

    /// Creates the tools. Starts MCP servers to get theirs.
    async fn tool_setup(&self, environment: &Environment) -> Result<ToolSetup, Failure> {
        let tool_setup = self
            .configuration(environment)?
            .tool_setup(&[], environment, None)
            .await?;
        if tool_setup.toolbox.is_empty() {
            return Err(Failure::Usage(
                "there are no tools; add some with `--tools FILE`, `--builtin DIR` or `--mcp FILE`, or in the configuration".to_owned(),
            ));
        }
        Ok(tool_setup)
    }
}

pub(crate) fn tools(
    command: &ToolsCommand,
    color: Color,
    output: impl FnOnce() -> Output,
) -> Outcome {
    match &command.action {
        // They handle signals themselves, because MCP servers must be stopped.
        ToolsAction::List(options) => list::list(options, &mut Output::new(color)),
        ToolsAction::Call(options) => call::call(options, color),
        ToolsAction::Examples(options) => examples::examples(options, color),
        ToolsAction::Check(options) => check::check(options, &mut output()),
    }
}
