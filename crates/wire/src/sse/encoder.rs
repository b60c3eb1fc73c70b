//! Encodes event streams.

use memchr::memchr2;

/// Appends an event with this data.
///
/// Each line end in the data (LF, CR or CRLF) begins a new `data` line, which readers convert to LF.
pub fn encode_data(data: &str, out: &mut Vec<u8>) {
    lines("data: ", data, out);
    out.push(b'\n');
}

/// Appends an event with a name, which readers call its type. Line ends in the name become spaces.
pub fn encode_event(name: &str, data: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"event: ");
    let one_line = name
        .bytes()
        .map(|byte| if is_line_end(byte) { b' ' } else { byte });
    out.extend(one_line);
    out.push(b'\n');
    encode_data(data, out);
}

/// Appends a comment, which readers ignore. It keeps the connection of a slow stream alive.
pub fn encode_comment(text: &str, out: &mut Vec<u8>) {
    lines(": ", text, out);
    out.push(b'\n');
}

/// Writes each line of the text after the prefix.
fn lines(prefix: &str, text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    loop {
        out.extend_from_slice(prefix.as_bytes());
        let end = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let (line, tail) = rest.split_at(end);
        out.extend_from_slice(line);
        out.push(b'\n');
        rest = match tail {
            [] => return,
            [b'\r', b'\n', tail @ ..] | [_, tail @ ..] => tail,
        };
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}
