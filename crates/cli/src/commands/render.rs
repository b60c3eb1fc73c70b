//! `plaincall render`: write calls, prompts and messages as text.

mod calls;
mod messages;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plaincall_prompt::{PromptOptions, prompt};
use plaincall_syntax::Dialect;

use crate::options::{DialectOption, ToolsOption};
use crate::output::Output;
use crate::status::{Failure, Outcome, Status, print_note};
use crate::text::input::for_each_file;

/// Write calls, the system prompt or the message history as a model sees them.
///
/// For `--as calls`, the input is JSON: the output of `parse`, calls from it, or OpenAI tool calls (an array, one call,
/// or a message with `tool_calls`). Several values may follow each other. A whole document is written with its text.
///
/// A call that would not parse back to the same call is skipped, with the reason on standard error. With `--tools`,
/// the tool definitions give the types of the arguments: text may then have any content, null and empty lists can be
/// written, and calls with invalid arguments are skipped. A call that `parse` closed at the end of its input is skipped
/// too, because it may be truncated.
///
/// Exit status: 0 if everything was written; 1 if something was skipped.
#[derive(Args, Debug)]
pub(crate) struct RenderOptions {
    /// The files to read. Default: standard input (`-`). `--as prompt` reads only the definitions of `--tools`.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The output.
    #[arg(long = "as", value_name = "KIND", default_value = "calls")]
    what: Rendered,

    /// Ask for at most one call per reply in the prompt.
    #[arg(long)]
    one_call: bool,

    /// Treat the source of a document as complete, so that a block call closed at its end is written. An emoji call
    /// without its end marker is still skipped.
    #[arg(long)]
    complete: bool,

    #[command(flatten)]
    tools: ToolsOption,

    #[command(flatten)]
    dialect: DialectOption,
}

/// The outputs of `render`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rendered {
    /// Calls, from JSON.
    Calls,
    /// The system prompt that teaches a model to call the tools of `--tools`.
    Prompt,
    /// The messages of a conversation, from OpenAI JSON, as one JSON message per line, with calls and results as text.
    /// Markers in content that is not from the system or the developer are escaped.
    Messages,
}

pub(crate) fn render(options: &RenderOptions, output: &mut Output) -> Outcome {
    let is_prompt = options.what == Rendered::Prompt;
    if options.one_call && !is_prompt {
        let message = "'--one-call' requires '--as prompt'";
        return Err(Failure::Usage(message.to_owned()));
    }
    if options.complete && options.what != Rendered::Calls {
        let message = "'--complete' requires '--as calls'";
        return Err(Failure::Usage(message.to_owned()));
    }
    if is_prompt && !options.files.is_empty() {
        let message = "'--as prompt' reads no FILE; name the tool definitions with '--tools'";
        return Err(Failure::Usage(message.to_owned()));
    }
    match options.what {
        Rendered::Calls => {
            let mut writer = calls::Writer::new(options)?;
            for_each_file(&options.files, output, |file, output| {
                writer.file(file, output)
            })
        }
        Rendered::Prompt => {
            let mut prompt_options = PromptOptions::new();
            if options.one_call {
                prompt_options = prompt_options.one_call();
            }
            let tools = options.tools.load(None)?.0.unwrap_or_default();
            let prompt = prompt(tools.iter(), &output_dialect(options)?, &prompt_options)?;
            output.bytes(prompt.text().as_bytes())?;
            for skipped in prompt.skipped_examples() {
                print_note(skipped);
            }
            Ok(Status::Success)
        }
        Rendered::Messages => {
            let tools = options.tools.load(Some(&options.files))?.0;
            let writer = messages::MessageWriter::new(output_dialect(options)?, tools);
            for_each_file(&options.files, output, |file, output| {
                writer.file(file, output)
            })
        }
    }
}

/// Returns the dialect for output that has no source text, so the options must set its syntax.
fn output_dialect(options: &RenderOptions) -> Result<Dialect, Failure> {
    let dialect = options.dialect.dialect.dialect()?;
    if dialect.syntax().is_none() {
        let message = "missing syntax; use `--dialect block` or `--dialect emoji`";
        return Err(Failure::Usage(message.to_owned()));
    }
    Ok(dialect)
}
