//! Named arguments as the line and the body of an emoji call: the way back of binding.

use plaincall_syntax::is_blank;

use crate::arguments::Arguments;
use crate::flatten::FlattenError;
use crate::tool::ToolSpec;
use crate::tree::Node;
use crate::usage::UsageBody;

/// The two texts of an emoji call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmojiText {
    /// What stands behind the name.
    pub raw_args: String,
    /// What stands between header and end marker.
    pub body: String,
}

/// Writes bound arguments in the form of their tool's emoji calls (`spec/emoji.md`, binding to named parameters).
///
/// ```
/// use plaincall_call::{Document, Parameter, ParameterKind, ToolSpec, bind, spell_emoji};
/// use plaincall_syntax::Dialect;
///
/// let tool = ToolSpec::new("create-file")
///     .parameter(Parameter::new("path", ParameterKind::String))
///     .parameter(Parameter::new("content", ParameterKind::String))
///     .body("content");
/// let text = "!!!GADGET_START:create-file\n!!!ARG:path\na.txt\n!!!ARG:content\nhello\n!!!GADGET_END";
/// let document = Document::parse(text, &Dialect::block())?;
/// let call = document.calls().next().expect("a call");
/// let emoji = spell_emoji(&tool, &bind(&tool, call).expect("it fits")).expect("it can be written");
/// assert_eq!((emoji.raw_args.as_str(), emoji.body.as_str()), ("a.txt", "hello"));
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
///
/// # Errors
/// Names what the form has no room for: a parameter that is not in it, parts of a list on the line, a word with a
/// blank, an argument behind one that is left out, text that the line would not give back.
pub fn spell_emoji(tool: &ToolSpec, arguments: &Arguments) -> Result<EmojiText, FlattenError> {
    let usage = tool.usage();
    if usage.body == UsageBody::Json {
        return Ok(EmojiText {
            raw_args: String::new(),
            body: arguments.to_value().to_string(),
        });
    }
    let refuse = |pointer: &str, message: &str| {
        Err(FlattenError {
            pointer: pointer.to_owned(),
            message: message.to_owned(),
        })
    };
    let mut text = EmojiText::default();
    let mut is_over = false;
    for item in &usage.line {
        let pointer = item.parameter.pointer();
        let Some(word) = arguments.get(&pointer) else {
            is_over = true;
            continue;
        };
        if is_over {
            return refuse(&pointer, "a parameter before it on the line is left out");
        }
        if word.trim_matches(is_blank) != word || word.is_empty() {
            return refuse(
                &pointer,
                "it is empty or has blanks at its ends, which the line does not keep",
            );
        }
        if !item.takes_rest && word.contains(is_blank) {
            return refuse(
                &pointer,
                "it has a blank, and one word of the line takes it",
            );
        }
        if word.contains([']', '\n', '\r']) {
            return refuse(
                &pointer,
                "it has a `]` or a line end, which would end the line",
            );
        }
        if !text.raw_args.is_empty() {
            text.raw_args.push(' ');
        }
        text.raw_args.push_str(word);
    }
    let on_line = |key: &str| usage.line.iter().any(|item| item.parameter.name == key);
    for (key, node) in arguments.tree().root() {
        let leaf = match arguments.tree().node(node) {
            Some(Node::Leaf(leaf)) => arguments.leaf(*leaf),
            _ => None,
        };
        let Some(leaf) = leaf else {
            return refuse(key, "it has parts, which have no room on the line");
        };
        match usage.body {
            UsageBody::Parameter(parameter) if parameter.name == key => {
                let body = arguments.text(leaf);
                if body.is_empty() && !parameter.required {
                    return refuse(
                        key,
                        "it is empty, and an empty body means that it is left out",
                    );
                }
                body.clone_into(&mut text.body);
            }
            _ if on_line(key) => {}
            _ => return refuse(key, "the form of the call has no room for it"),
        }
    }
    Ok(text)
}
