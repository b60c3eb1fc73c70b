//! `read_file`: reads lines of a file, with line numbers.

use std::io::{BufRead, BufReader};

use memchr::memchr;
use plaincall::{Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::BuiltinTool;
use crate::builtin::blocking::{CallScope, file_tool};
use crate::builtin::spelling::{last_line, named};
use crate::builtin::text::{LineEnds, shown, why_binary};
use crate::builtin::workspace::{RelPath, Workspace};
use crate::text::count;

const LINES: u64 = 2_000;
/// The most text per call, in bytes: less than the limit of a result.
const SHOWN: usize = 48 << 10;
/// How much is shown of a line, in bytes.
const LINE: usize = 2_000;
/// How far past the shown part lines are counted, in bytes.
const COUNTED: u64 = 64 << 20;

/// Reads lines of a text file, with line numbers.
#[derive(Deserialize, JsonSchema)]
struct ReadFile {
    /// The path of the file.
    #[schemars(example = &"src/main.rs")]
    path: String,
    /// The first line to read.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    offset: u64,
    /// The maximum number of lines.
    #[serde(default = "lines")]
    #[schemars(range(min = 1))]
    limit: u64,
}

fn first() -> u64 {
    1
}

fn lines() -> u64 {
    LINES
}

pub(super) fn tool(workspace: Workspace) -> Tool {
    let tool = BuiltinTool::ReadFile;
    file_tool(workspace, tool, Effect::Read, ReadFile::lines)
        .positional(["path", "offset", "limit"])
}

impl ReadFile {
    fn lines(&self, scope: &CallScope<'_>) -> Result<String, String> {
        let CallScope {
            workspace,
            context,
            stop,
            ..
        } = scope;
        let written = scope.written(&self.path)?;
        let (file, _) = workspace.open(&written)?;
        let mut reader = Lines::new(BufReader::with_capacity(64 << 10, file));
        let trouble = |error| workspace.trouble(&error, &written, "read");
        let begin = reader.inner.fill_buf().map_err(trouble)?;
        if let Some(why) = why_binary(begin) {
            return Err(format!("{} is not a text file: {why}", named(&self.path)));
        }
        let mut page = Page {
            from: self.offset.max(1),
            limit: self.limit.max(1),
            ..Page::default()
        };
        while !page.is_full {
            stop.check()?;
            let Some(line) = reader.next().map_err(trouble)? else {
                context.observe_untrusted(&page.raw);
                return page.end(&written, reader.number);
            };
            page.take(reader.number, &line);
        }
        context.observe_untrusted(&page.raw);
        // The rest is only counted.
        let until = reader.bytes.saturating_add(COUNTED);
        let mut is_whole = false;
        while reader.bytes < until && !stop.is_late() {
            if stop.is_set() {
                return stop.check().map(|()| String::new());
            }
            if reader.next().map_err(trouble)?.is_none() {
                is_whole = true;
                break;
            }
        }
        Ok(page.cut(is_whole.then_some(reader.number)))
    }
}

/// The kept part of a line.
struct Line {
    kept: Vec<u8>,
    /// Its full length without the line ending.
    length: usize,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Lf,
    CrLf,
    None,
}

/// Reads lines with bounded memory.
struct Lines<R> {
    inner: R,
    number: u64,
    bytes: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(inner: R) -> Self {
        Self {
            inner,
            number: 0,
            bytes: 0,
        }
    }

    fn next(&mut self) -> std::io::Result<Option<Line>> {
        let mut line = Line {
            kept: Vec::new(),
            length: 0,
            end: End::None,
        };
        let mut last = None;
        loop {
            let buffer = match self.inner.fill_buf() {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                buffer => buffer?,
            };
            if buffer.is_empty() {
                break;
            }
            let end = memchr(b'\n', buffer);
            let text = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or(buffer);
            // One more than is shown: a CR may belong to the line ending.
            let room = (LINE + 1).saturating_sub(line.kept.len()).min(text.len());
            line.kept
                .extend_from_slice(text.get(..room).unwrap_or(text));
            line.length += text.len();
            last = text.last().copied().or(last);
            let taken = text.len() + usize::from(end.is_some());
            self.inner.consume(taken);
            self.bytes += taken as u64;
            if end.is_some() {
                line.end = End::Lf;
                break;
            }
        }
        if line.length == 0 && line.end == End::None {
            return Ok(None);
        }
        self.number += 1;
        if line.end == End::Lf && last == Some(b'\r') {
            line.end = End::CrLf;
            line.length -= 1;
            line.kept.truncate(line.length);
        }
        Ok(Some(line))
    }
}

#[derive(Default)]
struct Page {
    text: String,
    /// The same without line numbers.
    raw: String,
    from: u64,
    limit: u64,
    last: Option<u64>,
    is_full: bool,
    ends: LineEnds,
    lacks_last_end: bool,
    is_changed: bool,
}

impl Page {
    fn take(&mut self, number: u64, line: &Line) {
        if number < self.from {
            return;
        }
        let raw = shown(&line.kept, line.length, LINE);
        let shown = format!("{number}: {raw}\n");
        // At least one line, so that reading on makes progress.
        if number - self.from >= self.limit
            || (self.last.is_some() && self.text.len() + shown.len() > SHOWN)
        {
            self.is_full = true;
            return;
        }
        self.text.push_str(&shown);
        self.raw.push_str(&raw);
        self.raw.push('\n');
        self.last = Some(number);
        match line.end {
            End::Lf => self.ends.lf += 1,
            End::CrLf => self.ends.crlf += 1,
            End::None => self.lacks_last_end = true,
        }
        self.is_changed |=
            std::str::from_utf8(&line.kept).is_err_and(|error| error.error_len().is_some());
    }

    fn end(self, written: &RelPath, lines: u64) -> Result<String, String> {
        if lines == 0 {
            return Ok("[the file is empty]\n".to_owned());
        }
        let Some(last) = self.last else {
            return Err(format!(
                "{} has only {}; use a smaller `offset`",
                named(&written.text),
                count(lines, "line")
            ));
        };
        let mut notes = Vec::new();
        if self.from > 1 {
            notes.push(format!("lines {} to {last} of {lines}", self.from));
        }
        if self.lacks_last_end {
            notes.push("no newline at end of file".to_owned());
        }
        Ok(self.noted(notes))
    }

    /// The text for a file with more lines. `lines` is their number, if known.
    fn cut(self, lines: Option<u64>) -> String {
        let last = self.last.unwrap_or(self.from);
        let of = lines.map_or("of more".to_owned(), |lines| format!("of {lines}"));
        let note = format!(
            "lines {} to {last} {of}; continue with `offset` = {}",
            self.from,
            last.saturating_add(1)
        );
        self.noted(vec![note])
    }

    fn noted(self, mut notes: Vec<String>) -> String {
        match self.ends {
            LineEnds { crlf: 0, .. } => {}
            LineEnds { lf: 0, .. } => notes.push("CRLF line endings".to_owned()),
            LineEnds { lf, crlf } => {
                notes.push(format!("{crlf} of {} line endings are CRLF", lf + crlf));
            }
        }
        if self.is_changed {
            notes.push("invalid UTF-8 is shown as \u{fffd}".to_owned());
        }
        self.text + &last_line(&notes)
    }
}
