//! The messages of a conversation, with calls and results as text.

use std::path::Path;
use std::slice;

use plaincall_call::{
    Foreign, PassageBuilder, PastCall, ToldResult, ToolSet, TurnPart, history, in_call_order,
    results,
};
use plaincall_syntax::Dialect;
use serde_json::Value;

use crate::commands::render::RenderOptions;
use crate::commands::render::conversation::{self, Message};
use crate::commands::render::sink::Sink;
use crate::commands::render::written_dialect;
use crate::status::{Failure, Outcome, Status};
use crate::text::input::{Input, without_mark};
use crate::text::reading::refused;

/// Tells conversations again.
pub(super) struct Teller {
    dialect: Dialect,
    tools: ToolSet,
    is_json: bool,
}

/// What has not been told yet of the calls of the last message that made some.
#[derive(Default)]
struct Untold {
    /// The calls, by name and id.
    calls: Vec<(String, String)>,
    results: Vec<ToldResult<'static>>,
}

impl Teller {
    pub(super) fn new(options: &RenderOptions) -> Result<Self, Failure> {
        Ok(Self {
            dialect: written_dialect(options)?,
            tools: options.schema.load(&options.files)?.unwrap_or_default(),
            is_json: options.json,
        })
    }

    pub(super) fn file(&self, file: &Path, sink: &mut Sink<'_>) -> Outcome {
        let input = Input::open(file)?;
        let name = input.name.clone();
        let messages = conversation::read(without_mark(&input.into_bytes()?))
            .map_err(|reason| Failure::Broken(format!("{name}: {reason}")))?;
        let mut untold = Untold::default();
        for mut message in messages {
            if message.role == "tool" {
                let id = message.result_of.take().unwrap_or_default();
                let result = ToldResult::new(Foreign::new(""), Foreign::new(id));
                let output = Foreign::new(message.text());
                untold.results.push(result.output(output));
                continue;
            }
            self.results(std::mem::take(&mut untold), sink)?;
            if !message.calls.is_empty() {
                message.set_text(self.turn(&message)?);
                let named = message.calls.drain(..).map(|call| (call.name, call.id));
                untold.calls = named.collect();
            } else if !matches!(message.role.as_str(), "system" | "developer") {
                self.escape(&mut message)?;
            }
            self.message(&message, sink)?;
        }
        self.results(untold, sink)?;
        Ok(Status::Good)
    }

    /// The text of a message with calls.
    fn turn(&self, message: &Message) -> Result<String, Failure> {
        let said = message.text();
        let mut parts = Vec::new();
        if !said.is_empty() {
            parts.push(TurnPart::Said(Foreign::new(said)));
        }
        for call in &message.calls {
            let name = Foreign::new(&call.name);
            let past = match &call.arguments {
                Value::Null => PastCall::from_text(name, Foreign::new("")),
                Value::String(text) => PastCall::from_text(name, Foreign::new(text)),
                Value::Object(object) => PastCall::new(name, object),
                other => PastCall::from_text(name, Foreign::new(other.to_string())),
            };
            parts.push(TurnPart::Called(if call.id.is_empty() {
                past
            } else {
                past.id(Foreign::new(&call.id))
            }));
        }
        let passage = history(&parts, &self.dialect, |name| self.tools.get(name));
        Ok(passage.map_err(|error| refused(&error))?.into_text())
    }

    /// Escapes the content of a message: what comes from outside holds no marker that is meant.
    fn escape(&self, message: &mut Message) -> Result<(), Failure> {
        if self.is_json {
            for text in message.texts() {
                *text = self.escaped(std::mem::take(text))?;
            }
        } else {
            message.set_text(self.escaped(message.text())?);
        }
        Ok(())
    }

    fn escaped(&self, text: String) -> Result<String, Failure> {
        let mut passage =
            PassageBuilder::new(slice::from_ref(&self.dialect)).map_err(|error| refused(&error))?;
        passage.foreign(&Foreign::new(text));
        Ok(passage.finish().into_text())
    }

    /// Tells the results of the last calls, if there are any.
    fn results(&self, untold: Untold, sink: &mut Sink<'_>) -> Result<(), Failure> {
        if untold.calls.is_empty() && untold.results.is_empty() {
            return Ok(());
        }
        let named = untold
            .calls
            .into_iter()
            .map(|(name, id)| (Foreign::new(name), Foreign::new(id)));
        let ordered = in_call_order(named, untold.results);
        let passage = results(&ordered, &self.dialect).map_err(|error| refused(&error))?;
        self.message(&Message::of_user(passage.into_text()), sink)
    }

    fn message(&self, message: &Message, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let text = message.text();
        if self.is_json {
            return sink.json_piece(&message.role, &message.members, &text);
        }
        sink.heading(&message.role)?;
        sink.piece(&message.role, text.as_bytes())?;
        if text.ends_with('\n') {
            Ok(())
        } else {
            sink.end_line()
        }
    }
}
