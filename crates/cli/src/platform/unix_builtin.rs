//! The built-in tools.

use std::path::Path;

use plaincall::Tool;
use plaincall::names::did_you_mean;
use plaincall_agent::builtin::{Builtin, BuiltinError, BuiltinTool};
use plaincall_config::settings;

use crate::status::Failure;
use crate::terminal::user::TerminalUser;

/// Returns whether a built-in tool has this name.
pub(crate) fn is_name(name: &str) -> bool {
    BuiltinTool::from_name(name).is_some()
}

/// Returns the built-in tools for a directory: all, or the chosen ones.
pub(crate) fn tools(
    directory: &Path,
    settings: &settings::Builtin,
    chosen: Option<Vec<&str>>,
    user: Option<&TerminalUser>,
) -> Result<Vec<Tool>, Failure> {
    let broken = |error: BuiltinError| Failure::Configuration(error.to_string());
    let mut builtin = Builtin::in_directory(directory).map_err(broken)?;
    if let Some(names) = chosen {
        let chosen = names
            .into_iter()
            .map(|name| BuiltinTool::from_name(name).ok_or_else(|| unknown(name)));
        builtin = builtin.only(chosen.collect::<Result<Vec<_>, Failure>>()?);
    }
    if let Some(hosts) = &settings.fetch_hosts {
        builtin = builtin.fetch_hosts(hosts);
    }
    if let Some(time) = settings.command_timeout {
        builtin = builtin.command_timeout(time.0);
    }
    builtin = builtin.command_environment(&settings.command_environment);
    if let Some(user) = user {
        builtin = builtin.user(user.clone());
    }
    builtin.tools().map_err(broken)
}

fn unknown(name: &str) -> Failure {
    let names = BuiltinTool::ALL.map(BuiltinTool::name);
    Failure::Configuration(format!(
        "`builtin.tools`: unknown built-in tool `{name}`; the built-in tools are {}{}",
        names.join(", "),
        did_you_mean(name, names)
    ))
}
