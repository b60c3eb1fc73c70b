//! The tools of a request, and the tool choice.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor, value::MapAccessDeserializer};

use crate::ToJson;
use crate::field::{Field, TextVisitor};
use crate::json::Json;

object! {
    /// A tool in a request.
    pub struct Tool<'a> {
        /// The kind: `function`, or another, whose fields are in `unknown`.
        "type" kind: Option<Cow<'a, str>>,
        /// The function.
        "function" function: Option<FunctionDefinition<'a>>,
    }

    /// The definition of a function.
    pub struct FunctionDefinition<'a> {
        /// The name.
        "name" name: Option<Cow<'a, str>>,
        /// The description for the model.
        "description" description: Option<Cow<'a, str>>,
        /// The JSON Schema of its arguments.
        "parameters" parameters: Option<Json<'a>>,
        /// Whether arguments must match the schema.
        "strict" strict: Option<bool>,
    }

    /// A `tool_choice` that is an object.
    pub struct ToolChoiceObject<'a> {
        /// The kind: `function`, `allowed_tools`, `custom`.
        "type" kind: Option<Cow<'a, str>>,
        /// The function that must be called.
        "function" function: Option<NamedTool<'a>>,
        /// The allowed tools.
        "allowed_tools" allowed_tools: Option<AllowedTools<'a>>,
        /// The tool that must be called, as written by clients of another API.
        "name" name: Option<Cow<'a, str>>,
    }

    /// The name of a tool.
    pub struct NamedTool<'a> {
        /// The name.
        "name" name: Option<Cow<'a, str>>,
    }

    /// Allowed tools.
    pub struct AllowedTools<'a> {
        /// `auto` or `required`.
        "mode" mode: Option<Cow<'a, str>>,
        /// The tools, of which only the names are used.
        "tools" tools: Option<Vec<Tool<'a>>>,
    }
}

/// The tool choice, in any format of the API.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolChoice<'a> {
    /// A word: `none`, `auto`, `required`.
    Word(Cow<'a, str>),
    /// One tool, or several allowed ones.
    Object(Box<ToolChoiceObject<'a>>),
}

/// The meaning of a [`ToolChoice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choose<'c> {
    /// No tool.
    None,
    /// The model decides.
    Auto,
    /// At least one tool.
    Required,
    /// This tool.
    Named(&'c str),
    /// Only these tools, optionally or required.
    Allowed {
        /// The names.
        names: Vec<&'c str>,
        /// Whether a call is required.
        is_required: bool,
    },
    /// An unknown choice.
    Other,
}

impl Choose<'_> {
    /// Returns whether a reply must contain a call.
    pub fn is_required(&self) -> bool {
        match self {
            Self::Required | Self::Named(_) => true,
            Self::Allowed { is_required, .. } => *is_required,
            Self::None | Self::Auto | Self::Other => false,
        }
    }
}

impl ToolChoice<'_> {
    /// Returns its meaning.
    pub fn choose(&self) -> Choose<'_> {
        let object = match self {
            Self::Word(word) => {
                return match word.as_ref() {
                    "none" => Choose::None,
                    "auto" => Choose::Auto,
                    // The name used by Mistral and others.
                    "required" | "any" => Choose::Required,
                    _ => Choose::Other,
                };
            }
            Self::Object(object) => object,
        };
        let function = object.function.as_ref();
        let name = function.and_then(|function| function.name.as_deref());
        match (object.kind.as_deref(), name.or(object.name.as_deref())) {
            (Some("function" | "tool") | None, Some(name)) => Choose::Named(name),
            (Some("allowed_tools"), _) => match &object.allowed_tools {
                Some(allowed) => allowed.choose(),
                None => Choose::Other,
            },
            (Some("none"), None) => Choose::None,
            (Some("auto"), None) => Choose::Auto,
            (Some("required" | "any"), None) => Choose::Required,
            _ => Choose::Other,
        }
    }
}

impl AllowedTools<'_> {
    fn choose(&self) -> Choose<'_> {
        let tools = self.tools.as_deref().unwrap_or_default();
        let function = |tool: &'_ Tool<'_>| tool.function.is_some();
        if !tools.iter().all(function) {
            return Choose::Other;
        }
        let functions = tools.iter().filter_map(|tool| tool.function.as_ref());
        Choose::Allowed {
            names: functions
                .filter_map(|function| function.name.as_deref())
                .collect(),
            is_required: self.mode.as_deref() == Some("required"),
        }
    }
}

impl<'de> Field<'de> for ToolChoice<'de> {
    type Owned = ToolChoice<'static>;

    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ToolChoiceVisitor;
        impl<'de> Visitor<'de> for ToolChoiceVisitor {
            type Value = ToolChoice<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a word or an object")
            }

            fn visit_borrowed_str<E: Error>(self, word: &'de str) -> Result<Self::Value, E> {
                TextVisitor.visit_borrowed_str(word).map(ToolChoice::Word)
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Self::Value, E> {
                TextVisitor.visit_str(word).map(ToolChoice::Word)
            }

            fn visit_map<A: MapAccess<'de>>(self, access: A) -> Result<Self::Value, A::Error> {
                ToolChoiceObject::deserialize(MapAccessDeserializer::new(access))
                    .map(|object| ToolChoice::Object(Box::new(object)))
            }
        }
        deserializer.deserialize_any(ToolChoiceVisitor)
    }

    fn into_owned(self) -> Self::Owned {
        match self {
            Self::Word(word) => ToolChoice::Word(Cow::Owned(word.into_owned())),
            Self::Object(object) => ToolChoice::Object(Box::new(object.into_owned())),
        }
    }
}

impl ToJson for ToolChoice<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Word(word) => word.write_json(out),
            Self::Object(object) => object.write_json(out),
        }
    }
}
