//! `plaincall grammar`: print a grammar for constrained decoding.

use clap::{Args, ValueEnum};
use plaincall_grammar::{Choice, Engine, GrammarOptions as Options, grammar};

use crate::options::{DialectOption, DialectOptions, SyntaxChoice, ToolsOption};
use crate::output::Output;
use crate::status::{Failure, Outcome, Status, print_note};

/// Print a grammar with which an inference engine keeps a model from writing invalid calls.
///
/// Prints the fields to add to a chat request, as JSON. Notes on standard error state what the grammar does not enforce.
#[derive(Args, Debug)]
pub(crate) struct GrammarOptions {
    /// The inference engine.
    #[arg(long = "for", value_name = "ENGINE", value_parser = engine)]
    engine: Engine,

    /// Whether a reply must call a tool.
    #[arg(long, value_name = "CHOICE", default_value = "auto")]
    choice: ToolChoice,

    /// Require a call of this tool.
    #[arg(long, value_name = "NAME", conflicts_with = "choice")]
    only: Option<String>,

    /// Allow at most one call.
    #[arg(long)]
    one_call: bool,

    /// Allow ids and dependencies of block calls.
    #[arg(long)]
    ids: bool,

    /// Print only the grammar, in the notation of the engine.
    #[arg(long)]
    raw: bool,

    #[command(flatten)]
    tools: ToolsOption,

    #[command(flatten)]
    dialect: DialectOption,
}

/// Whether a reply must call a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ToolChoice {
    /// The model decides.
    Auto,
    /// At least one call.
    Required,
    /// No call.
    None,
}

pub(crate) fn print(options: &GrammarOptions, output: &mut Output) -> Outcome {
    let dialect = match options.dialect.dialect.syntax {
        Some(SyntaxChoice::Auto) => {
            let message = "a grammar writes one syntax; use `--dialect block` or `--dialect emoji`";
            return Err(Failure::Usage(message.to_owned()));
        }
        Some(_) => options.dialect.dialect.dialect()?,
        None => DialectOptions {
            syntax: Some(SyntaxChoice::Block),
            ..options.dialect.dialect.clone()
        }
        .dialect()?,
    };
    let choice = match (&options.only, options.choice) {
        (Some(name), _) => Choice::Tool(name.clone()),
        (None, ToolChoice::Auto) => Choice::Auto,
        (None, ToolChoice::Required) => Choice::Required,
        (None, ToolChoice::None) => Choice::None,
    };
    let mut settings = Options::new().choice(choice);
    if options.one_call {
        settings = settings.one_call();
    }
    if options.ids {
        settings = settings.ids();
    }
    let tools = options.tools.load(None)?.0.unwrap_or_default();
    if tools.iter().next().is_none() && options.choice != ToolChoice::None {
        let message = "missing tools; name a file with their definitions with `--tools`";
        return Err(Failure::Usage(message.to_owned()));
    }
    let made = grammar(tools.iter(), &dialect, &settings);
    let made = made.map_err(|error| Failure::Runtime(error.to_string()))?;
    if options.raw {
        let text = made.text(options.engine);
        output.bytes(text.trim_end().as_bytes())?;
        output.bytes(b"\n")?;
    } else {
        output.json_line(&made.request_fields(options.engine))?;
    }
    for unheld in made.unheld_by(options.engine) {
        print_note(&unheld);
    }
    Ok(Status::Success)
}

fn engine(name: &str) -> Result<Engine, String> {
    Engine::from_name(name).ok_or_else(|| {
        let names = Engine::ALL.map(Engine::name);
        format!("possible values: {}", names.join(", "))
    })
}
