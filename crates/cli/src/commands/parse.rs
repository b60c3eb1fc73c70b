//! `plaincall parse`: find the calls in a text.

mod jsonl;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use plaincall_call::{
    Document, Limits, ReplyCheck, Stop, ToolSet, Unclosed,
    collector::{Collected, Collector},
    document::{BoundCall, BoundDocument, DocumentBuilder},
    openai::openai_calls,
};
use plaincall_syntax::{ByteParser, Dialect, Event};
use serde::Serialize;
use serde_json::{Value, json};

use crate::commands::parse::jsonl::{Answer, read_line};
use crate::options::number::size;
use crate::options::{DialectOptions, SchemaOption};
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
/// With `--schema`, validate each call against its tool definition: convert the arguments to the types of the
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

    /// Print JSON, even on a terminal. Same as `--format json`.
    #[arg(long, short, conflicts_with = "format")]
    pub(crate) json: bool,

    /// Read one JSON document per line, and print one JSON object for each, in order.
    ///
    /// Each line is a string, or an object with a `text` key and an optional `id`, which is copied to the output. For
    /// an invalid line, print `{"error": …}` and continue.
    #[arg(long)]
    pub(crate) jsonl: bool,

    /// Print parser events as they occur, one JSON object per line.
    #[arg(long, conflicts_with_all = ["format", "json", "jsonl"])]
    pub(crate) events: bool,

    /// Feed the parser this many bytes at a time.
    ///
    /// The calls are the same for every size. Only the boundaries of text and value events change.
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub(crate) chunk: Option<NonZeroUsize>,

    /// Treat the input as complete: `--format openai` includes a block call at its end without an end marker.
    ///
    /// Without this option, such a call may be truncated and is skipped, unless the input is a file and `--schema`
    /// declares that the tool only reads.
    #[arg(long)]
    pub(crate) complete: bool,

    /// Treat `<think>` as text with `--format openai`, as `run --no-reasoning` does.
    #[arg(long, conflicts_with_all = ["reasoning", "in_reasoning"])]
    pub(crate) no_reasoning: bool,

    #[command(flatten)]
    pub(crate) schema: SchemaOption,

    #[command(flatten)]
    pub(crate) dialect: DialectOptions,
}

const PARSE_FORMS: &str = "\
Events (`--events`): each object has `type` and `span`. The types are `text`, `reasoning`, `value_delta` and `ignored` \
with `text`; `call_start` with `syntax`, `name` and `source`, and with `id` and `dependencies` (block) or `raw_args` \
(emoji); `value_start` with `pointer` (an argument) or without (a body), and `source`; `value_end` with `source`; \
`call_end` with `termination` and `source`; `diagnostic` with `code`, `severity` and `message`. Except for \
diagnostics, the spans cover the text without gaps. With `--schema`, each call is followed by a `diagnostic` for each \
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

/// The output for a document. With definitions, its calls are validated.
#[derive(Serialize)]
#[serde(untagged)]
enum Wire<'d> {
    Text(&'d Document),
    Bound(BoundDocument<'d>),
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
            None if is_terminal && !options.json && !options.jsonl => ParseFormat::Text,
            None => ParseFormat::Json,
        };
        let dialect = match format {
            ParseFormat::Openai => options.dialect.of_reply(options.no_reasoning)?,
            _ => options.dialect.dialect()?,
        };
        Ok(Self {
            options,
            format,
            check: ReplyCheck::new(&dialect, Unclosed::Reject)?,
            dialect,
            tools: options.schema.load(Some(&options.files))?.0,
        })
    }

    fn parse_input(&self, input: Input, output: &mut Output) -> Outcome {
        let chunk = self.options.chunk;
        if self.options.events {
            return self.events(input, output);
        }
        let stop = stop_at_end(self.options.complete, input.is_file);
        if self.options.jsonl {
            return self.lines(input, stop, output);
        }
        match self.format {
            ParseFormat::Json => {
                let document = read(input, &self.dialect, chunk)?;
                output.json_line(&self.wire(&document))?;
                Ok(Status::Success)
            }
            ParseFormat::Openai => {
                let document = read(input, &self.dialect, chunk)?;
                let (tool_calls, status) = self.openai(&document, stop, "");
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

    fn events(&self, input: Input, output: &mut Output) -> Outcome {
        let mut parser = ByteParser::new(&self.dialect)?;
        let mut collector = Collector::new(Limits::for_reading());
        input.for_each_chunk(self.options.chunk, |bytes| {
            for event in parser.feed(bytes) {
                self.event(&event, &mut collector, output)?;
            }
            output.flush()
        })?;
        for event in parser.finish() {
            self.event(&event, &mut collector, output)?;
        }
        Ok(Status::Success)
    }

    /// Prints an event. After the end of a call, also prints the call and its problems, if definitions are loaded.
    fn event(
        &self,
        event: &Event<'_>,
        collector: &mut Collector,
        output: &mut Output,
    ) -> Result<(), Failure> {
        output.json_line(&EventLine::of_event(event))?;
        let Some(tools) = &self.tools else {
            return Ok(());
        };
        let Some(Collected::Finished(call)) = collector.push(event) else {
            return Ok(());
        };
        let bound = BoundCall::new(&call, tools);
        for problem in bound.problems() {
            output.json_line(&EventLine::of_diagnostic(problem))?;
        }
        output.json_line(&EventLine::of_call(&bound))
    }

    fn lines(&self, input: Input, stop: Stop, output: &mut Output) -> Outcome {
        let mut lines = input.into_lines();
        let mut line = Vec::new();
        let mut number = 0_u64;
        let mut status = Status::Success;
        while lines.next_line(&mut line)? {
            number += 1;
            let place = format!("line {number}: ");
            let (id, text) = read_line(&line);
            match text {
                Ok(text) => {
                    let document = Document::parse(&text, &self.dialect);
                    let document = document?;
                    if self.format == ParseFormat::Openai {
                        let (tool_calls, call_status) = self.openai(&document, stop, &place);
                        let body = json!({"tool_calls": tool_calls});
                        output.json_line(&Answer { id, body })?;
                        status = status.and(call_status);
                    } else {
                        let body = self.wire(&document);
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

    fn wire<'d>(&self, document: &'d Document) -> Wire<'d> {
        match &self.tools {
            None => Wire::Text(document),
            Some(tools) => Wire::Bound(document.bind(tools)),
        }
    }

    /// Returns the `tool_calls` array. Reports skipped calls, each message prefixed with `place`.
    fn openai(&self, document: &Document, stop: Stop, place: &str) -> (Vec<Value>, Status) {
        let tools = self.tools.as_ref();
        let calls = openai_calls(document, self.check.clone(), stop, tools);
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
}

/// Parses an input to a document.
fn read(input: Input, dialect: &Dialect, chunk: Option<NonZeroUsize>) -> Result<Document, Failure> {
    let mut parser = ByteParser::new(dialect)?;
    let mut builder = DocumentBuilder::new(dialect, Limits::for_reading());
    input.for_each_chunk(chunk, |bytes| {
        let events = parser.feed(bytes);
        events.for_each(|event| builder.push(&event));
        Ok(())
    })?;
    parser.finish().for_each(|event| builder.push(&event));
    Ok(builder.finish())
}
