//! Named arguments written as the line and the body of an emoji call: the reverse of binding.

use plaincall_syntax::is_blank;

use plaincall_tool::ArgumentError;
use plaincall_tool::Arguments;
use plaincall_tool::ToolSpec;
use plaincall_tool::flatten::refuse;
use plaincall_tool::tree::Node;
use plaincall_tool::usage::{Usage, UsageBody};

/// The line and the body of an emoji call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EmojiText {
    /// The text after the name.
    pub raw_args: String,
    /// The text between header and end marker.
    pub body: String,
}

/// Writes bound arguments as the line and the body of their tool's emoji calls (`spec/emoji.md`, binding to named
/// parameters).
///
/// # Errors
/// Returns an error for arguments that the line and the body cannot express: a parameter that is in neither, parts of a
/// list on the line, a word with a blank, an argument after an omitted one, text that would not be parsed back
/// unchanged.
pub fn spell_emoji(tool: &ToolSpec, arguments: &Arguments) -> Result<EmojiText, ArgumentError> {
    let usage = tool.usage();
    if usage.body == UsageBody::Json {
        return Ok(EmojiText {
            raw_args: String::new(),
            body: arguments.to_value().to_string(),
        });
    }
    Ok(EmojiText {
        raw_args: line(&usage, arguments)?,
        body: body(&usage, arguments)?,
    })
}

fn line(usage: &Usage<'_>, arguments: &Arguments) -> Result<String, ArgumentError> {
    let mut line = String::new();
    let mut is_over = false;
    for item in &usage.line {
        let pointer = item.parameter.pointer();
        let Some(word) = arguments.get(&pointer) else {
            is_over = true;
            continue;
        };
        let problem = if is_over {
            "a parameter before it on the line is missing"
        } else if word.trim_matches(is_blank) != word || word.is_empty() {
            "it is empty or has whitespace at its ends, which the line does not keep"
        } else if !item.takes_rest && word.contains(is_blank) {
            "it contains whitespace, but must be one word"
        } else if word.contains([']', '\n', '\r']) {
            "it contains `]` or a line end, which would end the line"
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
            continue;
        };
        return Err(refuse(&pointer, problem));
    }
    Ok(line)
}

/// Writes the body. Returns an error for arguments that are neither in it nor on the line.
fn body(usage: &Usage<'_>, arguments: &Arguments) -> Result<String, ArgumentError> {
    let on_line = |key: &str| usage.line.iter().any(|item| item.parameter.name == key);
    let mut body = String::new();
    for (key, node) in arguments.tree.root() {
        let leaf = match arguments.tree.node(node) {
            Some(Node::Leaf(leaf)) => arguments.leaves.get(*leaf),
            _ => None,
        };
        let Some(leaf) = leaf else {
            let problem = "an object or a list cannot be written on the line";
            return Err(refuse(key, problem));
        };
        match usage.body {
            UsageBody::Parameter(parameter) if parameter.name == key => {
                let text = arguments.text(leaf);
                if text.is_empty() && !parameter.required {
                    let problem = "it is empty, but an empty body means that it is missing";
                    return Err(refuse(key, problem));
                }
                text.clone_into(&mut body);
            }
            _ if on_line(key) => {}
            _ => return Err(refuse(key, "a call of this tool has no place for it")),
        }
    }
    Ok(body)
}
