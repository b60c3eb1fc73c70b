//! A text as one row of a table: its content, and its calls as plain data.
//!
//! `plaincall extract` and `table` of the Python package write these rows.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use plaincall_syntax::{Dialect, DialectError};
use serde::Serialize;

use crate::DecidedCall;
use crate::ReplyCheck;
use crate::Stop;
use crate::openai::line_and_body;
use crate::{ReplyItem, ReplyReader};
use plaincall_names::Unclosed;
use plaincall_tool::{Limits, ReplyDiagnostic, ToolSet};

/// The most bytes that are read between two checks for cancellation.
const PIECE: usize = 64 << 10;

/// Reads texts, each as a reply on its own, and returns a row for each.
///
/// ```
/// use plaincall_reply::{Stop, Unclosed};
/// use plaincall_reply::extract::Extractor;
/// use plaincall_syntax::Dialect;
///
/// let extractor = Extractor::new(&Dialect::block(), Unclosed::Reject, None, Stop::Natural)?;
/// let row = extractor.row("Look.\n!!!GADGET_START:read\n!!!ARG:path\na.txt\n!!!GADGET_END");
/// assert_eq!(row.content, "Look.\n");
/// assert_eq!(row.calls[0].arguments.as_deref(), Some(r#"{"path":"a.txt"}"#));
/// assert!(row.calls[0].may_run);
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Extractor {
    reader: ReplyReader<Option<Arc<ToolSet>>>,
    stop: Stop,
}

/// A text as a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// The text outside calls and reasoning.
    pub content: String,
    /// The calls, in order.
    pub calls: Vec<RowCall>,
}

/// A call of a [`Row`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RowCall {
    /// The index in order of appearance, from 0.
    pub index: usize,
    /// The name of the tool, as written.
    pub name: String,
    /// The id, written or assigned.
    pub id: String,
    /// The ids of the calls that it depends on.
    pub dependencies: Vec<String>,
    /// The arguments as the text of a JSON object, or `None` if they are invalid. Without tools, those of an emoji call
    /// are its line and body, as `raw_args` and `body`.
    pub arguments: Option<String>,
    /// `block` or `emoji`.
    pub syntax: &'static str,
    /// How it ended: `explicit`, `next_call` or `end_of_stream`.
    pub termination: &'static str,
    /// Whether the call may run.
    pub may_run: bool,
    /// Why it may not run, as a sentence.
    pub error: Option<String>,
    /// The codes of its diagnostics, also warnings: each once, in order.
    pub codes: Vec<&'static str>,
    /// The start, in bytes of the text.
    pub start: usize,
    /// The end, in bytes of the text.
    pub end: usize,
    /// Rejected calls may not run, but neither may calls that are held.
    #[serde(skip)]
    is_rejected: bool,
}

/// Counts of rows and their calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RowCounts {
    /// The rows.
    pub rows: usize,
    /// The rows without a result.
    pub failed_rows: usize,
    /// The calls.
    pub calls: usize,
    /// The calls that may run.
    pub may_run: usize,
    /// The number of calls with each code of a diagnostic.
    pub codes: BTreeMap<String, usize>,
}

impl RowCounts {
    /// Adds a row, or `None` for one without a result.
    pub fn add(&mut self, row: Option<&Row>) {
        self.rows += 1;
        self.failed_rows += usize::from(row.is_none());
        for call in row.into_iter().flat_map(|row| &row.calls) {
            self.add_call(call.may_run, call.codes.iter().copied());
        }
    }

    /// Adds a call of a row that is counted elsewhere, with its codes.
    pub fn add_call<'c>(&mut self, may_run: bool, codes: impl IntoIterator<Item = &'c str>) {
        self.calls += 1;
        self.may_run += usize::from(may_run);
        for code in codes {
            if let Some(count) = self.codes.get_mut(code) {
                *count += 1;
            } else {
                self.codes.insert(code.to_owned(), 1);
            }
        }
    }
}

impl Extractor {
    /// Creates an extractor for texts in this dialect, which is used [for replies](Dialect::for_reply). With `tools`, each call is
    /// validated against its definition. `stop` is how the texts ended.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub fn new(
        dialect: &Dialect,
        unclosed: Unclosed,
        tools: Option<Arc<ToolSet>>,
        stop: Stop,
    ) -> Result<Self, DialectError> {
        let dialect = dialect.clone().for_reply();
        let check = ReplyCheck::new(&dialect, unclosed)?;
        let reader = ReplyReader::new(&dialect, tools, check, Limits::for_reading())?;
        let reader = reader.with_invented_results();
        Ok(Self { reader, stop })
    }

    /// Returns the row of a text. Bytes that are not UTF-8 are replaced. No text is an error.
    pub fn row(&self, text: impl AsRef<[u8]>) -> Row {
        let Ok(row) = self.row_with_check(text, |_| Ok::<(), Infallible>(()));
        row
    }

    /// Returns the row of a text, as [`row`](Self::row) does, and can be cancelled: before it reads a piece of the text, it calls
    /// `check` with its length in bytes, at most 64 KiB.
    ///
    /// # Errors
    /// Returns the error of `check`.
    pub fn row_with_check<E>(
        &self,
        text: impl AsRef<[u8]>,
        mut check: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Row, E> {
        let mut row = Row {
            content: String::new(),
            calls: Vec::new(),
        };
        let mut reader = self.reader.clone();
        for piece in text.as_ref().chunks(PIECE) {
            check(piece.len())?;
            for item in reader.feed(piece) {
                row.push(item);
            }
        }
        for item in reader.finish(self.stop).items {
            row.push(item);
        }
        Ok(row)
    }
}

impl Row {
    /// Adds a part of the text. Only what the row shows of a call is kept.
    fn push(&mut self, item: ReplyItem<'_>) {
        match item {
            ReplyItem::Text(text) => self.content.push_str(&text),
            ReplyItem::Call(read) => self.calls.push(RowCall::new(&read)),
            ReplyItem::MaybeReasoning { from, error } => {
                let calls = self.calls.iter_mut().rev();
                let calls = calls.take_while(|call| call.index >= from);
                for call in calls.filter(|call| !call.is_rejected) {
                    (call.may_run, call.is_rejected) = (false, true);
                    call.error = Some(error.to_string());
                }
            }
            _ => {}
        }
    }
}

impl RowCall {
    fn new(read: &DecidedCall) -> Self {
        let call = &*read.call;
        let arguments = match read.arguments() {
            Some(arguments) => json_text(arguments),
            None if read.binding.is_none() => line_and_body(call).as_ref().and_then(json_text),
            None => None,
        };
        let error = match &read.decision {
            Ok(held) => held.as_ref().map(ToString::to_string),
            Err(error) => Some(error.to_string()),
        };
        Self {
            index: call.index,
            name: call.name.clone(),
            id: call.id.clone(),
            dependencies: call.dependencies.clone(),
            arguments,
            syntax: call.syntax.name(),
            termination: call.termination.name(),
            may_run: error.is_none(),
            error,
            codes: codes(read.diagnostics()),
            start: call.span.start,
            end: call.span.end,
            is_rejected: read.rejection().is_some(),
        }
    }
}

/// Arguments always serialize.
fn json_text(arguments: &impl Serialize) -> Option<String> {
    serde_json::to_string(arguments).ok()
}

fn codes<'d>(diagnostics: impl IntoIterator<Item = &'d ReplyDiagnostic>) -> Vec<&'static str> {
    let mut codes = Vec::new();
    for diagnostic in diagnostics {
        if !codes.contains(&diagnostic.code) {
            codes.push(diagnostic.code);
        }
    }
    codes
}
