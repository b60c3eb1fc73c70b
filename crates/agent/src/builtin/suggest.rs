//! Suggests what a text that is not in a file was meant to be.

use crate::builtin::blocking::Stop;
use crate::builtin::text::shown;

/// How much of a line is shown, in bytes.
const LINE: usize = 300;
const LINES: usize = 20;
/// The most lines that are compared.
const COMPARED: usize = 2_000_000;
/// How much of a line is compared, in bytes.
const COMPARED_OF_LINE: usize = 400;
/// The least similarity of a suggested line, of 1.
const LIKE: f64 = 0.5;

/// Returns advice for the model about a text that is not in the file.
pub(super) fn suggestion(bytes: &[u8], text: &str, stop: &Stop) -> String {
    let lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    if let Some(without) = without_numbers(text)
        && memchr::memmem::find(bytes, without.as_bytes()).is_some()
    {
        return "It matches without the line numbers; remove them.".to_owned();
    }
    let wanted: Vec<&str> = text.lines().map(str::trim).collect();
    // Blank lines match everywhere.
    let first = wanted.iter().position(|line| !line.is_empty());
    let last = wanted.iter().rposition(|line| !line.is_empty());
    let (Some(first), Some(last)) = (first, last) else {
        return "Include at least one character that is not whitespace.".to_owned();
    };
    let wanted = wanted.get(first..=last).unwrap_or_default();
    if let Some(at) = same_but_for_blanks(&lines, wanted, stop) {
        return but_for_blanks(&lines, at, wanted.len());
    }
    let Some(line) = wanted.first() else {
        return String::new();
    };
    match likest(&lines, line, stop) {
        Some(at) => format!(
            "Closest to its first line is line {}:\n{}\nRead these lines again and copy them exactly.",
            at + 1,
            show(&lines, at)
        ),
        None => {
            "No line is similar to its first line; read the file again and copy the text exactly."
                .to_owned()
        }
    }
}

/// The text without line numbers such as `12: `, if every line has one.
fn without_numbers(text: &str) -> Option<String> {
    let lines = text.split_inclusive('\n').map(|line| {
        let (digits, rest) = line.trim_start().split_once(':')?;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // After the number of an empty line there is no space.
        let rest = rest
            .strip_prefix(' ')
            .or(Some(rest).filter(|rest| rest.trim().is_empty()));
        rest.filter(|_| is_number)
    });
    lines.collect()
}

/// The first line of a match that ignores how much whitespace there is, and of which kind.
fn same_but_for_blanks(lines: &[&[u8]], wanted: &[&str], stop: &Stop) -> Option<usize> {
    let words = |line| <[u8]>::split(line, u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut compared = 0;
    for at in 0..lines.len() {
        let there = lines.get(at..)?;
        let mut pairs = there.iter().zip(wanted);
        let is_same = pairs.all(|(line, wanted)| {
            compared += 1;
            words(line).eq(words(wanted.as_bytes()))
        });
        if is_same && there.len() >= wanted.len() {
            return Some(at);
        }
        if compared > COMPARED || stop.is_set() {
            return None;
        }
    }
    None
}

fn but_for_blanks(lines: &[&[u8]], at: usize, count: usize) -> String {
    let shown = (at..at + count.min(LINES)).map(|at| show(lines, at));
    let shown: Vec<String> = shown.collect();
    let more = if count > LINES { "\n…" } else { "" };
    let where_ = match count {
        1 => format!("line {}", at + 1),
        _ => format!("lines {} to {}", at + 1, at + count),
    };
    format!(
        "It matches {where_} except for whitespace. Copy exactly:\n{}{more}",
        shown.join("\n")
    )
}

fn show(lines: &[&[u8]], at: usize) -> String {
    let line = lines.get(at).copied().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    shown(line, line.len(), LINE)
}

fn likest(lines: &[&[u8]], text: &str, stop: &Stop) -> Option<usize> {
    let wanted = small(text.as_bytes());
    let mut best = None;
    let mut compared = 0;
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim_ascii();
        if compared > COMPARED || (at % 1024 == 0 && (stop.is_set() || stop.is_late())) {
            break;
        }
        // Lines of such different lengths cannot be similar.
        let (short, long) = (line.len().min(text.len()), line.len().max(text.len()));
        if short * 4 < long {
            continue;
        }
        compared += 1 + line.len().min(COMPARED_OF_LINE) / 8;
        let likeness = strsim::sorensen_dice(&small(line), &wanted);
        if likeness >= LIKE && best.is_none_or(|(most, _)| likeness > most) {
            best = Some((likeness, at));
        }
    }
    best.map(|(_, at)| at)
}

/// The compared part of a line, in lower case.
fn small(line: &[u8]) -> String {
    let line = line.get(..COMPARED_OF_LINE).unwrap_or(line);
    String::from_utf8_lossy(line).to_lowercase()
}
