//! What a text that stands nowhere in a file was probably meant to be.

use crate::builtin::blocking::Stop;
use crate::builtin::text::shown;

/// How much of a line is shown, in bytes.
const LINE: usize = 300;
const LINES: usize = 20;
/// How many lines are compared at most.
const COMPARED: usize = 2_000_000;
/// How much of a line is compared, in bytes.
const COMPARED_OF_LINE: usize = 400;
/// From which likeness on, of 1, a line is worth naming.
const LIKE: f64 = 0.5;

/// What to do about a text that does not stand in the file, as sentences for the model.
pub(super) fn suggestion(bytes: &[u8], text: &str, stop: &Stop) -> String {
    let lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    if let Some(without) = without_numbers(text)
        && memchr::memmem::find(bytes, without.as_bytes()).is_some()
    {
        return "Without the numbers in front of its lines it does: leave them out.".to_owned();
    }
    let wanted: Vec<&str> = text.lines().map(str::trim).collect();
    // Lines without a character stand everywhere.
    let first = wanted.iter().position(|line| !line.is_empty());
    let last = wanted.iter().rposition(|line| !line.is_empty());
    let (Some(first), Some(last)) = (first, last) else {
        return "Write a text with at least one character that is no blank.".to_owned();
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
            "The line most like its first one is line {}:\n{}\nRead the lines there again and copy them exactly.",
            at + 1,
            show(&lines, at)
        ),
        None => "No line is like its first one; read the file again and copy the lines exactly."
            .to_owned(),
    }
}

/// The text without numbers such as `12: ` in front of each line, if each has one.
fn without_numbers(text: &str) -> Option<String> {
    let lines = text.split_inclusive('\n').map(|line| {
        let (digits, rest) = line.trim_start().split_once(':')?;
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // Behind the number of an empty line there is no blank.
        let rest = rest
            .strip_prefix(' ')
            .or(Some(rest).filter(|rest| rest.trim().is_empty()));
        rest.filter(|_| is_number)
    });
    lines.collect()
}

/// The first line of the place where the lines stand with other blanks at their ends.
fn same_but_for_blanks(lines: &[&[u8]], wanted: &[&str], stop: &Stop) -> Option<usize> {
    let mut compared = 0;
    for at in 0..lines.len() {
        let there = lines.get(at..)?;
        let mut pairs = there.iter().zip(wanted);
        let is_same = pairs.all(|(line, wanted)| {
            compared += 1;
            line.trim_ascii() == wanted.as_bytes()
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
        "With other blanks or line ends it stands at {where_}. Copy exactly what stands there:\n{}{more}",
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
        // With so different lengths they cannot be like each other.
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

/// As much of a line as is compared, in small letters.
fn small(line: &[u8]) -> String {
    let line = line.get(..COMPARED_OF_LINE).unwrap_or(line);
    String::from_utf8_lossy(line).to_lowercase()
}
