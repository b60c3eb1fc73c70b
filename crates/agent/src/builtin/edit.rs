//! `edit_file`: replaces a text in a file.

use std::borrow::Cow;

use memchr::{memchr, memmem::Finder};
use plaincall::{Effect, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::BuiltinTool;
use crate::builtin::blocking::{CallScope, Stop, file_tool};
use crate::builtin::replace::{State, replace};
use crate::builtin::spelling::named;
use crate::builtin::suggest::suggestion;
use crate::builtin::text::{LineEnds, line_of, listed, why_binary};
use crate::builtin::workspace::{RelPath, Workspace, read_all};
use crate::text::count;

/// The largest file, in bytes.
const LONGEST: usize = 16 << 20;
/// How many matches are counted where only one is allowed.
const COUNTED: usize = 100;
/// How many matches are replaced between two checks for cancellation.
const BETWEEN_LOOKS: usize = 4_096;
const NAMED: usize = 10;

/// Replaces a text in a file. `old_text` must match exactly, including whitespace, and only once.
#[derive(Deserialize, JsonSchema)]
struct EditFile {
    /// The path of the file.
    #[schemars(example = &"src/main.rs")]
    path: String,
    /// The exact text to replace, without line numbers.
    #[schemars(example = &"let a = 1;")]
    old_text: String,
    /// The replacement text.
    #[schemars(example = &"let a = 2;")]
    new_text: String,
    /// Whether to replace all occurrences.
    #[serde(default)]
    all: bool,
}

pub(super) fn tool(workspace: Workspace) -> Tool {
    file_tool(
        workspace,
        BuiltinTool::EditFile,
        Effect::Write,
        EditFile::apply,
    )
}

impl EditFile {
    fn apply(&self, scope: &CallScope<'_>) -> Result<String, String> {
        let CallScope {
            workspace, stop, ..
        } = scope;
        let written = scope.written(&self.path)?;
        let name = named(&self.path);
        if self.old_text.is_empty() {
            let write = workspace.has(BuiltinTool::WriteFile);
            let write = write.map_or(String::new(), |write| {
                format!("; to write a whole file, use `{write}`")
            });
            return Err(format!(
                "`old_text` is empty; copy the text to replace from {name}{write}"
            ));
        }
        let (file, about) = workspace.open(&written)?;
        let state = State::of(&about);
        let trouble = |error| workspace.trouble(&error, &written, "read");
        let Some(before) = read_all(file, LONGEST).map_err(trouble)? else {
            return Err(format!(
                "{name} is too large to edit: more than {} MiB",
                LONGEST >> 20
            ));
        };
        if let Some(why) = why_binary(&before) {
            return Err(format!(
                "{name} is not a text file: {why}; nothing was changed"
            ));
        }
        let found = Found::new(&before, &self.old_text, &self.new_text, self.all, stop)?;
        let Some(found) = found else {
            stop.check()?;
            return Err(format!(
                "`old_text` was not found in {name}; nothing was changed. {}",
                suggestion(&before, &self.old_text, stop)
            ));
        };
        if found.old == found.new {
            return Err("`old_text` and `new_text` are the same; nothing was changed".to_owned());
        }
        if !self.all && found.places.len() > 1 {
            return Err(self.ambiguous(&before, &found.places));
        }
        if found
            .length(before.len())
            .is_none_or(|length| length > LONGEST)
        {
            return Err(format!(
                "{name} would exceed {} MiB with {} replaced; nothing was changed. Use a shorter `new_text`, or replace fewer",
                LONGEST >> 20,
                count(found.count, "occurrence")
            ));
        }
        if !found.new.is_ascii() && std::str::from_utf8(&before).is_err() {
            return Err(format!(
                "{name} is not UTF-8, and `new_text` has characters that are not ASCII, so their bytes are unknown; nothing was changed. Use ASCII only, or convert the file first"
            ));
        }
        stop.check()?;
        self.put(workspace, &written, &before, &found, state, stop)
    }

    fn put(
        &self,
        workspace: &Workspace,
        written: &RelPath,
        before: &[u8],
        found: &Found<'_>,
        state: State,
        stop: &Stop,
    ) -> Result<String, String> {
        let mut after = Vec::with_capacity(found.length(before.len()).unwrap_or_default());
        let mut done = 0;
        let finder = Finder::new(found.old.as_bytes());
        for (number, at) in finder.find_iter(before).take(found.count).enumerate() {
            if number % BETWEEN_LOOKS == 0 {
                stop.check()?;
            }
            after.extend_from_slice(before.get(done..at).unwrap_or_default());
            after.extend_from_slice(found.new.as_bytes());
            done = at + found.old.len();
        }
        after.extend_from_slice(before.get(done..).unwrap_or_default());
        replace(workspace, written, &after, Some(state), stop)?;
        let lines = lines_of(before, &found.places);
        let s = if lines.len() == 1 { "" } else { "s" };
        let lines = listed(&lines, NAMED);
        let ends = if found.is_converted {
            "; line endings kept (CRLF)"
        } else {
            ""
        };
        Ok(format!(
            "edited {}: {} replaced at line{s} {lines}{ends}\n",
            named(&self.path),
            count(found.count, "occurrence")
        ))
    }

    fn ambiguous(&self, before: &[u8], places: &[usize]) -> String {
        let lines = lines_of(before, places);
        let times = match places.len() {
            ..=COUNTED => places.len().to_string(),
            _ => format!("more than {COUNTED}"),
        };
        format!(
            "`old_text` occurs {times} times in {} (lines {}); nothing was changed. Add surrounding lines to `old_text`, or set `all` to true to replace all",
            named(&self.path),
            listed(&lines, NAMED)
        )
    }
}

/// The line numbers of these matches, each once.
fn lines_of(bytes: &[u8], places: &[usize]) -> Vec<usize> {
    let mut lines: Vec<usize> = places
        .iter()
        .take(COUNTED)
        .map(|&at| line_of(bytes, at))
        .collect();
    lines.dedup();
    lines
}

struct Found<'t> {
    /// The first matches.
    places: Vec<usize>,
    /// The number of matches. Without `all`, only the kept ones are counted.
    count: usize,
    old: Cow<'t, str>,
    new: Cow<'t, str>,
    /// Whether line endings were converted to those of the file.
    is_converted: bool,
}

impl<'t> Found<'t> {
    /// Finds the text as written, or else with the line endings of the file. `None` if there is no match.
    fn new(
        bytes: &[u8],
        old: &'t str,
        new: &'t str,
        all: bool,
        stop: &Stop,
    ) -> Result<Option<Self>, String> {
        let ends = LineEnds::of(bytes);
        let mut tries = vec![(Cow::Borrowed(old), Cow::Borrowed(new), false)];
        if ends.crlf > 0 {
            tries.push((with_crlf(old), with_crlf(new), true));
            if ends.lf == 0 {
                // In a CRLF file, LF in the text means CRLF.
                tries.reverse();
            }
        } else if old.contains("\r\n") {
            let without = |text: &'t str| Cow::Owned(text.replace("\r\n", "\n"));
            tries.push((without(old), without(new), false));
        }
        for (to_find, to_put, crlf) in tries {
            let (places, count) = places(bytes, to_find.as_bytes(), all, stop)?;
            if count > 0 {
                // Parts of lines that end with CRLF.
                let is_crlf = ends.crlf > 0
                    && !to_find.contains('\n')
                    && places.iter().all(|&at| ends_with_crlf(bytes, at));
                let (to_put, crlf) = if is_crlf {
                    (Cow::Owned(with_crlf(&to_put).into_owned()), true)
                } else {
                    (to_put, crlf)
                };
                let is_converted = crlf && (to_find != old || to_put != new);
                return Ok(Some(Self {
                    places,
                    count,
                    old: to_find,
                    new: to_put,
                    is_converted,
                }));
            }
        }
        Ok(None)
    }

    /// The new length of the file; `None` on overflow.
    fn length(&self, before: usize) -> Option<usize> {
        let taken = self.count.checked_mul(self.old.len())?;
        let put = self.count.checked_mul(self.new.len())?;
        before.checked_sub(taken)?.checked_add(put)
    }
}

/// Returns whether the line with this byte ends with CRLF.
fn ends_with_crlf(bytes: &[u8], at: usize) -> bool {
    let rest = bytes.get(at..).unwrap_or_default();
    memchr(b'\n', rest).is_some_and(|end| end > 0 && rest.get(end - 1) == Some(&b'\r'))
}

/// Converts line endings to CRLF.
fn with_crlf(text: &str) -> Cow<'_, str> {
    if text.contains('\n') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\r\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns the first matches of a text and their number. With `all`, matches do not overlap; otherwise they may, and only
/// the kept ones are counted.
fn places(
    bytes: &[u8],
    text: &[u8],
    all: bool,
    stop: &Stop,
) -> Result<(Vec<usize>, usize), String> {
    let finder = Finder::new(text);
    let (mut places, mut count, mut from) = (Vec::new(), 0, 0);
    while (all || count <= COUNTED)
        && let Some(at) = bytes.get(from..).and_then(|rest| finder.find(rest))
    {
        if count % BETWEEN_LOOKS == 0 {
            stop.check()?;
        }
        if count <= COUNTED {
            places.push(from + at);
        }
        count += 1;
        from += at + if all { text.len() } else { 1 };
    }
    Ok((places, count))
}
