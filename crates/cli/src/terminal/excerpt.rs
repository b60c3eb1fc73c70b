//! Diagnostics with excerpts of the source.

use std::ops::Range;

use crate::sanitize::sanitize;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use anstyle::{AnsiColor, Style};
use plaincall_syntax::Severity;

/// How many bytes of a line are shown before and after the start of a span. Longer lines are truncated, which keeps
/// them readable and their cost low.
const BEFORE: usize = 80;
const AFTER: usize = 80;
/// Wide enough that the renderer does not truncate again.
const WIDTH: usize = 400;
const ELLIPSIS: &str = "…";

/// A diagnostic with its position in the source.
pub(crate) struct Excerpt<'a> {
    pub(crate) severity: Severity,
    pub(crate) code: Option<&'a str>,
    pub(crate) message: &'a str,
    /// How to fix it.
    pub(crate) help: Option<&'a str>,
    /// Further information.
    pub(crate) note: Option<&'a str>,
    /// The byte range in the text.
    pub(crate) span: Range<usize>,
    /// Line and column, from 1.
    pub(crate) position: (usize, usize),
}

/// Renders diagnostics with excerpts.
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

    /// Renders a diagnostic with its line of the source.
    pub(crate) fn render(&self, name: &str, text: &str, excerpt: &Excerpt<'_>) -> String {
        let level = match excerpt.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let (line, column) = excerpt.position;
        let window = window(text, &excerpt.span);
        let mut annotation = AnnotationKind::Primary.span(window.span);
        if window.continues {
            annotation = annotation.label("continues on the lines below");
        }
        let snippet = Snippet::source(window.line)
            .line_start(line)
            .annotation(annotation);
        let mut title = level.primary_title(sanitize(excerpt.message));
        if let Some(code) = excerpt.code {
            title = title.id(code);
        }
        let help = excerpt.help.map(|help| Level::HELP.message(sanitize(help)));
        let note = excerpt.note.map(|note| Level::NOTE.message(sanitize(note)));
        let group = title
            .element(snippet)
            .elements(help.into_iter().chain(note));
        let text = self.renderer.render(&[group]);
        // The renderer would count columns in the truncated line.
        let (title, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let width = line.to_string().len();
        let arrow = self.arrow;
        format!(
            "{title}\n{:width$}{arrow}-->{arrow:#} {}:{line}:{column}\n{rest}",
            "",
            sanitize(name)
        )
    }
}

/// The part of a line around a span.
struct Window {
    line: String,
    span: Range<usize>,
    /// Whether the span continues after the line.
    continues: bool,
}

fn window(text: &str, span: &Range<usize>) -> Window {
    let first = text.ceil_char_boundary(span.start.saturating_sub(BEFORE));
    let last = text.floor_char_boundary(span.start.saturating_add(AFTER).min(text.len()));
    let part = |range: Range<usize>| text.get(range).unwrap_or_default();
    let (front, before) = (part(0..first), part(first..span.start));
    let (after, rest) = (part(span.start..last), part(last..text.len()));
    let (before, is_truncated_before) = match before.rsplit_once('\n') {
        Some((_, line)) => (line, false),
        None => (before, !front.is_empty() && !front.ends_with('\n')),
    };
    let (after, is_truncated_after) = match after.split_once('\n') {
        Some((line, _)) => (line.strip_suffix('\r').unwrap_or(line), false),
        None => (after, !rest.is_empty() && !rest.starts_with('\n')),
    };
    let prefix = if is_truncated_before { ELLIPSIS } else { "" };
    let suffix = if is_truncated_after { ELLIPSIS } else { "" };
    let start = prefix.len() + before.len();
    let marked = part(span.clone());
    let trimmed = marked.trim_end_matches(['\r', '\n']).len();
    // A span that contains only a line end is still marked.
    let marked = if trimmed == 0 { span.len() } else { trimmed };
    Window {
        line: format!("{prefix}{before}{after}{suffix}"),
        span: start..start + marked.min(after.len()),
        continues: trimmed > after.len() && !is_truncated_after,
    }
}
