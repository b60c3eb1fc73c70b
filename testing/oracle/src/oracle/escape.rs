//! The escape (`spec/common.md` 6).

use super::{Oracle, Reader, Role};
use crate::merged::{Kind, Merged};

/// The places of the backslashes that the escape takes out of a run, in order.
pub(super) fn escaping(run: &str, markers: &[(&str, Role)]) -> Vec<usize> {
    let takes_out = |(at, here): (usize, char)| {
        let next = run[at + here.len_utf8()..].chars().next()?;
        let before = run[..at].trim_end_matches('\\');
        (here == '\\' && next != '\\' && ends_with_marker(before, next, markers)).then_some(at)
    };
    run.char_indices().filter_map(takes_out).collect()
}

impl Oracle {
    /// Writes a text so that it holds no whole marker.
    pub fn escape(&self, text: &str) -> String {
        let markers = Reader::new(text, self).markers;
        let mut written = String::new();
        for next in text.chars() {
            if ends_with_marker(written.trim_end_matches('\\'), next, &markers) {
                written.push('\\');
            }
            written.push(next);
        }
        written
    }

    /// Returns the content of a text outside calls in which no marker counts.
    pub fn unescape(&self, text: &str) -> String {
        let mut reader = Reader::new(text, self);
        let mut at = 0;
        while let Some(found) = reader.next_marker(at, |_| true) {
            reader.escaped_run(Kind::Text, at..found.span.start);
            at = found.span.end;
            reader.piece(Kind::Text, found.span);
        }
        reader.escaped_run(Kind::Text, at..text.len());
        let content = |event: Merged| match event.kind {
            Kind::Text(text) => text,
            _ => String::new(),
        };
        reader.events.into_iter().map(content).collect()
    }
}

fn ends_with_marker(before: &str, next: char, markers: &[(&str, Role)]) -> bool {
    let mut stems = markers
        .iter()
        .filter_map(|(marker, _)| marker.strip_suffix(next));
    stems.any(|stem| before.ends_with(stem))
}
