//! Where the configuration is read from.

use std::path::PathBuf;

use clap::Args;

/// Where the configuration is read from.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct FileOptions {
    /// The configuration file, in the place of the user's own. `PLAINCALL_CONFIG` names it too.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Look for no project's file.
    #[arg(long)]
    pub(crate) no_project: bool,
}
