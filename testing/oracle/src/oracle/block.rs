//! The block syntax (`spec/block.md` 2 to 6).

use std::ops::Range;

use plaincall_syntax::Syntax;

use super::{Found, Reader, Role};
use crate::merged::Kind;

const LIMIT: usize = 4096;
const BLANKS: [char; 2] = [' ', '\t'];

/// The text between a marker and a line end, a whole marker or the end of the input.
pub(super) struct Line {
    content: Range<usize>,
    /// After the line end, if there is one.
    end: usize,
    cut: Cut,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    LineEnd,
    Marker,
    Input,
}

/// The text between the header and the first argument, or the whole of a value.
struct Stretch {
    begin: usize,
    /// Pieces in order; those with a code are whole markers that do not count.
    pieces: Vec<(Range<usize>, Option<&'static str>)>,
    end: usize,
    ender: Ender,
}

enum Ender {
    Argument(Found),
    Start(Found, Line),
    End(Found, FirstColumn),
    Input,
}

type FirstColumn = bool;

fn of_block(role: Role) -> bool {
    role.syntax() == Some(Syntax::Block)
}

fn line(reader: &Reader<'_>, from: usize) -> Line {
    let marker = reader.next_marker(from, of_block);
    let end = marker
        .as_ref()
        .map_or(reader.text.len(), |marker| marker.span.start);
    if let Some(length) = reader.text[from..end].find('\n') {
        let before = &reader.text[from..from + length];
        let content = from..from + before.strip_suffix('\r').unwrap_or(before).len();
        return Line {
            content,
            end: from + length + 1,
            cut: Cut::LineEnd,
        };
    }
    let cut = marker.map_or(Cut::Input, |_| Cut::Marker);
    Line {
        content: from..end,
        end,
        cut,
    }
}

/// The header after a start marker, or the code of the diagnostic if there is none (2.2, 2.4, 2.5).
pub(super) fn header(reader: &Reader<'_>, start: &Found) -> Result<Line, &'static str> {
    let line = line(reader, start.span.end);
    let written = &reader.text[line.content.clone()];
    if written.len() > LIMIT {
        return Err("header_too_long");
    }
    if line.cut == Cut::Input {
        return Err("truncated_header");
    }
    let name = written.split(':').next().unwrap_or_default();
    let name = name.trim_matches(BLANKS);
    let begins = name.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let holds =
        name.contains(|c: char| BLANKS.contains(&c) || c.is_control() || "\"'`".contains(c));
    if begins && !holds {
        Ok(line)
    } else {
        Err("not_a_header")
    }
}

/// Reads the call that starts here and those that follow it directly. Returns where text continues.
pub(super) fn calls(reader: &mut Reader<'_>, start: &Found, header: &Line) -> usize {
    call_start(reader, start, header);
    let mut stretch = stretch(reader, header.end);
    let mut has_fence = between(reader, &stretch);
    loop {
        let end = stretch.end;
        stretch = match stretch.ender {
            Ender::Argument(marker) => {
                let begin = pointer_line(reader, &marker);
                let value = self::stretch(reader, begin);
                self::value(reader, &value, has_fence);
                value
            }
            Ender::Start(start, header) => {
                reader.push(Kind::CallEnd("next_call"), end..end);
                call_start(reader, &start, &header);
                let next = self::stretch(reader, header.end);
                has_fence = between(reader, &next);
                next
            }
            Ender::End(marker, first_column) => {
                reader.push(Kind::CallEnd("explicit"), marker.span.clone());
                if !first_column && !reader.options.anywhere {
                    reader.report("end_marker_in_mid_line", marker.span.clone());
                }
                let glued = |c: char| c.is_alphanumeric() || c == '_';
                if reader.text[marker.span.end..].starts_with(glued) {
                    reader.report("end_marker_glued", marker.span.clone());
                }
                return marker.span.end;
            }
            Ender::Input => {
                reader.push(Kind::CallEnd("end_of_stream"), end..end);
                return end;
            }
        };
    }
}

/// 2.3, 2.6, 2.7.
fn call_start(reader: &mut Reader<'_>, start: &Found, header: &Line) {
    let written = &reader.text[header.content.clone()];
    let mut parts = written.splitn(3, ':').map(|part| part.trim_matches(BLANKS));
    let name = parts.next().unwrap_or_default().to_owned();
    let id = parts.next().unwrap_or_default().to_owned();
    let items = parts.next().unwrap_or_default().split([',', ':']);
    let items = items.map(|item| item.trim_matches(BLANKS));
    let span = start.span.start..header.end;
    let usual = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let unusual_name = !name.chars().chain(id.chars()).all(usual);
    let extra_colon = written.matches(':').count() > 2;
    let call = Kind::BlockCall {
        name,
        id: Some(id).filter(|id| !id.is_empty()),
        dependencies: items
            .filter(|id| !id.is_empty())
            .map(str::to_owned)
            .collect(),
    };
    reader.push(call, span.clone());
    for (is_so, code) in [
        (unusual_name, "unusual_name"),
        (extra_colon, "extra_colon"),
        (header.cut == Cut::Marker, "missing_newline"),
    ] {
        if is_so {
            reader.report(code, span.clone());
        }
    }
}

/// Everything from here to the marker that counts (3).
fn stretch(reader: &Reader<'_>, begin: usize) -> Stretch {
    let mut pieces = Vec::new();
    let mut at = begin;
    while let Some(found) = reader.next_marker(at, of_block) {
        pieces.push((at..found.span.start, None));
        let end = found.span.start;
        let first_column = end == begin || reader.text[..end].ends_with('\n');
        let counts = first_column || reader.options.anywhere;
        let mut code = "marker_in_value";
        let ender = match found.role {
            Role::BlockArgument if counts => Some(Ender::Argument(found.clone())),
            Role::BlockEnd if counts || ends_in_mid_line(reader, found.span.end) => {
                Some(Ender::End(found.clone(), first_column))
            }
            Role::BlockStart if counts => match header(reader, &found) {
                Ok(header) => Some(Ender::Start(found.clone(), header)),
                Err(found) => {
                    code = found;
                    None
                }
            },
            _ => None,
        };
        if let Some(ender) = ender {
            return Stretch {
                begin,
                pieces,
                end,
                ender,
            };
        }
        at = found.span.end;
        pieces.push((found.span, Some(code)));
    }
    let end = reader.text.len();
    pieces.push((at..end, None));
    Stretch {
        begin,
        pieces,
        end,
        ender: Ender::Input,
    }
}

/// Whether an end marker in mid-line counts, depending on the text after it (3.3).
fn ends_in_mid_line(reader: &Reader<'_>, behind: usize) -> bool {
    let text = reader.text;
    let is_blank = |at: usize| text[at..].starts_with(BLANKS);
    (0..=16)
        .take_while(|blanks| (behind..behind + blanks).all(is_blank))
        .map(|blanks| behind + blanks)
        .any(|at| {
            let line_ends = text[at..].starts_with('\n') || text[at..].starts_with("\r\n");
            let marker = reader.marker_at(at, of_block);
            let start = marker.is_some_and(|marker| marker.role == Role::BlockStart);
            line_ends || start || at == text.len()
        })
}

/// 5. Returns whether there is a fence line.
fn between(reader: &mut Reader<'_>, stretch: &Stretch) -> bool {
    let text = reader.text;
    let line_of = |at: usize| text[..at].rfind('\n').map_or(0, |line_end| line_end + 1);
    let mut fence_line = None;
    let mut first_other = None;
    for (piece, code) in &stretch.pieces {
        let mut from = piece.start;
        let begins_line = |at: usize| {
            let line = line_of(at);
            piece.start <= line && text[line..at].trim_matches(BLANKS).is_empty()
        };
        for at in piece.clone().filter(|at| text.is_char_boundary(*at)) {
            let rest = &text[at..piece.end];
            let fence = rest.starts_with("```") || rest.starts_with("~~~");
            if code.is_none() && fence_line.is_none() && fence && begins_line(at) {
                fence_line = Some(line_of(at));
                reader.piece(Kind::Ignored, from..at + 3);
                reader.report("fence_before_argument", at..at + 3);
                from = at + 3;
            }
            let white =
                rest.starts_with(BLANKS) || rest.starts_with('\n') || rest.starts_with("\r\n");
            let in_fence_line = || fence_line == Some(line_of(at));
            if first_other.is_none() && (code.is_some() || !white && !in_fence_line()) {
                first_other = Some(at);
            }
        }
        reader.piece(Kind::Ignored, from..piece.end);
        if let Some(code) = code {
            reader.report(code, piece.clone());
        }
    }
    if let Some(first_other) = first_other {
        let code = match stretch.ender {
            Ender::Argument(_) => "text_before_argument",
            _ => "text_without_argument",
        };
        reader.report(code, first_other..stretch.end);
    }
    fence_line.is_some()
}

/// Reads the start of an argument. Returns where the value begins (4.1 to 4.4).
fn pointer_line(reader: &mut Reader<'_>, marker: &Found) -> usize {
    let line = line(reader, marker.span.end);
    let too_long = line.content.len() > LIMIT;
    let mut content = line.content.clone();
    let mut end = line.end;
    if too_long {
        content.end = reader.text.floor_char_boundary(content.start + LIMIT);
        end = content.end;
    }
    let pointer = reader.text[content].trim_matches(BLANKS).to_owned();
    let span = marker.span.start..end;
    reader.push(Kind::Argument(pointer), span.clone());
    match line.cut {
        _ if too_long => reader.report("pointer_too_long", span),
        Cut::Marker => reader.report("missing_newline", span),
        Cut::Input => reader.report("truncated_pointer", span),
        Cut::LineEnd => {}
    }
    reader.piece(Kind::Ignored, end..line.end);
    line.end
}

/// A text as a value: without the backslashes of the escape.
fn written(reader: &Reader<'_>, text: &str) -> String {
    let mut written = text.to_owned();
    if reader.options.escaped {
        let backslashes = super::escape::escaping(text, &reader.markers);
        for at in backslashes.into_iter().rev() {
            written.remove(at);
        }
    }
    written
}

/// The character and the length of the fence in a line, and the text after it.
fn fence(line: &str) -> Option<(char, usize, &str)> {
    let begun = line.trim_start_matches(' ');
    let mark = begun.chars().next().filter(|mark| "`~".contains(*mark))?;
    let info = begun.trim_start_matches(mark);
    let length = begun.len() - info.len();
    let is_fence = line.len() - begun.len() <= 3 && length >= 3;
    (is_fence && !(mark == '`' && info.contains('`'))).then_some((mark, length, info))
}

/// Whether the last of these lines is a bare fence that closes nothing in the lines before it (5.2).
fn ends_with_own_fence(value: &str) -> bool {
    let mut open: Option<(char, usize)> = None;
    let mut is_own = false;
    for line in value.split('\n') {
        is_own = false;
        let line = line.strip_suffix('\r').unwrap_or(line);
        let Some((mark, length, info)) = fence(line) else {
            continue;
        };
        let is_bare = info.trim_matches(BLANKS).is_empty();
        match open {
            None => {
                open = Some((mark, length));
                is_own = is_bare;
            }
            Some((opened_by, least)) if is_bare && mark == opened_by && length >= least => {
                open = None;
            }
            Some(_) => {}
        }
    }
    is_own
}

/// 4.1, 5.2.
fn value(reader: &mut Reader<'_>, stretch: &Stretch, has_fence: bool) {
    let whole = &reader.text[stretch.begin..stretch.end];
    let kept = match whole.strip_suffix('\n') {
        Some(before) => before.strip_suffix('\r').unwrap_or(before),
        None => whole,
    };
    let is_last = !matches!(stretch.ender, Ender::Argument(_));
    let last_line = kept.rfind('\n').map_or(0, |line_end| line_end + 1);
    let is_own = has_fence
        && is_last
        && whole.len() - last_line <= 64
        && ends_with_own_fence(&written(reader, kept));
    // What is before the fence line, without its line end.
    let (kept, ended) = if is_own {
        let before = &whole[..last_line];
        let kept = before.strip_suffix('\n').unwrap_or(before);
        let kept = kept
            .strip_suffix('\r')
            .filter(|_| kept.len() < before.len())
            .unwrap_or(kept);
        (kept, stretch.begin + last_line)
    } else {
        (kept, stretch.end)
    };
    let end = stretch.begin + kept.len();
    for (piece, code) in &stretch.pieces {
        match code {
            None if piece.start >= end => {}
            None => reader.run(Kind::Value, piece.start..piece.end.min(end)),
            Some(code) => {
                reader.piece(Kind::Value, piece.clone());
                reader.report(code, piece.clone());
            }
        }
    }
    reader.push(Kind::ValueEnd, end..ended);
    reader.piece(Kind::Ignored, ended..stretch.end);
}
