//! What a tool is, as data.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::pointer::escape;

/// The definition of a tool: what it is called, what it takes and what it may do.
///
/// ```
/// use plaincall_call::{Effect, Parameter, ParameterKind, ToolSpec};
///
/// let tool = ToolSpec::new("read-file")
///     .describe("Reads a file.")
///     .parameter(Parameter::new("path", ParameterKind::String))
///     .parameter(Parameter::new("lines", ParameterKind::Integer).optional())
///     .effect(Effect::Read);
/// assert!(tool.check().is_ok());
/// assert_eq!(ToolSpec::new("x").effect, Effect::Write);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// The name a model writes.
    #[doc(alias = "gadget")]
    pub name: String,
    /// What the tool does, in words for the model; may be empty.
    pub description: String,
    /// What it takes, in the order declared.
    pub parameters: Vec<Parameter>,
    /// What it may do.
    pub effect: Effect,
    /// The parameters on the line of an emoji call; `None` for the default (`spec/emoji.md`, binding).
    pub positional: Option<Vec<String>>,
    /// The string parameter that takes the body of an emoji call.
    pub body: Option<String>,
}

/// A parameter of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name: a key of the arguments.
    pub name: String,
    /// What it is for, in words for the model; may be empty.
    pub description: String,
    /// What it takes.
    pub kind: ParameterKind,
    /// Whether a call without it is wrong.
    pub required: bool,
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// Any text, exactly as written.
    String,
    /// A decimal number.
    Number,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A list.
    Array,
    /// Named values.
    Object,
    /// Anything; what it is is read from the text (`spec/block.md` 7.7).
    #[default]
    Any,
}

impl ParameterKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::String,
        Self::Number,
        Self::Integer,
        Self::Boolean,
        Self::Array,
        Self::Object,
        Self::Any,
    ];

    /// The kind of this name, as definitions write it: `string`, `number`, `integer`, `boolean`, `array`, `object` or
    /// `any`. All but `any` are types of JSON Schema.
    ///
    /// ```
    /// use plaincall_call::ParameterKind;
    ///
    /// assert_eq!(ParameterKind::from_name("integer"), Some(ParameterKind::Integer));
    /// assert_eq!(ParameterKind::from_name("Integer"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name, as definitions write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
            Self::Any => "any",
        }
    }

    /// Whether it takes one value without parts.
    pub const fn is_scalar(self) -> bool {
        matches!(
            self,
            Self::String | Self::Number | Self::Integer | Self::Boolean
        )
    }

    /// What it takes, in words: `a whole number`.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::String => "a text",
            Self::Number => "a number",
            Self::Integer => "a whole number",
            Self::Boolean => "true or false",
            Self::Array => "a list",
            Self::Object => "an object",
            Self::Any => "any value",
        }
    }
}

/// What a tool may do to the world.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It changes nothing.
    Read,
    /// It may change something, but doing it twice is the same as doing it once.
    Idempotent,
    /// It changes something. What says nothing counts as this.
    #[default]
    Write,
}

impl ToolSpec {
    /// A tool without parameters that may write.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            parameters: Vec::new(),
            effect: Effect::default(),
            positional: None,
            body: None,
        }
    }

    /// Sets the description.
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Adds a parameter.
    pub fn parameter(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Sets what the tool may do.
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Sets the parameters on the line of an emoji call, in their order.
    pub fn positional<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.positional = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the string parameter that takes the body of an emoji call.
    pub fn body(mut self, name: impl Into<String>) -> Self {
        self.body = Some(name.into());
        self
    }

    /// The parameter of this name.
    pub fn get(&self, name: &str) -> Option<&Parameter> {
        self.parameters
            .iter()
            .find(|parameter| parameter.name == name)
    }
}

impl Parameter {
    /// A required parameter without a description.
    pub fn new(name: impl Into<String>, kind: ParameterKind) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            kind,
            required: true,
        }
    }

    /// Sets the description.
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// The pointer to it: its name with `~` and `/` escaped.
    pub(crate) fn pointer(&self) -> Cow<'_, str> {
        escape(&self.name)
    }

    /// Lets a call leave it out.
    pub fn optional(mut self) -> Self {
        self.required = false;
        self
    }
}
