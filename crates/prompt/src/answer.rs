//! Answers that match a JSON Schema (`spec/agent.md` 3).

use plaincall_syntax::{Dialect, DialectError};
#[cfg(feature = "schemars")]
use serde::de::DeserializeOwned;
use serde_json::Value;

use plaincall_reply::{PromptText, PromptTextBuilder, Trusted, Untrusted};
use plaincall_tool::{ArgumentError, Schema, SpecError, json_text::parse};
#[cfg(feature = "schemars")]
use plaincall_tool::{read::from_json, validate::Validator};

/// The maximum number of problems in a message.
const PROBLEMS: usize = 5;

/// Checks whether a value converts to a type.
type Converts = fn(&Value) -> Result<(), ArgumentError>;

/// The JSON Schema of an answer: the text for the prompt, the check of an answer, and the repair message.
///
/// ```
/// use plaincall_prompt::answer::AnswerSchema;
/// use plaincall_syntax::Dialect;
///
/// let schema = serde_json::json!({"type": "object", "properties": {"count": {"type": "integer"}}});
/// let schema = AnswerSchema::new(schema)?;
/// assert_eq!(schema.read("```json\n{\"count\": 3}\n```"), Ok("{\"count\": 3}"));
/// let problems = schema.read("{\"count\": \"x\"}").unwrap_err();
/// assert_eq!(problems[0].to_string(), "`count`: expected an integer, found `x`");
/// let message = schema.repair(&problems, &Dialect::block())?;
/// assert!(message.text().starts_with("Your answer does not match the schema:\n- `count`: "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AnswerSchema {
    schema: Schema,
    validator: Validator,
    converts: Option<Converts>,
}

impl AnswerSchema {
    /// Creates it from a JSON Schema of any draft.
    ///
    /// # Errors
    /// Returns an error, with its location, if this is not a JSON Schema.
    pub fn new(schema: impl Into<Value>) -> Result<Self, SpecError> {
        let schema = Schema::new(schema);
        if !schema.document().is_object() {
            return Err(SpecError::new("", "a JSON Schema must be an object"));
        }
        schema.check()?;
        let validator = Validator::default();
        validator.check(&schema)?;
        Ok(Self {
            schema,
            validator,
            converts: None,
        })
    }

    /// Creates the schema of a type. An answer must also convert to the type.
    ///
    /// # Errors
    /// Returns an error if the type has an invalid schema.
    #[cfg(feature = "schemars")]
    pub fn of<T: DeserializeOwned + schemars::JsonSchema>() -> Result<Self, SpecError> {
        let mut schema = Self::new(Schema::of::<T>().document().clone())?;
        schema.converts = Some(|value| from_json::<T>(value).map(drop));
        Ok(schema)
    }

    /// Returns the schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Writes the text for the prompt.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub fn prompt(&self, dialect: &Dialect) -> Result<PromptText, DialectError> {
        let mut text = PromptTextBuilder::new(std::slice::from_ref(dialect))?;
        let schema = self.schema.document().to_string();
        text.trusted("Your answer must be only JSON that matches this JSON Schema:\n")
            .untrusted(&Untrusted::new(schema))
            .trusted("\n");
        Ok(text.finish())
    }

    /// Returns the JSON of an answer, without the code fence around it.
    ///
    /// # Errors
    /// Returns all problems: the text is not JSON or contains other text, or a value does not match the schema. The pointer
    /// of a problem names the value.
    pub fn read<'t>(&self, answer: &'t str) -> Result<&'t str, Vec<ArgumentError>> {
        let (json, _) = self.parse(answer)?;
        Ok(json)
    }

    /// Converts an answer to a type.
    ///
    /// # Errors
    /// Returns all problems of [`read`](Self::read), or the first value that does not match the type.
    #[cfg(feature = "schemars")]
    pub fn read_as<T: DeserializeOwned>(&self, answer: &str) -> Result<T, Vec<ArgumentError>> {
        let (_, value) = self.parse(answer)?;
        from_json(&value).map_err(|error| vec![error])
    }

    fn parse<'t>(&self, answer: &'t str) -> Result<(&'t str, Value), Vec<ArgumentError>> {
        let json = unfenced(answer.trim());
        let problem = |message| vec![ArgumentError::at("", message)];
        let value = parse(json).map_err(|error| problem(describe(json, &error)))?;
        let violations = self
            .validator
            .validate(&self.schema, || value.clone(), &mut 0);
        let violations = violations.map_err(|error| problem(error.to_string()))?;
        let problems: Vec<ArgumentError> = violations
            .into_iter()
            .flatten()
            .map(|it| ArgumentError::at(&it.pointer, it.message))
            .collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        if let Some(converts) = self.converts {
            converts(&value).map_err(|error| vec![error])?;
        }
        Ok((json, value))
    }

    /// Writes the message about an answer with these problems. It shows at most five.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub fn repair(
        &self,
        problems: &[ArgumentError],
        dialect: &Dialect,
    ) -> Result<PromptText, DialectError> {
        let mut text = PromptTextBuilder::new(std::slice::from_ref(dialect))?;
        text.trusted("Your answer does not match the schema:\n");
        for problem in problems.iter().take(PROBLEMS) {
            text.trusted("- ")
                .untrusted(&Untrusted::new(problem.to_string()).on_one_line())
                .trusted("\n");
        }
        if problems.len() > PROBLEMS {
            let more = format!("- and {} more\n", problems.len() - PROBLEMS);
            text.trusted(Trusted::assert(more));
        }
        text.trusted("Send the whole answer again, as JSON only.\n");
        Ok(text.finish())
    }
}

/// Returns the content if the whole text is one code block.
fn unfenced(text: &str) -> &str {
    let inside = || {
        let fence = ["```", "~~~"].into_iter().find(|it| text.starts_with(it))?;
        let (info, rest) = text.strip_prefix(fence)?.split_once('\n')?;
        let content = rest.strip_suffix(fence)?;
        let is_word = info.trim().chars().all(char::is_alphanumeric);
        (is_word && !content.contains(fence)).then(|| content.trim())
    };
    inside().unwrap_or(text)
}

/// Describes why a text is not JSON.
fn describe(text: &str, error: &str) -> String {
    let is_json = |c: char| matches!(c, '{' | '[' | '"' | '-') || c.is_ascii_digit();
    let literals = ["true", "false", "null"];
    let begins = text.starts_with(is_json) || literals.iter().any(|it| text.starts_with(it));
    if !begins && text.contains(['{', '[']) {
        "there is text before the JSON; send only the JSON".to_owned()
    } else if error.starts_with("trailing characters") {
        "there is text after the JSON; send only the JSON".to_owned()
    } else {
        format!("invalid JSON: {error}")
    }
}
