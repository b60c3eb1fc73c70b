//! `plaincall render`: what a model is told, as text.

mod calls;
mod messages;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plaincall_call::{PromptOptions, prompt};
use plaincall_syntax::Dialect;

use crate::options::{DialectOptions, SchemaOption};
use crate::output::Output;
use crate::status::{Failure, Outcome, Status};
use crate::text::input::each;
use crate::text::reading::refused;

/// Write what a model is told: calls, the prompt, earlier messages.
///
/// `--as` says what; without it, calls. It reads JSON: what `parse` prints, calls from there alone, or OpenAI tool calls
/// (an array, one call, or a message that holds `tool_calls`); several values may follow each other. A whole document
/// comes back with its text.
///
/// A call that cannot be written so that it is read again as the same call is named on standard error with the
/// reason; the others are written. With `--schema` the definition of its tool says how it is read, so a text may be any
/// text, null and empty lists can be written, and what the tool would not take is refused. A call that by what `parse`
/// says the end of its text ended is left out and named too: it may be half a call, and with an end marker it would look
/// whole.
///
/// Exit status: 0 if everything was written; 1 if something was left out.
#[derive(Args, Debug)]
pub(crate) struct RenderOptions {
    /// What to read; `-` or none is standard input. `--as prompt` reads nothing but the definitions of `--schema`.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// What to write.
    #[arg(long = "as", value_name = "WHAT", default_value = "calls")]
    what: Rendered,

    /// Say nothing in the prompt of ids and dependencies.
    #[arg(long)]
    no_dependencies: bool,

    /// Ask in the prompt for at most one call in a reply.
    #[arg(long)]
    one_call: bool,

    /// Take the text that a document comes from for whole, so that a block call that its end closed is written.
    ///
    /// A call of the emoji syntax without its end marker is not written even so.
    #[arg(long)]
    complete: bool,

    #[command(flatten)]
    schema: SchemaOption,

    #[command(flatten)]
    dialect: DialectOptions,
}

/// What `render` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rendered {
    /// Calls, from JSON.
    Calls,
    /// What a model is told so that it can write calls to the tools of `--schema`.
    Prompt,
    /// The messages of a conversation, from JSON as OpenAI writes it, as JSON, one a line: calls and results are text.
    /// What does not come from the system or the developer is escaped.
    Messages,
}

pub(crate) fn render(options: &RenderOptions, output: &mut Output) -> Outcome {
    let is_prompt = options.what == Rendered::Prompt;
    if (options.no_dependencies || options.one_call) && !is_prompt {
        let message = "'--no-dependencies' and '--one-call' go with '--as prompt' only";
        return Err(Failure::Usage(message.to_owned()));
    }
    if options.complete && options.what != Rendered::Calls {
        let message = "'--complete' goes with '--as calls' only";
        return Err(Failure::Usage(message.to_owned()));
    }
    if is_prompt && !options.files.is_empty() {
        let message =
            "'--as prompt' reads no file: '--schema' names those with the definitions of the tools";
        return Err(Failure::Usage(message.to_owned()));
    }
    match options.what {
        Rendered::Calls => {
            let mut writer = calls::Writer::new(options)?;
            each(&options.files, output, |file, output| {
                writer.file(file, output)
            })
        }
        Rendered::Prompt => {
            let mut wanted = PromptOptions::new();
            if options.no_dependencies {
                wanted = wanted.without_dependencies();
            }
            if options.one_call {
                wanted = wanted.one_call();
            }
            let tools = options.schema.load(None)?.0.unwrap_or_default();
            let prompt = prompt(tools.iter(), &written_dialect(options)?, &wanted)
                .map_err(|error| refused(&error))?;
            output.bytes(prompt.text().as_bytes())?;
            Ok(Status::Good)
        }
        Rendered::Messages => {
            let tools = options.schema.load(Some(&options.files))?.0;
            let teller = messages::Teller::new(written_dialect(options)?, tools);
            each(&options.files, output, |file, output| {
                teller.file(file, output)
            })
        }
    }
}

/// The dialect in which something is written that does not come from a text: it must name a syntax.
fn written_dialect(options: &RenderOptions) -> Result<Dialect, Failure> {
    let dialect = options.dialect.dialect()?;
    if dialect.syntax().is_none() {
        let message =
            "say in which syntax the model is to write: `--syntax block` or `--syntax emoji`";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(dialect)
}
