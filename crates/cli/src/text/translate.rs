//! A call in the other syntax: one that says the same to its tool.

use plaincall_call::{Arguments, Document, ToolSpec, UsageBody, bind, flatten, spell_emoji};
use plaincall_syntax::{Call, Dialect, render};
use serde_json::{Map, Value};

/// Writes a call in the block syntax, without an id.
///
/// # Errors
/// Says why it cannot be written.
pub(crate) fn in_block(
    tool: &ToolSpec,
    arguments: &Arguments,
    dialect: &Dialect,
) -> Result<String, String> {
    let values = arguments.to_value();
    let write = |pairs: &[(&str, &str)]| {
        let call = Call::Block {
            name: &tool.name,
            id: None,
            dependencies: Vec::new(),
            arguments: pairs.to_vec(),
        };
        let text = render(&call, dialect).map_err(|error| error.to_string())?;
        read_back(tool, Some(&values), &text, dialect).map(|()| text)
    };
    // The texts as they were written are the better ones, as long as they say the same.
    let texts: Vec<(&str, &str)> = arguments
        .iter()
        .map(|argument| (argument.pointer, argument.text))
        .collect();
    if let Ok(text) = write(&texts) {
        return Ok(text);
    }
    let Value::Object(object) = &values else {
        return Err("its arguments are no object".to_owned());
    };
    let pairs = flatten(object, Some(tool)).map_err(|error| error.to_string())?;
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(pointer, text)| (pointer.as_str(), text.as_str()))
        .collect();
    write(&pairs)
}

/// Writes a call in the emoji syntax, in the form that the tool's definition gives.
///
/// # Errors
/// Says why it cannot be written.
pub(crate) fn in_emoji(
    tool: &ToolSpec,
    arguments: &Arguments,
    dialect: &Dialect,
) -> Result<String, String> {
    let text = spell_emoji(tool, arguments)
        .map_err(|error| format!("{error}; the form of the call is `{}`", tool.usage()))?;
    emoji(
        tool,
        &text.raw_args,
        &text.body,
        &arguments.to_value(),
        dialect,
    )
}

/// The same for values that come as JSON.
///
/// # Errors
/// Says why they cannot be written.
pub(crate) fn object_in_emoji(
    tool: &ToolSpec,
    object: &Map<String, Value>,
    dialect: &Dialect,
) -> Result<String, String> {
    if tool.usage().body == UsageBody::Json {
        let values = Value::Object(object.clone());
        return emoji(tool, "", &values.to_string(), &values, dialect);
    }
    let pairs = flatten(object, Some(tool)).map_err(|error| error.to_string())?;
    let call = Call::Block {
        name: &tool.name,
        id: None,
        dependencies: Vec::new(),
        arguments: pairs
            .iter()
            .map(|(pointer, text)| (pointer.as_str(), text.as_str()))
            .collect(),
    };
    // Named arguments become those of the tool where a block call is bound, which the escape lets hold any text.
    let block = Dialect::block().escaped();
    let text = render(&call, &block).map_err(|error| error.to_string())?;
    let document = Document::parse(&text, &block).map_err(|error| error.to_string())?;
    let arguments = document.calls().next().map(|call| bind(tool, call));
    match arguments {
        Some(Ok(arguments)) => in_emoji(tool, &arguments, dialect),
        Some(Err(problems)) => Err(sentences(&problems)),
        None => Err(DIFFERENT.to_owned()),
    }
}

const DIFFERENT: &str = "what would be written means something else to the tool";

fn emoji(
    tool: &ToolSpec,
    raw_args: &str,
    body: &str,
    values: &Value,
    dialect: &Dialect,
) -> Result<String, String> {
    let call = Call::Emoji {
        name: &tool.name,
        raw_args,
        body,
    };
    let text = render(&call, dialect).map_err(|error| error.to_string())?;
    read_back(tool, Some(values), &text, dialect).map(|()| text)
}

/// Whether what was written fits the tool, and says to it what `values` say, if they are known.
///
/// # Errors
/// Says why not.
pub(crate) fn read_back(
    tool: &ToolSpec,
    values: Option<&Value>,
    text: &str,
    dialect: &Dialect,
) -> Result<(), String> {
    let document = Document::parse(text, dialect).map_err(|error| error.to_string())?;
    let call = document.calls().next().ok_or(DIFFERENT)?;
    let arguments = bind(tool, call).map_err(|problems| sentences(&problems))?;
    if values.is_none_or(|values| arguments.to_value() == *values) {
        Ok(())
    } else {
        Err(DIFFERENT.to_owned())
    }
}

/// Problems, in one line.
pub(crate) fn sentences(problems: &[plaincall_call::Finding]) -> String {
    let messages: Vec<&str> = problems
        .iter()
        .map(|problem| problem.message.as_str())
        .collect();
    messages.join("; ")
}
