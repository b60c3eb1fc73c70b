//! The output of a response: its items, one after another, and their events.

use plaincall_wire::Json;
use plaincall_wire::openai::CallArguments;
use plaincall_wire::openai_responses::{Content, Item, Part, ResponseEvent};
use serde_json::{Deserializer, Map, Value};

use crate::api::responses::tools::{INPUT, ToolName};

/// The events of a stream, if the response is streamed.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) is_streamed: bool,
    sequence: u64,
    pub(super) bytes: Vec<u8>,
}

impl Events {
    pub(super) fn new(is_streamed: bool) -> Self {
        Self {
            is_streamed,
            sequence: 0,
            bytes: Vec::new(),
        }
    }

    /// Writes an event with the next number.
    pub(super) fn write(&mut self, kind: &'static str, mut event: ResponseEvent<'_>) {
        if self.is_streamed {
            event.kind = Some(kind.into());
            event.sequence_number = Some(self.sequence);
            self.sequence += 1;
            event.encode(&mut self.bytes);
        }
    }
}

/// The kind of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text,
    Refusal,
    Reasoning,
}

impl Piece {
    /// The kind of its part.
    fn part(self) -> &'static str {
        match self {
            Self::Text => "output_text",
            Self::Refusal => "refusal",
            Self::Reasoning => "reasoning_text",
        }
    }

    /// The names of the events about a piece of it, and about all of it.
    fn events(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("response.output_text.delta", "response.output_text.done"),
            Self::Refusal => ("response.refusal.delta", "response.refusal.done"),
            Self::Reasoning => (
                "response.reasoning_text.delta",
                "response.reasoning_text.done",
            ),
        }
    }

    fn is_reasoning(self) -> bool {
        self == Self::Reasoning
    }
}

/// The items of a response. At most one is open.
#[derive(Debug)]
pub(super) struct Output {
    word: String,
    items: Vec<Item<'static>>,
    open: Option<Open>,
}

/// The open item.
#[derive(Debug)]
enum Open {
    Texts {
        id: String,
        /// The parts before the last one.
        parts: Vec<Part<'static>>,
        piece: Piece,
        text: String,
    },
    Call {
        id: String,
        call_id: String,
        tool: ToolName,
        arguments: String,
    },
}

impl Output {
    pub(super) fn new(word: String) -> Self {
        Self {
            word,
            items: Vec::new(),
            open: None,
        }
    }

    fn index(&self) -> u64 {
        self.items.len() as u64
    }

    fn new_id(&self, prefix: &str) -> String {
        format!("{prefix}_{}_{}", self.word, self.items.len())
    }

    /// Takes the items.
    pub(super) fn take(&mut self) -> Vec<Item<'static>> {
        std::mem::take(&mut self.items)
    }

    /// Appends a piece of text.
    pub(super) fn text(&mut self, piece: Piece, text: &str, events: &mut Events) {
        let is_same_item = matches!(&self.open, Some(Open::Texts { piece: last, .. })
            if last.is_reasoning() == piece.is_reasoning());
        if !is_same_item {
            self.close("completed", events);
            let prefix = if piece.is_reasoning() { "rs" } else { "msg" };
            let id = self.new_id(prefix);
            events.write(
                "response.output_item.added",
                ResponseEvent {
                    output_index: Some(self.index()),
                    item: Some(texts_item(&id, "in_progress", piece, Vec::new())),
                    ..ResponseEvent::default()
                },
            );
            self.open = Some(Open::Texts {
                id,
                parts: Vec::new(),
                piece,
                text: String::new(),
            });
            self.begin_part(piece, events);
        }
        let index = self.index();
        let is_next_part =
            matches!(&self.open, Some(Open::Texts { piece: last, .. }) if *last != piece);
        if is_next_part {
            self.end_part(events);
            if let Some(Open::Texts { piece: last, .. }) = &mut self.open {
                *last = piece;
            }
            self.begin_part(piece, events);
        }
        if let Some(Open::Texts {
            id,
            parts,
            text: all,
            ..
        }) = &mut self.open
        {
            all.push_str(text);
            if !text.is_empty() {
                events.write(
                    piece.events().0,
                    ResponseEvent {
                        item_id: Some((&**id).into()),
                        output_index: Some(index),
                        content_index: Some(parts.len() as u64),
                        delta: Some(text.into()),
                        logprobs: (piece == Piece::Text).then(empty_list),
                        ..ResponseEvent::default()
                    },
                );
            }
        }
    }

    fn begin_part(&self, piece: Piece, events: &mut Events) {
        if let Some(Open::Texts { id, parts, .. }) = &self.open {
            events.write(
                "response.content_part.added",
                ResponseEvent {
                    item_id: Some((&**id).into()),
                    output_index: Some(self.index()),
                    content_index: Some(parts.len() as u64),
                    part: Some(text_part(piece, String::new())),
                    ..ResponseEvent::default()
                },
            );
        }
    }

    fn end_part(&mut self, events: &mut Events) {
        let output_index = Some(self.index());
        let Some(Open::Texts {
            id,
            parts,
            piece,
            text,
        }) = &mut self.open
        else {
            return;
        };
        let content_index = Some(parts.len() as u64);
        let mut done = ResponseEvent {
            item_id: Some((&**id).into()),
            output_index,
            content_index,
            logprobs: (*piece == Piece::Text).then(empty_list),
            ..ResponseEvent::default()
        };
        let all = Some((&**text).into());
        match piece {
            Piece::Refusal => done.refusal = all,
            _ => done.text = all,
        }
        events.write(piece.events().1, done);
        let part = text_part(*piece, std::mem::take(text));
        events.write(
            "response.content_part.done",
            ResponseEvent {
                item_id: Some((&**id).into()),
                output_index,
                content_index,
                part: Some(part.clone()),
                ..ResponseEvent::default()
            },
        );
        parts.push(part);
    }

    /// Begins a call of this tool.
    pub(super) fn call(&mut self, call_id: &str, tool: ToolName, events: &mut Events) {
        self.close("completed", events);
        let id = self.new_id(if tool.is_custom { "ctc" } else { "fc" });
        events.write(
            "response.output_item.added",
            ResponseEvent {
                output_index: Some(self.index()),
                item: Some(call_item(&id, "in_progress", call_id, &tool, String::new())),
                ..ResponseEvent::default()
            },
        );
        self.open = Some(Open::Call {
            id,
            call_id: call_id.to_owned(),
            tool,
            arguments: String::new(),
        });
    }

    /// Appends a piece of the arguments of the open call.
    pub(super) fn arguments(&mut self, piece: &str, events: &mut Events) {
        let index = self.index();
        let Some(Open::Call {
            id,
            tool,
            arguments,
            ..
        }) = &mut self.open
        else {
            return;
        };
        arguments.push_str(piece);
        // The input of a custom tool is in the arguments, which are complete only at the end.
        if !tool.is_custom {
            events.write(
                "response.function_call_arguments.delta",
                ResponseEvent {
                    item_id: Some((&**id).into()),
                    output_index: Some(index),
                    delta: Some(piece.into()),
                    ..ResponseEvent::default()
                },
            );
        }
    }

    /// Ends the output. The status is that of the last item. A response without calls has at least one message.
    pub(super) fn end(&mut self, status: &'static str, events: &mut Events) {
        let is_reasoning = |item: &Item<'_>| item.kind() == "reasoning";
        let has_open = match &self.open {
            None => false,
            Some(Open::Texts { piece, .. }) => !piece.is_reasoning(),
            Some(Open::Call { .. }) => true,
        };
        if !has_open && self.items.iter().all(is_reasoning) {
            self.text(Piece::Text, "", events);
        }
        self.close(status, events);
    }

    /// Closes the open item. A call whose arguments are not complete JSON at the end of an incomplete response was truncated: it
    /// gets the status of the response, and no event states that it is complete.
    fn close(&mut self, status: &'static str, events: &mut Events) {
        self.end_part(events);
        let index = self.index();
        let item = match self.open.take() {
            None => return,
            Some(Open::Texts {
                id, parts, piece, ..
            }) => texts_item(&id, status, piece, parts),
            Some(Open::Call {
                id,
                call_id,
                tool,
                arguments,
            }) => {
                let is_whole = || Json::parse(&arguments).is_ok();
                let is_complete = status == "completed" || is_whole();
                let text = match (tool.is_custom, is_complete) {
                    (true, true) => input(&arguments),
                    // None of its input was sent yet.
                    (true, false) => String::new(),
                    (false, _) => arguments,
                };
                let status = if is_complete {
                    end_call(&id, index, &tool, &text, events);
                    "completed"
                } else {
                    status
                };
                call_item(&id, status, &call_id, &tool, text)
            }
        };
        events.write(
            "response.output_item.done",
            ResponseEvent {
                output_index: Some(index),
                item: Some(item.clone()),
                ..ResponseEvent::default()
            },
        );
        self.items.push(item);
    }
}

/// Writes the events at the end of a call with this text.
fn end_call(id: &str, index: u64, tool: &ToolName, text: &str, events: &mut Events) {
    let about = || ResponseEvent {
        item_id: Some(id.into()),
        output_index: Some(index),
        ..ResponseEvent::default()
    };
    let mut done = about();
    if tool.is_custom {
        let mut delta = about();
        delta.delta = Some(text.into());
        events.write("response.custom_tool_call_input.delta", delta);
        done.input = Some(text.into());
        events.write("response.custom_tool_call_input.done", done);
    } else {
        done.name = Some((&*tool.name).into());
        done.arguments = Some(text.into());
        events.write("response.function_call_arguments.done", done);
    }
}

/// Returns the text in the arguments of a custom tool.
fn input(arguments: &str) -> String {
    let mut values = Deserializer::from_str(arguments).into_iter::<Map<String, Value>>();
    let value = values.next().and_then(Result::ok);
    match value.and_then(|mut value| value.remove(INPUT)) {
        Some(Value::String(text)) => text,
        _ => arguments.to_owned(),
    }
}

fn empty_list() -> Json<'static> {
    Json::parse("[]").unwrap_or_default()
}

fn text_part(piece: Piece, text: String) -> Part<'static> {
    let mut part = Part {
        kind: Some(piece.part().into()),
        ..Part::default()
    };
    match piece {
        Piece::Refusal => part.refusal = Some(text.into()),
        Piece::Reasoning => part.text = Some(text.into()),
        Piece::Text => {
            part.text = Some(text.into());
            part.annotations = Some(empty_list());
            part.logprobs = Some(empty_list());
        }
    }
    part
}

fn texts_item(
    id: &str,
    status: &'static str,
    piece: Piece,
    parts: Vec<Part<'static>>,
) -> Item<'static> {
    let is_reasoning = piece.is_reasoning();
    Item {
        kind: Some(if is_reasoning { "reasoning" } else { "message" }.into()),
        id: Some(id.to_owned().into()),
        status: Some(status.into()),
        role: (!is_reasoning).then(|| "assistant".into()),
        summary: is_reasoning.then(Vec::new),
        content: Some(Content::Parts(parts)),
        ..Item::default()
    }
}

fn call_item(
    id: &str,
    status: &'static str,
    call_id: &str,
    tool: &ToolName,
    text: String,
) -> Item<'static> {
    let mut item = Item {
        id: Some(id.to_owned().into()),
        status: Some(status.into()),
        call_id: Some(call_id.to_owned().into()),
        namespace: tool.namespace.clone().map(Into::into),
        name: Some(tool.name.clone().into()),
        ..Item::default()
    };
    if tool.is_custom {
        item.kind = Some("custom_tool_call".into());
        item.input = Some(text.into());
    } else {
        item.kind = Some("function_call".into());
        item.arguments = Some(CallArguments::Text(text.into()));
    }
    item
}
