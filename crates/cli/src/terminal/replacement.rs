//! What a call would make of a file that is there already: a diff.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use plaincall::call::Arguments;
use similar::TextDiff;

use crate::terminal::line::{Line, indented};
use crate::terminal::pages::{Extent, PageText};
use crate::terminal::palette::{ASKING, DIM, PLAIN};

/// The names of arguments with a path, and with the content of the file.
const PATHS: &str = "path file filename filepath target destination";
const CONTENTS: &str = "content contents text body data source newcontent";

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

fn compare(path: &Path, text: &str, most: usize) -> Vec<Line> {
    // What is no usual file may never come to an end.
    let about = fs::metadata(path).ok().filter(fs::Metadata::is_file);
    let Some(length) = about.map(|about| about.len()) else {
        return Vec::new();
    };
    let name = path.display();
    let name = match fs::read_link(path) {
        Ok(target) => format!("{name} (a link to {})", target.display()),
        Err(_) => name.to_string(),
    };
    let mut listing = PageText::default();
    let found = match read(path) {
        _ if length > LONGEST => format!(", {length} bytes; not compared"),
        Ok(before) if before == text => ", with the same content".to_owned(),
        Ok(before) => {
            let difference = difference(&before, text);
            listing.add(&difference, Extent::Ends(most), "difference");
            "; the new content:".to_owned()
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidData => ", and is not text".to_owned(),
        Err(error) => format!("; it cannot be read: {error}"),
    };
    let found = format!("{name} already exists{found}");
    listing.lines.insert(0, indented(ASKING, &found));
    listing.lines
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
