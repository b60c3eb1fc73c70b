//! A call held against the definition of its tool.

pub(crate) mod block;
pub(crate) mod emoji;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::mem;

use plaincall_syntax::{Span, Syntax};

use crate::argument_error::enumerated;
use crate::arguments::Arguments;
use crate::bind::block::bind_block;
use crate::bind::emoji::bind_emoji;
use crate::call::ToolCall;
use crate::nearest::nearest_name;
use crate::pointer::{Pointer, escape, unescape};
use crate::reply_diagnostic::ReplyDiagnostic;
use crate::schema::TypeError;
use crate::tool::{Parameter, ToolSpec};
use crate::tree::NodeIndex;

/// Holds a call against the definition of its tool, and returns its arguments as the tool is to get them.
///
/// In the block syntax every argument must be declared, every required one there, and each fit what it is declared
/// as. In the emoji syntax the definition also says what the line and the body are (`spec/emoji.md`, binding to named
/// parameters; [`ToolSpec::usage`]). The texts stay as they were written.
///
/// ```
/// use plaincall_call::{Document, Parameter, ParameterKind, ToolSpec, bind};
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
/// All problems at once, those of the text first, missing arguments last. Where not all that was written could be read,
/// nothing is reported of what is missing. Whether the call may run at all is another
/// question: [`crate::ReplyCheck::may_run`].
pub fn bind(tool: &ToolSpec, call: &ToolCall) -> Result<Arguments, Vec<ReplyDiagnostic>> {
    let mut problems = Problems::default();
    let arguments = bind_written(tool, call, &mut problems);
    problems.into_result(arguments)
}

/// Binds what is written, and adds all that is wrong to `problems`.
pub(crate) fn bind_written(tool: &ToolSpec, call: &ToolCall, problems: &mut Problems) -> Arguments {
    let (written, spoiled) = call.placed_for(tool);
    let count = spoiled.len();
    // What is missing, and what is wrong with the whole, shows only if all that was written is known.
    problems.is_unrecoverable = spoiled.iter().any(|problem| problem.pointer.is_empty());
    problems.found = spoiled;
    let arguments = match call.syntax {
        Syntax::Block => bind_block(tool, &written, problems),
        Syntax::Emoji => bind_emoji(tool, call, problems),
    };
    if call.syntax == Syntax::Emoji && count > 0 {
        // Its text is not all there, so nothing more can be said of it.
        problems.found.truncate(count);
        problems.inside.clear();
        return arguments;
    }
    problems.complete(tool, call.syntax, call.header_span, &arguments);
    arguments
}

/// Holds arguments that stand in no text against the definition of a tool, such as those of a call that somebody has
/// changed. It checks what [`bind`] checks of a call in the block syntax, in the same way.
///
/// # Errors
/// All problems at once, missing arguments last. Their spans are those that the arguments have, and empty if they have
/// none.
pub fn bind_arguments(
    tool: &ToolSpec,
    arguments: &Arguments,
) -> Result<Arguments, Vec<ReplyDiagnostic>> {
    let mut problems = Problems::default();
    let arguments = bind_block(tool, arguments, &mut problems);
    problems.complete(tool, Syntax::Block, Span::default(), &arguments);
    problems.into_result(arguments)
}

#[derive(Default)]
pub(crate) struct Problems {
    found: Vec<ReplyDiagnostic>,
    /// Wrong parts of lists and objects that stand as JSON: what validates says it better.
    inside: Vec<ReplyDiagnostic>,
    /// Lists and objects with more parts than there is room for: validation may say it too, but need not be there.
    too_many: Vec<ReplyDiagnostic>,
    /// Whether there is nothing that the rest of the checks could look at.
    is_unrecoverable: bool,
}

impl Problems {
    pub(crate) fn push(&mut self, problem: ReplyDiagnostic) {
        self.found.push(problem);
    }

    pub(crate) fn type_error(&mut self, pointer: &str, span: Span, type_error: &TypeError) {
        let TypeError {
            expected, found, ..
        } = type_error;
        let message = format!("`{pointer}`: expected {expected}, found {found}");
        let problem = ReplyDiagnostic::new("wrong_type", pointer, span, message);
        if type_error.is_inside {
            self.inside.push(problem);
        } else {
            self.found.push(problem);
        }
    }

    pub(crate) fn too_many(&mut self, problem: ReplyDiagnostic) {
        self.too_many.push(problem);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty() && self.inside.is_empty() && self.too_many.is_empty()
    }

    pub(crate) fn first(&self) -> Option<&ReplyDiagnostic> {
        self.found.first()
    }

    /// The arguments could not be read at all.
    pub(crate) fn unrecoverable(&mut self, problem: ReplyDiagnostic) {
        self.found.push(problem);
        self.is_unrecoverable = true;
    }

    fn complete(
        &mut self,
        tool: &ToolSpec,
        syntax: Syntax,
        header_span: Span,
        arguments: &Arguments,
    ) {
        if !self.is_unrecoverable {
            self.missing(tool, syntax, header_span, arguments);
            self.validated(tool, header_span, arguments);
        }
        let mut too_many = mem::take(&mut self.too_many);
        if !too_many.is_empty() {
            let reported: HashSet<&str> = self.found.iter().map(|one| &*one.pointer).collect();
            too_many.retain(|problem| !reported.contains(&*problem.pointer));
            self.found.append(&mut too_many);
        }
    }

    fn into_result(self, arguments: Arguments) -> Result<Arguments, Vec<ReplyDiagnostic>> {
        if self.found.is_empty() {
            Ok(arguments)
        } else {
            Err(self.found)
        }
    }

    fn missing(
        &mut self,
        tool: &ToolSpec,
        syntax: Syntax,
        header_span: Span,
        arguments: &Arguments,
    ) {
        let is_missing =
            |parameter: &&Parameter| parameter.required && !arguments.has_member(&parameter.name);
        let mut missing = tool.parameters().iter().filter(is_missing).peekable();
        if missing.peek().is_none() {
            return;
        }
        let reported: HashSet<&str> = self
            .found
            .iter()
            .map(|problem| Pointer::beginning(&problem.pointer, 1))
            .collect();
        let found: Vec<ReplyDiagnostic> = missing
            .map(|parameter| parameter.pointer())
            .filter(|pointer| !reported.contains(&**pointer))
            .map(|pointer| {
                let usage = match syntax {
                    Syntax::Block => String::new(),
                    Syntax::Emoji => format!("; usage: `{}`", tool.usage()),
                };
                let message = format!("missing required parameter `{pointer}`{usage}");
                ReplyDiagnostic::new("missing_argument", &pointer, header_span, message)
            })
            .collect();
        self.found.extend(found);
    }

    /// Adds what validation finds, where nothing is reported yet.
    fn validated(&mut self, tool: &ToolSpec, header_span: Span, arguments: &Arguments) {
        let violations = match tool
            .validator()
            .validate(tool.schema(), || arguments.to_value())
        {
            Ok(Some(violations)) => violations,
            Ok(None) => {
                self.found.append(&mut self.inside);
                return;
            }
            Err(error) => {
                let message = format!(
                    "{} cannot be called, since its schema cannot be used: {error}",
                    tool.name
                );
                let code = "unusable_schema";
                self.push(ReplyDiagnostic::new(code, "", header_span, message));
                return;
            }
        };
        let reported: HashSet<&str> = self.found.iter().map(|one| &*one.pointer).collect();
        let reported_below: HashSet<&str> =
            reported.iter().flat_map(|one| beginnings(one)).collect();
        let found: Vec<ReplyDiagnostic> = violations
            .into_iter()
            .filter(|violation| {
                let pointer = violation.pointer.as_str();
                let is_reported = !reported.is_empty() && pointer.is_empty();
                !is_reported
                    && !reported.contains(pointer)
                    && !reported_below.contains(pointer)
                    && !beginnings(pointer).any(|beginning| reported.contains(beginning))
            })
            .map(|one| {
                let span = arguments.span_near(&one.pointer).unwrap_or(header_span);
                let (code, message) = match (one.is_missing, one.pointer.as_str()) {
                    (true, pointer) => ("missing_argument", format!("`{pointer}` {}", one.message)),
                    (false, "") => ("wrong_value", one.message),
                    (false, pointer) => ("wrong_value", format!("`{pointer}`: {}", one.message)),
                };
                ReplyDiagnostic::new(code, &one.pointer, span, message)
            })
            .collect();
        self.found.extend(found);
    }
}

/// The pointers to what a pointer passes through.
pub(crate) fn beginnings(pointer: &str) -> impl Iterator<Item = &str> {
    pointer
        .match_indices('/')
        .filter_map(|(at, _)| pointer.get(..at))
}

/// For how many unknown arguments of a call a parameter is suggested.
const SUGGESTED: usize = 5;

/// The arguments that a tool does not take. What it does take is reported with the first: there may be thousands.
pub(crate) struct Undeclared<'s> {
    tool: &'s ToolSpec,
    count: usize,
}

impl<'s> Undeclared<'s> {
    pub(crate) fn new(tool: &'s ToolSpec) -> Self {
        Self { tool, count: 0 }
    }

    pub(crate) fn problem(&mut self, pointer: &str, span: Span) -> ReplyDiagnostic {
        let mut message = format!("unknown parameter `{pointer}`");
        let name = unescape(Pointer::beginning(pointer, 1));
        let names = self.tool.parameters().iter().map(|one| one.name.as_str());
        let is_early = self.count < SUGGESTED;
        let near = is_early.then(|| nearest_name(&name, names)).flatten();
        if let Some(near) = near {
            let _ = write!(message, "; did you mean `{}`?", escape(near));
        }
        if self.count == 0 {
            message.push_str(if near.is_some() { " " } else { "; " });
            message.push_str(&takes(self.tool));
        }
        self.count += 1;
        ReplyDiagnostic::new("undeclared_argument", pointer, span, message)
    }
}

pub(crate) fn takes(tool: &ToolSpec) -> String {
    let names: Vec<_> = tool.parameters().iter().map(Parameter::pointer).collect();
    if names.is_empty() {
        format!("{} takes no parameters", tool.name)
    } else {
        format!("{} takes {}", tool.name, enumerated(&names))
    }
}

/// The first pointer that leads to a place or below it.
pub(crate) fn first_pointer(arguments: &Arguments, node: NodeIndex) -> (&str, Span) {
    let leaf = arguments
        .tree
        .first_leaf(node)
        .and_then(|leaf| arguments.leaves.get(leaf));
    leaf.map_or(("", Span::default()), |leaf| {
        (&leaf.pointer, leaf.pointer_span)
    })
}
