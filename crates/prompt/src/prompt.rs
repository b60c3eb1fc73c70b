//! The system prompt that teaches a model to call tools (`spec/prompt.md`).

mod block;
mod emoji;
mod examples;
mod list;
mod need;
mod notation;
pub(crate) mod options;
mod shortened;
mod teaching;

pub use options::PromptOptions;

use std::{fmt, mem, slice};

use plaincall_syntax::{Dialect, DialectError, Span, Syntax};

use crate::prompt::examples::Examples;
use crate::prompt::list::list_tool;
use crate::prompt::need::{Need, Needs};
use crate::prompt::teaching::Teaching;
use plaincall_reply::{PromptText, PromptTextBuilder, Trusted, Untrusted};
use plaincall_tool::ToolSpec;

/// Writes the instructions for calling tools in a dialect, and the list of tools (`spec/prompt.md`).
///
/// A rule is explained only if one of the tools needs it; without tools, all are. Add the result to the system prompt of a model. It shows the current markers, and the escape if the dialect has one.
///
/// ```
/// use plaincall_tool::{Parameter, ParameterKind, ToolSpec};
/// use plaincall_prompt::{PromptOptions, PromptPart, prompt};
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
/// Returns an error for an invalid dialect, and for the automatic one: a prompt teaches one syntax.
pub fn prompt<'t>(
    tools: impl IntoIterator<Item = &'t ToolSpec>,
    dialect: &Dialect,
    options: &PromptOptions,
) -> Result<Prompt, DialectError> {
    let syntax = dialect.syntax().ok_or(DialectError::NoSyntax)?;
    let mut built = PromptTextBuilder::new(slice::from_ref(dialect))?;
    let mut parts: Vec<(PromptPart, Span)> = Vec::new();
    let tools: Vec<&ToolSpec> = tools.into_iter().collect();
    let mut needs = Needs::new();
    let mut entries = Vec::new();
    for tool in &tools {
        entries.push(list_tool(
            tool,
            syntax,
            options.description_length,
            &mut needs,
        ));
    }
    needs.extend((tools.len() > 1).then_some(Need::SeveralTools));
    let explains_all = tools.is_empty() || options.every_rule;
    let teaching = Teaching::new(dialect, options, (!explains_all).then_some(needs))?;
    let examples = Examples::new(&tools, dialect, options);
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
                None => list(&mut built, &entries, &examples),
                Some(text) => {
                    built.trusted(Trusted::assert(text)).begin_line();
                }
            }
            parts.push((*part, Span::new(start, built.written())));
        }
    }
    Ok(Prompt {
        text: built.finish(),
        parts,
        skipped_examples: examples.skipped,
    })
}

/// Returns the entry of a tool in the list of a [`prompt`], without examples: for a tool that a later message introduces.
/// It is not escaped.
///
/// # Errors
/// Returns an error for the automatic dialect.
pub fn tool_entry(
    tool: &ToolSpec,
    dialect: &Dialect,
    options: &PromptOptions,
) -> Result<String, DialectError> {
    let syntax = dialect.syntax().ok_or(DialectError::NoSyntax)?;
    let entry = list_tool(tool, syntax, options.description_length, &mut Needs::new());
    Ok(entry.raw().to_owned())
}

fn list(built: &mut PromptTextBuilder, entries: &[Untrusted<'_>], examples: &Examples) {
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            built.trusted("\n");
        }
        built.untrusted(entry);
        examples.write(index, built);
    }
    if entries.is_empty() {
        built.trusted("(none)\n");
    }
}

/// The result of [`prompt`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    text: PromptText,
    parts: Vec<(PromptPart, Span)>,
    skipped_examples: Vec<SkippedExample>,
}

/// An example of a call that the prompt does not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedExample {
    /// The name of the tool.
    pub tool: String,
    /// The index in [`ToolSpec::call_examples`].
    pub index: usize,
    /// The reason, as a sentence without a period.
    pub reason: String,
}

impl fmt::Display for SkippedExample {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tool,
            index,
            reason,
        } = self;
        let number = index + 1;
        write!(
            formatter,
            "the prompt does not contain example {number} of `{tool}`: {reason}"
        )
    }
}

impl Prompt {
    /// Returns the examples of calls that the prompt does not contain: those that do not fit into
    /// [`example_bytes`](PromptOptions::example_bytes), and those that are not valid calls of their tools.
    pub fn skipped_examples(&self) -> &[SkippedExample] {
        &self.skipped_examples
    }

    /// Returns the prompt as a prompt text, which records the untrusted parts.
    pub fn prompt_text(&self) -> &PromptText {
        &self.text
    }

    /// Returns the text for the model.
    pub fn text(&self) -> &str {
        self.text.text()
    }

    /// Returns the text for the model.
    pub fn into_text(self) -> String {
        self.text.into_text()
    }

    /// Returns the parts and their locations in the text, in bytes, in order. An empty line may be between two parts.
    pub fn parts(&self) -> &[(PromptPart, Span)] {
        &self.parts
    }

    /// Returns the text of a part, if the prompt contains it.
    pub fn part(&self, part: PromptPart) -> Option<&str> {
        let found = self.parts.iter().find(|(known, _)| *known == part);
        found.and_then(|(_, span)| self.text().get(span.range()))
    }
}

/// A part of a prompt, in order of appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PromptPart {
    /// That tools are available, and that a call is text.
    Introduction,
    /// A call with placeholders.
    Form,
    /// How to write a value.
    Values,
    /// How to write objects and lists, and their parts.
    NestedValues,
    /// How to write null and empty lists.
    EmptyValues,
    /// Several calls in one reply.
    SeveralCalls,
    /// Calls that wait for others.
    Dependencies,
    /// Markers inside a value.
    MarkerInValue,
    /// When the results arrive.
    Results,
    /// The notation of the list of tools.
    ToolsHeading,
    /// The list of tools.
    Tools,
    /// The last line, after the list.
    Closing,
}

impl PromptPart {
    /// All parts, in order. An empty line separates the groups.
    pub const GROUPS: [&[Self]; 6] = [
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
        &[Self::ToolsHeading],
        &[Self::Tools],
        &[Self::Closing],
    ];
}
