//! Examples of calls (`spec/prompt.md` 3.1).

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::arguments::Arguments;
use crate::bind::bind_arguments;
use crate::flatten::flatten_call;
use crate::spec_error::SpecError;
use crate::tool::ToolSpec;
use crate::tool::untrusted::gather;

/// An example of a call, which the prompt shows as the model has to write it.
///
/// ```
/// use plaincall_call::{CallExample, Parameter, ParameterKind, ToolSpec, prompt::{PromptOptions, prompt}};
/// use plaincall_syntax::Dialect;
///
/// let example = CallExample::new(serde_json::json!({"town": "Rome"}))
///     .comment("One town at a time")
///     .result("21 °C");
/// let tool = ToolSpec::new("weather")
///     .parameter(Parameter::new("town", ParameterKind::String))
///     .example(example);
/// let prompt = prompt([&tool], &Dialect::block(), &PromptOptions::new())?;
/// assert!(prompt.text().contains(
///     "Example: // One town at a time\n\
///      !!!GADGET_START:weather\n!!!ARG:town\nRome\n!!!GADGET_END\n\
///      Result: 21 °C\n"
/// ));
/// # Ok::<(), plaincall_syntax::DialectError>(())
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
    /// ([`few_shot`](crate::few_shot)).
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
    fn asked_in(example: &Value) -> Option<Self> {
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

    /// Returns the arguments if a call of the tool can have them.
    ///
    /// # Errors
    /// Returns the problem.
    pub(crate) fn arguments_for(&self, tool: &ToolSpec) -> Result<&Map<String, Value>, String> {
        self.bound_for(tool)?;
        self.object()
    }

    fn object(&self) -> Result<&Map<String, Value>, String> {
        let arguments = self.arguments.as_object();
        arguments.ok_or_else(|| "the arguments of an example must be an object".to_owned())
    }

    /// Returns the arguments that the tool would get.
    ///
    /// # Errors
    /// Returns the problem.
    pub(crate) fn bound_for(&self, tool: &ToolSpec) -> Result<Arguments, String> {
        let pairs = flatten_call(self.object()?, tool)?;
        let pairs = pairs.iter().map(|(pointer, text)| (&**pointer, &**text));
        let written = Arguments::from_pairs_for(tool, pairs).map_err(|error| error.to_string())?;
        bind_arguments(tool, &written).map_err(|errors| {
            let messages: Vec<_> = errors.into_iter().map(|error| error.message).collect();
            messages.join("; ")
        })
    }
}

impl ToolSpec {
    /// Adds an example of a call. [`check`](Self::check) rejects arguments that a call cannot have.
    pub fn example(mut self, example: CallExample) -> Self {
        self.examples.push(example);
        self
    }

    /// Returns the examples of calls: those that were [added](Self::example), then the objects in the `examples` of the
    /// schema of the arguments: arguments, or `arguments` with `question`, `answer` and perhaps `result`. Of two with the same
    /// arguments, only the first.
    pub fn call_examples(&self) -> Vec<Cow<'_, CallExample>> {
        let of_schema = self.schema().document().get("examples");
        let of_schema = of_schema.and_then(Value::as_array).into_iter().flatten();
        let of_schema = of_schema.filter(|one| one.is_object());
        let has_question = self.parameters().iter().any(|one| one.name == "question");
        let of_schema = of_schema.map(|one| {
            let asked = CallExample::asked_in(one).filter(|_| !has_question);
            Cow::Owned(asked.unwrap_or_else(|| CallExample::new(one.clone())))
        });
        let mut examples: Vec<Cow<'_, CallExample>> = Vec::new();
        for example in self.examples.iter().map(Cow::Borrowed).chain(of_schema) {
            if examples
                .iter()
                .all(|one| one.arguments != example.arguments)
            {
                examples.push(example);
            }
        }
        examples
    }

    pub(super) fn check_examples(&self) -> Result<(), SpecError> {
        for (index, example) in self.examples.iter().enumerate() {
            let checked = example.arguments_for(self);
            checked.map_err(|problem| {
                SpecError::new(format!("/examples/{index}/arguments"), problem)
            })?;
            let given = [
                ("question", example.question.is_some()),
                ("answer", example.answer.is_some()),
            ];
            if let [(given, true), (missing, false)] | [(missing, false), (given, true)] = given {
                let message = format!("an example with `{given}` needs `{missing}` too");
                return Err(SpecError::new(
                    format!("/examples/{index}/{given}"),
                    message,
                ));
            }
        }
        Ok(())
    }
}
