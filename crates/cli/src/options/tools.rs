//! The `--tools` option of commands that read definitions and run nothing.

use std::path::PathBuf;

use clap::Args;

/// The files with tool definitions.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Definitions")]
pub(crate) struct ToolsOption {
    /// A file with tool definitions: a `tools.toml` or JSON. May be repeated.
    ///
    /// JSON is an array of definitions in the format of OpenAI, Anthropic or MCP, an object with such an array as
    /// `tools` (a request, or the result of `tools/list`), or one definition. The format is detected from the content.
    /// A `tools.toml` also provides the built-in tool `read_result`, as in a run. No tool is run, and no other file is
    /// read.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) tools: Vec<PathBuf>,
}
