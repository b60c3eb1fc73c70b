//! A piece of the source with a place in it underlined.

use std::ops::Range;

use crate::visible::harmless;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anstyle::{AnsiColor, Style};
use plaincall_call::Severity;

/// How much of a line is shown before a place and from it on, in bytes. A longer line is cut, so that it stays readable,
/// and costs no more than a short one whatever its length.
const BEFORE: usize = 80;
const BEHIND: usize = 80;
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
    let first = text.ceil_char_boundary(span.start.saturating_sub(BEFORE));
    let last = text.floor_char_boundary(span.start.saturating_add(BEHIND).min(text.len()));
    let before = text.get(first..span.start).unwrap_or_default();
    let behind = text.get(span.start..last).unwrap_or_default();
    let (before, is_cut_before) = match before.rsplit_once('\n') {
        Some((_, line)) => (line, false),
        None => (
            before,
            first > 0 && !text.get(..first).is_some_and(|it| it.ends_with('\n')),
        ),
    };
    let (behind, is_cut_behind) = match behind.split_once('\n') {
        Some((line, _)) => (line.strip_suffix('\r').unwrap_or(line), false),
        None => (
            behind,
            last < text.len() && !text.get(last..).is_some_and(|it| it.starts_with('\n')),
        ),
    };
    let prefix = if is_cut_before { CUT } else { "" };
    let suffix = if is_cut_behind { CUT } else { "" };
    let start = prefix.len() + before.len();
    let marked = text.get(span.clone()).unwrap_or_default();
    let trimmed = marked.trim_end_matches(['\r', '\n']).len();
    // A place that is nothing but a line end is still one to point at.
    let marked = if trimmed == 0 { span.len() } else { trimmed };
    Window {
        line: format!("{prefix}{before}{behind}{suffix}"),
        span: start..start + marked.min(behind.len()),
        goes_on: trimmed > behind.len() && !is_cut_behind,
    }
}

#[cfg(test)]
mod tests {
    use super::{BEHIND, window};

    #[test]
    fn windows() {
        let two = "one\ntwo three\r\nfour";
        let long = "ä".repeat(1000);
        let shown = format!("…{}…", "ä".repeat(BEHIND));
        let rest = "ä".repeat(BEHIND / 2);
        for (text, span, line, marked, goes_on) in [
            ("", 0..0, "", "", false),
            ("ab", 1..1, "ab", "", false),
            (two, 8..13, "two three", "three", false),
            (two, 4..15, "two three", "two three", false),
            (two, 8..19, "two three", "three", true),
            ("one\n\ntwo", 4..5, "", "", false),
            ("a\n", 2..2, "", "", false),
            (&long, 1000..1002, &shown, "ä", false),
            (&long, 1000..2000, &shown, &rest, false),
        ] {
            let window = window(text, &span);
            assert_eq!(window.line, line, "{text:?}");
            assert_eq!(&window.line[window.span.clone()], marked, "{text:?}");
            assert_eq!(window.goes_on, goes_on, "{text:?}");
        }
    }
}
