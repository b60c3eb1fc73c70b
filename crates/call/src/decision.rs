//! A complete text with a decision about each call, for programs in other languages: invalid calls are data.

use plaincall_syntax::{ByteParser, Dialect, DialectError, Syntax};
use serde_json::Value;

use crate::call::ToolCall;
use crate::call_error::CallError;
use crate::document::{BoundCall, Document, DocumentBuilder};
use crate::limits::Limits;
use crate::may_run::{Bound, ReplyCheck};
use crate::repair::{repair, repair_reply};
use crate::reply_diagnostic::ReplyDiagnostic;
use crate::stop::Stop;
use crate::suspect_marker::SuspectMarker;
use crate::tool::set::ToolSet;
use crate::untrusted::ModelText;
use crate::untrusted::prompt_text::PromptText;

/// The decision about a call: whether it may run, and what is known about its arguments.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Decision {
    /// The arguments, if they are valid. Those of an emoji call without tools are unknown.
    pub arguments: Option<Value>,
    /// The errors: of the text, and with tools those of the definition.
    pub problems: Vec<ReplyDiagnostic>,
    /// Why the call must not run.
    pub rejection: Option<CallError>,
    /// Text in a value that was probably meant to end the call earlier, or the start of another call. A person should approve such
    /// a call.
    pub held: Option<SuspectMarker>,
}

impl Decision {
    /// Returns the decision about a call without tools, from that of [`ReplyCheck::may_run`].
    pub fn without_tools(
        call: &ToolCall,
        decided: Result<Option<SuspectMarker>, CallError>,
    ) -> Self {
        let errors = call.diagnostics.iter().filter(|one| one.is_error());
        // Only the definition of a tool gives the line and body of an emoji call a meaning.
        let has_arguments = call.syntax == Syntax::Block && call.parse_error.is_none();
        let (rejection, held) = match decided {
            Ok(held) => (None, held),
            Err(error) => (Some(error), None),
        };
        Self {
            arguments: has_arguments.then(|| call.arguments.to_value()),
            problems: errors.cloned().collect(),
            rejection,
            held,
        }
    }

    /// Returns the decision about a call of a tool, from that of [`ReplyCheck::bind`].
    pub fn with_tools(call: &ToolCall, tools: &ToolSet, bound: Result<Bound, CallError>) -> Self {
        let rejection = match bound {
            Ok(bound) => {
                return Self {
                    arguments: Some(bound.arguments.to_value()),
                    problems: Vec::new(),
                    rejection: None,
                    held: bound.held,
                };
            }
            Err(error) => error,
        };
        // Its arguments may be valid all the same, as those of a truncated call.
        let bound = BoundCall::new(call, tools);
        let problems = bound.diagnostics().filter(|one| one.is_error());
        Self {
            problems: problems.cloned().collect(),
            arguments: bound.arguments.ok().map(|arguments| arguments.to_value()),
            rejection: Some(rejection),
            held: None,
        }
    }

    /// Returns whether the call may run: it is valid, and nothing in it was probably meant as its end.
    pub const fn may_run(&self) -> bool {
        self.rejection.is_none() && self.held.is_none()
    }
}

/// A complete text, with a decision about each call.
///
/// ```
/// use plaincall_call::decision::DecidedDocument;
/// use plaincall_call::{ReplyCheck, Stop, Unclosed};
/// use plaincall_syntax::Dialect;
///
/// let dialect = Dialect::block();
/// let text = b"!!!GADGET_START:read\n!!!ARG:path\na.txt";
/// let check = ReplyCheck::new(&dialect, Unclosed::Reject)?;
/// let read = DecidedDocument::new(text, &dialect, check, Stop::Length)?;
/// // The end of the text may be missing.
/// assert!(!read.decisions[0].may_run());
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DecidedDocument {
    /// The parts of the text.
    pub document: Document,
    /// A decision for each call, in order.
    pub decisions: Vec<Decision>,
    /// All diagnostics, ordered by the ends of their spans. With tools, also those of their definitions.
    pub diagnostics: Vec<ReplyDiagnostic>,
    /// The text, if there are tools and no call: a repair message may be about it.
    source: String,
}

impl DecidedDocument {
    /// Parses a text, and decides about its calls without the definitions of tools. `stop` is how the text ended. Bytes that are
    /// not UTF-8 are replaced. No text is an error.
    ///
    /// # Errors
    ///
    /// Returns an error for an invalid dialect.
    pub fn new(
        text: &[u8],
        dialect: &Dialect,
        mut check: ReplyCheck,
        stop: Stop,
    ) -> Result<Self, DialectError> {
        let document = document(text, dialect)?;
        let decide = |call| Decision::without_tools(call, check.may_run(call, None, stop));
        let decisions = document.calls().map(decide).collect();
        Ok(Self {
            diagnostics: document.diagnostics.clone(),
            document,
            decisions,
            source: String::new(),
        })
    }

    /// Parses a text as [`new`](Self::new) does, and validates each call against its definition.
    ///
    /// # Errors
    ///
    /// Returns an error for an invalid dialect.
    pub fn with_tools(
        text: &[u8],
        dialect: &Dialect,
        mut check: ReplyCheck,
        tools: &ToolSet,
        stop: Stop,
    ) -> Result<Self, DialectError> {
        let document = document(text, dialect)?;
        let decide = |call| Decision::with_tools(call, tools, check.bind(call, tools, stop));
        let decisions: Vec<Decision> = document.calls().map(decide).collect();
        let source = if decisions.is_empty() {
            String::from_utf8_lossy(text).into_owned()
        } else {
            String::new()
        };
        Ok(Self {
            diagnostics: document.bind(tools).diagnostics().cloned().collect(),
            document,
            decisions,
            source,
        })
    }

    /// Returns the rejected calls with the reasons.
    pub fn rejected(&self) -> impl Iterator<Item = (&ToolCall, &CallError)> {
        let calls = self.document.calls().zip(&self.decisions);
        calls.filter_map(|(call, decision)| Some((call, decision.rejection.as_ref()?)))
    }

    /// Returns a message to the model about the rejected calls, or `None` if there is none. If there is no call, but text like
    /// one, the message is about that.
    ///
    /// # Errors
    ///
    /// Returns an error for the automatic dialect: the message teaches one syntax.
    pub fn repair(
        &self,
        tools: &ToolSet,
        dialect: &Dialect,
    ) -> Result<Option<PromptText>, DialectError> {
        let mut rejected = self.rejected().peekable();
        if rejected.peek().is_some() {
            repair(rejected, tools, dialect).map(Some)
        } else if self.document.calls().next().is_none() {
            repair_reply(&ModelText::new(self.source.as_str()), tools, dialect)
        } else {
            Ok(None)
        }
    }
}

/// Parses a text.
fn document(text: &[u8], dialect: &Dialect) -> Result<Document, DialectError> {
    let mut parser = ByteParser::new(dialect)?;
    let mut builder = DocumentBuilder::new(dialect, Limits::for_reading());
    parser.feed(text).for_each(|event| builder.push(&event));
    parser.finish().for_each(|event| builder.push(&event));
    Ok(builder.finish())
}
