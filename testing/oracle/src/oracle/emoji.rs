//! The emoji-bracket syntax (`spec/emoji.md` 2 to 5).

use plaincall_syntax::Syntax;

use super::{Family, Found, Reader, Role};
use crate::merged::Kind;

const LIMIT: usize = 4096;
const BLANKS: [char; 2] = [' ', '\t'];

/// The text between a start marker and its `]`.
pub(super) struct Header {
    name: String,
    raw_args: String,
    /// After the `]`.
    end: usize,
    closes_itself: bool,
}

/// The header after a start marker, or the code of the diagnostic if there is none (2, 5).
pub(super) fn header(reader: &Reader<'_>, start: &Found) -> Result<Header, &'static str> {
    let behind = &reader.text[start.span.end..];
    let length = match behind.find([']', '\n']) {
        Some(length) if length <= LIMIT => length,
        None if behind.len() <= LIMIT => return Err("truncated_header"),
        _ => return Err("header_too_long"),
    };
    if behind[length..].starts_with('\n') {
        return Err("not_a_header");
    }
    let mut written = &behind[..length];
    let without_slash = written.strip_suffix('/');
    let shortened = without_slash.and_then(|rest| rest.strip_suffix(BLANKS));
    let closes_itself = reader.options.self_closing && shortened.is_some();
    if closes_itself {
        written = shortened.unwrap_or_default();
    }
    let written = written.trim_start_matches(BLANKS);
    let (name, raw_args) = written.split_once(BLANKS).unwrap_or((written, ""));
    if name.is_empty() || name.starts_with('/') {
        return Err("not_a_header");
    }
    Ok(Header {
        name: name.to_owned(),
        raw_args: raw_args.to_owned(),
        end: start.span.end + length + 1,
        closes_itself,
    })
}

/// Reads the call that starts here. Returns where text continues (3, 4, 5).
pub(super) fn call(
    reader: &mut Reader<'_>,
    start: &Found,
    family: Family,
    header: Header,
) -> usize {
    let call = Kind::EmojiCall {
        name: header.name,
        raw_args: header.raw_args,
    };
    reader.push(call, start.span.start..header.end);
    if header.closes_itself {
        reader.push(Kind::CallEnd("explicit"), header.end..header.end);
        return header.end;
    }
    let behind = &reader.text[header.end..];
    let line_end = ["\n", "\r\n"]
        .into_iter()
        .find(|end| behind.starts_with(end));
    let mut at = header.end + line_end.map_or(0, str::len);
    reader.push(Kind::Body, header.end..at);
    while let Some(found) = reader.next_marker(at, |role| role.syntax() == Some(Syntax::Emoji)) {
        reader.run(Kind::Value, at..found.span.start);
        at = found.span.end;
        if found.role == Role::EmojiEnd(family) {
            reader.push(Kind::ValueEnd, found.span.start..found.span.start);
            reader.push(Kind::CallEnd("explicit"), found.span);
            return at;
        }
        reader.piece(Kind::Value, found.span.clone());
        reader.report("marker_in_value", found.span);
    }
    let end = reader.text.len();
    reader.run(Kind::Value, at..end);
    reader.push(Kind::ValueEnd, end..end);
    reader.report("missing_end_marker", start.span.start..end);
    reader.push(Kind::CallEnd("end_of_stream"), end..end);
    end
}
