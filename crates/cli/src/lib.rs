//! The `plaincall` command: what can be asked for, and what is done about it.
//!
//! This library exists for the binary of the same package and for its tests; its items are no interface to build on.

mod advice;
mod arguments;
mod ask;
mod chat;
mod check;
mod config;
mod convert;
mod draft;
mod environment;
mod event_line;
mod excerpt;
mod explain;
mod findings;
mod forms;
mod input;
mod json_member;
mod json_place;
mod jsonl;
mod mcp;
mod output;
mod parse;
mod picture;
mod probe;
mod reading;
mod reference;
mod rejections;
mod render;
mod run;
mod runtime;
mod schemas;
mod screen;
mod serve;
mod sessions;
mod show;
mod source;
mod status;
mod talk;
mod tools;
mod tools_file;
mod translate;
mod values;
mod view;
mod visible;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue};

use crate::arguments::{Cli, Color, Command};
use crate::output::Output;

pub use config::reference as configuration_reference;
pub use config::schema as configuration_schema;
pub use reference::reference;

/// Runs the command line that the process was started with, and returns its exit status.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let error = advised(error);
            if !error.use_stderr() {
                error.exit();
            }
            status::say_wrong_usage(&error);
            return ExitCode::from(status::WRONG_USAGE);
        }
    };
    let command = cli.command.name();
    status::exit_code(run(cli), command)
}

/// What a required option takes, for a message that it is missing.
const TIPS: [(&str, &str); 3] = [
    (
        "--tools",
        "the file says which tools there are and what each runs (TOML: `[tools.NAME]` with `command` or `shell`)",
    ),
    (
        "--upstream",
        "the address of the model server up to `/v1`, such as http://localhost:11434/v1 for Ollama",
    ),
    ("--to ", "the syntax is `block` or `emoji`"),
];

/// Adds a tip to the message that a required option is missing.
fn advised(mut error: clap::Error) -> clap::Error {
    let tip = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(lacking)) => {
            let is_lacking = |name: &str| lacking.iter().any(|it| it.starts_with(name));
            TIPS.iter().find(|(name, _)| is_lacking(name))
        }
        _ => None,
    };
    if let Some((_, tip)) = tip {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![(*tip).into()]),
        );
    }
    error
}

fn run(cli: Cli) -> status::Outcome {
    let color = cli.color;
    match cli.command {
        Command::Parse(options) => parse::parse(&options, &mut output(color)),
        // Its proof heeds signals in its own way.
        Command::Check(options) => check::check(&options, color),
        Command::Explain(options) => explain::explain(&options, &mut output(color)),
        Command::Render(options) => render::render(&options, &mut output(color)),
        Command::Convert(options) => convert::convert(&options, &mut output(color)),
        Command::Show(options) => show::show(&options, &mut output(color)),
        // It writes on threads of its own, and heeds signals in its own way.
        Command::Ask(options) => ask::ask(&options, color),
        Command::Chat(options) => chat::chat(&options, color),
        Command::Sessions(options) => sessions::sessions(&options, &mut output(color)),
        // It heeds signals in its own way.
        Command::Probe(options) => probe::probe(&options, color),
        Command::Config(options) => config::config(&options, &mut output(color)),
        // It writes on a thread of its own, and heeds signals in its own way.
        Command::Run(options) => run::run(&options, color),
        Command::Serve(options) => serve::serve(&options),
        // Some of its commands heed signals in their own way.
        Command::Tools(command) => tools::tools(&command, color, || output(color)),
        // It heeds signals in its own way.
        Command::Mcp(command) => mcp::mcp(&command, color),
    }
}

/// The standard output of a command that nothing but a signal interrupts.
fn output(color: Color) -> Output {
    status::end_when_interrupted();
    Output::new(color)
}
