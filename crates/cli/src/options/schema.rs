//! Where the definitions of tools are.

use std::path::PathBuf;

use clap::Args;

/// Where the definitions of the tools are.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Schema")]
pub(crate) struct SchemaOption {
    /// A file with the definitions of tools: a `tools.toml`, or JSON.
    ///
    /// JSON is a list of definitions as OpenAI, Anthropic or MCP write them, an object with such a list as `tools` (a
    /// request, or what an MCP server answers to `tools/list`), or one definition. The file itself says which of these
    /// it is, whatever its name. A `tools.toml` has the built-in tool `read_result` too, as in a run of it. Several files
    /// can be named, each with a `--schema` of its own. Nothing in them is run, and only the files that are named here are
    /// read. `--tools` is another name of this option.
    #[arg(long, value_name = "FILE", visible_alias = "tools")]
    pub(crate) schema: Vec<PathBuf>,
}
