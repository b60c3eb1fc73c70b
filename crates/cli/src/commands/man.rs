//! `plaincall man`: write the man pages.

use std::fs;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _};
use clap_mangen::generate_to;

use crate::commands::Cli;
use crate::status::{Failure, Outcome, Status, print_note, reason};

/// Write the man pages: one for `plaincall`, and one for each command.
///
/// Exit status: 0 on success; 1 if a page cannot be written; 2 for wrong usage.
#[derive(Args, Debug)]
pub(crate) struct ManOptions {
    /// The directory, such as `~/.local/share/man/man1`. It is created if it does not exist.
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

pub(crate) fn man(options: &ManOptions) -> Outcome {
    let directory = &options.directory;
    // Not `command()`, whose built commands have `help` commands.
    let written =
        fs::create_dir_all(directory).and_then(|()| generate_to(Cli::command(), directory));
    let shown = directory.display();
    written.map_err(|error| {
        Failure::Runtime(format!("cannot write to {shown}: {}", reason(&error)))
    })?;
    print_note(&format!("the man pages are in {shown}"));
    Ok(Status::Success)
}
