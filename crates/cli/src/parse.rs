//! `plaincall parse`: the calls in a text.

use std::num::NonZeroUsize;

use plaincall_call::{
    Completeness, Document, LeftOut, OpenAiCall, ToolCall, Unclosed, openai_calls,
};
use plaincall_syntax::Dialect;

use crate::arguments::{ParseFormat, ParseOptions};
use crate::event_line::EventLine;
use crate::input::{Input, each};
use crate::jsonl::{Answer, ErrorBody, ToolCallsBody, read_line};
use crate::output::Output;
use crate::reading::{parser, read, read_bytes};
use crate::status::{Failure, Outcome, Status, complain};
use crate::tools::Tools;
use crate::view::View;
use crate::wire::Wire;

pub(crate) fn parse(options: &ParseOptions, output: &mut Output) -> Outcome {
    let command = Parse::new(options, output.is_terminal)?;
    each(&options.files, output, |file, output| {
        command.one(Input::open(file)?, output)
    })
}

struct Parse {
    dialect: Dialect,
    chunk: Option<NonZeroUsize>,
    form: Form,
    is_complete: bool,
    tools: Option<Tools>,
}

#[derive(Clone, Copy)]
enum Form {
    Json,
    Openai,
    Text,
    Events,
    Lines { is_openai: bool },
}

impl Parse {
    fn new(options: &ParseOptions, is_terminal: bool) -> Result<Self, Failure> {
        let format = match options.format {
            Some(format) => format,
            None if is_terminal && !options.json && !options.jsonl => ParseFormat::Text,
            None => ParseFormat::Json,
        };
        let form = match format {
            _ if options.events => Form::Events,
            ParseFormat::Text if options.jsonl => {
                return Err(Failure::Usage(
                    "'--jsonl' prints one JSON object a line: '--format text' does not go with it"
                        .to_owned(),
                ));
            }
            format if options.jsonl => Form::Lines {
                is_openai: format == ParseFormat::Openai,
            },
            ParseFormat::Json => Form::Json,
            ParseFormat::Openai => Form::Openai,
            ParseFormat::Text => Form::Text,
        };
        Ok(Self {
            dialect: options.dialect.dialect()?,
            chunk: options.chunk,
            form,
            is_complete: options.complete,
            tools: options.tools.load()?,
        })
    }

    fn one(&self, input: Input, output: &mut Output) -> Outcome {
        match self.form {
            Form::Json => {
                let document = read(input, &self.dialect, self.chunk)?;
                output.json_line(&self.wire(&document))?;
                Ok(Status::Good)
            }
            Form::Openai => {
                let completeness = self.completeness(&input);
                let document = read(input, &self.dialect, self.chunk)?;
                let (tool_calls, status) = self.openai(&document, completeness, "");
                output.json_line(&tool_calls)?;
                Ok(status)
            }
            Form::Text => {
                let mut view = View::new(&self.dialect, output.has_color)?;
                input.for_each_chunk(self.chunk, |bytes| {
                    view.feed(bytes, output)?;
                    output.flush()
                })?;
                view.finish(output)?;
                Ok(Status::Good)
            }
            Form::Events => self.events(input, output),
            Form::Lines { is_openai } => self.lines(input, is_openai, output),
        }
    }

    fn events(&self, input: Input, output: &mut Output) -> Outcome {
        let mut parser = parser(&self.dialect)?;
        input.for_each_chunk(self.chunk, |bytes| {
            for event in parser.feed(bytes) {
                output.json_line(&EventLine(&event))?;
            }
            output.flush()
        })?;
        for event in parser.finish() {
            output.json_line(&EventLine(&event))?;
        }
        Ok(Status::Good)
    }

    fn lines(&self, input: Input, is_openai: bool, output: &mut Output) -> Outcome {
        let completeness = self.completeness(&input);
        let mut lines = input.into_lines();
        let mut line = Vec::new();
        let mut number = 0_u64;
        let mut status = Status::Good;
        while lines.next_line(&mut line)? {
            number += 1;
            match read_line(&line) {
                Ok(record) => {
                    let document = read_bytes(record.text.as_bytes(), &self.dialect, self.chunk)?;
                    let id = record.id;
                    if is_openai {
                        let place = format!("line {number}: ");
                        let (tool_calls, good) = self.openai(&document, completeness, &place);
                        let body = ToolCallsBody {
                            tool_calls: &tool_calls,
                        };
                        output.json_line(&Answer { id, body })?;
                        status = status.and(good);
                    } else {
                        let body = self.wire(&document);
                        output.json_line(&Answer { id, body })?;
                    }
                }
                Err(bad) => {
                    let error = format!("line {number}: {}", bad.message);
                    let body = ErrorBody { error: &error };
                    output.json_line(&Answer { id: bad.id, body })?;
                    status = Status::Wrong;
                }
            }
            if lines.is_used_up() {
                output.flush()?;
            }
        }
        Ok(status)
    }

    fn wire<'a>(&'a self, document: &'a Document) -> Wire<'a> {
        Wire {
            document,
            tools: self.tools.as_ref(),
        }
    }

    fn completeness(&self, input: &Input) -> Completeness {
        if self.is_complete || input.is_file {
            Completeness::Complete
        } else {
            Completeness::CutOff
        }
    }

    /// The `tool_calls`; what is left out is named, behind `place`.
    fn openai(
        &self,
        document: &Document,
        completeness: Completeness,
        place: &str,
    ) -> (Vec<OpenAiCall>, Status) {
        let find_tool = |name: &str| self.tools.as_ref().and_then(|tools| tools.find(name));
        let calls = openai_calls(document, completeness, Unclosed::Reject, find_tool);
        let mut status = Status::Good;
        for call in document.calls() {
            let lost = match calls.left_out.iter().find(|one| one.index == call.index) {
                Some(left_out) => {
                    let reasons = self.reasons(call, completeness, left_out);
                    format!("is left out: {reasons}")
                }
                None if call.dependencies.is_empty() => continue,
                None => format!(
                    "is printed without what it depends on, for which `tool_calls` have no place: `{}`",
                    call.dependencies.join("`, `")
                ),
            };
            status = Status::Wrong;
            complain(&format!(
                "{place}call {} ({}, id {}) {lost}",
                call.index + 1,
                call.name.escape_debug(),
                call.id.escape_debug(),
            ));
        }
        (calls.tool_calls, status)
    }

    /// Why a call is left out, with the end marker in force.
    fn reasons(&self, call: &ToolCall, completeness: Completeness, left_out: &LeftOut) -> String {
        match call.may_run(completeness, Unclosed::Reject) {
            Err(reason) => reason.sentence(&self.dialect.end_marker(call.syntax)),
            Ok(()) => left_out.reasons.join("; "),
        }
    }
}
