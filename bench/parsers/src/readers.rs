//! The readers: how each parser gets its input, and how its output is used.

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use dynamo_parsers_v2::{
    Tool, ToolParseResult, UnifiedParser, UnifiedParserEvent, UnifiedParserInit,
    UnifiedParserOutput, create_tool_parser_for_family, create_unified_parser_for_family,
};
use jiter::{Jiter, Peek};
use plaincall_syntax::{Dialect, EventKind, Parser};
use serde_json::{Value, json};
use tool_parser::{StreamingParseResult, ToolParser};

use crate::chunks::cut;
use crate::formats::Format;
use crate::kept::Found;
use crate::logical;

/// Receives the output of a parser.
pub trait Sink {
    fn text(&mut self, text: &str);
    /// A call begins.
    fn call(&mut self, name: &str);
    /// A piece of the argument: text, or JSON where the parser gives JSON.
    fn argument(&mut self, piece: &str);
    /// The call is complete.
    fn end(&mut self);
}

/// Collects the argument of each call in a string of its own, and inspects the rest.
#[derive(Default)]
pub struct Assemble {
    argument: String,
    calls: usize,
}

impl Sink for Assemble {
    #[inline]
    fn text(&mut self, text: &str) {
        black_box(text);
    }
    #[inline]
    fn call(&mut self, name: &str) {
        black_box(name);
    }
    #[inline]
    fn argument(&mut self, piece: &str) {
        self.argument.push_str(piece);
    }
    #[inline]
    fn end(&mut self) {
        self.calls += 1;
        // Users keep each argument, so the next one does not reuse its memory.
        drop(black_box(std::mem::take(&mut self.argument)));
    }
}

/// Keeps everything.
#[derive(Default)]
struct Collect {
    found: Found,
    call: (String, String),
}

impl Sink for Collect {
    fn text(&mut self, text: &str) {
        self.found.text.push_str(text);
    }
    fn call(&mut self, name: &str) {
        self.call.0.push_str(name);
    }
    fn argument(&mut self, piece: &str) {
        self.call.1.push_str(piece);
    }
    fn end(&mut self) {
        self.found.calls.push(std::mem::take(&mut self.call));
    }
}

/// Counts the pieces of arguments.
#[derive(Default)]
struct Count(usize);

impl Sink for Count {
    fn text(&mut self, _: &str) {}
    fn call(&mut self, _: &str) {}
    fn argument(&mut self, piece: &str) {
        self.0 += usize::from(!piece.is_empty());
    }
    fn end(&mut self) {}
}

enum Kind {
    Plaincall(Parser),
    /// A parser of tool calls for one family of models, by its name. One is created for each stream, as documented.
    DynamoTools(&'static str, Vec<Tool>),
    /// A parser of ordered events. It is created once and reset for each stream.
    DynamoUnified(Box<dyn UnifiedParser>),
    /// Created once and reset for each stream.
    ToolParser(Box<dyn ToolParser>, Vec<openai_protocol::common::Tool>),
    /// The text is collected, and parsed as JSON at its end.
    Jiter,
}

/// One parser of one format.
pub struct Reader {
    pub parser: &'static str,
    /// The name that the parser uses for the format.
    pub name: &'static str,
    pub format: Format,
    kind: Kind,
}

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn schema() -> Value {
    json!({"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]})
}

impl Reader {
    /// Returns all measured readers. The first is Plaincall in the block syntax, with which the others are compared.
    ///
    /// # Errors
    /// Returns an error if a parser does not know the name of a format.
    pub fn all() -> Fallible<Vec<Self>> {
        let mut readers = Vec::new();
        for (name, dialect, format) in [
            ("block", Dialect::block(), Format::Block),
            ("emoji", Dialect::emoji(), Format::Emoji),
        ] {
            readers.push(Self {
                parser: "Plaincall",
                name,
                format,
                kind: Kind::Plaincall(Parser::new(&dialect)?),
            });
        }
        let tools = vec![Tool {
            name: "WriteFile".to_owned(),
            description: None,
            parameters: schema(),
            strict: None,
        }];
        for (name, format) in [
            ("qwen3_coder", Format::Qwen3Coder),
            ("kimi_k2", Format::KimiK2),
            ("gemma4", Format::Gemma4),
            ("deepseek_v4", Format::Dsml),
            ("glm47", Format::Glm47),
            ("minimax_m2", Format::MinimaxM2),
            ("minimax_m3", Format::MinimaxM3),
        ] {
            drop(create_tool_parser_for_family(name, &tools)?);
            readers.push(Self {
                parser: "dynamo-parsers-v2",
                name,
                format,
                kind: Kind::DynamoTools(name, tools.clone()),
            });
        }
        for (name, family, format) in [
            ("qwen3, unified", "qwen3", Format::Qwen3Coder),
            ("kimi_k2, unified", "kimi_k2", Format::KimiK2),
            ("gemma4, unified", "gemma4", Format::Gemma4),
            ("deepseek_v4, unified", "deepseek_v4", Format::Dsml),
            ("glm47, unified", "glm47", Format::Glm47),
        ] {
            readers.push(Self {
                parser: "dynamo-parsers-v2",
                name,
                format,
                kind: Kind::DynamoUnified(create_unified_parser_for_family(family, &tools)?),
            });
        }
        let factory = tool_parser::ParserFactory::new();
        let tool =
            json!({"type": "function", "function": {"name": "WriteFile", "parameters": schema()}});
        let tools: Vec<openai_protocol::common::Tool> = vec![serde_json::from_value(tool)?];
        for (name, format) in [
            ("qwen", Format::ToolCallJson),
            ("qwen_xml", Format::Qwen3Coder),
            ("kimik2", Format::KimiK2),
            ("gemma4", Format::Gemma4),
            ("deepseek31", Format::DeepSeek31),
            ("deepseek_v4", Format::Dsml),
            ("glm47_moe", Format::Glm47),
            ("minimax_m2", Format::MinimaxM2),
            ("minimax_m3", Format::MinimaxM3),
            ("hy_v4", Format::Hunyuan4),
            ("cohere", Format::Cohere),
            ("llama", Format::Llama),
        ] {
            let parser = factory.registry().create_parser(name);
            let parser = parser.ok_or_else(|| format!("tool-parser does not know {name}"))?;
            readers.push(Self {
                parser: "tool-parser",
                name,
                format,
                kind: Kind::ToolParser(parser, tools.clone()),
            });
        }
        readers.push(Self {
            parser: "jiter",
            name: "JSON",
            format: Format::Json,
            kind: Kind::Jiter,
        });
        Ok(readers)
    }

    /// Returns whether arguments are streamed, instead of returned when the call is complete.
    pub fn streams(&mut self) -> bool {
        let text = self.format.write(&logical::one_call(2_000));
        let mut count = Count::default();
        self.read(&cut(&text, Some(64)), &mut count).is_ok() && count.0 > 10
    }

    /// Reads all chunks and collects each argument.
    pub fn assemble(&mut self, chunks: &[&str]) {
        let mut sink = Assemble::default();
        black_box(self.read(chunks, &mut sink).is_ok());
        black_box(sink.calls);
    }

    /// Reads all chunks and returns their contents.
    pub fn collect(&mut self, chunks: &[&str]) -> Found {
        let mut sink = Collect::default();
        let read = self.read(chunks, &mut sink);
        let mut found = sink.found;
        found.error = read.err().map(|error| error.to_string());
        if matches!(
            self.kind,
            Kind::DynamoTools(..) | Kind::DynamoUnified(_) | Kind::ToolParser(..)
        ) {
            for (_, argument) in &mut found.calls {
                let value: Value = serde_json::from_str(argument).unwrap_or_default();
                if let Some(content) = value.get("content").and_then(Value::as_str) {
                    *argument = content.to_owned();
                }
            }
        }
        found
    }

    fn read(&mut self, chunks: &[&str], sink: &mut impl Sink) -> Fallible<()> {
        match &mut self.kind {
            Kind::Plaincall(parser) => plaincall(parser, chunks, sink),
            Kind::DynamoTools(family, tools) => dynamo_tools(family, tools, chunks, sink)?,
            Kind::DynamoUnified(parser) => dynamo_unified(parser.as_mut(), chunks, sink)?,
            Kind::ToolParser(parser, tools) => {
                at_once(read_tool_parser(parser.as_mut(), tools, chunks, sink))?;
            }
            Kind::Jiter => jiter(chunks, sink)?,
        }
        Ok(())
    }
}

fn plaincall(parser: &Parser, chunks: &[&str], sink: &mut impl Sink) {
    let mut parser = parser.clone();
    let mut take = |kind: &EventKind<'_>| match kind {
        EventKind::Text(text) => sink.text(text),
        EventKind::CallStart(header) => sink.call(header.name()),
        EventKind::ValueDelta(text) => sink.argument(text),
        EventKind::CallEnd(_) => sink.end(),
        _ => {}
    };
    for chunk in chunks {
        parser.feed(chunk).for_each(|event| take(&event.kind));
    }
    parser.finish().for_each(|event| take(&event.kind));
}

fn dynamo_tools(
    family: &str,
    tools: &[Tool],
    chunks: &[&str],
    sink: &mut impl Sink,
) -> Fallible<()> {
    let mut parser = create_tool_parser_for_family(family, tools)?;
    let mut take = |result: ToolParseResult| {
        if !result.normal_text.is_empty() {
            sink.text(&result.normal_text);
        }
        for delta in &result.calls {
            if let Some(name) = &delta.name {
                sink.call(name);
            }
            sink.argument(&delta.arguments);
            if delta.complete {
                sink.end();
            }
        }
    };
    for chunk in chunks {
        take(parser.push(chunk)?);
    }
    take(parser.finish()?);
    Ok(())
}

fn dynamo_unified(
    parser: &mut dyn UnifiedParser,
    chunks: &[&str],
    sink: &mut impl Sink,
) -> Fallible<()> {
    parser.reset();
    parser.initialize_request(UnifiedParserInit::default())?;
    let mut take = |output: UnifiedParserOutput| {
        for event in &output.events {
            match event {
                UnifiedParserEvent::Text(text) => sink.text(text),
                UnifiedParserEvent::ToolCall(delta) => {
                    if let Some(name) = &delta.name {
                        sink.call(name);
                    }
                    sink.argument(&delta.arguments);
                    if delta.complete {
                        sink.end();
                    }
                }
                _ => {}
            }
        }
    };
    for chunk in chunks {
        let mut output = UnifiedParserOutput::default();
        parser.parse_into(chunk, &mut output)?;
        take(output);
    }
    take(parser.finish()?);
    Ok(())
}

async fn read_tool_parser(
    parser: &mut dyn ToolParser,
    tools: &[openai_protocol::common::Tool],
    chunks: &[&str],
    sink: &mut impl Sink,
) -> Fallible<()> {
    parser.reset();
    // It does not report the end of a call: the next call or the end of the stream ends it.
    let mut is_open = false;
    for chunk in chunks {
        let result: StreamingParseResult = parser.parse_incremental(chunk, tools).await?;
        if !result.normal_text.is_empty() {
            sink.text(&result.normal_text);
        }
        for item in &result.calls {
            if let Some(name) = &item.name {
                if std::mem::replace(&mut is_open, true) {
                    sink.end();
                }
                sink.call(name);
            }
            sink.argument(&item.parameters);
        }
    }
    for item in parser.get_unstreamed_tool_args().iter().flatten() {
        sink.argument(&item.parameters);
    }
    if is_open {
        sink.end();
    }
    let rest = parser.take_unstreamed_normal_text();
    if !rest.is_empty() {
        sink.text(&rest);
    }
    Ok(())
}

/// Returns the output of a future that never waits.
fn at_once<T>(future: impl Future<Output = Fallible<T>>) -> Fallible<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => Err("it waits for something".into()),
    }
}

fn jiter(chunks: &[&str], sink: &mut impl Sink) -> Fallible<()> {
    let mut text = String::new();
    for chunk in chunks {
        text.push_str(chunk);
    }
    let mut json = Jiter::new(text.as_bytes());
    let mut next = json.next_array()?;
    while let Some(peek) = next {
        if peek == Peek::String {
            sink.text(json.known_str()?);
        } else {
            let mut key = key_of(json.known_object()?);
            while let Some(is_name) = key {
                if is_name {
                    sink.call(json.next_str()?);
                } else {
                    json.next_object()?;
                    sink.argument(json.next_str()?);
                    json.next_key()?;
                }
                key = key_of(json.next_key()?);
            }
            sink.end();
        }
        next = json.array_step()?;
    }
    json.finish()?;
    Ok(())
}

/// Returns whether the key is that of the name, and not that of the arguments.
fn key_of(key: Option<&str>) -> Option<bool> {
    key.map(|key| key == "name")
}
