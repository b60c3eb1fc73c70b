//! `plaincall completions`: print a completion script.

use clap::Args;
use clap_complete::{Shell, generate};

use crate::commands::command;
use crate::output::Output;
use crate::status::{Outcome, Status};

/// Print a script that completes commands and options in a shell.
///
/// Save it where your shell looks for completions: for example
/// `~/.local/share/bash-completion/completions/plaincall`, `~/.config/fish/completions/plaincall.fish`, or, for zsh, a
/// file `_plaincall` in a directory of `fpath`.
///
/// Exit status: 0 on success; 2 for wrong usage.
#[derive(Args, Debug)]
pub(crate) struct CompletionsOptions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn completions(options: &CompletionsOptions, output: &mut Output) -> Outcome {
    let mut command = command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(options.shell, &mut command, name, &mut script);
    output.text(format_args!("{}", String::from_utf8_lossy(&script)))?;
    output.flush()?;
    Ok(Status::Success)
}
