//! The built-in tools, which need Unix.

use std::path::Path;

use plaincall::Tool;
use plaincall_config::settings;

use crate::status::Failure;
use crate::terminal::user::TerminalUser;

/// Returns whether a built-in tool has this name.
pub(crate) const fn is_name(_: &str) -> bool {
    false
}

/// Refuses the built-in tools.
pub(crate) fn tools(
    _: &Path,
    _: &settings::Builtin,
    _: Option<Vec<&str>>,
    _: Option<&TerminalUser>,
) -> Result<Vec<Tool>, Failure> {
    let message = "the built-in tools (`--builtin`, `builtin.directory`) need Unix; on Windows, use the tools of a tools file or of an MCP server";
    Err(Failure::Configuration(message.to_owned()))
}
