//! What a tool is, as data.

mod by_schema;
#[cfg(feature = "schemars")]
mod by_type;
pub(crate) mod check;
pub(crate) mod definitions;
pub(crate) mod lookup;
pub(crate) mod set;
mod untrusted;
pub(crate) mod usable;
pub(crate) mod usage;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::pointer::escape;
use crate::schema::{Kinds, Place, Schema, SchemaReader};
use crate::validate::Validator;

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
    parameters: Vec<Parameter>,
    schema: Schema,
    /// Whether a call cannot have other arguments than the parameters, nor has to choose between forms of them.
    has_one_form: bool,
    validator: Validator,
    /// What it may do.
    pub effect: Effect,
    /// What somebody else says that it may do, such as an MCP server of its own tools. Nothing that decides looks at
    /// it: who trusts the source sets [`effect`](Self::effect).
    pub hinted_effect: Option<Effect>,
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
    /// Its schema, where that says more than its kind.
    schema: Option<Shape>,
}

/// A parameter's schema, and what follows from it for the line of an emoji call.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    schema: Value,
    is_scalar: bool,
    is_listed: bool,
}

/// What a parameter takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// Any text, exactly as written.
    String,
    /// A decimal number.
    Number,
    /// An integer.
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
    /// All kinds, each with its name in definitions and what it takes, in words.
    const ALL: [(Self, &'static str, &'static str); 7] = [
        (Self::String, "string", "a string"),
        (Self::Number, "number", "a number"),
        (Self::Integer, "integer", "an integer"),
        (Self::Boolean, "boolean", "true or false"),
        (Self::Array, "array", "a list"),
        (Self::Object, "object", "an object"),
        (Self::Any, "any", "any value"),
    ];

    /// The kind of this name, as definitions write it: `string`, `number`, `integer`, `boolean`, `array`, `object` or
    /// `any`. All but `any` are types of JSON Schema.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known, _)| *known == name)
            .map(|(kind, ..)| kind)
    }

    /// Its name, as definitions write it.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// What it takes, in words: `an integer`.
    pub const fn in_words(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    /// The kind of a set of types, null left out: `Any` where there are several.
    pub(crate) fn of(kinds: Kinds) -> Self {
        let kinds = kinds.without(Kinds::NULL);
        let is = |one: Kinds| kinds == one;
        match () {
            () if is(Kinds::STRING) => Self::String,
            () if is(Kinds::WHOLE) => Self::Integer,
            () if is(Kinds::NUMBER) || is(Kinds::FRACTION) => Self::Number,
            () if is(Kinds::BOOLEAN) => Self::Boolean,
            () if is(Kinds::LIST) => Self::Array,
            () if is(Kinds::OBJECT) => Self::Object,
            () => Self::Any,
        }
    }

    /// Whether it takes one value without parts.
    pub const fn is_scalar(self) -> bool {
        matches!(
            self,
            Self::String | Self::Number | Self::Integer | Self::Boolean
        )
    }
}

/// What a tool may do to the world.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It changes nothing.
    Read,
    /// It may change something, but doing it twice is the same as doing it once.
    Idempotent,
    /// It changes something. The default for tools without a declared effect.
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
            schema: Schema::of_no_parameters(),
            has_one_form: true,
            validator: Validator::default(),
            effect: Effect::default(),
            hinted_effect: None,
            positional: None,
            body: None,
        }
    }

    /// Sets the description.
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Adds a parameter, to the schema too.
    pub fn parameter(mut self, parameter: Parameter) -> Self {
        declare(self.schema.document_mut(), &parameter);
        self.parameters.push(parameter);
        self.validator = self.validator.for_another_schema();
        self
    }

    /// What it takes, in the order declared: the members of the object that its schema describes.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The schema of its arguments, which is an object's.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    pub(crate) fn with_schema(mut self, schema: Schema, parameters: Vec<Parameter>) -> Self {
        self.has_one_form = schema.has_one_form();
        self.schema = schema;
        self.parameters = parameters;
        self.validator = self.validator.for_another_schema();
        self
    }

    /// Holds arguments only against what reading looks at, as without the feature `jsonschema`. With it, the whole schema
    /// is validated by the crate of that name.
    pub fn without_validation(mut self) -> Self {
        self.validator.is_off = true;
        self
    }

    /// Whether a call cannot have other arguments than the parameters, nor has to choose between forms of them.
    pub(crate) fn has_one_form(&self) -> bool {
        self.has_one_form
    }

    pub(crate) fn validator(&self) -> &Validator {
        &self.validator
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
            schema: None,
        }
    }

    /// A required parameter of which a JSON Schema says what it takes.
    ///
    /// References in it are read from the root of the tool's whole schema.
    pub fn from_schema(name: impl Into<String>, schema: impl Into<Value>) -> Self {
        let schema = schema.into();
        let reader = SchemaReader::new(&schema);
        let place = reader.root();
        Self::at(name, &place, schema.clone())
    }

    /// A parameter whose schema says what stands at `place`.
    pub(crate) fn at(name: impl Into<String>, place: &Place<'_>, schema: Value) -> Self {
        let description = [schema.get("description"), place.annotation("description")]
            .into_iter()
            .flatten()
            .find_map(Value::as_str);
        let description = description.unwrap_or_default().to_owned();
        let kinds = place.kinds();
        Self {
            name: name.into(),
            description,
            kind: ParameterKind::of(kinds),
            required: true,
            schema: Some(Shape {
                is_scalar: !kinds.has_any(Kinds::LIST | Kinds::OBJECT),
                is_listed: place.is_listed(),
                schema,
            }),
        }
    }

    /// Whether it takes one value without parts.
    pub fn is_scalar(&self) -> bool {
        match &self.schema {
            Some(shape) => shape.is_scalar,
            None => self.kind.is_scalar(),
        }
    }

    /// Whether it takes any text, not one of a list.
    pub(crate) fn is_free_text(&self) -> bool {
        let is_listed = self.schema.as_ref().is_some_and(|shape| shape.is_listed);
        self.kind == ParameterKind::String && !is_listed
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

fn declare(document: &mut Value, parameter: &Parameter) {
    let mut schema = match (&parameter.schema, parameter.kind) {
        (Some(shape), _) => shape.schema.clone(),
        (None, ParameterKind::Any) => json!({}),
        (None, kind) => json!({"type": kind.name()}),
    };
    if let (Value::Object(keywords), false) = (&mut schema, parameter.description.is_empty()) {
        let description = parameter.description.as_str().into();
        keywords.insert("description".to_owned(), description);
    }
    let Value::Object(document) = document else {
        return;
    };
    let properties = document.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        properties.insert(parameter.name.clone(), schema);
    }
    let required = document.entry("required").or_insert_with(|| json!([]));
    if let (Value::Array(required), true) = (required, parameter.required) {
        required.push(parameter.name.as_str().into());
    }
}
