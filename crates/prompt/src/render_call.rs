//! Renders a call with JSON arguments in the syntax of a dialect (`spec/history.md` 2).

use std::borrow::Cow;
use std::fmt;

use plaincall_syntax::{Call, Dialect, Syntax, render};
use serde_json::{Map, Value};

use crate::spell_emoji::{EmojiText, spell_emoji};
use plaincall_reply::Document;
use plaincall_tool::{
    Arguments, ToolSpec, absent::given, bind::Problems, bind::block::bind_block,
    bind::emoji::bind_emoji, flatten::flatten, invisible::in_name, schema::is_same,
    usage::UsageBody,
};

/// A call to render, with JSON arguments.
///
/// For a tool without a definition, the arguments of an emoji call are its line and body, as `raw_args` and `body`, as
/// in [`openai_calls`](plaincall_reply::openai::openai_calls).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JsonCall<'c> {
    /// The name of the tool.
    pub name: &'c str,
    /// The id. The emoji syntax has none.
    pub id: Option<&'c str>,
    /// The ids of the calls that it depends on. The emoji syntax has none.
    pub dependencies: Vec<&'c str>,
    /// The arguments.
    pub arguments: &'c Map<String, Value>,
}

impl<'c> JsonCall<'c> {
    /// Creates a call without an id and dependencies.
    pub fn new(name: &'c str, arguments: &'c Map<String, Value>) -> Self {
        Self {
            name,
            id: None,
            dependencies: Vec::new(),
            arguments,
        }
    }
}

/// The reason why a call cannot be rendered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RenderCallError(String);

/// Renders a call, including its last line end. A dialect for both syntaxes writes the block syntax.
///
/// ```
/// use plaincall_prompt::render::{JsonCall, render_call};
/// use plaincall_syntax::Dialect;
///
/// let arguments = serde_json::json!({"words": 50});
/// let arguments = arguments.as_object().expect("an object");
/// let mut call = JsonCall::new("Sum", arguments);
/// call.id = Some("s");
/// call.dependencies = vec!["r"];
/// let text = render_call(&call, None, &Dialect::block())?;
/// assert_eq!(text, "!!!GADGET_START:Sum:s:r\n!!!ARG:words\n50\n!!!GADGET_END\n");
/// # Ok::<(), plaincall_prompt::render::RenderCallError>(())
/// ```
///
/// # Errors
/// Returns an error if the syntax cannot express the call, or would parse it differently.
pub fn render_call(
    call: &JsonCall<'_>,
    tool: Option<&ToolSpec>,
    dialect: &Dialect,
) -> Result<String, RenderCallError> {
    let mut names = [call.name]
        .into_iter()
        .chain(call.id)
        .chain(call.dependencies.iter().copied());
    if names.any(|name| in_name(name).is_some()) {
        return Err(refused("a name or id contains an invisible character"));
    }
    let arguments = tool.map_or(Cow::Borrowed(call.arguments), |tool| {
        given(call.arguments, tool)
    });
    let text = match dialect.syntax().unwrap_or(Syntax::Block) {
        Syntax::Block => {
            // Flattening verifies the pairs, rendering verifies the text.
            let pairs = flatten(&arguments, tool).map_err(refused)?;
            let call = Call::Block {
                name: call.name,
                id: call.id.filter(|id| !id.is_empty()),
                dependencies: call.dependencies.clone(),
                arguments: borrowed(&pairs),
            };
            render(&call, &dialect.for_syntax(Syntax::Block))
        }
        Syntax::Emoji => {
            let text = match tool {
                Some(tool) => emoji_text(tool, &arguments)?,
                None => unknown_emoji_text(&arguments)?,
            };
            let call = Call::Emoji {
                name: call.name,
                raw_args: &text.raw_args,
                body: &text.body,
            };
            render(&call, dialect)
        }
    };
    let text = text.map_err(refused)?;
    match (dialect.syntax(), tool) {
        (Some(Syntax::Emoji), Some(tool))
            if !is_read_as(&text, tool, arguments.into_owned(), dialect) =>
        {
            Err(refused("the rendered call would have other arguments"))
        }
        _ => Ok(text),
    }
}

fn refused(reason: impl fmt::Display) -> RenderCallError {
    RenderCallError(reason.to_string())
}

/// Only parsing shows how the tool reads the line and the body.
fn is_read_as(text: &str, tool: &ToolSpec, object: Map<String, Value>, dialect: &Dialect) -> bool {
    let document = Document::parse(text, dialect);
    let object = Value::Object(object);
    document.is_ok_and(|document| {
        document.calls().next().is_some_and(|call| {
            let mut problems = Problems::default();
            let back = bind_emoji(tool, call.emoji_parts(), &mut problems).to_value();
            problems.is_empty() && is_same(&back, &object)
        })
    })
}

fn emoji_text(tool: &ToolSpec, object: &Map<String, Value>) -> Result<EmojiText, RenderCallError> {
    if tool.usage().body == UsageBody::Json {
        let body = Value::Object(object.clone()).to_string();
        let raw_args = String::new();
        return Ok(EmojiText { raw_args, body });
    }
    let pairs = flatten(object, Some(tool)).map_err(refused)?;
    let written = Arguments::from_pairs_for(tool, borrowed(&pairs)).map_err(refused)?;
    let mut problems = Problems::default();
    let bound = bind_block(tool, &written, &mut problems);
    let form = |error| refused(format!("{error}; usage: `{}`", tool.usage()));
    spell_emoji(tool, &bound).map_err(form)
}

fn unknown_emoji_text(object: &Map<String, Value>) -> Result<EmojiText, RenderCallError> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
    match (text("raw_args"), text("body"), object.len()) {
        (Some(raw_args), Some(body), 2) => Ok(EmojiText { raw_args, body }),
        _ => Err(refused(
            "the emoji syntax has no named arguments unless the tool has a definition",
        )),
    }
}

fn borrowed(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs
        .iter()
        .map(|(pointer, text)| (pointer.as_str(), text.as_str()))
        .collect()
}
