//! `search_files`: finds lines that match a regular expression.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use cap_std::fs::File;
use memchr::memchr_iter;
use plaincall::{Effect, Tool};
use regex::{Regex, RegexBuilder};
use regex_syntax::hir::{Hir, HirKind};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::BuiltinTool;
use crate::builtin::blocking::{CallScope, Stop, file_tool};
use crate::builtin::glob::Glob;
use crate::builtin::ignored::Ignored;
use crate::builtin::list::here;
use crate::builtin::spelling::{last_line, named, spelled};
use crate::builtin::text::why_binary;
use crate::builtin::walk::{DEEPEST, Entry, Kind, Step, walk};
use crate::builtin::workspace::{Target, Workspace, open_without_waiting, or_here, read_all};
use crate::text::count;

const WHAT: &str = "searched";
const LINES: usize = 200;
/// How much is shown, in bytes.
const SHOWN: usize = 32 << 10;
/// How much is shown of a line, in bytes.
const LINE: usize = 300;
/// The largest file, in bytes.
const LONGEST: usize = 16 << 20;
/// How much of a line is searched, in bytes.
const SEARCHED: usize = 64 << 10;
/// The most positions in an expression.
const PLACES: usize = 2_000;
/// The most work per line: positions of the expression times bytes, about a tenth of a second. The search of a line cannot
/// be interrupted.
const WORK: usize = 4 << 20;
/// The largest compiled expression, in bytes.
const SIZE: usize = 1 << 20;

/// Searches files for lines that match a regular expression. Returns path, line number and line.
#[derive(Deserialize, JsonSchema)]
struct SearchFiles {
    /// The regular expression, matched line by line. `(?i)` ignores case.
    #[schemars(example = &"fn main")]
    pattern: String,
    /// The directory or file to search.
    #[serde(default = "here")]
    #[schemars(example = &"src")]
    path: String,
    /// Only files that match this glob.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", example = &"*.rs")]
    glob: Option<String>,
}

pub(super) fn tool(workspace: Workspace) -> Tool {
    let tool = BuiltinTool::SearchFiles;
    let tool = file_tool(workspace, tool, Effect::Read, SearchFiles::search);
    tool.positional(["path", "glob"]).body("pattern")
}

impl SearchFiles {
    fn search(&self, scope: &CallScope<'_>) -> Result<String, String> {
        let CallScope {
            workspace, stop, ..
        } = scope;
        let rules = scope.rules(&self.path);
        let expression = self.expression()?;
        let glob = self.glob.as_deref().map(Glob::new).transpose()?;
        let (written, there) = workspace.find(&self.path, WHAT)?;
        let mut hits = Hits::default();
        let folder = workspace.behind_links(&written.path);
        let mut notes = if let Target::Directory(dir) = there {
            let mut ignored = Ignored::default();
            let above: Vec<&Path> = written.path.ancestors().skip(1).collect();
            for path in above.into_iter().rev() {
                if let Ok(dir) = workspace.dir().open_dir(or_here(path)) {
                    ignored.enter(&dir, path);
                }
            }
            let mut visit = |entry: &Entry<'_>| {
                ignored.enter(entry.dir, entry.path.parent().unwrap_or(Path::new("")));
                if ignored.hides(entry.path, entry.kind == Kind::Directory) {
                    hits.ignored += 1;
                    return Ok(Step::Skip);
                }
                let is_searched = entry.kind == Kind::File
                    && glob.as_ref().is_none_or(|glob| glob.fits(entry.path));
                if !is_searched {
                    return Ok(Step::On);
                }
                let below = entry.path.strip_prefix(&written.path);
                if rules.hides(&folder.join(below.unwrap_or(entry.path))) {
                    hits.hidden += 1;
                    return Ok(Step::On);
                }
                if let Ok(file) = open_without_waiting(entry.dir, entry.name) {
                    hits.search(&expression, file, entry.path, stop)
                } else {
                    hits.unreadable += 1;
                    Ok(Step::On)
                }
            };
            let trouble = |error| workspace.trouble(&error, &written, WHAT);
            walk(dir, &written.path, DEEPEST, stop, trouble, &mut visit)?.notes()
        } else {
            rules.check(workspace, &written)?;
            let (file, _) = workspace.open(&written)?;
            hits.search(&expression, file, &written.path, stop)?;
            Vec::new()
        };
        hits.note(&mut notes, &named(self.pattern()), expression.searched);
        scope.context.observe_untrusted(&hits.raw);
        Ok(hits.text + &last_line(&notes))
    }

    /// The expression without the line ending of a body argument.
    fn pattern(&self) -> &str {
        let pattern = &self.pattern;
        let pattern = pattern.strip_suffix('\n').unwrap_or(pattern);
        pattern.strip_suffix('\r').unwrap_or(pattern)
    }

    fn expression(&self) -> Result<Expression, String> {
        let pattern = self.pattern();
        if pattern.is_empty() {
            return Err("the pattern is empty; example: `fn main`".to_owned());
        }
        if pattern.contains('\n') {
            return Err(
                "the pattern has several lines, but lines are matched one by one; search for one of them"
                    .to_owned(),
            );
        }
        Expression::new(pattern).map_err(|why| {
            format!(
                "the regular expression {} is invalid: {why}",
                named(pattern)
            )
        })
    }
}

struct Expression {
    regex: Regex,
    /// How much of a line is searched, in bytes.
    searched: usize,
}

impl Expression {
    fn new(pattern: &str) -> Result<Self, String> {
        let wrong = |error: &dyn fmt::Display| {
            let text = error.to_string();
            let last = text.lines().next_back().unwrap_or_default();
            let why = last.trim_start_matches("error: ");
            format!("{why}; escape literal characters with a backslash, such as `\\(`")
        };
        let too_large =
            || "it is too large; use a shorter one, or smaller repetition counts".to_owned();
        let places = places(&regex_syntax::parse(pattern).map_err(|error| wrong(&error))?);
        if places > PLACES {
            return Err(too_large());
        }
        let built = RegexBuilder::new(pattern)
            .size_limit(SIZE)
            .dfa_size_limit(8 * SIZE)
            .build();
        let regex = built.map_err(|error| match &error {
            regex::Error::CompiledTooBig(_) => too_large(),
            error => wrong(error),
        })?;
        let searched = SEARCHED.min(WORK / places.max(1));
        Ok(Self { regex, searched })
    }
}

/// The most positions of an expression that can be active at a byte.
fn places(expression: &Hir) -> usize {
    match expression.kind() {
        HirKind::Empty | HirKind::Class(_) | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Capture(capture) => places(&capture.sub).saturating_add(1),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(places).fold(0, usize::saturating_add)
        }
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or(repeated.min.saturating_add(1));
            let times = usize::try_from(times).unwrap_or(usize::MAX);
            places(&repeated.sub)
                .saturating_mul(times)
                .saturating_add(1)
        }
    }
}

#[derive(Default)]
struct Hits {
    text: String,
    /// The same without paths and line numbers.
    raw: String,
    lines: usize,
    searched: usize,
    binary: usize,
    too_long: usize,
    unreadable: usize,
    hidden: usize,
    ignored: usize,
    long_lines: usize,
    is_full: bool,
    is_late: bool,
}

impl Hits {
    fn search(
        &mut self,
        expression: &Expression,
        file: File,
        path: &Path,
        stop: &Stop,
    ) -> Result<Step, String> {
        // The file may have been replaced by something else.
        let is_file = file.metadata().is_ok_and(|about| about.is_file());
        let read = is_file.then(|| read_all(file, LONGEST));
        let skipped = match read {
            Some(Ok(Some(bytes))) if why_binary(&bytes).is_none() => {
                self.searched += 1;
                // An invalid UTF-8 byte counts as one character.
                let text = String::from_utf8_lossy(&bytes);
                return self.search_lines(expression, &text, path, stop);
            }
            Some(Ok(Some(_))) => &mut self.binary,
            Some(Ok(None)) => &mut self.too_long,
            Some(Err(_)) | None => &mut self.unreadable,
        };
        *skipped += 1;
        Ok(Step::On)
    }

    fn search_lines(
        &mut self,
        expression: &Expression,
        text: &str,
        path: &Path,
        stop: &Stop,
    ) -> Result<Step, String> {
        let mut begin = 0;
        let ends = memchr_iter(b'\n', text.as_bytes()).chain(std::iter::once(text.len()));
        for (number, end) in (1_usize..).zip(ends) {
            if stop.is_set() {
                stop.check()?;
            }
            if stop.is_late() {
                self.is_late = true;
                return Ok(Step::Enough);
            }
            let line = text.get(begin..end).unwrap_or_default();
            begin = end + 1;
            let line = line.strip_suffix('\r').unwrap_or(line);
            let searched = line
                .get(..line.floor_char_boundary(expression.searched))
                .unwrap_or(line);
            self.long_lines += usize::from(searched.len() < line.len());
            // No line follows the last line ending.
            let is_line = end < text.len() || !line.is_empty();
            if is_line
                && let Some(found) = expression.regex.find(searched)
                && self.add(path, number, line, found.start()) == Step::Enough
            {
                return Ok(Step::Enough);
            }
        }
        Ok(Step::On)
    }

    fn add(&mut self, path: &Path, number: usize, line: &str, at: usize) -> Step {
        let raw = around(line, at);
        let hit = format!("{}:{number}: {raw}\n", spelled(path));
        if self.lines >= LINES || self.text.len() + hit.len() > SHOWN {
            self.is_full = true;
            return Step::Enough;
        }
        self.text.push_str(&hit);
        self.raw.push_str(&raw);
        self.raw.push('\n');
        self.lines += 1;
        Step::On
    }

    fn note(&self, notes: &mut Vec<String>, pattern: &str, searched: usize) {
        let long = format!(
            "longer than {}, only the beginning searched",
            size(searched)
        );
        let ignored = "skipped: ignored by `.gitignore`; name one as `path` to search it";
        for (number, what, why) in [
            (self.binary, "file", "skipped: not text"),
            (self.too_long, "file", "skipped: larger than 16 MiB"),
            (self.unreadable, "file", "not readable"),
            (self.hidden, "file", "skipped: denied by a rule"),
            (self.ignored, "entry", ignored),
            (self.long_lines, "line", &long),
        ] {
            if number > 0 {
                notes.push(format!("{} {why}", count(number, what)));
            }
        }
        if self.is_full {
            notes.insert(
                0,
                format!(
                    "first {} only; narrow `pattern`, `path` or `glob`",
                    count(self.lines, "line")
                ),
            );
        } else if self.lines == 0 {
            let files = count(self.searched, "file");
            notes.insert(0, format!("no line matches {pattern}; {files} searched"));
        }
        if self.is_late {
            notes.push("timed out; narrow `path` or `glob`".to_owned());
        }
    }
}

/// Formats a number of bytes.
fn size(bytes: usize) -> String {
    match bytes >> 10 {
        0 => count(bytes, "byte"),
        kib => format!("{kib} KiB"),
    }
}

/// The line, or the part of a long line around the match.
fn around(line: &str, at: usize) -> Cow<'_, str> {
    if line.len() <= LINE {
        return Cow::Borrowed(line);
    }
    let from = at.saturating_sub(LINE / 3).min(line.len() - LINE);
    let from = line.ceil_char_boundary(from);
    let end = line.floor_char_boundary(from + LINE);
    let part = line.get(from..end).unwrap_or_default();
    let dots = |is_cut: bool| if is_cut { "…" } else { "" };
    Cow::Owned(format!(
        "{}{part}{}",
        dots(from > 0),
        dots(end < line.len())
    ))
}
