//! A complete text with its calls, as JSON of the host.

use plaincall_reply::{DecidedCall, Document, document::Segment};
use plaincall_syntax::{ByteParser, Dialect, EventKind, Syntax};
use plaincall_tool::ReplyDiagnostic;
use serde::Serialize;

use crate::error::Error;

/// A diagnostic.
#[derive(Serialize)]
pub(crate) struct DiagnosticView<'d> {
    code: &'static str,
    severity: &'static str,
    message: &'d str,
    pointer: Option<&'d str>,
    start: usize,
    end: usize,
}

/// A call, with the decision of whether it may run, without what is empty.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallView<'d> {
    #[serde(rename = "type")]
    kind: &'static str,
    index: usize,
    name: &'d str,
    id: &'d str,
    is_id_automatic: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    dependencies: &'d [String],
    /// As text, because the numbers of the host lose digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arguments_json: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<DiagnosticView<'d>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejection: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<String>,
    may_run: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<DiagnosticView<'d>>,
    syntax: &'static str,
    termination: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw_args: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'d str>,
    start: usize,
    end: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<&'d str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum SegmentView<'d> {
    Text {
        #[serde(rename = "type")]
        kind: &'static str,
        text: &'d str,
        start: usize,
        end: usize,
        source: String,
    },
    Call(Box<CallView<'d>>),
}

#[derive(Serialize)]
struct DocumentView<'d> {
    syntax: Option<&'static str>,
    segments: Vec<SegmentView<'d>>,
    diagnostics: Vec<DiagnosticView<'d>>,
}

impl<'d> DiagnosticView<'d> {
    pub(crate) fn new(found: &'d ReplyDiagnostic) -> Self {
        Self {
            code: found.code,
            severity: found.severity.name(),
            message: &found.message,
            pointer: Some(found.pointer.as_str()).filter(|pointer| !pointer.is_empty()),
            start: found.span.start,
            end: found.span.end,
        }
    }
}

fn diagnostics<'d>(
    found: impl IntoIterator<Item = &'d ReplyDiagnostic>,
) -> Vec<DiagnosticView<'d>> {
    found.into_iter().map(DiagnosticView::new).collect()
}

impl<'d> CallView<'d> {
    pub(crate) fn new(read: &'d DecidedCall) -> Self {
        let call = &*read.call;
        Self {
            kind: "call",
            index: call.index,
            name: &call.name,
            id: &call.id,
            is_id_automatic: call.is_id_automatic,
            dependencies: &call.dependencies,
            arguments_json: read
                .arguments()
                .and_then(|them| serde_json::to_string(them).ok()),
            problems: diagnostics(read.errors()),
            rejection: read.rejection().map(ToString::to_string),
            held: read.held().map(ToString::to_string),
            may_run: read.may_run(),
            diagnostics: diagnostics(&call.diagnostics),
            syntax: call.syntax.name(),
            termination: call.termination.name(),
            raw_args: call.raw_args.as_deref(),
            body: call.body(),
            start: call.span.start,
            end: call.span.end,
            source: call.source(),
            before: read.before(),
        }
    }

    /// Returns the lines before the arguments of a call without problems, dependencies and diagnostics, or `None` for another one. Names
    /// and ids of block calls have no line ends.
    #[cfg(feature = "gateway")]
    pub(crate) fn usual_lines(&self) -> Option<String> {
        // All fields, so that a new one is not forgotten.
        #[rustfmt::skip]
        let Self {
            index, name, id, is_id_automatic, dependencies, arguments_json, problems, rejection, held, may_run, diagnostics, syntax,
            termination, raw_args, body, source, before, kind: _, start: _, end: _,
        } = self;
        let is_usual = *may_run
            && arguments_json.is_some()
            && source.is_some()
            && (*syntax, *termination) == (Syntax::Block.name(), "explicit")
            && (
                dependencies.is_empty(),
                problems.is_empty(),
                diagnostics.is_empty(),
            ) == (true, true, true)
            && (rejection, held, before) == (&None, &None, &None)
            && (raw_args, body) == (&None, &None);
        let is_automatic = u8::from(*is_id_automatic);
        is_usual.then(|| format!("{index}\n{name}\n{id}\n{is_automatic}\n"))
    }
}

/// The maximum number of calls of a document: memory is at most 4 GiB, and each call has messages.
const MOST_CALLS: usize = 10_000;

/// Returns an error for a text with more calls than a document may have.
pub(crate) fn check_calls(
    text: &[u8],
    dialect: impl FnOnce() -> Result<Dialect, Error>,
) -> Result<(), Error> {
    // A call has more than a byte.
    if text.len() <= MOST_CALLS {
        return Ok(());
    }
    let mut parser = ByteParser::new(&dialect()?).map_err(Error::dialect)?;
    let events = parser.feed(text);
    let calls = events.filter(|event| matches!(event.kind, EventKind::CallStart(_)));
    if calls.count() <= MOST_CALLS {
        return Ok(());
    }
    let instead = "feed it to a `Parser` or a reader";
    Err(Error::argument(format!(
        "the text has more than {MOST_CALLS} calls; {instead}"
    )))
}

/// Writes a document.
pub(crate) fn write_document(
    output: &mut Vec<u8>,
    read: &Document,
    text: &[u8],
) -> Result<(), Error> {
    let segments = read.segments.iter().filter_map(|segment| {
        let span = segment.span();
        let part = |kind, part| {
            let source = text.get(span.range()).unwrap_or_default();
            Some(SegmentView::Text {
                kind,
                text: part,
                start: span.start,
                end: span.end,
                source: String::from_utf8_lossy(source).into_owned(),
            })
        };
        match segment {
            Segment::Text { text, .. } => part("text", text),
            Segment::Reasoning { text, .. } => part("reasoning", text),
            Segment::Call(read) => Some(SegmentView::Call(Box::new(CallView::new(read)))),
            _ => None,
        }
    });
    let view = DocumentView {
        syntax: read.syntax.map(Syntax::name),
        segments: segments.collect(),
        diagnostics: diagnostics(&read.diagnostics),
    };
    write(output, &view)
}

/// Writes JSON.
pub(crate) fn write(output: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer(output, value).map_err(Error::argument)
}
