//! A call of a reply with the decision about it: the one shape that every reader of a reply returns.

use std::collections::HashSet;
use std::sync::Arc;

use plaincall_syntax::Syntax;
use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use crate::CallError;
use crate::SuspectMarker;
use crate::ToolCall;
use plaincall_tool::{Arguments, ReplyDiagnostic};

/// A call of a reply, with the decision about it (`spec/common.md` 10) and its arguments by the definition of its tool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DecidedCall {
    /// The call as written.
    pub call: Arc<ToolCall>,
    /// Why it is rejected; or that it may run, with the text that holds it, if there is any: a person should approve such a call.
    pub decision: Result<Option<SuspectMarker>, CallError>,
    /// The arguments by the definition of its tool; `None` if it was read without definitions.
    pub binding: Option<Binding>,
    /// Whether a lone reasoning end marker after it, in the same document or chunk, shows that it may be part of reasoning.
    pub may_be_reasoning: bool,
}

/// The arguments of a call by the definitions of tools.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Binding {
    /// The index of its tool ([`ToolLookup::find`](plaincall_tool::ToolLookup::find)), if there is one.
    pub tool: Option<usize>,
    /// The arguments for the tool, or all errors. A rejected call may have valid arguments, as a truncated one.
    pub arguments: Result<Arc<Arguments>, Vec<ReplyDiagnostic>>,
}

/// A call that may run, with the arguments for its tool.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Bound {
    /// The index of its tool ([`ToolLookup::find`](plaincall_tool::ToolLookup::find)).
    pub tool: usize,
    /// The arguments.
    pub arguments: Arc<Arguments>,
    /// Text in a value that was probably meant to end the call earlier, or the start of another call. Such a call runs only if the
    /// gate approves this very call.
    pub held: Option<SuspectMarker>,
}

impl DecidedCall {
    /// Returns what a run needs of a call that may run.
    ///
    /// # Errors
    /// Returns the reason why it is rejected. Without definitions, no call has a tool.
    pub fn bound(&self) -> Result<Bound, CallError> {
        let held = self.decision.clone()?;
        match &self.binding {
            Some(Binding {
                tool: Some(tool),
                arguments: Ok(arguments),
            }) => Ok(Bound {
                tool: *tool,
                arguments: Arc::clone(arguments),
                held,
            }),
            _ => Err(CallError::UnknownTool(
                "the definitions of the tools are not known".to_owned(),
            )),
        }
    }

    /// Returns whether the call may run: it is valid, and nothing in it was probably meant as its end.
    pub const fn may_run(&self) -> bool {
        matches!(self.decision, Ok(None))
    }

    /// Returns why the call must not run.
    pub fn rejection(&self) -> Option<&CallError> {
        self.decision.as_ref().err()
    }

    /// Returns the text that holds the call.
    pub fn held(&self) -> Option<&SuspectMarker> {
        self.decision.as_ref().ok()?.as_ref()
    }

    /// Returns what looks like a call in the text before it, as JSON for [`ReadCall::before`](crate::ReadCall::before).
    #[doc(hidden)]
    pub fn before(&self) -> Option<String> {
        self.call.before.to_json()
    }

    /// Returns the arguments, if they are valid. Without definitions, those of an emoji call are unknown.
    pub fn arguments(&self) -> Option<&Arguments> {
        match &self.binding {
            Some(binding) => binding.arguments.as_deref().ok(),
            // Only the definition of a tool gives the line and body of an emoji call a meaning.
            None => Some(&self.call.arguments)
                .filter(|_| self.call.syntax == Syntax::Block && self.call.parse_error.is_none()),
        }
    }

    /// Returns the arguments as JSON, if they are valid.
    pub fn value(&self) -> Option<Value> {
        self.arguments().map(Arguments::to_value)
    }

    /// Returns `true` if the definition resolves this diagnostic of the text, so that it is not an error (`spec/block.md`
    /// 7.7.1).
    pub fn resolves(&self, diagnostic: &ReplyDiagnostic) -> bool {
        let span = self.call.span;
        self.binding.as_ref().is_some_and(|it| it.arguments.is_ok())
            && diagnostic.is_argument_error()
            && span.start <= diagnostic.span.start
            && diagnostic.span.end <= span.end
    }

    /// Returns all diagnostics of the call, ordered by the ends of their spans: those of its text that the definition does not
    /// resolve, and those of the definition.
    pub fn diagnostics(&self) -> impl Iterator<Item = &ReplyDiagnostic> {
        let of_text = self.call.diagnostics.iter();
        let of_text = of_text.filter(|one| !self.resolves(one));
        let mut all: Vec<&ReplyDiagnostic> = of_text.chain(self.problems()).collect();
        all.sort_by_key(|diagnostic| diagnostic.span.end);
        all.into_iter()
    }

    /// Returns the errors among the diagnostics.
    pub fn errors(&self) -> impl Iterator<Item = &ReplyDiagnostic> {
        self.diagnostics().filter(|one| one.is_error())
    }

    /// Returns the errors from the definition that the text does not report already.
    pub fn problems(&self) -> impl Iterator<Item = &ReplyDiagnostic> {
        let diagnostics = self.call.diagnostics.iter();
        let reported: HashSet<_> = diagnostics.map(|one| (one.code, one.span)).collect();
        let problems = self.binding_errors().iter();
        problems.filter(move |problem| !reported.contains(&(problem.code, problem.span)))
    }

    /// Rejects the call because it may be part of reasoning, unless it is rejected already.
    pub(crate) fn reject(&mut self, error: &CallError) {
        self.may_be_reasoning = true;
        if self.decision.is_ok() {
            self.decision = Err(error.clone());
        }
    }

    fn binding_errors(&self) -> &[ReplyDiagnostic] {
        let binding = self.binding.as_ref();
        let errors = binding.and_then(|binding| binding.arguments.as_ref().err());
        errors.map(Vec::as_slice).unwrap_or_default()
    }
}

/// Writes the keys of `spec/block.md` 8 or `spec/emoji.md`, wire form; with definitions, with the arguments for the tool.
impl Serialize for DecidedCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(binding) = &self.binding else {
            return self.call.serialize(serializer);
        };
        let problems = self.binding_errors();
        let error = match self.call.syntax {
            Syntax::Block => problems.first().map(|first| first.message.clone()),
            Syntax::Emoji => {
                let messages: Vec<&str> = problems.iter().map(|one| &*one.message).collect();
                Some(messages.join("; ")).filter(|_| !problems.is_empty())
            }
        };
        let arguments = binding.arguments.as_deref().ok();
        serializer.collect_map(self.call.fields(arguments, error.as_deref()))
    }
}
