//! The `plaincall` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    plaincall_cli::main()
}
