//! `plaincall parse`: find the calls in a text.

mod jsonl;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plaincall_reply::document::DocumentReader;
use plaincall_reply::openai::openai_calls;
use plaincall_reply::{Document, ReplyCheck, ReplyItem, ReplyReader, Stop, Unclosed};
use plaincall_syntax::Dialect;
use plaincall_tool::{Limits, ToolSet};
use serde_json::{Value, json};

use crate::commands::parse::jsonl::{Answer, read_line};
use crate::options::number::size;
use crate::options::{DialectOptions, ReplyDialect, ToolsOption};
use crate::output::Output;
use crate::status::{Failure, Outcome, Status, print_error};
use crate::terminal::listing::{Detail, Listing};
use crate::text::event_line::EventLine;
use crate::text::input::{Input, for_each_file, stop_at_end};

/// Find the calls in text.
///
/// In a pipe, print one line of JSON per text: its segments (text, reasoning, calls), which cover the text without
/// gaps, and its diagnostics. Spans are byte offsets. On a terminal, list the parts of the text as they arrive, with
/// their line numbers and types.
///
/// With `--tools`, validate each call against its tool definition: convert the arguments to the types of the
/// definition, and report unknown tools and invalid arguments as diagnostics.
///
/// `--format openai` contains the calls that may run. The text is parsed as `run` parses a reply: `<think>` at its
/// beginning starts reasoning. In the other formats, only `--reasoning` does that.
///
/// `--format openai` cannot express dependencies between calls. Such calls are printed without their dependencies, with
/// a warning on standard error.
///
/// Exit status: 0 if the input could be read, even if it has errors; 1 if a file could not be read, a line of `--jsonl`
/// was invalid, or `--format openai` skipped a call or its dependencies.
#[derive(Args, Debug)]
#[command(after_long_help = PARSE_FORMS)]
pub(crate) struct ParseOptions {
    /// The files to read. Default: standard input (`-`).
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// The output format. Default: `text` on a terminal, `json` otherwise.
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<ParseFormat>,

    /// Read one JSON document per line, and print one JSON object for each, in order.
    ///
    /// Each line is a string, or an object with a `text` key and an optional `id`, which is copied to the output. For
    /// an invalid line, print `{"error": …}` and continue.
    #[arg(long)]
    pub(crate) jsonl: bool,

    /// Print parser events as they occur, one JSON object per line.
    #[arg(long, conflicts_with_all = ["format", "jsonl"])]
    pub(crate) events: bool,

    /// Feed the parser this many bytes at a time.
    ///
    /// The calls are the same for every size. Only the boundaries of text and value events change.
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub(crate) chunk: Option<NonZeroUsize>,

    /// Treat the input as complete: `--format openai` includes a block call at its end without an end marker.
    ///
    /// Without this option, such a call may be truncated and is skipped, unless the input is a file and `--tools`
    /// declares that the tool only reads.
    #[arg(long)]
    pub(crate) complete: bool,

    #[command(flatten)]
    pub(crate) tools: ToolsOption,

    /// The dialect in one text, instead of the options below, as in other commands (`plaincall check --help`).
    #[arg(
        long,
        value_name = "DIALECT",
        conflicts_with = "DialectOptions",
        help_heading = "Syntax"
    )]
    pub(crate) dialect: Option<ReplyDialect>,

    #[command(flatten)]
    pub(crate) options: DialectOptions,
}

const PARSE_FORMS: &str = "\
Events (`--events`): each object has `type` and `span`. The types are `text`, `reasoning`, `value_delta` and `ignored` \
with `text`; `call_start` with `syntax`, `name` and `source`, and with `id` and `dependencies` (block) or `raw_args` \
(emoji); `value_start` with `pointer` (an argument) or without (a body), and `source`; `value_end` with `source`; \
`call_end` with `termination` and `source`; `diagnostic` with `code`, `severity` and `message`. Except for \
diagnostics, the spans cover the text without gaps. With `--tools`, each call is followed by a `diagnostic` for each \
violation of its tool definition, with `pointer` if it is about an argument, and by a `call` event: its key `call` \
contains the call as in `--format json`, and its span is that of the whole call.";

/// The output format of `parse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ParseFormat {
    /// One JSON object per text.
    Json,
    /// The calls as an OpenAI `tool_calls` array. Invalid calls are skipped and reported on standard error.
    Openai,
    /// The parts of the text, with their line numbers and types.
    Text,
}

pub(crate) fn parse(options: &ParseOptions, output: &mut Output) -> Outcome {
    let command = Parse::new(options, output.is_terminal)?;
    for_each_file(&options.files, output, |file, output| {
        command.parse_input(Input::open(file)?, output)
    })
}

struct Parse<'o> {
    options: &'o ParseOptions,
    format: ParseFormat,
    dialect: Dialect,
    check: ReplyCheck,
    tools: Option<ToolSet>,
}

impl<'o> Parse<'o> {
    fn new(options: &'o ParseOptions, is_terminal: bool) -> Result<Self, Failure> {
        let format = match options.format {
            Some(ParseFormat::Text) if options.jsonl => {
                return Err(Failure::Usage(
                    "'--jsonl' cannot be used with '--format text'".to_owned(),
                ));
            }
            Some(format) => format,
            None if is_terminal && !options.jsonl => ParseFormat::Text,
            None => ParseFormat::Json,
        };
        let (dialect, no_reasoning) = match &options.dialect {
            Some(given) => (&given.options, given.no_reasoning),
            None => (&options.options, false),
        };
        let dialect = match format {
            ParseFormat::Openai => dialect.of_reply(no_reasoning)?,
            _ => dialect.dialect()?,
        };
        Ok(Self {
            options,
            format,
            // No one approves a call here.
            check: ReplyCheck::new(&dialect, Unclosed::Reject)?.without_gate(),
            dialect,
            tools: options.tools.load(Some(&options.files))?.0,
        })
    }

    fn parse_input(&self, input: Input, output: &mut Output) -> Outcome {
        let chunk = self.options.chunk;
        let stop = stop_at_end(self.options.complete, input.is_file);
        if self.options.events {
            return self.events(input, stop, output);
        }
        if self.options.jsonl {
            return self.lines(input, stop, output);
        }
        match self.format {
            ParseFormat::Json => {
                output.json_line(&self.read(input, stop)?)?;
                Ok(Status::Success)
            }
            ParseFormat::Openai => {
                let (tool_calls, status) = openai(&self.read(input, stop)?, "");
                output.json_line(&tool_calls)?;
                Ok(status)
            }
            ParseFormat::Text => {
                let tools = self.tools.as_ref();
                let mut view =
                    Listing::new(&self.dialect, tools, Detail::Diagnostics, output.has_color)?;
                input.for_each_chunk(chunk, |bytes| {
                    view.feed(bytes, output)?;
                    output.flush()
                })?;
                view.finish(output)?;
                Ok(Status::Success)
            }
        }
    }

    fn events(&self, input: Input, stop: Stop, output: &mut Output) -> Outcome {
        let (tools, check) = (self.tools.as_ref(), self.check.clone());
        let reader = ReplyReader::new(&self.dialect, tools, check, Limits::for_reading())?;
        let mut reader = reader.with_events();
        input.for_each_chunk(self.options.chunk, |bytes| {
            for item in reader.feed(bytes) {
                self.event(&item, output)?;
            }
            output.flush()
        })?;
        for item in reader.finish(stop).items {
            self.event(&item, output)?;
        }
        Ok(Status::Success)
    }

    /// Prints an event; after the end of a call, if definitions are loaded, also the call and its problems.
    fn event(&self, item: &ReplyItem<'_>, output: &mut Output) -> Result<(), Failure> {
        match item {
            ReplyItem::Event(event) => output.json_line(&EventLine::of_event(event)),
            ReplyItem::Call(read) if self.tools.is_some() => {
                for problem in read.problems() {
                    output.json_line(&EventLine::of_diagnostic(problem))?;
                }
                output.json_line(&EventLine::of_call(read))
            }
            _ => Ok(()),
        }
    }

    fn reader(&self) -> Result<DocumentReader<Option<&ToolSet>>, Failure> {
        let (tools, check) = (self.tools.as_ref(), self.check.clone());
        let reader = DocumentReader::new(&self.dialect, tools, check, Limits::for_reading());
        Ok(reader?)
    }

    fn read(&self, input: Input, stop: Stop) -> Result<Document, Failure> {
        let mut reader = self.reader()?;
        input.for_each_chunk(self.options.chunk, |bytes| {
            reader.feed(bytes);
            Ok(())
        })?;
        Ok(reader.finish(stop))
    }

    fn lines(&self, input: Input, stop: Stop, output: &mut Output) -> Outcome {
        let mut lines = input.into_lines();
        let mut line = Vec::new();
        let mut number = 0_u64;
        let mut status = Status::Success;
        let reader = self.reader()?;
        while lines.next_line(&mut line)? {
            number += 1;
            let place = format!("line {number}: ");
            let (id, text) = read_line(&line);
            match text {
                Ok(text) => {
                    let document = reader.read(&*text, stop);
                    if self.format == ParseFormat::Openai {
                        let (tool_calls, call_status) = openai(&document, &place);
                        let body = json!({"tool_calls": tool_calls});
                        output.json_line(&Answer { id, body })?;
                        status = status.and(call_status);
                    } else {
                        let body = document;
                        output.json_line(&Answer { id, body })?;
                    }
                }
                Err(message) => {
                    let body = json!({"error": format!("{place}{message}")});
                    output.json_line(&Answer { id, body })?;
                    status = Status::Failed;
                }
            }
            if lines.is_buffer_empty() {
                output.flush()?;
            }
        }
        Ok(status)
    }
}

/// Returns the `tool_calls` array. Reports skipped calls, each message prefixed with `place`.
fn openai(document: &Document, place: &str) -> (Vec<Value>, Status) {
    let calls = openai_calls(document);
    let mut status = Status::Success;
    for call in document.calls() {
        let problem = match calls
            .skipped
            .iter()
            .find(|skipped| skipped.index == call.index)
        {
            Some(skipped) => {
                format!("was skipped: {}", skipped.reasons.join("; "))
            }
            None if call.dependencies.is_empty() => continue,
            None => format!(
                "was printed without its dependencies, which `tool_calls` cannot express: `{}`",
                call.dependencies.join("`, `")
            ),
        };
        status = Status::Failed;
        print_error(&format!(
            "{place}call {} ({}, id {}) {problem}",
            call.index + 1,
            call.name.escape_debug(),
            call.id.escape_debug(),
        ));
    }
    (calls.tool_calls, status)
}
