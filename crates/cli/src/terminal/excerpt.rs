//! A piece of the source with a place in it underlined.

use std::ops::Range;

use crate::visible::harmless;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anstyle::{AnsiColor, Style};
use plaincall_syntax::Severity;

/// How much of a line is shown before a place and from it on, in bytes. A longer line is cut, so that it stays readable,
/// and costs no more than a short one.
const BEFORE: usize = 80;
const BEHIND: usize = 80;
/// Room for all of it, so that the renderer does not cut once more.
const WIDTH: usize = 400;
const CUT: &str = "…";

/// A diagnostic with its place in the source.
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
        let (mut renderer, mut arrow) = (Renderer::plain(), Style::new());
        if has_color {
            renderer = Renderer::styled();
            arrow = AnsiColor::BrightBlue.on_default().bold();
        }
        let renderer = renderer.term_width(WIDTH);
        Self { renderer, arrow }
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
        if window.continues {
            annotation = annotation.label("continues on the lines below");
        }
        let snippet = Snippet::source(window.line)
            .line_start(line)
            .annotation(annotation);
        let mut title = level.primary_title(harmless(remark.message));
        if let Some(code) = remark.code {
            title = title.id(code);
        }
        let help = remark.help.map(|help| Level::HELP.message(harmless(help)));
        let note = remark.note.map(|note| Level::NOTE.message(harmless(note)));
        let group = title
            .element(snippet)
            .elements(help.into_iter().chain(note));
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
struct Window {
    line: String,
    span: Range<usize>,
    /// Whether the place continues after the line.
    continues: bool,
}

fn window(text: &str, span: &Range<usize>) -> Window {
    let first = text.ceil_char_boundary(span.start.saturating_sub(BEFORE));
    let last = text.floor_char_boundary(span.start.saturating_add(BEHIND).min(text.len()));
    let part = |range: Range<usize>| text.get(range).unwrap_or_default();
    let (front, before) = (part(0..first), part(first..span.start));
    let (behind, rest) = (part(span.start..last), part(last..text.len()));
    let (before, is_cut_before) = match before.rsplit_once('\n') {
        Some((_, line)) => (line, false),
        None => (before, !front.is_empty() && !front.ends_with('\n')),
    };
    let (behind, is_cut_behind) = match behind.split_once('\n') {
        Some((line, _)) => (line.strip_suffix('\r').unwrap_or(line), false),
        None => (behind, !rest.is_empty() && !rest.starts_with('\n')),
    };
    let prefix = if is_cut_before { CUT } else { "" };
    let suffix = if is_cut_behind { CUT } else { "" };
    let start = prefix.len() + before.len();
    let marked = part(span.clone());
    let trimmed = marked.trim_end_matches(['\r', '\n']).len();
    // A place that is nothing but a line end is still one to point at.
    let marked = if trimmed == 0 { span.len() } else { trimmed };
    Window {
        line: format!("{prefix}{before}{behind}{suffix}"),
        span: start..start + marked.min(behind.len()),
        continues: trimmed > behind.len() && !is_cut_behind,
    }
}
