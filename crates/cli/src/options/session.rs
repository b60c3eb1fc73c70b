//! Options that select a session.

use clap::Args;

/// Options that select a session.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SessionOptions {
    /// Keep the conversation under this name, or continue it if it exists.
    #[arg(long, short, value_name = "NAME", help_heading = "Session")]
    pub(crate) session: Option<String>,

    /// Continue the most recent session.
    #[arg(
        long = "continue",
        short = 'c',
        conflicts_with = "session",
        help_heading = "Session"
    )]
    pub(crate) is_continued: bool,
}
