//! The definition of a tool.

mod by_schema;
#[cfg(feature = "schemars")]
mod by_type;
mod check;
mod defaults;
pub(crate) mod definitions;
pub(crate) mod example;
pub(crate) mod lookup;
pub(crate) mod set;
mod text;
pub(crate) mod usable;
pub(crate) mod usage;

use std::borrow::Cow;

use plaincall_names::Effect;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::CallExample;
use crate::Schema;
use crate::pointer::escape;
use crate::schema::{AllowedValues, Kinds, SchemaReader};
use crate::validate::Validator;

/// The definition of a tool: its name, parameters and effect.
///
/// ```
/// use plaincall_tool::{Effect, Parameter, ParameterKind, ToolSpec};
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
    /// The name that models write.
    #[doc(alias = "gadget")]
    pub name: String,
    /// The description for the model; may be empty.
    pub description: String,
    parameters: Vec<Parameter>,
    schema: Schema,
    /// Whether calls have no other arguments than the parameters, and no alternatives to choose from.
    has_one_form: bool,
    validator: Validator,
    /// The effect.
    pub effect: Effect,
    /// The effect according to an untrusted source, such as an MCP server. It does not influence any decision: set
    /// [`effect`](Self::effect) if you trust the source.
    pub hinted_effect: Option<Effect>,
    /// The parameters on the line of an emoji call; `None` for the default (`spec/emoji.md`, binding).
    pub positional: Option<Vec<String>>,
    /// The string parameter that takes the body of an emoji call.
    pub body: Option<String>,
    /// Examples of calls. The schema may have more ([`call_examples`](Self::call_examples)).
    pub examples: Vec<CallExample>,
}

/// A parameter of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name: a key of the arguments.
    pub name: String,
    /// The description for the model; may be empty.
    pub description: String,
    /// The type.
    pub kind: ParameterKind,
    /// Whether a call must have it.
    pub required: bool,
    /// The schema, if it is more specific than the kind.
    schema: Option<Shape>,
}

/// A parameter's schema, and its properties for the line of an emoji call.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    schema: Value,
    is_scalar: bool,
    is_listed: bool,
}

/// The type of a parameter.
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
    /// Any value; the text decides its type (`spec/block.md` 7.7).
    #[default]
    Any,
}

impl ParameterKind {
    /// All kinds, with their names in definitions and in words.
    const ALL: [(Self, &'static str, &'static str); 7] = [
        (Self::String, "string", "a string"),
        (Self::Number, "number", "a number"),
        (Self::Integer, "integer", "an integer"),
        (Self::Boolean, "boolean", "true or false"),
        (Self::Array, "array", "a list"),
        (Self::Object, "object", "an object"),
        (Self::Any, "any", "any value"),
    ];

    /// Returns the kind with this name in definitions: `string`, `number`, `integer`, `boolean`, `array`, `object` or
    /// `any`. All but `any` are types of JSON Schema.
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|(_, known, _)| *known == name)
            .map(|(kind, ..)| kind)
    }

    /// Returns the name in definitions.
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// Returns a description, such as `an integer`.
    pub const fn in_words(self) -> &'static str {
        Self::ALL[self as usize].2
    }

    /// Returns the kind of a set of types, ignoring null: `Any` if there are several.
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

    /// Returns `true` for types without parts.
    pub const fn is_scalar(self) -> bool {
        matches!(
            self,
            Self::String | Self::Number | Self::Integer | Self::Boolean
        )
    }
}

impl ToolSpec {
    /// Creates a tool without parameters and with [`Effect::Write`].
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
            examples: Vec::new(),
        }
    }

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

    /// Sets the description.
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Adds a parameter, also to the schema.
    pub fn parameter(mut self, parameter: Parameter) -> Self {
        declare(self.schema.document_mut(), &parameter);
        self.parameters.push(parameter);
        self.validator = self.validator.for_another_schema();
        self
    }

    /// Returns the parameters in declaration order: the members of the object that its schema describes.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Returns the schema of the arguments, which is an object's.
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

    /// Validates arguments only by the keywords for reading, as without the feature `jsonschema`. With the feature, the
    /// whole schema is validated by default.
    pub fn without_validation(mut self) -> Self {
        self.validator.is_off = true;
        self
    }

    /// Returns `true` if calls have no other arguments than the parameters, and no alternatives to choose from.
    pub(crate) fn has_one_form(&self) -> bool {
        self.has_one_form
    }

    pub(crate) fn validator(&self) -> &Validator {
        &self.validator
    }

    /// Sets the effect.
    pub fn effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Sets the parameters on the line of an emoji call, in order.
    pub fn positional<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.positional = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the string parameter for the body of an emoji call.
    pub fn body(mut self, name: impl Into<String>) -> Self {
        self.body = Some(name.into());
        self
    }

    /// Returns the parameter with this name.
    pub fn get(&self, name: &str) -> Option<&Parameter> {
        self.parameters
            .iter()
            .find(|parameter| parameter.name == name)
    }
}

impl Parameter {
    /// Creates a required parameter without a description.
    pub fn new(name: impl Into<String>, kind: ParameterKind) -> Self {
        Self {
            name: name.into(),
            description: String::new(),
            kind,
            required: true,
            schema: None,
        }
    }

    /// Returns the value that counts if a call does not have the parameter.
    pub fn default(&self) -> Option<&Value> {
        self.schema.as_ref()?.schema.get("default")
    }

    /// Creates a required parameter with a JSON Schema.
    ///
    /// References in it start at the root of the tool's whole schema.
    pub fn from_schema(name: impl Into<String>, schema: impl Into<Value>) -> Self {
        let schema = schema.into();
        let reader = SchemaReader::new(&schema);
        let allowed = reader.root();
        Self::at(name, &allowed, schema.clone())
    }

    pub(crate) fn at(name: impl Into<String>, allowed: &AllowedValues<'_>, schema: Value) -> Self {
        let description = [schema.get("description"), allowed.annotation("description")]
            .into_iter()
            .flatten()
            .find_map(Value::as_str);
        let description = description.unwrap_or_default().to_owned();
        let kinds = allowed.kinds();
        Self {
            name: name.into(),
            description,
            kind: ParameterKind::of(kinds),
            required: true,
            schema: Some(Shape {
                is_scalar: !kinds.has_any(Kinds::LIST | Kinds::OBJECT),
                is_listed: allowed.is_listed(),
                schema,
            }),
        }
    }

    /// Returns `true` if its type has no parts.
    pub fn is_scalar(&self) -> bool {
        match &self.schema {
            Some(shape) => shape.is_scalar,
            None => self.kind.is_scalar(),
        }
    }

    /// Returns `true` if it accepts any text, not only listed values.
    pub(crate) fn is_free_text(&self) -> bool {
        let is_listed = self.schema.as_ref().is_some_and(|shape| shape.is_listed);
        self.kind == ParameterKind::String && !is_listed
    }

    /// Sets the description.
    pub fn describe(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    #[doc(hidden)]
    pub fn pointer(&self) -> Cow<'_, str> {
        escape(&self.name)
    }

    /// Makes the parameter optional.
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
