//! Which conversation goes on.

use clap::Args;

/// Whether a conversation is kept, and which one goes on.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SessionOptions {
    /// Keep the conversation under this name, and go on with it if it is there.
    #[arg(long, value_name = "NAME", help_heading = "Session")]
    pub(crate) session: Option<String>,

    /// Go on with the session that was used last.
    #[arg(
        long = "continue",
        conflicts_with = "session",
        help_heading = "Session"
    )]
    pub(crate) go_on: bool,
}
