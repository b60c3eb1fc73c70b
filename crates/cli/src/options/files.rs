//! The location of the configuration.

use std::path::PathBuf;

use clap::Args;

/// Options for the location of the configuration.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct FileOptions {
    /// The configuration file. Default: `PLAINCALL_CONFIG`, else your user configuration.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Ignore the configuration of the project.
    #[arg(long)]
    pub(crate) no_project: bool,
}
