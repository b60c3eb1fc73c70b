//! `plaincall render`: what a model is told, as text.

mod calls;
mod conversation;
mod deltas;
mod forms;
mod json_member;
mod messages;
mod prompt;
mod repair;
mod results;
mod sink;

use std::num::NonZeroUsize;
use std::path::Path;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plaincall_call::PromptPart;
use plaincall_syntax::Dialect;

use crate::options::number::size;
use crate::options::{DialectOptions, SchemaOption};
use crate::output::Output;
use crate::status::{Failure, Outcome};
use crate::text::input::each;

/// Write what a model is told: calls, the prompt, earlier messages, results, what is wrong.
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
/// Exit status: 0 if everything was written; 1 if something was left out, and with `--as repair` or `--as deltas` if a
/// call is wrong.
#[derive(Args, Debug)]
pub(crate) struct RenderOptions {
    /// What to read; `-` or none is standard input. `--as prompt` reads nothing but the definitions of `--schema`.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// What to write.
    #[arg(long = "as", value_name = "WHAT", default_value = "calls")]
    pub(crate) what: Rendered,

    /// Print how large each piece is, in characters and bytes, in the place of its text.
    #[arg(long)]
    pub(crate) stats: bool,

    /// Print messages as JSON, one a line, for `--as history`.
    #[arg(long)]
    pub(crate) json: bool,

    /// Leave a part of the prompt out; `--as prompt --stats` prints what they are called.
    #[arg(long, value_name = "PART", value_parser = prompt_part)]
    pub(crate) omit: Vec<PromptPart>,

    /// Put the text of a file in the place of a part of the prompt.
    #[arg(long, value_name = "PART=FILE", value_parser = replacement)]
    pub(crate) replace: Vec<(PromptPart, PathBuf)>,

    /// Say nothing in the prompt of ids and dependencies.
    #[arg(long)]
    pub(crate) no_dependencies: bool,

    /// Ask in the prompt for at most one call in a reply.
    #[arg(long)]
    pub(crate) one_call: bool,

    /// Read the text this many bytes at a time, for `--as deltas`.
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub(crate) chunk: Option<NonZeroUsize>,

    /// Take the text for whole: one that comes from a pipe, for `--as repair` and `--as deltas`; or the one that a document
    /// comes from, so that a block call that its end closed is written.
    ///
    /// A call of the emoji syntax without its end marker is not written even so.
    #[arg(long)]
    pub(crate) complete: bool,

    #[command(flatten)]
    pub(crate) schema: SchemaOption,

    #[command(flatten)]
    pub(crate) dialect: DialectOptions,
}

/// What `render` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rendered {
    /// Calls, from JSON.
    Calls,
    /// What a model is told so that it can write calls to the tools of `--schema`.
    Prompt,
    /// The messages of a conversation, from JSON as OpenAI writes it: calls and results as text. What does not come from
    /// the system or the developer is escaped.
    History,
    /// How calls ended, from what `run --json` prints or from a list of results.
    Results,
    /// What is wrong with the calls of a text, each with the call as it would look right.
    Repair,
    /// The arguments of the calls of a text as deltas of JSON, one object a line.
    Deltas,
}

impl Rendered {
    /// Its word on the command line.
    const fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Prompt => "prompt",
            Self::History => "history",
            Self::Results => "results",
            Self::Repair => "repair",
            Self::Deltas => "deltas",
        }
    }
}

impl RenderOptions {
    /// Refuses options that have no meaning for what is written.
    ///
    /// # Errors
    /// Names the first: that is wrong usage.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let is_prompt = self.what == Rendered::Prompt;
        let only_prompt = &[Rendered::Prompt][..];
        // The options, whether they are there, and what they go with.
        let options = [
            ("--omit", !self.omit.is_empty(), only_prompt),
            ("--replace", !self.replace.is_empty(), only_prompt),
            ("--no-dependencies", self.no_dependencies, only_prompt),
            ("--one-call", self.one_call, only_prompt),
            ("--json", self.json, &[Rendered::History]),
            ("--chunk", self.chunk.is_some(), &[Rendered::Deltas]),
            (
                "--complete",
                self.complete,
                &[Rendered::Calls, Rendered::Repair, Rendered::Deltas],
            ),
        ];
        for (option, is_there, with) in options {
            if is_there && !with.contains(&self.what) {
                let with: Vec<String> = with
                    .iter()
                    .map(|what| format!("'--as {}'", what.name()))
                    .collect();
                let message = format!("'{option}' goes with {} only", with.join(", "));
                return Err(Failure::Usage(message));
            }
        }
        if is_prompt && !self.files.is_empty() {
            let message = "'--as prompt' reads no file: '--schema' names those with the definitions of the tools";
            return Err(Failure::Usage(message.to_owned()));
        }
        Ok(())
    }
}

fn prompt_part(name: &str) -> Result<PromptPart, String> {
    let found = PromptPart::ALL.into_iter().find(|part| part.name() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = PromptPart::ALL.iter().map(|part| part.name()).collect();
        format!("there is no such part: {}", names.join(", "))
    })
}

fn replacement(text: &str) -> Result<(PromptPart, PathBuf), String> {
    let (part, file) = text
        .split_once('=')
        .ok_or("write the name of a part, `=` and the path of a file")?;
    Ok((prompt_part(part)?, PathBuf::from(file)))
}

pub(crate) fn render(options: &RenderOptions, output: &mut Output) -> Outcome {
    options.check()?;
    let mut sizes = options.stats.then(sink::Sizes::default);
    let status = match options.what {
        Rendered::Prompt => prompt::render(options, &mut sink::Sink::new(output, &mut sizes))?,
        what => {
            let mut one = of_files(what, options)?;
            each(&options.files, output, |file, output| {
                one(file, &mut sink::Sink::new(output, &mut sizes))
            })?
        }
    };
    if let Some(sizes) = sizes {
        sizes.print(output)?;
    }
    Ok(status)
}

/// What is done with each file.
type OfFile<'o> = Box<dyn FnMut(&Path, &mut sink::Sink<'_>) -> Outcome + 'o>;

fn of_files(what: Rendered, options: &RenderOptions) -> Result<OfFile<'_>, Failure> {
    Ok(match what {
        Rendered::Calls | Rendered::Prompt => {
            let mut writer = calls::Writer::new(options)?;
            Box::new(move |file, sink| writer.file(file, sink))
        }
        Rendered::History => {
            let teller = messages::Teller::new(options)?;
            Box::new(move |file, sink| teller.file(file, sink))
        }
        Rendered::Results => {
            let dialect = options.dialect.dialect()?;
            Box::new(move |file, sink| results::file(file, &dialect, sink))
        }
        Rendered::Repair => {
            let mender = repair::Mender::new(options)?;
            Box::new(move |file, sink| mender.file(file, sink))
        }
        Rendered::Deltas => {
            let stream = deltas::Stream::new(options)?;
            Box::new(move |file, sink| stream.file(file, sink))
        }
    })
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
