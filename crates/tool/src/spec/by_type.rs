//! The parameters of a tool from a type.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, json_schema};
use serde_json::{Map, Value, json};

use crate::Schema;
use crate::ToolSpec;
use crate::pointer::escape;
use crate::schema::Kinds;

/// The values of `format` that only name the number type of a program.
const NUMBER_FORMATS: [&str; 14] = [
    "int8", "int16", "int32", "int64", "int128", "int", "uint8", "uint16", "uint32", "uint64",
    "uint128", "uint", "float", "double",
];

impl ToolSpec {
    /// Creates a tool whose parameters are the fields of a type.
    ///
    /// The doc comment of the type is the description of the tool, that of a field the description of its parameter. A
    /// field that is an `Option` or has a default is optional. Attributes of serde and schemars apply: names, defaults,
    /// examples, bounds. `spec/block.md` 7.7.1 defines how calls are read by the schema;
    /// [`Arguments::to`](crate::Arguments::to) converts the arguments of a bound call to the type.
    ///
    /// ```
    /// use plaincall_tool::{Arguments, ToolSpec, bind_arguments};
    ///
    /// /// Repeats a text.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Repeat {
    ///     /// What is repeated.
    ///     text: String,
    ///     /// How often.
    ///     #[serde(default = "twice")]
    ///     times: u8,
    /// }
    /// fn twice() -> u8 { 2 }
    ///
    /// let tool = ToolSpec::of::<Repeat>("repeat");
    /// assert_eq!(tool.description, "Repeats a text.");
    /// assert_eq!(tool.parameters()[1].description, "How often.");
    /// assert!(!tool.parameters()[1].required);
    ///
    /// let arguments = bind_arguments(&tool, &Arguments::from_pairs([("text", "007")])?).expect("they fit");
    /// let repeat: Repeat = arguments.to()?;
    /// assert_eq!((repeat.text.as_str(), repeat.times), ("007", 2));
    /// # Ok::<(), plaincall_tool::ArgumentError>(())
    /// ```
    ///
    /// A tool without parameters has the type `()` or a struct without fields. A map accepts any names, and so does
    /// `serde_json::Value`. A type that is not an object, such as a list, makes a tool that [`check`](Self::check)
    /// rejects.
    ///
    /// The schema and the type may differ. The schema decides what the model sees and what is rejected first; the type
    /// may reject more when it is deserialized:
    /// - Numbers of 32 bits and more have no bounds in the schema except zero. Numbers over 64 bits are rejected.
    /// - Alternative names (`alias`) and names for all other values (`other`) are for older data: the prompt does not
    ///   show them.
    /// - A field with a function of its own (`with`, `deserialize_with`) needs `schemars(with = …)` with a type that is
    ///   written the same way. A type with its own `Deserialize` needs its own `JsonSchema`.
    /// - Values in a flattened field, an untagged enum or an internally tagged one are parsed before the type sees
    ///   them: they cannot be maps with numeric keys or 128-bit numbers, and an error of the type names the whole value.
    pub fn of<T: JsonSchema>(name: impl Into<String>) -> Self {
        let (mut schema, type_name) = generated::<T>();
        let mut spec = Self::new(name);
        if let Some(Value::String(description)) = schema.remove("description") {
            spec.description = description;
        }
        name_root(&mut schema, &type_name);
        let mut schema = Schema::new(schema.to_value());
        let (kinds, is_open) = {
            let reader = schema.reader();
            let root = reader.root();
            (root.kinds(), root.is_open())
        };
        if kinds == Kinds::NULL {
            return spec;
        }
        if is_open {
            schema = Schema::new(json!({"type": "object", "additionalProperties": true}));
        }
        // `check` reports a schema without parameters.
        let parameters = schema.parameters().unwrap_or_default();
        spec.with_schema(schema, parameters)
    }
}

impl Schema {
    #[doc(hidden)]
    /// Creates the schema of a type.
    #[cfg(feature = "jsonschema")]
    pub fn of<T: JsonSchema>() -> Self {
        let (mut schema, name) = generated::<T>();
        name_root(&mut schema, &name);
        Self::new(schema.to_value())
    }
}

/// Returns the schema and the name of a type.
fn generated<T: JsonSchema>() -> (schemars::Schema, String) {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.meta_schema = None)
        .with_transform(RecursiveTransform(tidy));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // The name of the type is for its source only.
    let title = schema.remove("title");
    let name = title.as_ref().and_then(Value::as_str);
    (schema, name.unwrap_or("Arguments").to_owned())
}

/// Gives a recursive type a name among the definitions, as its parts have.
fn name_root(schema: &mut schemars::Schema, name: &str) {
    let mut name = name.to_owned();
    while schema
        .pointer(&format!("/$defs/{}", escape(&name)))
        .is_some()
    {
        name.push('_');
    }
    let reference = Value::from(format!("#/$defs/{}", escape(&name)));
    let mut is_recursive = false;
    RecursiveTransform(|schema: &mut schemars::Schema| {
        if schema.get("$ref").is_some_and(|target| target == "#") {
            schema.insert("$ref".to_owned(), reference.clone());
            is_recursive = true;
        }
    })
    .transform(schema);
    if !is_recursive {
        return;
    }
    let mut definitions = match schema.remove("$defs") {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    let examples = schema.remove("examples");
    definitions.insert(name, schema.clone().to_value());
    *schema = json_schema!({"$ref": reference, "$defs": definitions});
    if let Some(examples) = examples {
        schema.insert("examples".to_owned(), examples);
    }
}

fn tidy(schema: &mut schemars::Schema) {
    let format = schema.get("format").and_then(Value::as_str);
    if format.is_some_and(|format| NUMBER_FORMATS.contains(&format)) {
        schema.remove("format");
    }
    if let Some(Value::String(description)) = schema.get("description") {
        let description = unwrapped(description);
        schema.insert("description".to_owned(), description.into());
    }
}

/// Joins the lines of each paragraph of prose, since line breaks in a comment have no meaning. A text with code, and
/// paragraphs with lists, tables or quotes, stay unchanged.
fn unwrapped(text: &str) -> String {
    if text.contains("```") {
        return text.to_owned();
    }
    let is_prose = |line: &str| {
        line.starts_with(|c: char| !c.is_whitespace() && !"-*+#>|".contains(c))
            && !is_numbered(line)
    };
    let paragraphs = text.split("\n\n").map(|paragraph| {
        if paragraph.lines().all(is_prose) {
            paragraph.replace('\n', " ")
        } else {
            paragraph.to_owned()
        }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

fn is_numbered(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < line.len() && rest.starts_with(['.', ')'])
}
