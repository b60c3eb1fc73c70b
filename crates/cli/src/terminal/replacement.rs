//! A diff of a file that a call would replace.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use plaincall::tool::Arguments;
use similar::TextDiff;

use crate::terminal::line::{Line, indented};
use crate::terminal::pages::{Extent, PageText};
use crate::terminal::palette::{DIM, NOTICE, PLAIN};

/// The names of arguments for a path and for the content of the file.
const PATHS: &str = "path file filename filepath target destination";
const CONTENTS: &str = "content contents text body data source newcontent";

/// The maximum number of diff lines shown.
const MAX_LINES: usize = 40;

/// The maximum size of a compared file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The time limit for an exact diff. After that, a coarser one is shown.
const DIFF_TIMEOUT: Duration = Duration::from_millis(300);

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();

/// Returns at most `max` lines of the diff, if the arguments name an existing file and its new content. Relative paths
/// start in `directory`.
pub(crate) async fn lines(arguments: &Arguments, directory: PathBuf, max: usize) -> Vec<Line> {
    let Some((path, text)) = replaced_file(arguments) else {
        return Vec::new();
    };
    let path = directory.join(path);
    let text = text.to_owned();
    let max = MAX_LINES.min(max);
    // Reading blocks.
    let lines = tokio::task::spawn_blocking(move || compare(&path, &text, max)).await;
    lines.unwrap_or_default()
}

/// Returns the path and the content that the arguments name.
fn replaced_file(arguments: &Arguments) -> Option<(&str, &str)> {
    let find = |names: &str| {
        arguments.iter().find(|argument| {
            let last = argument.pointer.rsplit('/').next().unwrap_or_default();
            let last = last.replace(['_', '-'], "").to_lowercase();
            names.split(' ').any(|name| name == last)
        })
    };
    let path = find(PATHS)?.text;
    let text = find(CONTENTS)?.text;
    Some((path, text)).filter(|(path, _)| !path.is_empty() && !path.contains('\0'))
}

fn compare(path: &Path, text: &str, max: usize) -> Vec<Line> {
    // Reading a special file may never end.
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file);
    let Some(length) = metadata.map(|metadata| metadata.len()) else {
        return Vec::new();
    };
    let name = path.display();
    let name = match fs::read_link(path) {
        Ok(target) => format!("{name} (a link to {})", target.display()),
        Err(_) => name.to_string(),
    };
    let mut listing = PageText::default();
    let description = match read(path) {
        _ if length > MAX_FILE => format!(", {length} bytes; not compared"),
        Ok(before) if before == text => ", with the same content".to_owned(),
        Ok(before) => {
            let diff_lines = diff_lines(&before, text);
            listing.add(&diff_lines, Extent::Ends(max), "difference");
            "; the new content:".to_owned()
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => ", and is not text".to_owned(),
        Err(error) => format!("; it cannot be read: {error}"),
    };
    let description = format!("{name} already exists{description}");
    listing.lines.insert(0, indented(NOTICE, &description));
    listing.lines
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    // The file may have grown in the meantime.
    File::open(path)?.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(text)
}

fn diff_lines(before: &str, after: &str) -> Vec<(Style, String)> {
    let diff = TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(before, after);
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
