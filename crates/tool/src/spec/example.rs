//! Examples of calls (`spec/prompt.md` 3.1).

use serde_json::Value;

/// An example of a call, which the prompt shows as the model has to write it.
///
/// ```
/// use plaincall_tool::{CallExample, Parameter, ParameterKind, ToolSpec};
///
/// let example = CallExample::new(serde_json::json!({"town": "Rome"}))
///     .comment("One town at a time")
///     .result("21 °C");
/// let tool = ToolSpec::new("weather").parameter(Parameter::new("town", ParameterKind::String));
/// assert!(tool.clone().example(example).check().is_ok());
/// let other = CallExample::new(serde_json::json!({"city": "Rome"}));
/// assert!(tool.example(other).check().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallExample {
    /// The arguments: an object.
    pub arguments: Value,
    /// The output of the call.
    pub result: Option<String>,
    /// A comment for the model; may be empty.
    pub comment: String,
    /// The question of a person that the call answers. With it, the example can be shown as messages
    /// (`plaincall_prompt::few_shot`).
    pub question: Option<String>,
    /// The answer of the model after the call.
    pub answer: Option<String>,
}

impl CallExample {
    /// Creates an example with these arguments, an object.
    pub fn new(arguments: impl Into<Value>) -> Self {
        Self {
            arguments: arguments.into(),
            result: None,
            comment: String::new(),
            question: None,
            answer: None,
        }
    }

    /// Sets the question of a person, and the answer of the model after the call.
    pub fn asked(mut self, question: impl Into<String>, answer: impl Into<String>) -> Self {
        self.question = Some(question.into());
        self.answer = Some(answer.into());
        self
    }

    /// Sets the output of the call.
    pub fn result(mut self, output: impl Into<String>) -> Self {
        self.result = Some(output.into());
        self
    }

    /// Sets a comment for the model.
    pub fn comment(mut self, text: impl Into<String>) -> Self {
        self.comment = text.into();
        self
    }

    /// Reads an object with `question`, `answer` and `arguments`, and perhaps `result`.
    pub(super) fn asked_in(example: &Value) -> Option<Self> {
        let text = |key: &str| example.get(key)?.as_str();
        let mut call = Self::new(example.get("arguments")?.clone());
        call.result = text("result").map(str::to_owned);
        Some(call.asked(text("question")?, text("answer")?))
    }

    /// Returns all its text, and the names and texts in its arguments.
    pub(super) fn gather<'e>(&'e self, words: &mut Vec<&'e str>) {
        words.push(&self.comment);
        gather(&self.arguments, words);
        words.extend(self.result.as_deref());
        words.extend(self.question.as_deref());
        words.extend(self.answer.as_deref());
    }
}

/// Collects the strings of a schema. Parsing has limited its depth.
pub(super) fn gather<'v>(value: &'v Value, words: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => words.push(text),
        Value::Array(items) => items.iter().for_each(|item| gather(item, words)),
        Value::Object(members) => {
            for (name, value) in members {
                words.push(name);
                gather(value, words);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
