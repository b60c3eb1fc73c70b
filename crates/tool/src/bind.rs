//! Validation of a call against the definition of its tool.

pub mod block;
pub mod emoji;
pub(crate) mod object;
mod placeholder;

use std::collections::HashSet;
use std::fmt::Write as _;
use std::mem;

use plaincall_syntax::{Span, Syntax};
use serde_json::{Map, Value};

use crate::Arguments;
use crate::ReplyDiagnostic;
use crate::argument_error::enumerated;
use crate::bind::block::bind_block;
use crate::bind::emoji::{EmojiParts, bind_emoji};
use crate::bind::object::bind_values;
use crate::pointer::{Pointer, escape, unescape};
use crate::schema::TypeError;
use crate::tree::NodeIndex;
use crate::validate::NotValidated;
use crate::{Parameter, ToolSpec};
use plaincall_names::nearest_name;

/// The steps that are left to read and validate the calls of one reply, in addition to those for the sizes of their values.
#[derive(Clone, Copy, Debug)]
pub struct ReplySteps(usize);

impl Default for ReplySteps {
    fn default() -> Self {
        Self(20_000_000)
    }
}

impl ReplySteps {
    /// Validates arguments as [`bind_arguments`] does, with the same limit.
    pub fn bind_arguments(
        &mut self,
        tool: &ToolSpec,
        arguments: &Arguments,
    ) -> Result<Arguments, Vec<ReplyDiagnostic>> {
        self.count(Span::default(), |problems| {
            let arguments = bind_block(tool, arguments, problems);
            problems.complete(tool, Syntax::Block, Span::default(), &arguments);
            arguments
        })
    }

    /// Validates values as [`bind_object`](crate::bind_object) does, with the same limit.
    pub fn bind_object(
        &mut self,
        tool: &ToolSpec,
        object: &Map<String, Value>,
    ) -> Result<Arguments, Vec<ReplyDiagnostic>> {
        self.count(Span::default(), |problems| {
            bind_values(tool, object, problems)
        })
    }

    /// Returns what `bind` makes of a call, unless it has errors. When no steps are left, each further call is invalid.
    pub fn count(
        &mut self,
        span: Span,
        bind: impl FnOnce(&mut Problems) -> Arguments,
    ) -> Result<Arguments, Vec<ReplyDiagnostic>> {
        let mut problems = Problems::default();
        if self.0 == 0 {
            let message = "checking the calls of this reply by their schemas takes too many steps; send fewer or simpler calls";
            let message = message.to_owned();
            problems.push(ReplyDiagnostic::of_definition(
                "wrong_value",
                "",
                span,
                message,
            ));
            return problems.into_result(Arguments::default());
        }
        let arguments = bind(&mut problems);
        self.0 = self.0.saturating_sub(problems.steps);
        problems.into_result(arguments)
    }
}

/// Validates arguments without a source text, such as those of an edited call, against the definition of a tool. The
/// checks are those for a block call.
///
/// # Errors
/// Returns all errors at once, missing arguments last. Their spans are those of the arguments, or empty.
pub fn bind_arguments(
    tool: &ToolSpec,
    arguments: &Arguments,
) -> Result<Arguments, Vec<ReplyDiagnostic>> {
    ReplySteps::default().bind_arguments(tool, arguments)
}

/// A call as it was written.
#[derive(Clone, Copy)]
pub enum Written<'c> {
    Block(&'c Arguments),
    Emoji(EmojiParts<'c>),
}

/// The errors of a call.
#[derive(Default)]
pub struct Problems {
    found: Vec<ReplyDiagnostic>,
    /// Errors inside lists and objects written as JSON: validation has better messages for them.
    inside: Vec<ReplyDiagnostic>,
    /// Lists and objects with too many parts: validation may report them too, but is optional.
    too_many: Vec<ReplyDiagnostic>,
    is_unrecoverable: bool,
    /// The steps to find them.
    pub(crate) steps: usize,
}

impl Problems {
    /// Binds a call, with the errors in its text.
    pub fn bind(
        &mut self,
        tool: &ToolSpec,
        written: Written<'_>,
        header_span: Span,
        spoiled: Vec<ReplyDiagnostic>,
    ) -> Arguments {
        let count = spoiled.len();
        // Missing arguments and errors of the whole are known only if the whole text could be read.
        self.is_unrecoverable = spoiled.iter().any(|problem| problem.pointer.is_empty());
        self.found = spoiled;
        let (arguments, syntax) = match written {
            Written::Block(written) => (bind_block(tool, written, self), Syntax::Block),
            Written::Emoji(parts) => (bind_emoji(tool, parts, self), Syntax::Emoji),
        };
        if syntax == Syntax::Emoji && count > 0 {
            // Its text is incomplete, so further errors would be misleading.
            self.found.truncate(count);
            self.inside.clear();
            return arguments;
        }
        self.complete(tool, syntax, header_span, &arguments);
        arguments
    }

    pub(crate) fn push(&mut self, problem: ReplyDiagnostic) {
        self.found.push(problem);
    }

    pub(crate) fn type_error(&mut self, pointer: &str, span: Span, type_error: &TypeError) {
        let TypeError {
            expected, found, ..
        } = type_error;
        let message = format!("`{pointer}`: expected {expected}, found {found}");
        let problem = ReplyDiagnostic::of_definition("wrong_type", pointer, span, message);
        if type_error.is_inside {
            self.inside.push(problem);
        } else {
            self.found.push(problem);
        }
    }

    pub(crate) fn too_many(&mut self, problem: ReplyDiagnostic) {
        self.too_many.push(problem);
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty() && self.inside.is_empty() && self.too_many.is_empty()
    }

    pub(crate) fn first(&self) -> Option<&ReplyDiagnostic> {
        self.found.first()
    }

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
            placeholder::report(tool, arguments, self);
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
                ReplyDiagnostic::of_definition("missing_argument", &pointer, header_span, message)
            })
            .collect();
        self.found.extend(found);
    }

    fn validated(&mut self, tool: &ToolSpec, header_span: Span, arguments: &Arguments) {
        let value = || arguments.to_value();
        let checked = tool
            .validator()
            .validate(tool.schema(), value, &mut self.steps);
        let violations = match checked {
            Ok(Some(violations)) => violations,
            Ok(None) => {
                self.found.append(&mut self.inside);
                return;
            }
            Err(error) => {
                let (code, because) = match error {
                    NotValidated::Schema(_) => ("unusable_schema", "because"),
                    NotValidated::TooManySteps | NotValidated::TooManyViolations => {
                        ("wrong_value", "with these arguments:")
                    }
                };
                let message = format!("{} cannot be called {because} {error}", tool.name);
                self.push(ReplyDiagnostic::of_definition(
                    code,
                    "",
                    header_span,
                    message,
                ));
                return;
            }
        };
        let reported: HashSet<&str> = self.found.iter().map(|one| &*one.pointer).collect();
        let reported_below: HashSet<&str> = reported
            .iter()
            .flat_map(|one| proper_prefixes(one))
            .collect();
        let found: Vec<ReplyDiagnostic> = violations
            .into_iter()
            .filter(|violation| {
                let pointer = violation.pointer.as_str();
                let is_reported = !reported.is_empty() && pointer.is_empty();
                !is_reported
                    && !reported.contains(pointer)
                    && !reported_below.contains(pointer)
                    && !proper_prefixes(pointer).any(|beginning| reported.contains(beginning))
            })
            .map(|one| {
                let span = arguments.span_near(&one.pointer).unwrap_or(header_span);
                let (code, message) = match (one.is_missing, one.pointer.as_str()) {
                    (true, pointer) => ("missing_argument", format!("`{pointer}` {}", one.message)),
                    (false, "") => ("wrong_value", one.message),
                    (false, pointer) => ("wrong_value", format!("`{pointer}`: {}", one.message)),
                };
                ReplyDiagnostic::of_definition(code, &one.pointer, span, message)
            })
            .collect();
        self.found.extend(found);
    }
}

pub(crate) fn proper_prefixes(pointer: &str) -> impl Iterator<Item = &str> {
    pointer
        .match_indices('/')
        .filter_map(|(at, _)| pointer.get(..at))
}

/// The number of unknown arguments of a call for which a parameter is suggested.
const SUGGESTED: usize = 5;

/// Reports arguments that a tool does not declare. Only the first report lists the parameters: there may be thousands.
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
        ReplyDiagnostic::of_definition("undeclared_argument", pointer, span, message)
    }
}

pub(crate) fn takes(tool: &ToolSpec) -> String {
    let names: Vec<_> = tool.parameters().iter().map(Parameter::pointer).collect();
    let patterns = tool.schema().document().get("patternProperties");
    let patterns = patterns.and_then(Value::as_object);
    let patterns: Vec<_> = patterns.into_iter().flat_map(Map::keys).collect();
    let listed = (!names.is_empty()).then(|| enumerated(&names));
    let matching = format!("parameters whose names match {}", enumerated(&patterns));
    let matching = (!patterns.is_empty()).then_some(matching);
    let takes: Vec<String> = listed.into_iter().chain(matching).collect();
    match takes.as_slice() {
        [] => format!("{} takes no parameters", tool.name),
        takes => format!("{} takes {}", tool.name, takes.join(", and ")),
    }
}

pub(crate) fn first_pointer(arguments: &Arguments, node: NodeIndex) -> (&str, Span) {
    let leaf = arguments
        .tree
        .first_leaf(node)
        .and_then(|leaf| arguments.leaves.get(leaf));
    leaf.map_or(("", Span::default()), |leaf| {
        (&leaf.pointer, leaf.pointer_span)
    })
}
