//! The message to the model about rejected calls (`spec/repair.md`).

mod block_example;
mod emoji_example;
mod example;
mod kept;
mod message;
mod placeholder;

use plaincall_syntax::{
    CallFormat, Dialect, DialectError, NearMiss, Syntax, Termination, near_misses,
};

use crate::repair::example::Example;
use crate::repair::kept::Wrong;
use crate::repair::message::Message;
use plaincall_reply::{
    CallError, Document, MissingEnd, ModelText, PromptText, ToolCall, Untrusted, bind,
};
use plaincall_tool::{ReplyDiagnostic, ToolLookup, ToolSet, ToolSpec};

/// The maximum number of described calls; a note reports that there are more.
const CALLS: usize = 5;

/// Writes a short message to the model about rejected calls: for up to five of them, the call as written, all errors,
/// and a correct example (`spec/repair.md`). The message is empty if there are no calls.
///
/// The example keeps the valid arguments and has a placeholder, such as `<an integer>`, for each invalid or missing
/// one. It is written in the dialect and parses as one call of the tool. Nothing is executed: the model must send the
/// call. The message is short even if the calls are long and have many errors.
///
/// ```
/// use plaincall_reply::{Document, ReplyCheck, Stop, Unclosed};
/// use plaincall_tool::{Parameter, ParameterKind, ToolSet, ToolSpec};
/// use plaincall_prompt::repair::repair;
/// use plaincall_syntax::Dialect;
///
/// let wait = ToolSpec::new("wait")
///     .parameter(Parameter::new("for", ParameterKind::String))
///     .parameter(Parameter::new("seconds", ParameterKind::Integer));
/// let tools = ToolSet::new([wait])?;
/// let dialect = Dialect::block();
/// let reply = "!!!GADGET_START:wait:w\n!!!ARG:for\nthe mail\n!!!ARG:seconds\nten\n!!!GADGET_END";
/// let check = ReplyCheck::new(&dialect, Unclosed::Reject)?;
/// let document = Document::read(reply, &dialect, &tools, check, Stop::Natural)?;
/// let read = document.decided().next().expect("a call");
/// let error = read.rejection().expect("an error");
/// let message = repair([(&*read.call, error)], &tools, &dialect)?;
/// assert!(message.text().contains("- `seconds`: expected an integer, found `ten`\n"));
/// assert!(message.text().contains(
///     "!!!GADGET_START:wait:w\n!!!ARG:for\nthe mail\n!!!ARG:seconds\n<an integer>\n!!!GADGET_END\n"
/// ));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns an error for an invalid dialect; never for a call.
pub fn repair<'c>(
    rejected: impl IntoIterator<Item = (&'c ToolCall, &'c CallError)>,
    tools: &(impl ToolLookup + ?Sized),
    dialect: &Dialect,
) -> Result<PromptText, DialectError> {
    write(Message::new(dialect)?, rejected, tools, dialect)
}

/// Writes the message of [`repair`] for a model that also gets the results of these calls, each with the text of the
/// [`CallError`] as its error. It omits the problems that this text states.
///
/// # Errors
/// Returns an error for an invalid dialect; never for a call.
pub fn repair_after_results<'c>(
    rejected: impl IntoIterator<Item = (&'c ToolCall, &'c CallError)>,
    tools: &(impl ToolLookup + ?Sized),
    dialect: &Dialect,
) -> Result<PromptText, DialectError> {
    write(Message::after_results(dialect)?, rejected, tools, dialect)
}

fn write<'c>(
    mut message: Message,
    rejected: impl IntoIterator<Item = (&'c ToolCall, &'c CallError)>,
    tools: &(impl ToolLookup + ?Sized),
    dialect: &Dialect,
) -> Result<PromptText, DialectError> {
    for (place, (call, error)) in rejected.into_iter().enumerate() {
        if place == CALLS {
            message.more_calls();
            break;
        }
        message.begin_call(place > 0, error);
        describe(&mut message, call, error, tools, dialect)?;
    }
    Ok(message.finish())
}

fn describe(
    message: &mut Message,
    call: &ToolCall,
    error: &CallError,
    tools: &(impl ToolLookup + ?Sized),
    dialect: &Dialect,
) -> Result<(), DialectError> {
    let wrong = Wrong::of(error);
    message.heading(&call.name, &call.id);
    message.written(call);
    let tool = tools.find(&call.name).map(|(_, tool)| tool);
    // Whether nothing is known about the arguments yet.
    let mut is_unread = false;
    match error {
        CallError::UnknownTool(_) => {
            if let Some(first) = &call.parse_error {
                message.diagnostics(call, first);
            }
        }
        CallError::Arguments(problems) => message.problems(call, problems),
        CallError::Malformed(first) => message.diagnostics(call, first),
        CallError::Dependencies(sentence) | CallError::UnknownIds(sentence) => {
            message.problem("", sentence);
        }
        CallError::NoDependencies | CallError::CopiedExample => {
            message.own_problem(&error.to_string());
        }
        CallError::DuplicateId(_) => {
            message.problem("", &error.to_string());
            is_unread = true;
        }
        // These messages contain no marker except the end marker, which is intended.
        _ => {
            message.own_problem(&error.to_string());
            is_unread = true;
        }
    }
    match tool {
        None => message.problem("", &tools.unknown(&call.name)),
        Some(tool) if is_unread => message.problems(call, &also_wrong(tool, call, wrong)),
        Some(_) => {}
    }
    let mut meant = None;
    if looks_odd(call, error) {
        let source = call.source().unwrap_or_default();
        let mut near = near_misses(source, dialect)?;
        // In a call with an end marker they are content.
        near.retain(|miss| miss.format.is_none() || call.termination != Termination::Explicit);
        message.near_misses(source, &near);
        meant = with_markers_meant(source, &near, dialect)?.filter(|meant| {
            tool.is_some_and(|tool| meant.is_closed() && bind(tool, meant).is_ok())
        });
    }
    let is_quotable = matches!(
        error,
        CallError::NotClosed {
            why: MissingEnd::AfterUnclosed,
            ..
        } | CallError::AfterBrokenStart { .. }
            | CallError::InReasoning(_)
            | CallError::MaybeReasoning(_)
            | CallError::CopiedExample
    );
    let shown = match (tool, &meant) {
        // It may be a quotation or a copy, so the model is not asked to send it.
        _ if is_quotable => None,
        // Its header is invalid, and the intended one is not known.
        _ if matches!(error, CallError::Dependencies(_) | CallError::UnknownIds(_)) => None,
        (None, _) => None,
        (Some(tool), Some(meant)) => Example::of(tool, meant, Wrong::default(), dialect),
        (Some(tool), None) => Example::of(tool, call, wrong, dialect),
    };
    message.example(shown.as_ref());
    Ok(())
}

/// Returns the errors of a call besides its end or its id. If the end of a call is not known, its last value may have
/// continued, and missing arguments may have followed.
fn also_wrong(tool: &ToolSpec, call: &ToolCall, wrong: Wrong) -> Vec<ReplyDiagnostic> {
    let Err(mut problems) = bind(tool, call) else {
        return Vec::new();
    };
    if wrong.is_truncated {
        let whole_until = match call.syntax {
            Syntax::Block => call.arguments.iter().last().map(|last| last.span.start),
            Syntax::Emoji => call.raw_args_span().map(|line| line.end),
        };
        let whole_until = whole_until.unwrap_or_default();
        let is_known =
            |one: &ReplyDiagnostic| one.code != "missing_argument" && one.span.end <= whole_until;
        problems.retain(is_known);
    }
    problems
}

/// Returns `true` if a misspelled marker may be the cause.
fn looks_odd(call: &ToolCall, error: &CallError) -> bool {
    match error {
        CallError::Arguments(problems) => {
            let is_structural = |one: &ReplyDiagnostic| {
                call.syntax == Syntax::Emoji && one.pointer.is_empty()
                    || matches!(one.code, "missing_argument" | "text_without_argument")
            };
            call.parse_error.is_some() || problems.iter().any(is_structural)
        }
        CallError::Malformed(_)
        | CallError::NotClosed { .. }
        | CallError::SuspectEnd { .. }
        | CallError::EndsInQuotation(_)
        | CallError::SlashInHeader(_) => true,
        _ => false,
    }
}

/// Writes a short message to the model about a reply without a call that contains text like one: the near misses, and
/// an example (`spec/repair.md` 4). `None` if the reply has a call, or no text like a marker and no header at its end.
///
/// # Errors
/// Returns an error for an invalid dialect.
pub fn repair_reply(
    reply: &ModelText<'_>,
    tools: &(impl ToolLookup + ?Sized),
    dialect: &Dialect,
) -> Result<Option<PromptText>, DialectError> {
    let text = reply.as_str();
    let document = Document::parse(text, dialect)?;
    if document.calls().next().is_some() {
        return Ok(None);
    }
    let mut near = document.near_misses(text, dialect)?;
    // Other JSON has such keys too, and other Python such lists.
    let names_tool = tools.specs().any(|tool| text.contains(&*tool.name));
    near.retain(|miss| match miss.format {
        Some(CallFormat::Json) => names_tool,
        Some(CallFormat::Python) => {
            let written = text.get(miss.span.range()).unwrap_or_default();
            tools.find(written.trim_start_matches('[').trim()).is_some()
        }
        _ => true,
    });
    // The reply with the markers that were probably meant. Its end also ends the line of a header.
    let meant = Document::parse(&(with_markers(text, &near) + "\n"), dialect)?;
    let call = meant
        .calls()
        .find_map(|call| Some((call, tools.find(&call.name)?.1)));
    if near.is_empty() && call.is_none() {
        return Ok(None);
    }
    let mut message = Message::new(dialect)?;
    message.no_call();
    if near.is_empty() {
        message.own_problem("your reply ended in the first line of a call");
    }
    message.near_misses(text, &near);
    if let Some((call, tool)) = call {
        let wrong = Wrong {
            is_truncated: !call.is_closed(),
            ..Wrong::default()
        };
        message.example(Example::of(tool, call, wrong, dialect).as_ref());
        return Ok(Some(message.finish()));
    }
    let blank = |tool| Example::blank(tool, syntax_of(dialect, &meant), dialect);
    // A call in another format names its tool.
    let named = near.iter().any(|miss| miss.format.is_some());
    let named = named.then(|| tools.specs().find(|tool| text.contains(&*tool.name)));
    if let Some(wrong) = meant.calls().next() {
        message.problem("", &tools.unknown(&wrong.name));
    }
    match named.flatten() {
        Some(tool) => message.example(blank(tool).as_ref()),
        None => message.form(tools.specs().next().and_then(blank).as_ref()),
    }
    Ok(Some(message.finish()))
}

fn syntax_of(dialect: &Dialect, reply: &Document) -> Syntax {
    let syntax = dialect.syntax().or(reply.syntax);
    syntax.unwrap_or(Syntax::Block)
}

/// Returns the call that a text with near misses would be with the markers that were probably meant. Only another near
/// miss may follow it: other text may be part of its last value.
fn with_markers_meant(
    source: &str,
    near: &[NearMiss],
    dialect: &Dialect,
) -> Result<Option<ToolCall>, DialectError> {
    if near.iter().all(|miss| miss.format.is_some()) {
        return Ok(None);
    }
    let text = with_markers(source, near);
    let document = Document::parse(&text, dialect)?;
    let mut calls = document.calls();
    let call = calls.next();
    let next = calls.next().map_or(text.len(), |next| next.span.start);
    let is_whole = |call: &&ToolCall| {
        let behind = text.get(call.span.end..next);
        behind.is_some_and(|behind| behind.trim().is_empty())
    };
    Ok(call.filter(is_whole).cloned())
}

fn with_markers(text: &str, near: &[NearMiss]) -> String {
    let mut written = String::with_capacity(text.len());
    let mut copied = 0;
    for miss in near.iter().filter(|miss| miss.format.is_none()) {
        written.push_str(text.get(copied..miss.span.start).unwrap_or_default());
        written.push_str(&miss.suggestion);
        copied = miss.span.end;
    }
    written.push_str(text.get(copied..).unwrap_or_default());
    written
}

fn line_of(text: &str, most: usize) -> Untrusted<'static> {
    let begin = plaincall_names::shortened(text, most).into_owned();
    Untrusted::new(begin).on_one_line()
}

/// Returns a message to the model about the rejected calls, or `None` if there is none. If there is no call, but text like
/// one, the message is about that. `text` is the text of the document.
///
/// # Errors
/// Returns an error for the automatic dialect: the message teaches one syntax.
pub fn repair_document(
    document: &Document,
    text: &ModelText<'_>,
    tools: &ToolSet,
    dialect: &Dialect,
) -> Result<Option<PromptText>, DialectError> {
    let rejected = document.decided();
    let rejected = rejected.filter_map(|read| Some((&*read.call, read.rejection()?)));
    let mut rejected = rejected.peekable();
    if rejected.peek().is_some() {
        repair(rejected, tools, dialect).map(Some)
    } else if document.decided().next().is_none() {
        repair_reply(text, tools, dialect)
    } else {
        Ok(None)
    }
}
