//! Few-shot examples: questions, calls, results and answers as messages before a conversation (`spec/prompt.md` 3.3).

mod shown_calls;

pub use shown_calls::{ShownCall, ShownCalls};

use std::fmt;
use std::slice;

pub use plaincall_names::FewShotExample;
use plaincall_syntax::{Dialect, DialectError};

use crate::history::{ResultMessage, Status, results};
use crate::render_call::{JsonCall, render_call};
use plaincall_reply::{PromptTextBuilder, Untrusted};
use plaincall_tool::{CallExample, ToolSpec};

/// The maximum size of all messages together, in bytes.
const MOST_BYTES: usize = 16 << 10;

/// A message of an example.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FewShotMessage {
    /// Whether the model is its author. Otherwise it is the user.
    pub is_of_model: bool,
    /// The text, with the markers of the dialect.
    pub text: String,
}

/// The messages of the chosen examples, and their calls.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FewShot {
    /// The messages. User and model alternate; the user is first, the model last.
    pub messages: Vec<FewShotMessage>,
    /// The calls in them, which the model may copy.
    pub calls: ShownCalls,
    /// The given examples that are not valid.
    pub invalid: Vec<InvalidExample>,
}

/// An example that cannot be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InvalidExample {
    /// The index of the example.
    pub index: usize,
    /// The name of the field.
    pub field: &'static str,
    /// The reason, and what to do.
    pub message: String,
}

impl fmt::Display for InvalidExample {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            index,
            field,
            message,
        } = self;
        write!(formatter, "`{field}` of example {}: {message}", index + 1)
    }
}

/// Creates the example of a call, if the call has a [question](CallExample::question).
fn example_of(tool: &ToolSpec, call: &CallExample) -> Option<FewShotExample> {
    Some(FewShotExample {
        question: call.question.clone()?,
        tool: Some(tool.name.clone()),
        arguments: call.arguments.as_object()?.clone(),
        result: call.result.clone().unwrap_or_default(),
        answer: call.answer.clone().unwrap_or_default(),
    })
}

/// Returns the field that is missing or not allowed, and the reason.
fn problem_of(example: &FewShotExample) -> Option<(&'static str, String)> {
    let texts = [("question", &example.question), ("answer", &example.answer)];
    if let Some((field, _)) = texts.iter().find(|(_, text)| text.trim().is_empty()) {
        return Some((
            *field,
            "it is missing; servers reject empty messages".to_owned(),
        ));
    }
    let has_call = example.tool.is_some();
    let others = [
        ("arguments", !example.arguments.is_empty()),
        ("result", !example.result.is_empty()),
    ];
    let (field, _) = others
        .into_iter()
        .find(|(_, is_given)| *is_given && !has_call)?;
    Some((
        field,
        "the example has no `tool`; add it, or remove this".to_owned(),
    ))
}

/// Chooses at most `most` examples, and writes them as messages (`spec/prompt.md` 3.3): first one without a call, then one for
/// each tool, then the second of each. Examples of the tools themselves, if they have a question, follow the given ones.
/// An example of another tool is omitted, and one that would exceed 16 KiB.
///
/// ```
/// use plaincall_names::FewShotExample;
/// use plaincall_prompt::few_shot::few_shot;
/// use plaincall_tool::{Parameter, ParameterKind, ToolSpec};
/// use plaincall_syntax::Dialect;
///
/// let weather = ToolSpec::new("weather").parameter(Parameter::new("town", ParameterKind::String));
/// let examples: Vec<FewShotExample> = serde_json::from_value(serde_json::json!([
///     {"question": "Hello!", "answer": "Hello! What can I do for you?"},
///     {"question": "Is it warm in Oslo?", "tool": "weather", "arguments": {"town": "Oslo"}, "result": "3 °C", "answer": "No, 3 °C."},
/// ]))?;
/// let shown = few_shot(&examples, &[&weather], &Dialect::emoji().escaped(), 8)?;
/// let texts: Vec<&str> = shown.messages.iter().map(|message| &*message.text).collect();
/// assert_eq!(texts[0], "Hello!");
/// assert_eq!(texts[3], "🛠️[weather Oslo]\n🛠️[/end]\n");
/// assert_eq!(texts[5], "No, 3 °C.");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns an error for an invalid dialect.
pub fn few_shot(
    given: &[FewShotExample],
    tools: &[&ToolSpec],
    dialect: &Dialect,
    most: usize,
) -> Result<FewShot, DialectError> {
    let escape = PromptTextBuilder::new(slice::from_ref(dialect))?;
    let mut shown = FewShot::default();
    let mut groups: Vec<Vec<Conversation>> = Vec::new();
    groups.resize_with(tools.len() + 1, Vec::new);
    for (index, example) in given.iter().enumerate() {
        let place = |name: &String| tools.iter().position(|tool| tool.name == *name);
        let place = example.tool.as_ref().map(place);
        if place == Some(None) {
            continue;
        }
        let place = place.flatten();
        let tool = place.and_then(|place| tools.get(place)).copied();
        let group = groups.get_mut(place.map_or(0, |place| place + 1));
        match Conversation::new(example, tool, dialect, &escape) {
            Ok(written) => {
                if let Some(group) = group {
                    group.push(written);
                }
            }
            Err((field, message)) => shown.invalid.push(InvalidExample {
                index,
                field,
                message,
            }),
        }
    }
    // Without any to show, those of the tools need not be written.
    let shown_tools = if most == 0 { &[] } else { tools };
    for (tool, group) in shown_tools.iter().zip(groups.iter_mut().skip(1)) {
        let own = tool.call_examples();
        let own = own.iter().filter_map(|call| example_of(tool, call));
        // An invalid one is an error of the tool.
        let own = own.filter_map(|one| Conversation::new(&one, Some(tool), dialect, &escape).ok());
        group.extend(own);
    }
    shown.choose(groups, most);
    Ok(shown)
}

impl FewShot {
    fn choose(&mut self, groups: Vec<Vec<Conversation>>, most: usize) {
        let mut left = MOST_BYTES;
        let mut chosen = 0;
        let mut groups: Vec<_> = groups.into_iter().map(Vec::into_iter).collect();
        while groups.iter().any(|group| group.len() > 0) {
            for conversation in groups.iter_mut().filter_map(Iterator::next) {
                let rest = left.checked_sub(conversation.len());
                let Some(rest) = rest.filter(|_| chosen < most) else {
                    continue;
                };
                (left, chosen) = (rest, chosen + 1);
                self.messages.extend(conversation.messages);
                self.calls.extend(conversation.call);
            }
        }
    }
}

/// An example as text.
struct Conversation {
    messages: Vec<FewShotMessage>,
    call: Option<ShownCall>,
}

impl Conversation {
    /// # Errors
    /// Returns the field with a problem, and the problem.
    fn new(
        example: &FewShotExample,
        tool: Option<&ToolSpec>,
        dialect: &Dialect,
        escape: &PromptTextBuilder,
    ) -> Result<Self, (&'static str, String)> {
        if let Some(problem) = problem_of(example) {
            return Err(problem);
        }
        let mut texts = vec![
            escape
                .escape(Untrusted::new(&*example.question))
                .into_owned(),
        ];
        let mut call = None;
        if let Some(tool) = tool {
            let arguments = CallExample::new(example.arguments.clone());
            let bound = arguments.bound_for(tool);
            let bound = bound.map_err(|problem| ("arguments", problem))?;
            let written = JsonCall::new(&tool.name, &example.arguments);
            let written = render_call(&written, Some(tool), dialect);
            texts.push(written.map_err(|error| ("arguments", error.to_string()))?);
            let result = ResultMessage::new(Untrusted::new(&*tool.name), Untrusted::new(""));
            let result = result.output(Untrusted::new(&*example.result));
            let result = results(&[result.status(Status::Ok)], dialect);
            texts.push(
                result
                    .map_err(|error| ("result", error.to_string()))?
                    .into_text(),
            );
            call = Some(ShownCall::new(&tool.name, &bound));
        }
        texts.push(escape.escape(Untrusted::new(&*example.answer)).into_owned());
        let messages = texts
            .into_iter()
            .enumerate()
            .map(|(index, text)| FewShotMessage {
                is_of_model: index % 2 == 1,
                text,
            });
        Ok(Self {
            messages: messages.collect(),
            call,
        })
    }

    fn len(&self) -> usize {
        self.messages.iter().map(|message| message.text.len()).sum()
    }
}
