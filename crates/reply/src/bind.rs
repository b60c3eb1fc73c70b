//! Validation of a call against the definition of its tool.

use plaincall_syntax::Syntax;

use crate::ToolCall;
use plaincall_tool::Arguments;
use plaincall_tool::ReplyDiagnostic;
use plaincall_tool::ToolSpec;
use plaincall_tool::bind::{ReplySteps, Written};

/// Validates a call against the definition of its tool, and returns the arguments for the tool.
///
/// In the block syntax, each argument must be declared and valid, and each required argument present. In the emoji
/// syntax, the definition also decides how the line and the body are read ([`ToolSpec::usage`]; `spec/emoji.md`,
/// binding to named parameters). The texts stay as written,
/// except that a listed text loses the blanks and blank lines around it.
///
/// ```
/// use plaincall_reply::{Document, bind};
/// use plaincall_tool::{Parameter, ParameterKind, ToolSpec};
/// use plaincall_syntax::Dialect;
///
/// let tool = ToolSpec::new("run-query")
///     .parameter(Parameter::new("file", ParameterKind::String))
///     .parameter(Parameter::new("limit", ParameterKind::Integer).optional());
///
/// let document = Document::parse("🛠️[run-query main.sql 0100]🛠️[/end]", &Dialect::emoji())?;
/// let call = document.calls().next().expect("a call");
/// let arguments = bind(&tool, call).expect("it fits");
/// assert_eq!(arguments.get("limit"), Some("0100"));
/// assert_eq!(arguments.to_value(), serde_json::json!({"file": "main.sql", "limit": 100}));
///
/// let document = Document::parse("🛠️[run-query main.sql many]🛠️[/end]", &Dialect::emoji())?;
/// let problems = bind(&tool, document.calls().next().expect("a call")).unwrap_err();
/// assert_eq!(problems[0].message, "`limit`: expected an integer, found `many`");
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
///
/// # Errors
/// Returns all errors at once: errors of the text first, missing arguments last. If part of the call could not be read,
/// missing arguments are not reported. This does not decide whether the call may run; [`crate::ReplyCheck::may_run`]
/// does.
pub fn bind(tool: &ToolSpec, call: &ToolCall) -> Result<Arguments, Vec<ReplyDiagnostic>> {
    bind_within(&mut ReplySteps::default(), tool, call)
}

/// Validates a call within the steps that are left for its reply.
pub(crate) fn bind_within(
    steps: &mut ReplySteps,
    tool: &ToolSpec,
    call: &ToolCall,
) -> Result<Arguments, Vec<ReplyDiagnostic>> {
    let span = call.header.span;
    steps.count(span, |problems| {
        let (arguments, spoiled) = call.placed_for(tool);
        let written = match call.syntax {
            Syntax::Block => Written::Block(&arguments),
            Syntax::Emoji => Written::Emoji(call.emoji_parts()),
        };
        problems.bind(tool, written, span, spoiled)
    })
}
