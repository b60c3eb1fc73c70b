//! What a call would make of a file that is there already: a diff.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use plaincall::Arguments;
use similar::TextDiff;

use crate::terminal::line::{Line, indented};
use crate::terminal::pages::{Extent, PageText};
use crate::terminal::palette::{ASKING, DIM, PLAIN};

/// The last names of arguments that say which file is meant, and what is to be in it.
const PATHS: [&str; 6] = [
    "path",
    "file",
    "filename",
    "filepath",
    "target",
    "destination",
];
const CONTENTS: [&str; 7] = [
    "content",
    "contents",
    "text",
    "body",
    "data",
    "source",
    "newcontent",
];

/// How many lines of the diff are shown at most.
const LINES: usize = 40;

/// How long a file may be that is compared, in bytes.
const LONGEST: u64 = 1 << 20;

/// How long a comparison may take until it is content with a larger difference than there is.
const PATIENCE: Duration = Duration::from_millis(300);

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();

/// The difference, at most so many lines of it, if the call names a file that is there and a text for it. Relative paths
/// begin in `directory`.
pub(crate) async fn lines(arguments: &Arguments, directory: PathBuf, most: usize) -> Vec<Line> {
    let Some((path, text)) = named(arguments) else {
        return Vec::new();
    };
    let path = directory.join(path);
    let text = text.to_owned();
    let most = LINES.min(most);
    // Reading waits for the disk.
    let compared = tokio::task::spawn_blocking(move || compare(&path, &text, most)).await;
    compared.unwrap_or_default()
}

/// The file and the text that the arguments name.
fn named(arguments: &Arguments) -> Option<(&str, &str)> {
    let find = |names: &[&str]| {
        arguments.iter().find(|argument| {
            let last = argument.pointer.rsplit('/').next().unwrap_or_default();
            let last = last.replace(['_', '-'], "").to_lowercase();
            names.contains(&last.as_str())
        })
    };
    let path = find(&PATHS)?.text;
    let text = find(&CONTENTS)?.text;
    Some((path, text)).filter(|(path, _)| !path.is_empty() && !path.contains('\0'))
}

fn compare(path: &Path, text: &str, most: usize) -> Vec<Line> {
    // What is no usual file may never come to an end.
    let Some(length) = fs::metadata(path)
        .ok()
        .filter(fs::Metadata::is_file)
        .map(|about| about.len())
    else {
        return Vec::new();
    };
    let name = path.display();
    let said = |what: String| vec![indented(ASKING, &what)];
    let target = fs::read_link(path);
    let target: Option<PathBuf> = target.ok();
    let name = match target {
        Some(target) => format!("{name} (a link to {})", target.display()),
        None => name.to_string(),
    };
    if length > LONGEST {
        return said(format!(
            "{name} is there already, {length} bytes long; it is not compared"
        ));
    }
    match read(path) {
        Ok(before) if before == text => said(format!("{name} is there already, with this text")),
        Ok(before) => {
            let mut lines = said(format!("{name} is there already; with this text instead:"));
            let mut listing = PageText::default();
            let difference = difference(&before, text);
            listing.add(&difference, Extent::Ends(most), "difference");
            lines.append(&mut listing.lines);
            lines
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            said(format!("{name} is there already, and is no text"))
        }
        Err(error) => said(format!(
            "{name} is there already; it cannot be read: {error}"
        )),
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    // It may have grown meanwhile.
    File::open(path)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

fn difference(before: &str, now: &str) -> Vec<(Style, String)> {
    let diff = TextDiff::configure()
        .timeout(PATIENCE)
        .diff_lines(before, now);
    let text = diff.unified_diff().context_radius(2).to_string();
    text.lines()
        .map(|line| {
            let style = match line.chars().next() {
                Some('+') => ADDED,
                Some('-') => REMOVED,
                Some('@') => DIM,
                _ => PLAIN,
            };
            (style, line.to_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use plaincall::Arguments;

    use super::{LINES, compare, named};

    #[test]
    fn which_file_and_which_text() {
        let check = |pairs: &[(&str, &str)], expected: Option<(&str, &str)>| {
            let arguments = Arguments::from_pairs(pairs.iter().copied()).unwrap();
            assert_eq!(named(&arguments), expected, "{pairs:?}");
        };
        check(&[("path", "a"), ("content", "b")], Some(("a", "b")));
        check(&[("filePath", "a"), ("new_content", "b")], Some(("a", "b")));
        check(&[("edit/file", "a"), ("edit/text", "b")], Some(("a", "b")));
        check(&[("path", "a")], None);
        check(&[("text", "b")], None);
        check(&[("path", ""), ("text", "b")], None);
    }

    #[test]
    fn files_that_cannot_be_compared() {
        let directory = tempfile::tempdir().unwrap();
        let check = |name: &str, content: Option<&[u8]>, expected: Option<&str>| {
            let path = directory.path().join(name);
            if let Some(content) = content {
                std::fs::write(&path, content).unwrap();
            }
            let lines = compare(&path, "new\n", LINES);
            let text: Vec<String> = lines.iter().map(super::Line::to_plain).collect();
            match expected {
                Some(part) => assert!(text.concat().contains(part), "{name}: {text:?}"),
                None => assert!(text.is_empty(), "{name}: {text:?}"),
            }
        };
        check("missing", None, None);
        check("", None, None);
        check("same", Some(b"new\n"), Some("with this text"));
        check("binary", Some(b"\xff\xfe"), Some("is no text"));
        check(
            "large",
            Some(&vec![b'a'; (1 << 20) + 1]),
            Some("is not compared"),
        );
        check("other", Some(b"old\n"), Some("-old    +new"));
    }
}
