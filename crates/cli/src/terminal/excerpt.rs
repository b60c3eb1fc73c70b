//! A piece of the source with a place in it underlined.

use std::ops::Range;

use crate::visible::harmless;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anstyle::{AnsiColor, Style};
use plaincall_call::Severity;

/// How much of a line is shown, in bytes. A longer one is cut, so that it stays readable, and costs no more than a
/// short one whatever its length.
const SHOWN: usize = 120;
/// How much of a line that is cut is shown before the place.
const BEFORE: usize = 40;
/// Room for all of it, so that the renderer does not cut once more.
const WIDTH: usize = 400;
const CUT: &str = "…";

/// What is said about a place in the source.
pub(crate) struct Remark<'a> {
    pub(crate) severity: Severity,
    pub(crate) code: Option<&'a str>,
    pub(crate) message: &'a str,
    /// What to do about it.
    pub(crate) help: Option<&'a str>,
    /// What is worth knowing besides.
    pub(crate) note: Option<&'a str>,
    /// The place, in bytes of the text.
    pub(crate) span: Range<usize>,
    /// Line and column, from 1.
    pub(crate) position: (usize, usize),
}

/// Renders remarks.
pub(crate) struct Excerpts {
    renderer: Renderer,
    arrow: Style,
}

impl Excerpts {
    pub(crate) fn new(has_color: bool) -> Self {
        let (renderer, arrow) = if has_color {
            (
                Renderer::styled(),
                AnsiColor::BrightBlue.on_default().bold(),
            )
        } else {
            (Renderer::plain(), Style::new())
        };
        Self {
            arrow,
            renderer: renderer.term_width(WIDTH),
        }
    }

    /// A remark with the line that it is about.
    pub(crate) fn render(&self, name: &str, text: &str, remark: &Remark<'_>) -> String {
        let level = match remark.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let (line, column) = remark.position;
        let window = window(text, &remark.span);
        let mut annotation = AnnotationKind::Primary.span(window.span);
        if window.goes_on {
            annotation = annotation.label("and on over the lines below");
        }
        let snippet = Snippet::source(window.line)
            .line_start(line)
            .annotation(annotation);
        let message = harmless(remark.message);
        let help = remark.help.map(harmless);
        let mut title = level.primary_title(message);
        if let Some(code) = remark.code {
            title = title.id(code);
        }
        let mut group = title.element(snippet);
        if let Some(help) = help {
            group = group.element(Level::HELP.message(help));
        }
        if let Some(note) = remark.note {
            group = group.element(Level::NOTE.message(harmless(note)));
        }
        let text = self.renderer.render(&[group]);
        // The renderer would count the column in the line as it is shown, which may be cut.
        let (title, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let width = line.to_string().len();
        let arrow = self.arrow;
        format!(
            "{title}\n{:width$}{arrow}-->{arrow:#} {}:{line}:{column}\n{rest}",
            "",
            harmless(name)
        )
    }
}

/// A line, cut to what is near a place in it.
#[derive(Debug, PartialEq, Eq)]
struct Window {
    line: String,
    span: Range<usize>,
    /// Whether the place goes on behind the line.
    goes_on: bool,
}

fn window(text: &str, span: &Range<usize>) -> Window {
    let before = line_before(text, span.start, SHOWN);
    let behind = line_behind(text, span.start, SHOWN);
    let fits = match (before, behind) {
        ((before, false), (behind, false)) => before.len() + behind.len() <= SHOWN,
        _ => false,
    };
    let ((before, cuts_before), (behind, cuts_behind)) = if fits {
        (before, behind)
    } else {
        let before = line_before(text, span.start, BEFORE);
        let behind = line_behind(text, span.start, SHOWN - before.0.len());
        (before, behind)
    };

    let prefix = if cuts_before { CUT } else { "" };
    let suffix = if cuts_behind { CUT } else { "" };
    let line = format!("{prefix}{before}{behind}{suffix}");
    let start = prefix.len() + before.len();
    let marked = text.get(span.clone()).unwrap_or_default();
    let len = span.len().min(behind.len());
    let len = match marked.trim_end_matches(['\r', '\n']).len() {
        // A place that is nothing but a line end is still one to point at.
        0 => len,
        trimmed => len.min(trimmed),
    };
    let shown_to = span.start + len;
    let goes_on = text
        .get(shown_to..span.end)
        .unwrap_or_default()
        .trim_start_matches(['\r', '\n'])
        .chars()
        .next()
        .is_some()
        && !cuts_behind;
    Window {
        line,
        span: start..start + len,
        goes_on,
    }
}

/// At most `most` bytes of the line before `place`, and whether there is more of it.
fn line_before(text: &str, place: usize, most: usize) -> (&str, bool) {
    let first = text.ceil_char_boundary(place.saturating_sub(most));
    let before = text.get(first..place).unwrap_or_default();
    match before.rfind('\n') {
        Some(at) => (before.get(at + 1..).unwrap_or_default(), false),
        None => (
            before,
            first > 0 && !text.get(..first).unwrap_or_default().ends_with('\n'),
        ),
    }
}

/// At most `most` bytes of the line behind `place`, and whether there is more of it.
fn line_behind(text: &str, place: usize, most: usize) -> (&str, bool) {
    let last = text.floor_char_boundary(place.saturating_add(most).min(text.len()));
    let behind = text.get(place..last).unwrap_or_default();
    let (behind, is_cut) = match behind.find('\n') {
        Some(at) => (behind.get(..at).unwrap_or_default(), false),
        None => (
            behind,
            last < text.len() && !text.get(last..).unwrap_or_default().starts_with('\n'),
        ),
    };
    (behind.strip_suffix('\r').unwrap_or(behind), is_cut)
}

#[cfg(test)]
mod tests {
    use super::{BEFORE, SHOWN, window};

    /// What is underlined, in the line in which it is shown.
    fn check(text: &str, span: std::ops::Range<usize>, line: &str, marked: &str, goes_on: bool) {
        let window = window(text, &span);
        assert_eq!(window.line, line, "{text:?}");
        assert_eq!(&window.line[window.span.clone()], marked, "{text:?}");
        assert_eq!(window.goes_on, goes_on, "{text:?}");
    }

    #[test]
    fn windows() {
        check("", 0..0, "", "", false);
        check("ab", 1..1, "ab", "", false);
        check("one\ntwo three\r\nfour", 8..13, "two three", "three", false);
        check(
            "one\ntwo three\r\nfour",
            4..15,
            "two three",
            "two three",
            false,
        );
        check("one\ntwo three\r\nfour", 8..19, "two three", "three", true);
        check("one\n\ntwo", 4..5, "", "", false);
        check("a\n", 2..2, "", "", false);
        let long = "ä".repeat(1000);
        let line = format!("…{}…", "ä".repeat(SHOWN / 2));
        let rest = (SHOWN - BEFORE) / 2;
        check(&long, 1000..1002, &line, "ä", false);
        check(&long, 1000..2000, &line, &"ä".repeat(rest), false);
        let line = format!("{}…", "ä".repeat(SHOWN / 2));
        check(&long, 0..2, &line, "ä", false);
        let fitting = "ä".repeat(SHOWN / 2);
        check(&fitting, 110..112, &fitting, "ä", false);
    }
}
