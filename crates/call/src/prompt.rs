//! The system prompt that teaches a model to call tools (`spec/prompt.md`).

mod block;
mod emoji;
mod list;
mod notation;
pub(crate) mod options;
mod teaching;

pub use options::PromptOptions;

use std::{mem, slice};

use plaincall_syntax::{Dialect, DialectError, Span, Syntax};

use crate::prompt::list::list_tool;
use crate::prompt::teaching::Teaching;
use crate::tool::ToolSpec;
use crate::untrusted::Trusted;
use crate::untrusted::prompt_text::{PromptText, PromptTextBuilder};

/// Says how tools are called in a dialect, and which there are (`spec/prompt.md`).
///
/// The result is for the system prompt of a model. It teaches the current markers, and the escape where the dialect has
/// one.
///
/// ```
/// use plaincall_call::{Parameter, ParameterKind, ToolSpec, prompt::{PromptOptions, PromptPart, prompt}};
/// use plaincall_syntax::Dialect;
///
/// let tool = ToolSpec::new("read-file")
///     .describe("Reads a file.")
///     .parameter(Parameter::new("path", ParameterKind::String));
/// let prompt = prompt([&tool], &Dialect::block().escaped(), &PromptOptions::new())?;
/// assert!(prompt.text().contains("!!!GADGET_START:tool_name\n!!!ARG:parameter\nvalue\n!!!GADGET_END\n"));
/// assert!(prompt.text().contains("## read-file\n// Reads a file.\npath: string\n"));
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
///
/// # Errors
/// Refuses a dialect that cannot work, and the automatic one: what is taught is one syntax.
pub fn prompt<'t>(
    tools: impl IntoIterator<Item = &'t ToolSpec>,
    dialect: &Dialect,
    options: &PromptOptions,
) -> Result<Prompt, DialectError> {
    let syntax = dialect.syntax().ok_or(DialectError::NoSyntax)?;
    let teaching = Teaching::new(dialect, options)?;
    let mut built = PromptTextBuilder::new(slice::from_ref(dialect))?;
    let mut parts: Vec<(PromptPart, Span)> = Vec::new();
    let tools: Vec<&ToolSpec> = tools.into_iter().collect();
    for group in PromptPart::GROUPS {
        let mut is_first = true;
        for part in group {
            let text = match syntax {
                Syntax::Block => block::teach(*part, &teaching),
                Syntax::Emoji => emoji::teach(*part, &teaching),
            };
            if text.is_none() && *part != PromptPart::Tools {
                continue;
            }
            if mem::take(&mut is_first) && !parts.is_empty() {
                built.trusted("\n");
            }
            let start = built.written();
            match text {
                None => list(&mut built, &tools, syntax),
                Some(text) => {
                    built.trusted(Trusted::assert(text)).begin_line();
                }
            }
            parts.push((*part, Span::new(start, built.written())));
        }
    }
    Ok(Prompt {
        prompt_text: built.finish(),
        parts,
    })
}

fn list(built: &mut PromptTextBuilder, tools: &[&ToolSpec], syntax: Syntax) {
    for (index, tool) in tools.iter().enumerate() {
        if index > 0 {
            built.trusted("\n");
        }
        built.untrusted(&list_tool(tool, syntax));
    }
    if tools.is_empty() {
        built.trusted("(There are none.)\n");
    }
}

/// What [`prompt`] made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    prompt_text: PromptText,
    parts: Vec<(PromptPart, Span)>,
}

impl Prompt {
    /// The whole as a prompt text, which tells what of it is untrusted.
    pub fn prompt_text(&self) -> &PromptText {
        &self.prompt_text
    }

    /// The text for the model.
    pub fn text(&self) -> &str {
        self.prompt_text.text()
    }

    /// The text for the model.
    pub fn into_text(self) -> String {
        self.prompt_text.into_text()
    }

    /// Which parts there are and where each stands in the text, in bytes, in order. Between two there may be an empty
    /// line.
    pub fn parts(&self) -> &[(PromptPart, Span)] {
        &self.parts
    }

    /// The text of a part, if it is there.
    pub fn part(&self, part: PromptPart) -> Option<&str> {
        let found = self.parts.iter().find(|(known, _)| *known == part);
        found.and_then(|(_, span)| self.text().get(span.range()))
    }
}

/// A part of a prompt, in the order in which they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PromptPart {
    /// That there are tools, and that a call is text.
    Introduction,
    /// A call with placeholders.
    Form,
    /// How a value is written.
    Values,
    /// How objects and lists are written, and what stands in them.
    NestedValues,
    /// How null and empty lists are written.
    EmptyValues,
    /// More than one call in a reply.
    SeveralCalls,
    /// Calls that wait for others.
    Dependencies,
    /// A marker inside a value.
    MarkerInValue,
    /// When results come.
    Results,
    /// A reply with calls.
    Example,
    /// What stands above the list of tools: how it is read.
    ToolsHeading,
    /// The list of tools.
    Tools,
    /// What stands below it.
    Closing,
}

impl PromptPart {
    /// All parts, in order. Parts of one group follow each other; between groups an empty line stands.
    pub const GROUPS: [&[Self]; 7] = [
        &[Self::Introduction],
        &[Self::Form],
        &[
            Self::Values,
            Self::NestedValues,
            Self::EmptyValues,
            Self::SeveralCalls,
            Self::Dependencies,
            Self::MarkerInValue,
            Self::Results,
        ],
        &[Self::Example],
        &[Self::ToolsHeading],
        &[Self::Tools],
        &[Self::Closing],
    ];
}
