//! Reference models: scripted, with known skills. They show what a comparison finds, without a real model.
//!
//! Each was made for one arm and does everything right in it. In the others it errs as real models do: strings whose quotation
//! marks are not escaped, JSON where a syntax is asked for, another syntax, a call as chat text. The model for `block-grammar` writes
//! valid calls only in constrained replies.

use plaincall::Dialect;
use plaincall::prompt::history::{PastCall, TurnPart, history};
use plaincall::reply::Untrusted;
use plaincall::syntax::{Escaper, MarkerUse, Syntax};
use plaincall::tool::ToolSpec;
use plaincall_agent::model::{
    Constrain, Model, ModelRequest, NativeCall, NativeMessage, Piece, Reply,
};
use plaincall_agent::{Finish, Role, Usage};
use serde_json::{Map, Value};

use crate::arm::Arm;
use crate::json_prompt;
use crate::task::{Call, Task, tasks};
use crate::tool::definition;

const TOKEN_BYTES: usize = 4;

/// A reference model.
#[derive(Clone, Debug)]
pub struct Reference {
    name: String,
    arm: Arm,
    tasks: Vec<Task>,
}

/// The content of a request of any form.
struct Asked<'r> {
    system: &'r str,
    question: &'r str,
    /// Everything after the question.
    later: Vec<&'r str>,
    /// The number of earlier replies.
    replies: usize,
    bytes: usize,
}

/// A reply of the model.
#[derive(Default)]
struct Reaction {
    text: String,
    calls: Vec<NativeCall>,
}

impl Reference {
    /// Returns the names of the reference models: the default arms, and `block-grammar`.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let arms = Arm::all().into_iter();
        arms.filter(has_model).map(|arm| arm.name)
    }

    /// Returns the model that was made for the arm of this name.
    pub fn named(name: &str) -> Option<Self> {
        let arm = Arm::named(name).filter(has_model)?;
        Some(Self {
            name: format!("reference-{name}"),
            arm,
            tasks: tasks(),
        })
    }

    fn react(&self, request: &ModelRequest) -> Reaction {
        let asked = match &request.native {
            Some(native) => Asked::native(&native.messages),
            None => Asked::text(request),
        };
        let arm = taught(request, asked.system);
        let Some(task) = self.task(arm, asked.question) else {
            return Reaction::text("I do not know what to do.");
        };
        match task.solution.get(asked.replies) {
            Some(calls) if !calls.is_empty() => self.calls(arm, calls),
            _ => Reaction::text(answer(task, &asked)),
        }
    }

    /// The task of a question, which a dialect escapes.
    fn task(&self, arm: Option<Arm>, question: &str) -> Option<&Task> {
        let dialect = arm.and_then(|arm| arm.dialect());
        let escaper = dialect.and_then(|dialect| Escaper::new(&dialect).ok());
        let is_asked = |text: &str| {
            question.contains(text)
                || escaper
                    .as_ref()
                    .is_some_and(|escaper| question.contains(&*escaper.escape(text)))
        };
        self.tasks
            .iter()
            .find(|task| is_asked(task.question.trim_end()))
    }

    fn calls(&self, arm: Option<Arm>, calls: &[Call]) -> Reaction {
        let Some(arm) = arm else {
            return Reaction::text("I would use a tool here.");
        };
        let is_own = arm.name == self.arm.name;
        if let Some(dialect) = arm.dialect() {
            let text = if is_own {
                rendered(calls, &dialect)
            } else {
                self.confused(calls, &dialect)
            };
            return Reaction::text(text.unwrap_or_default());
        }
        let arguments = |call: &Call| {
            if is_own {
                return Value::Object(call.arguments.clone()).to_string();
            }
            unescaped(&call.arguments)
        };
        if !arm.is_native() {
            let blocks = calls.iter().map(|call| {
                let (name, arguments) = (&call.tool, arguments(call));
                format!("```json\n{{\"name\": \"{name}\", \"arguments\": {arguments}}}\n```\n")
            });
            return Reaction::text(blocks.collect::<String>());
        }
        let all: Vec<String> = calls.iter().map(arguments).collect();
        // A server's parser gives what it cannot parse back as text.
        let is_valid = all
            .iter()
            .all(|json| serde_json::from_str::<Value>(json).is_ok());
        if !is_valid || self.arm.name == "json" {
            let lines = calls.iter().zip(&all);
            let lines = lines.map(|(call, json)| {
                format!(
                    "<tool_call>\n{{\"name\": \"{}\", \"arguments\": {json}}}\n",
                    call.tool
                )
            });
            return Reaction::text(lines.collect::<String>());
        }
        let calls = calls.iter().zip(all).enumerate();
        let calls = calls.map(|(number, (call, arguments))| {
            NativeCall::new(format!("call_{number}"), call.tool.clone(), arguments)
        });
        Reaction {
            text: String::new(),
            calls: calls.collect(),
        }
    }

    /// A syntax that the model was not made for.
    fn confused(&self, calls: &[Call], dialect: &Dialect) -> Option<String> {
        let syntax = dialect.syntax()?;
        let end = dialect.end_marker(syntax);
        if let Some(own) = self.arm.dialect().filter(|_| !self.arm.has_grammar()) {
            // It writes what it was made for.
            return rendered(calls, &own);
        }
        let markers = dialect.markers().ok()?;
        let start = markers
            .into_iter()
            .find(|form| form.usage == MarkerUse::Start(syntax))?;
        let calls = calls.iter().enumerate().map(|(number, call)| {
            let arguments = Value::Object(call.arguments.clone());
            let header = match syntax {
                Syntax::Block => format!("{}{}:c{number}", start.text, call.tool),
                Syntax::Emoji => format!("{}{}]", start.text, call.tool),
            };
            format!("{header}\n{arguments}\n{end}\n")
        });
        Some(calls.collect())
    }
}

impl Model for Reference {
    fn name(&self) -> &str {
        &self.name
    }

    fn supports_native_calls(&self) -> bool {
        true
    }

    fn constrains(&self) -> Constrain {
        if self.arm.has_grammar() {
            Constrain::Always
        } else {
            Constrain::Never
        }
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        let model = self.clone();
        Reply::new(|out| async move {
            let reaction = model.react(&request);
            let bytes = match &request.native {
                Some(native) => {
                    Asked::native(&native.messages).bytes
                        + json_prompt::definitions(&native.tools).len()
                }
                None => Asked::text(&request).bytes,
            };
            let written = reaction
                .calls
                .iter()
                .map(|call| call.arguments.len() + call.name.len());
            let written = reaction.text.len() + written.sum::<usize>();
            let tokens = |bytes: usize| (bytes / TOKEN_BYTES) as u64 + 1;
            out.usage(Usage::new(tokens(bytes), tokens(written))).await;
            if !reaction.text.is_empty() {
                out.text(reaction.text).await;
            }
            for call in reaction.calls {
                out.piece(Piece::Call(call)).await;
            }
            Ok(Finish::stop().reason("stop"))
        })
    }
}

impl Reaction {
    fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            calls: Vec::new(),
        }
    }
}

impl<'r> Asked<'r> {
    fn of(messages: impl Iterator<Item = (Role, &'r str)>) -> Self {
        let mut asked = Self {
            system: "",
            question: "",
            later: Vec::new(),
            replies: 0,
            bytes: 0,
        };
        for (role, text) in messages {
            asked.bytes += text.len();
            match role {
                Role::System => asked.system = text,
                Role::User if asked.question.is_empty() => asked.question = text,
                Role::User => asked.later.push(text),
                Role::Assistant => asked.replies += 1,
            }
        }
        asked
    }

    fn text(request: &'r ModelRequest) -> Self {
        let messages = request.messages.iter();
        Self::of(messages.map(|message| (message.role, &*message.text)))
    }

    fn native(messages: &'r [NativeMessage]) -> Self {
        Self::of(messages.iter().map(|message| match message {
            NativeMessage::System(text) => (Role::System, text.as_str()),
            NativeMessage::User(text) | NativeMessage::Result { text, .. } => {
                (Role::User, text.as_str())
            }
            NativeMessage::Assistant { text, .. } => (Role::Assistant, text.as_str()),
        }))
    }
}

/// Returns whether there is a model that was made for an arm.
fn has_model(arm: &Arm) -> bool {
    arm.is_default || arm.has_grammar() && !arm.has_examples()
}

/// The arm that a request teaches.
fn taught(request: &ModelRequest, system: &str) -> Option<Arm> {
    if request.native.is_some() {
        return Arm::named("native");
    }
    if system.contains(json_prompt::BEGIN) {
        return Arm::named("json");
    }
    // The longest end marker counts: that of a keyed dialect may begin like another.
    let arms = Arm::all().into_iter();
    let arms =
        arms.filter(|arm| arm.has_grammar() == request.grammar.is_some() && !arm.has_examples());
    let arms = arms.filter_map(|arm| {
        let dialect = arm.dialect()?;
        let end = dialect.end_marker(dialect.syntax()?);
        system.contains(&end).then_some((end.len(), arm))
    });
    arms.max_by_key(|(length, _)| *length).map(|(_, arm)| arm)
}

/// The final answer: what the task asks for, if the results contain it.
fn answer(task: &Task, asked: &Asked<'_>) -> String {
    let mut seen = asked.later.join("\n").to_lowercase();
    seen.retain(|c| c != ',');
    let is_known = |word: &String| {
        task.solution.is_empty() || seen.contains(word) || task.question.contains(word.as_str())
    };
    if task.answer.iter().all(is_known) {
        return format!("Done. {}", task.answer.join(", "));
    }
    "I could not find it out.".to_owned()
}

/// Calls as a model writes them in this dialect.
fn rendered(calls: &[Call], dialect: &Dialect) -> Option<String> {
    let parts = calls.iter().map(|call| {
        TurnPart::Called(PastCall::new(
            Untrusted::new(call.tool.as_str()),
            &call.arguments,
        ))
    });
    let parts: Vec<TurnPart<'_>> = parts.collect();
    let names = calls.iter().map(|call| call.tool.as_str());
    let specs = names.filter_map(|name| definition(name)?.spec(false));
    let specs: Vec<ToolSpec> = specs.collect();
    let find = |name: &str| specs.iter().find(|spec| spec.name == name);
    Some(history(&parts, dialect, find).ok()?.into_text())
}

/// JSON whose strings are not escaped.
fn unescaped(arguments: &Map<String, Value>) -> String {
    fn write(value: &Value) -> String {
        match value {
            Value::String(text) => format!("\"{text}\""),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(write).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Object(fields) => unescaped(fields),
            other => other.to_string(),
        }
    }
    let fields = arguments.iter();
    let fields: Vec<String> = fields
        .map(|(name, value)| format!("\"{name}\": {}", write(value)))
        .collect();
    format!("{{{}}}", fields.join(", "))
}
