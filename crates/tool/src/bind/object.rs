//! Arguments that are a JSON object (`spec/running.md`, "Submitted calls").

use std::borrow::Cow;

use plaincall_syntax::{Span, Syntax};
use serde_json::{Map, Value};

use crate::Arguments;
use crate::ConversionRule;
use crate::ReplyDiagnostic;
use crate::ToolSpec;
use crate::absent::given;
use crate::arguments::{Leaf, Text};
use crate::bind::{Problems, Undeclared};
use crate::decimal::scalar_text;
use crate::pointer::escape;
use crate::pointer::unusable_key;
use crate::schema::{AllowedValues, Kinds, SchemaReader};
use crate::text_type::TextType;
use crate::tree::{Node, NodeIndex, Object, ROOT};

/// Validates a JSON object against the definition of a tool, and returns it as arguments. No value is read as text, so all JSON that
/// fits the schema is accepted. A whole number with a point is an integer where the schema wants one, and null for an optional
/// parameter that cannot be null means that it is absent.
///
/// ```
/// use plaincall_tool::{Parameter, ParameterKind, ToolSpec, bind_object};
/// use serde_json::json;
///
/// let tool = ToolSpec::new("wait").parameter(Parameter::new("ms", ParameterKind::Integer));
/// let bind = |arguments: serde_json::Value| bind_object(&tool, arguments.as_object().expect("an object"));
/// assert_eq!(bind(json!({"ms": 7.0})).expect("it fits").to_value(), json!({"ms": 7}));
/// assert_eq!(bind(json!({"ms": "7"})).unwrap_err()[0].message, "`ms`: expected an integer, found `\"7\"`");
/// ```
///
/// # Errors
/// Returns all errors at once, missing arguments last.
pub fn bind_object(
    tool: &ToolSpec,
    object: &Map<String, Value>,
) -> Result<Arguments, Vec<ReplyDiagnostic>> {
    let mut problems = Problems::default();
    let arguments = bind_values(tool, object, &mut problems);
    problems.into_result(arguments)
}

/// Binds as [`bind_object`] does.
pub(crate) fn bind_values(
    tool: &ToolSpec,
    object: &Map<String, Value>,
    problems: &mut Problems,
) -> Arguments {
    let object = given(object, tool).into_owned();
    let mut undeclared = Undeclared::new(tool);
    let reader = tool.schema().reader();
    let object = Value::Object(object);
    let root = reader.narrow_to(&reader.root(), &object);
    let mut writer = Writer {
        reader: &reader,
        arguments: Arguments::default(),
    };
    for (key, value) in object.as_object().into_iter().flatten() {
        let pointer = escape(key);
        if tool.get(key).is_none() && !root.declares(key) {
            problems.push(undeclared.problem(&pointer, Span::default()));
            continue;
        }
        let allowed = reader.member(&root, key);
        let spelling = reader.json_spelling(&allowed, value, &value.to_string());
        if let Some(type_error) = &spelling.type_error {
            problems.type_error(&pointer, Span::default(), type_error);
        }
        writer.add(ROOT, key, &pointer, value, &allowed);
    }
    problems.steps += reader.steps_taken();
    let arguments = writer.arguments;
    problems.complete(tool, Syntax::Block, Span::default(), &arguments);
    arguments
}

struct Writer<'w, 's> {
    reader: &'w SchemaReader<'s>,
    arguments: Arguments,
}

impl<'s> Writer<'_, 's> {
    /// Adds a value below a node. Recurses as deep as the value.
    fn add(
        &mut self,
        parent: NodeIndex,
        key: &str,
        pointer: &str,
        value: &Value,
        allowed: &AllowedValues<'s>,
    ) {
        let narrow = |value| self.reader.narrow_to(allowed, value);
        match value {
            Value::Array(items) if !items.is_empty() => {
                let allowed = narrow(value);
                let node = self
                    .arguments
                    .tree_mut()
                    .push(parent, key, Node::Array(Vec::new()));
                for (index, item) in items.iter().enumerate() {
                    let below = self.reader.item(&allowed, index);
                    self.add(node, "", &format!("{pointer}/{index}"), item, &below);
                }
            }
            // A pointer cannot express each key.
            Value::Object(members)
                if !members.is_empty() && members.keys().all(|key| unusable_key(key).is_none()) =>
            {
                let allowed = narrow(value);
                let node = Node::Object(Object::default());
                let node = self.arguments.tree_mut().push(parent, key, node);
                for (key, member) in members {
                    let below = self.reader.member(&allowed, key);
                    let pointer = format!("{pointer}/{}", escape(key));
                    self.add(node, key, &pointer, member, &below);
                }
            }
            _ => {
                let text = match value {
                    Value::String(text) => Cow::Borrowed(&**text),
                    _ => Cow::Owned(scalar_text(value).unwrap_or_else(|| value.to_string())),
                };
                let is_whole = !allowed.kinds().has(Kinds::FRACTION);
                let text_type = match value {
                    Value::String(_) => TextType::String,
                    Value::Number(_) if is_whole && TextType::Integer.fitting(&text).is_some() => {
                        TextType::Integer
                    }
                    _ => TextType::Json,
                };
                let leaf = self.arguments.leaves.len();
                self.arguments.leaves.push(Leaf {
                    pointer: pointer.into(),
                    pointer_span: Span::default(),
                    text: Text::Own((*text).into()),
                    span: Span::default(),
                    text_type,
                    rule: ConversionRule::Json,
                });
                self.arguments
                    .tree_mut()
                    .push(parent, key, Node::Leaf(leaf));
            }
        }
    }
}
