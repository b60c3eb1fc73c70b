//! The markers, escapes and example calls of a dialect, for the prompt.

use plaincall_syntax::{Call, Dialect, DialectError, Escaper, MarkerUse, Syntax, render};

use super::need::{Need, Needs};
use super::options::PromptOptions;

pub(super) struct Teaching<'d> {
    dialect: &'d Dialect,
    escaper: Escaper,
    pub(super) start: String,
    pub(super) end: String,
    /// Empty in the emoji syntax.
    pub(super) argument: String,
    reasoning: Vec<String>,
    with_dependencies: bool,
    pub(super) one_call: bool,
    /// `None` for everything: for tools that are not known yet.
    needs: Option<Needs>,
}

impl<'d> Teaching<'d> {
    pub(super) fn new(
        dialect: &'d Dialect,
        options: &PromptOptions,
        needs: Option<Needs>,
    ) -> Result<Self, DialectError> {
        let markers = dialect.markers()?;
        let marker = |is_meant: fn(MarkerUse) -> bool| {
            let mut found = markers.iter().filter(|marker| is_meant(marker.usage));
            found.next().map(|marker| marker.text.clone())
        };
        let reasoning = markers
            .iter()
            .filter(|marker| marker.usage == MarkerUse::Reasoning);
        Ok(Self {
            reasoning: reasoning.map(|marker| marker.text.clone()).collect(),
            dialect,
            escaper: Escaper::new(dialect)?,
            start: marker(|usage| matches!(usage, MarkerUse::Start(_))).unwrap_or_default(),
            end: dialect.end_marker(dialect.syntax().unwrap_or(Syntax::Block)),
            argument: marker(|usage| usage == MarkerUse::Argument).unwrap_or_default(),
            with_dependencies: !options.without_dependencies && !options.one_call,
            one_call: options.one_call,
            needs,
        })
    }

    /// Returns these markers and those of reasoning as written inside a value; `None` if the dialect has no escape.
    ///
    /// Reading removes the backslash of any marker, so the prompt shows the reasoning markers too. Otherwise a model
    /// that sees them escaped in results would write `<think\>` into a file that should contain `<think\>`.
    pub(super) fn escapes(&self, markers: &[&String]) -> Option<String> {
        let markers = markers.iter().copied().chain(&self.reasoning);
        let escapes = markers.map(|marker| format!("`{}`", self.escaper.escape(marker)));
        let has_escape = self.dialect.is_escaped();
        has_escape.then(|| escapes.collect::<Vec<_>>().join(", "))
    }

    /// Whether a tool needs this.
    pub(super) fn needs(&self, need: Need) -> bool {
        let needs = self.needs.as_ref();
        needs.is_none_or(|needs| needs.contains(&need))
    }

    /// Whether ids and dependencies are explained.
    pub(super) fn has_dependencies(&self) -> bool {
        self.with_dependencies && self.needs(Need::SeveralTools)
    }

    /// Returns the texts whose needs a tool has.
    pub(super) fn needed<'t>(&self, texts: &[(Need, &'t str)]) -> Vec<&'t str> {
        let needed = texts.iter().filter(|(need, _)| self.needs(*need));
        needed.map(|(_, text)| *text).collect()
    }

    /// Renders a call; `None` if the markers do not allow it.
    pub(super) fn call(&self, call: &Call<'_>) -> Option<String> {
        render(call, self.dialect).ok()
    }

    /// Returns `true` if the markers count everywhere in a line.
    pub(super) fn counts_anywhere(&self) -> bool {
        // In such a dialect, a value with a marker in the middle of a line cannot be rendered.
        let value = format!("a{}b", self.argument);
        let call = Call::Block {
            name: "a",
            id: None,
            dependencies: Vec::new(),
            arguments: vec![("a", &value)],
        };
        render(&call, self.dialect).is_err()
    }
}

/// Returns the heading of the list, and what its signs mean.
pub(super) fn tools_heading(signs: &[&str]) -> String {
    if signs.is_empty() {
        return "# Your tools".to_owned();
    }
    format!("# Your tools\n\n{}.", signs.join(", "))
}

pub(super) fn results(teaching: &Teaching<'_>) -> String {
    if teaching.one_call {
        "- After the call, stop. The result comes in the next message; never write or guess it."
    } else {
        "- After your calls, stop. The results come in the next message; never write or guess them."
    }
    .to_owned()
}
