//! What of a prompt is said, and in which words.

use std::fmt;

use plaincall_syntax::Dialect;

use super::PromptPart;
use crate::foreign::{Foreign, OwnText};
use crate::tool::ToolSpec;

/// How one tool is listed.
type ListTool<'o> = dyn Fn(&ToolSpec) -> Foreign<'static> + 'o;

/// In which words a part is said.
#[derive(Debug)]
pub(super) enum Wording<'o> {
    Ours,
    Theirs(OwnText<'o>),
    Nothing,
}

/// What of a prompt is said, and in which words. Every part can be replaced or left out.
///
/// ```
/// use plaincall_call::{OwnText, PromptOptions, PromptPart, prompt};
/// use plaincall_syntax::Dialect;
///
/// let options = PromptOptions::new()
///     .replace(PromptPart::Introduction, "You are a gardener with tools.\n")
///     .omit(PromptPart::Closing)
///     .without_dependencies();
/// let prompt = prompt([], &Dialect::block().escaped(), &options)?;
/// assert!(prompt.text().starts_with("You are a gardener with tools.\n"));
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
#[derive(Default)]
pub struct PromptOptions<'o> {
    parts: Vec<(PromptPart, Wording<'o>)>,
    pub(super) without_dependencies: bool,
    pub(super) one_call: bool,
    pub(super) list_tool: Option<Box<ListTool<'o>>>,
    pub(super) other_dialects: Vec<Dialect>,
}

impl<'o> PromptOptions<'o> {
    /// Everything, in our words.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts another text in the place of a part. A line end is added if it has none at its end.
    pub fn replace(mut self, part: PromptPart, text: impl Into<OwnText<'o>>) -> Self {
        self.set(part, Wording::Theirs(text.into()));
        self
    }

    /// Leaves a part out.
    pub fn omit(mut self, part: PromptPart) -> Self {
        self.set(part, Wording::Nothing);
        self
    }

    /// Says nothing of ids and dependencies, for readers that do not know them. The emoji syntax has none anyway.
    pub fn without_dependencies(mut self) -> Self {
        self.without_dependencies = true;
        self
    }

    /// Asks for at most one call in a reply.
    pub fn one_call(mut self) -> Self {
        self.one_call = true;
        self
    }

    /// Lists each tool in another way than [`list_tool`](crate::list_tool) does.
    ///
    /// What it returns is escaped; a line end is added if it has none at its end. [`PromptPart::ToolsHeading`] explains
    /// our notation, so it may have to be replaced too.
    pub fn list_tool_by(mut self, list: impl Fn(&ToolSpec) -> Foreign<'static> + 'o) -> Self {
        self.list_tool = Some(Box::new(list));
        self
    }

    /// Escapes definitions of tools for these dialects too, in which the conversation may also be read.
    pub fn escape_for(mut self, dialects: &[Dialect]) -> Self {
        self.other_dialects.extend_from_slice(dialects);
        self
    }

    fn set(&mut self, part: PromptPart, wording: Wording<'o>) {
        self.parts.retain(|(known, _)| *known != part);
        self.parts.push((part, wording));
    }

    pub(super) fn wording(&self, part: PromptPart) -> &Wording<'o> {
        let found = self.parts.iter().find(|(known, _)| *known == part);
        found.map_or(&Wording::Ours, |(_, wording)| wording)
    }
}

impl fmt::Debug for PromptOptions<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PromptOptions")
            .field("parts", &self.parts)
            .field("without_dependencies", &self.without_dependencies)
            .field("one_call", &self.one_call)
            .field("lists_tools_otherwise", &self.list_tool.is_some())
            .field("other_dialects", &self.other_dialects)
            .finish()
    }
}
