//! The search for the values of a call in untrusted texts (`spec/untrusted.md` 4).

use std::ops::Range;

use memchr::memmem::Finder;
use serde::de::IgnoredAny;

use crate::untrusted::normalized::Normalized;
use crate::untrusted::starts::{Patterns, Reading};
use plaincall_tool::text_type::is_null_or_none;

/// The maximum number of restarts from the beginning of a region, for values in another order.
const RESTARTS: usize = 64;
/// The number of bytes that are searched in one step.
const STEP_BYTES: usize = 16;

/// The steps that searches may still take.
#[derive(Clone, Debug)]
pub(crate) struct Steps(pub(crate) usize);

/// A search takes more steps than are left.
pub(crate) struct NoSteps;

impl Steps {
    /// Takes the steps for so many bytes, and one for the search.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), NoSteps> {
        let left = self.0.checked_sub(1 + bytes / STEP_BYTES);
        self.0 = left.unwrap_or_default();
        left.map(drop).ok_or(NoSteps)
    }
}

/// The values of a call: the normalized lines of each.
#[derive(Default)]
pub(crate) struct Values {
    lines: Vec<Vec<Finder<'static>>>,
    /// Whether a value contains a marker, so that a marker does not end the call.
    pub(crate) has_marker: bool,
}

impl Values {
    /// Adds a value; for JSON each value in it, since another syntax may spread them.
    pub(crate) fn add(&mut self, text: &str, patterns: &Patterns) {
        let is_json = text.trim_start().starts_with(['{', '['])
            && serde_json::from_str::<IgnoredAny>(text).is_ok();
        if !is_json {
            return self.add_scalar(text, patterns);
        }
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| !c.is_whitespace() && !"{}[],:".contains(c)) {
            rest = rest.get(at..).unwrap_or_default();
            let end = match rest.strip_prefix('"') {
                Some(string) => 2 + end_of_string(string),
                None => rest
                    .find(|c: char| c.is_whitespace() || "]},".contains(c))
                    .unwrap_or(rest.len()),
            };
            let (value, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
            if !behind.trim_start().starts_with(':') {
                self.add_scalar(value.trim_matches('"'), patterns);
            }
            rest = behind;
        }
    }

    /// Adds a value that is not JSON of several. A call means the same without null, so null is not looked for.
    pub(crate) fn add_scalar(&mut self, text: &str, patterns: &Patterns) {
        if is_null_or_none(text) {
            return;
        }
        let normalized = Normalized::of_call(text).text;
        self.has_marker |= Reading::new(&normalized).has_marker(patterns);
        let lines = normalized.split('\n');
        let lines = lines
            .map(|line| line.replace(' ', ""))
            .filter(|line| !line.is_empty());
        self.lines
            .push(lines.map(|line| Finder::new(&line).into_owned()).collect());
    }

    /// Returns whether a text may contain each value somewhere.
    ///
    /// # Errors
    /// Returns an error if this takes more steps than are left.
    pub(crate) fn may_be_in(&self, text: &Reading, steps: &mut Steps) -> Result<bool, NoSteps> {
        for line in self.lines.iter().flatten() {
            steps.take(line.needle().len())?;
            if !text.may_contain(line.needle()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether a part of a text contains each value.
    ///
    /// # Errors
    /// Returns an error if this takes more steps than are left.
    pub(crate) fn appear_in(
        &self,
        text: &Reading,
        part: &Range<usize>,
        steps: &mut Steps,
    ) -> Result<bool, NoSteps> {
        let mut at = part.start;
        let mut restarts = 0;
        for lines in &self.lines {
            let mut found = find_lines(lines, text, at..part.end, steps)?;
            if found.is_none() && at > part.start {
                restarts += 1;
                found = find_lines(lines, text, part.clone(), steps)?;
            }
            match found {
                Some(end) => at = end,
                None => return Ok(false),
            }
            // Further search would take too long.
            if restarts > RESTARTS {
                return Ok(true);
            }
        }
        Ok(true)
    }
}

/// Returns the end of the last line, if all lines appear in order.
fn find_lines(
    lines: &[Finder<'_>],
    text: &Reading,
    part: Range<usize>,
    steps: &mut Steps,
) -> Result<Option<usize>, NoSteps> {
    let mut at = part.start;
    for line in lines {
        match find(line, text, at..part.end, steps)? {
            Some(end) => at = end,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// Returns the end of the first match from edge to edge.
///
/// # Errors
/// Returns an error if this takes more steps than are left.
pub(crate) fn find(
    sought: &Finder<'_>,
    text: &Reading,
    part: Range<usize>,
    steps: &mut Steps,
) -> Result<Option<usize>, NoSteps> {
    let len = sought.needle().len();
    let mut from = part.start;
    while let Some(rest) = text.bytes.get(from..part.end) {
        let found = sought.find(rest);
        steps.take(found.map_or(rest.len(), |at| at + len))?;
        let Some(at) = found.map(|at| from + at) else {
            break;
        };
        if text.is_edge(at) && text.is_edge(at + len) {
            return Ok(Some(at + len));
        }
        // A match begins at an edge.
        from = text.next_edge(at + 1);
        steps.take(from - at)?;
    }
    Ok(None)
}

fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.unwrap_or(text.len())
}
