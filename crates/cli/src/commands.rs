//! The commands.
//!
//! The doc comments on commands and options are their help texts.
#![allow(
    clippy::doc_markdown,
    reason = "help is plain text, so proper names have no markup"
)]
#![allow(
    clippy::struct_excessive_bools,
    reason = "independent switches of the command line"
)]

mod ask;
mod chat;
mod check;
mod completions;
mod config;
mod conversation;
mod extract;
mod grammar;
mod inspect;
mod man;
pub(crate) mod mcp;
mod models;
mod parse;
mod probe;
mod render;
mod replaced_options;
pub(crate) mod run;
mod serve;
mod sessions;
mod show;
pub(crate) mod tools;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::options::Color;
use crate::output::{Output, set_quiet, write_stderr};
use crate::sanitize::{is_invisible, sanitize};
use crate::status::{Outcome, WRONG_USAGE, end_at_signals, exit_status, wrapped};

/// The tasks of the command, with examples.
const EXAMPLES: &str = "\
Ask a model, with tools:
  plaincall ask -m ollama:qwen3 -t tools.toml \"Which day had the strongest wind?\"
  plaincall chat -m ollama:qwen3 --builtin .

Give your OpenAI client tool calls with a local model:
  plaincall serve
  plaincall serve -- opencode

Measure how well your model writes calls:
  plaincall probe http://localhost:11434/v1 qwen3

Check and run the calls of a reply:
  plaincall check reply.txt
  plaincall inspect reply.txt -t tools.toml
  plaincall run reply.txt -t tools.toml

Look at a run, also as a web page:
  plaincall run reply.txt -t tools.toml --log run.log
  plaincall show run.log --html run.html";

const SYNTAXES: &str = "\
A model writes tool calls as plain text, in the block syntax or in the emoji-bracket syntax. \
`plaincall COMMAND --help` describes each command.";

/// Tool calling for any model that can write text.
#[derive(Debug, Parser)]
#[command(
    name = "plaincall",
    version,
    max_term_width = 100,
    propagate_version = true,
    help_template = "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}",
    before_help = EXAMPLES,
    after_long_help = SYNTAXES
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to use colors.
    ///
    /// `auto` uses colors on a terminal unless the environment variable `NO_COLOR` is set.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        display_order = 998
    )]
    pub(crate) color: Color,

    /// Print only results and errors: no notes and no progress.
    #[arg(long, short, global = true, display_order = 997)]
    pub(crate) quiet: bool,
}

/// The commands, in the order of use.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Ask(ask::AskOptions),
    Chat(chat::ChatOptions),
    Serve(serve::ServeOptions),
    Probe(probe::ProbeOptions),
    Run(run::RunOptions),
    Check(check::CheckOptions),
    Inspect(inspect::InspectOptions),
    Show(show::ShowOptions),
    Tools(tools::ToolsCommand),
    Models(models::ModelsOptions),
    Sessions(sessions::SessionsOptions),
    Config(config::ConfigOptions),
    Mcp(mcp::McpOptions),
    Parse(parse::ParseOptions),
    Extract(extract::ExtractOptions),
    Render(render::RenderOptions),
    Grammar(grammar::GrammarOptions),
    Completions(completions::CompletionsOptions),
    Man(man::ManOptions),
}

/// Returns the command line with all its options.
pub fn command() -> clap::Command {
    // The name of the option in the design of the parser's output.
    let mut command_line = Cli::command().mut_subcommands(|command| match command.get_name() {
        "parse" => command.mut_arg("tools", |tools| tools.alias("schema")),
        _ => command,
    });
    command_line.build();
    command_line
}

/// Runs the command line of the process and returns its exit status.
pub fn main() -> ExitCode {
    let parsed = command().try_get_matches();
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            let error = with_tip(error);
            if !error.use_stderr() {
                error.exit();
            }
            return wrong_usage(&error);
        }
    };
    exit_status(run_command(cli)).unwrap_or_else(|message| {
        let mut command_line = command();
        let name = matches.subcommand_name().unwrap_or_default();
        let message = wrapped(&message);
        // Formatted like other usage errors.
        wrong_usage(&match command_line.find_subcommand_mut(name) {
            Some(command) => command.error(ErrorKind::ValueValidation, message),
            None => command_line.error(ErrorKind::ValueValidation, message),
        })
    })
}

/// Tips for required options that are missing.
const TIPS: [(&str, &str); 1] = [(
    "--tools",
    "the file defines the tools and what each runs (TOML: `[tools.NAME]` with `command` or `shell`)",
)];

/// The tip for a tools file without its option. `plaincall tools check` takes it as an argument, the other commands do not.
const TOOLS_FILE: &str = "to name a tools file, use `--tools FILE`";

/// Adds a tip to an error about a missing required option, or about a tools file. For an option or a command of an
/// earlier version, returns an error that names its replacement.
fn with_tip(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage)
        && let Some((name, message)) = replaced_options::replacement(&usage.to_string(), option)
        && let Some(command) = command().find_subcommand_mut(name)
    {
        return command.error(ErrorKind::UnknownArgument, message);
    }
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(message) = replaced_options::replaced_command(name)
    {
        return command().error(ErrorKind::InvalidSubcommand, message);
    }
    let tip = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(missing)) => {
            let is_missing = |name: &str| missing.iter().any(|it| it.starts_with(name));
            let tip = TIPS.iter().find(|(name, _)| is_missing(name));
            tip.map(|(_, tip)| *tip)
        }
        Some(ContextValue::String(unknown)) if unknown.ends_with("tools.toml") => Some(TOOLS_FILE),
        _ => None,
    };
    if let Some(tip) = tip {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    error
}

/// Prints a usage error. It may contain file names from untrusted sources.
fn wrong_usage(error: &clap::Error) -> ExitCode {
    let styled = error.render();
    let plain = styled.to_string();
    if plain.contains(|c| is_invisible(c) && c != '\n') {
        write_stderr(format_args!("{}", sanitize(&plain)));
    } else {
        write_stderr(format_args!("{}", styled.ansi()));
    }
    ExitCode::from(WRONG_USAGE)
}

fn run_command(cli: Cli) -> Outcome {
    let color = cli.color;
    set_quiet(cli.quiet);
    match cli.command {
        Command::Parse(options) => parse::parse(&options, &mut output(color)),
        Command::Check(options) => check::check(&options, &mut output(color)),
        // Handles signals itself.
        Command::Extract(options) => extract::extract(&options),
        Command::Render(options) => render::render(&options, &mut output(color)),
        Command::Grammar(options) => grammar::print(&options, &mut output(color)),
        Command::Show(options) => show::show(&options, &mut output(color)),
        Command::Inspect(options) => inspect::inspect(&options, &mut output(color)),
        // Writes on its own threads and handles signals itself.
        Command::Ask(options) => ask::ask(&options, color),
        Command::Chat(options) => chat::chat(&options, color),
        Command::Models(options) => models::models(&options, &mut output(color)),
        Command::Sessions(options) => sessions::sessions(&options, &mut output(color)),
        // Handles signals itself.
        Command::Probe(options) => probe::probe(&options, color),
        Command::Config(options) => config::config(&options, &mut output(color)),
        // Writes on its own thread and handles signals itself.
        Command::Run(options) => run::run(&options, color),
        Command::Serve(options) => serve::serve(&options),
        // Some subcommands handle signals themselves.
        Command::Tools(command) => tools::tools(&command, color, || output(color)),
        // Handles signals itself.
        Command::Mcp(options) => mcp::mcp(&options),
        Command::Completions(options) => completions::completions(&options, &mut output(color)),
        Command::Man(options) => man::man(&options),
    }
}

/// Returns standard output for a command that any signal ends.
fn output(color: Color) -> Output {
    end_at_signals();
    Output::new(color)
}
