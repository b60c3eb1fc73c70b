//! A stretch of a text on one line: what cannot be seen is made visible, and what is long loses its middle.

use unicode_width::UnicodeWidthChar as _;

use crate::picture::line::Line;
use crate::picture::palette::PLAIN;
use crate::visible::{is_invisible, visible};

const CUT: &str = "…";
/// How many bytes are looked at for each column: no sign that is usual has more.
const BYTES: usize = 16;

/// The text in at most `room` columns.
pub(super) fn shown(bytes: &[u8], room: usize) -> String {
    let looked_at = room.saturating_mul(BYTES);
    let leading = bytes.iter().take_while(|&&byte| byte == b' ').count();
    let trailing = bytes.iter().rev().take_while(|&&byte| byte == b' ').count();
    if bytes.len() <= looked_at {
        let all: String = signs(bytes, leading, trailing).concat();
        if width(&all) <= room {
            return all;
        }
    }
    let room = room.saturating_sub(CUT.chars().count());
    let (mut front, mut back) = (String::new(), String::new());
    let head = bytes.get(..looked_at.min(bytes.len())).unwrap_or_default();
    for sign in signs(head, leading, 0) {
        if width(&front) + width(&sign) > room - room / 3 {
            break;
        }
        front.push_str(&sign);
    }
    let tail = beginning_with_character(bytes.get(bytes.len().saturating_sub(looked_at)..));
    for sign in signs(tail, 0, trailing).iter().rev() {
        if width(&front) + width(&back) + width(sign) > room {
            break;
        }
        back.insert_str(0, sign);
    }
    format!("{front}{CUT}{back}")
}

fn width(text: &str) -> usize {
    Line::of(PLAIN, text).width()
}

/// The end of a text, less the rest of a character that was cut.
fn beginning_with_character(tail: Option<&[u8]>) -> &[u8] {
    let tail = tail.unwrap_or_default();
    let cut = tail.iter().take(3).take_while(|&&byte| byte & 0xC0 == 0x80);
    tail.get(cut.count()..).unwrap_or_default()
}

/// What each character is shown as, together with those behind it that take no column. So many blanks at the beginning and
/// at the end are made visible.
fn signs(bytes: &[u8], leading: usize, trailing: usize) -> Vec<String> {
    let mut signs: Vec<String> = Vec::new();
    let mut place = 0;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let is_edge = place < leading || place + trailing >= bytes.len();
            place += c.len_utf8();
            match c {
                ' ' if is_edge => signs.push("␠".to_owned()),
                '\t' => signs.push("␉".to_owned()),
                c if is_invisible(c) => signs.push(visible(c)),
                c => match signs.last_mut() {
                    Some(last) if c.width() == Some(0) || last.ends_with('\u{200d}') => {
                        last.push(c);
                    }
                    _ => signs.push(c.into()),
                },
            }
        }
        for byte in chunk.invalid() {
            place += 1;
            signs.push(format!("\\x{byte:02x}"));
        }
    }
    signs
}

#[cfg(test)]
mod tests {
    use super::shown;

    fn check(text: &[u8], room: usize, expected: &str) {
        assert_eq!(shown(text, room), expected, "{text:?} in {room}");
    }

    #[test]
    fn what_is_seen() {
        check(b"", 10, "");
        check(b"a b", 10, "a b");
        check(b" a  b  ", 10, "␠a  b␠␠");
        check(b"  ", 10, "␠␠");
        check(b"a\n\tb\r\n", 10, "a␊␉b␍␊");
        check("\u{1b}[2J\u{202e}".as_bytes(), 40, "␛[2J\\u{202e}");
        check(b"a\xff\xf0\x9f", 20, "a\\xff\\xf0\\x9f");
    }

    #[test]
    fn the_middle_is_cut() {
        check(b"abcdefghij", 10, "abcdefghij");
        check(b"abcdefghijk", 10, "abcdef…ijk");
        check(b" bcdefghij ", 10, "␠bcdef…ij␠");
        check("日本語日本語".as_bytes(), 10, "日本語…語");
        // An emoji and its selector stay together, and so do those that are joined.
        let tool = "\u{1f6e0}\u{fe0f}";
        check(
            tool.repeat(4).as_bytes(),
            7,
            &format!("{tool}{tool}…{tool}"),
        );
        check(tool.repeat(4).as_bytes(), 3, &format!("{tool}…"));
        let family = "\u{1f469}\u{200d}\u{1f467}";
        let text = format!("{}{family}", "a".repeat(20));
        check(text.as_bytes(), 13, &format!("aaaaaaaa…{family}"));
        check("é".repeat(1000).as_bytes(), 4, "éé…é");
        check(&[0xff; 1000], 10, "\\xff…\\xff");
    }
}
