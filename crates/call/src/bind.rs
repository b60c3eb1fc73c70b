//! A call held against the definition of its tool.

use std::collections::HashSet;
use std::fmt;

use plaincall_syntax::{Span, Syntax};

use crate::argument_error::{enumerated, quoted};
use crate::arguments::Arguments;
use crate::bind_emoji::bind_emoji;
use crate::call::ToolCall;
use crate::json_text;
use crate::reading::{Reading, boolean, decimal};
use crate::tool::{Parameter, ParameterKind, ToolSpec};
use crate::tree::{Node, NodeIndex};

/// One thing that is wrong with a call for its tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its stable code: that of the finding for an error of the text, else `missing_argument`, `undeclared_argument`,
    /// `wrong_type`, `surplus_on_line`, `line_not_empty`, `body_not_blank` or `body_not_json`.
    pub code: &'static str,
    /// The pointer to the argument; empty for the call as a whole.
    pub pointer: String,
    /// Where it stands in the input; for what is missing, the header of the call.
    pub span: Span,
    /// One sentence that names the argument and says what is wrong.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(code: &'static str, pointer: &str, span: Span, message: String) -> Self {
        Self {
            code,
            pointer: pointer.to_owned(),
            span,
            message,
        }
    }

    pub(crate) fn wrong_type(pointer: &str, span: Span, misfit: &Misfit) -> Self {
        let Misfit { expected, found } = misfit;
        let message = format!("`{pointer}`: expected {expected}, found {found}");
        Self::new("wrong_type", pointer, span, message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

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
/// assert_eq!(problems[0].message, "`limit`: expected a whole number, found `many`");
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
///
/// # Errors
/// All problems at once, those of the text first, missing arguments last. Whether the call may run at all is another
/// question: [`ToolCall::may_run`].
pub fn bind(tool: &ToolSpec, call: &ToolCall) -> Result<Arguments, Vec<Problem>> {
    let mut problems: Vec<Problem> = call
        .findings
        .iter()
        .filter(|finding| finding.spoils_arguments())
        .map(|finding| Problem::new(finding.code, "", finding.span, finding.message.clone()))
        .collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let arguments = match call.syntax {
        Syntax::Block => bind_block(tool, &call.arguments, &mut problems),
        Syntax::Emoji => bind_emoji(tool, call, &mut problems),
    };
    if problems
        .iter()
        .all(|problem| !problem.code.starts_with("body_not"))
    {
        missing(
            tool,
            call.syntax,
            call.header_span,
            &arguments,
            &mut problems,
        );
    }
    all_or_problems(arguments, problems)
}

/// Holds arguments that stand in no text against the definition of a tool, such as those of a call that somebody has
/// changed. It checks what [`bind`] checks of a call in the block syntax, in the same way.
///
/// ```
/// use plaincall_call::{Arguments, Parameter, ParameterKind, ToolSpec, bind_arguments};
///
/// let tool = ToolSpec::new("wait").parameter(Parameter::new("seconds", ParameterKind::Integer));
/// let arguments = bind_arguments(&tool, &Arguments::from_pairs([("seconds", "010")])?).expect("they fit");
/// assert_eq!(arguments.to_value(), serde_json::json!({"seconds": 10}));
///
/// let problems = bind_arguments(&tool, &Arguments::from_pairs([("seconds", "ten")])?).unwrap_err();
/// assert_eq!(problems[0].message, "`seconds`: expected a whole number, found `ten`");
/// # Ok::<(), plaincall_call::ArgumentError>(())
/// ```
///
/// # Errors
/// All problems at once, missing arguments last. Their spans are those that the arguments have, and empty if they have
/// none.
pub fn bind_arguments(tool: &ToolSpec, arguments: &Arguments) -> Result<Arguments, Vec<Problem>> {
    let mut problems = Vec::new();
    let arguments = bind_block(tool, arguments, &mut problems);
    missing(
        tool,
        Syntax::Block,
        Span::default(),
        &arguments,
        &mut problems,
    );
    all_or_problems(arguments, problems)
}

fn all_or_problems(
    arguments: Arguments,
    problems: Vec<Problem>,
) -> Result<Arguments, Vec<Problem>> {
    if problems.is_empty() {
        Ok(arguments)
    } else {
        Err(problems)
    }
}

fn missing(
    tool: &ToolSpec,
    syntax: Syntax,
    header_span: Span,
    arguments: &Arguments,
    problems: &mut Vec<Problem>,
) {
    let is_missing =
        |parameter: &&Parameter| parameter.required && !arguments.has_member(&parameter.name);
    let mut missing = tool.parameters.iter().filter(is_missing).peekable();
    if missing.peek().is_none() {
        return;
    }
    let told: HashSet<&str> = problems
        .iter()
        .map(|problem| problem.pointer.as_str())
        .collect();
    let found: Vec<Problem> = missing
        .map(|parameter| parameter.pointer())
        .filter(|pointer| !told.contains(&**pointer))
        .map(|pointer| {
            let message = format!("`{pointer}` is missing: {}", needs(tool, syntax));
            Problem::new("missing_argument", &pointer, header_span, message)
        })
        .collect();
    problems.extend(found);
}

/// What a tool needs, in the form of the syntax in use.
fn needs(tool: &ToolSpec, syntax: Syntax) -> String {
    match syntax {
        Syntax::Block => format!("{} cannot be called without it", tool.name),
        Syntax::Emoji => format!("the form of the call is `{}`", tool.usage()),
    }
}

fn bind_block(tool: &ToolSpec, written: &Arguments, problems: &mut Vec<Problem>) -> Arguments {
    let mut arguments = written.clone();
    let mut undeclared = Undeclared::new(tool);
    for (key, node) in written.tree().root() {
        let Some(parameter) = tool.get(key) else {
            let (pointer, span) = first_pointer(&arguments, node);
            problems.push(undeclared.problem(pointer, span));
            continue;
        };
        let kind = parameter.kind;
        let leaf = match arguments.tree().node(node) {
            Some(Node::Leaf(leaf)) => *leaf,
            container => {
                let is_list = matches!(container, Some(Node::Array(_)));
                match kind {
                    ParameterKind::Any => {}
                    ParameterKind::Array if is_list => {}
                    ParameterKind::Object => arguments.tree_mut().make_object(node),
                    _ => problems.push(unexpected_parts(parameter, &arguments, node, is_list)),
                }
                continue;
            }
        };
        let Some(value) = arguments.leaf(leaf) else {
            continue;
        };
        if let Err(misfit) = fits(kind, arguments.text(value)) {
            problems.push(Problem::wrong_type(&value.pointer, value.span, &misfit));
        }
        if let Some(value) = arguments.leaf_mut(leaf) {
            value.reading = Reading::of(kind);
        }
    }
    arguments
}

/// The arguments that a tool does not take. What it does take is told with the first: there may be thousands.
pub(crate) struct Undeclared<'s> {
    tool: &'s ToolSpec,
    is_first: bool,
}

impl<'s> Undeclared<'s> {
    pub(crate) fn new(tool: &'s ToolSpec) -> Self {
        Self {
            tool,
            is_first: true,
        }
    }

    pub(crate) fn problem(&mut self, pointer: &str, span: Span) -> Problem {
        let mut message = format!("`{pointer}` is no parameter of {}", self.tool.name);
        if std::mem::take(&mut self.is_first) {
            message.push_str(": ");
            message.push_str(&takes(self.tool));
        }
        Problem::new("undeclared_argument", pointer, span, message)
    }
}

/// `it takes a, b and c`.
pub(crate) fn takes(tool: &ToolSpec) -> String {
    let names: Vec<_> = tool.parameters.iter().map(Parameter::pointer).collect();
    if names.is_empty() {
        "it takes no arguments".to_owned()
    } else {
        format!("it takes {}", enumerated(&names))
    }
}

/// The first pointer that leads to a place or below it.
fn first_pointer(arguments: &Arguments, node: NodeIndex) -> (&str, Span) {
    let leaf = arguments
        .tree()
        .first_leaf(node)
        .and_then(|leaf| arguments.leaf(leaf));
    leaf.map_or(("", Span::default()), |leaf| {
        (&leaf.pointer, leaf.pointer_span)
    })
}

fn unexpected_parts(
    parameter: &Parameter,
    arguments: &Arguments,
    node: NodeIndex,
    is_list: bool,
) -> Problem {
    let (_, span) = first_pointer(arguments, node);
    let found = if is_list { "a list" } else { "an object" };
    let misfit = Misfit {
        expected: parameter.kind.in_words(),
        found: found.to_owned(),
    };
    Problem::wrong_type(&parameter.pointer(), span, &misfit)
}

/// What was expected and what was found.
pub(crate) struct Misfit {
    pub(crate) expected: &'static str,
    pub(crate) found: String,
}

/// Whether a text fits a declared kind.
pub(crate) fn fits(kind: ParameterKind, text: &str) -> Result<(), Misfit> {
    let misfit = |expected| Misfit {
        expected,
        found: quoted(text),
    };
    let json = |is_right: fn(&serde_json::Value) -> bool| match json_text::parse(text) {
        Ok(value) if is_right(&value) => Ok(()),
        Err(error) if text.trim_start().starts_with(['[', '{']) => Err(Misfit {
            expected: kind.in_words(),
            found: format!("JSON that cannot be used: {error}"),
        }),
        Ok(_) | Err(_) => Err(misfit(kind.in_words())),
    };
    match kind {
        ParameterKind::String | ParameterKind::Any => Ok(()),
        ParameterKind::Boolean => match boolean(text) {
            Some(_) => Ok(()),
            None => Err(misfit(kind.in_words())),
        },
        ParameterKind::Integer => match decimal(text) {
            Some(number) if number.integer().is_some() => Ok(()),
            Some(number) if number.is_whole() => Err(misfit("a whole number of at most 64 bits")),
            _ => Err(misfit(kind.in_words())),
        },
        ParameterKind::Number => match decimal(text) {
            Some(number) if number.float().is_some() => Ok(()),
            Some(number) if !number.has_point && number.integer().is_some() => Ok(()),
            Some(_) => Err(misfit(
                "a number with no more digits than a 64-bit number keeps",
            )),
            None => Err(misfit(kind.in_words())),
        },
        ParameterKind::Array => json(serde_json::Value::is_array),
        ParameterKind::Object => json(serde_json::Value::is_object),
    }
}
