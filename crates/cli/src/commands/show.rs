//! `plaincall show`: print the log of a run or a session.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use plaincall_report::trace::Trace;
use plaincall_report::{log, page};

use crate::commands::sessions::log_of_session;
use crate::environment::Environment;
use crate::output::Output;
use crate::replacement::replace;
use crate::report::lines;
use crate::status::{Failure, Outcome, Status, cannot_write, print_error, print_note};
use crate::terminal::glyphs::Glyphs;
use crate::terminal::summary::Layout;
use crate::terminal::tty::Size;
use crate::text::input::read_input;

/// How many rows of a text are shown without `--full`.
const ROWS: usize = 12;

/// Show the log of a run, or a session.
///
/// Show each reply with its calls, what happened to each call (arguments, approval, attempts, result, or why it was
/// skipped), a timeline, and a summary of the outcomes. A call without an end was interrupted; its entry states what
/// `run --resume` would do.
///
/// `--html` writes the same as a single page for a browser. The page needs no network, and its lists, graph and
/// timeline can be searched and filtered.
///
/// Exit status: 0 if the log could be read, even if a crash left its last line incomplete; 1 if the file could not be
/// read or is damaged. In a damaged log, the part before the damage is shown.
#[derive(Args, Debug)]
pub(crate) struct ShowOptions {
    /// The log, or the name of a session. `-` is standard input.
    #[arg(value_name = "FILE|NAME")]
    pub(crate) file: PathBuf,

    /// Write an HTML page to this file and replace an existing one. `-` is standard output.
    #[arg(long, value_name = "OUT")]
    pub(crate) html: Option<PathBuf>,

    /// Show arguments and outputs in full. Default: long ones are truncated. The HTML page is always complete.
    #[arg(long, conflicts_with = "html")]
    pub(crate) full: bool,
}

pub(crate) fn show(options: &ShowOptions, output: &mut Output) -> Outcome {
    let file = log_file(&options.file)?;
    if let Some(page) = &options.html {
        check_not_same_file(&file, page)?;
    }
    let (name, bytes) = read_input(&file)?;
    let (trace, error) = log::trace(&bytes)
        .map_err(|error| Failure::Runtime(format!("cannot show {name}: {error}")))?;
    let status = match error {
        Some(_) => Status::Failed,
        None => Status::Success,
    };
    match &options.html {
        Some(page) => write_page(&trace, page, output)?,
        None => print(&trace, options, output)?,
    }
    output.flush()?;
    for problem in &trace.problems {
        let problem = format!("{name}: {problem}");
        if status == Status::Success {
            print_note(&problem);
        } else {
            print_error(&problem);
        }
    }
    Ok(status)
}

/// Returns the path of the log. A file precedes a session of the same name.
fn log_file(file: &Path) -> Result<Cow<'_, Path>, Failure> {
    let is_name = file.components().count() == 1 && file != Path::new("-");
    match file.to_str() {
        Some(name) if is_name && fs::symlink_metadata(file).is_err() => {
            log_of_session(name).map(Cow::Owned)
        }
        _ => Ok(Cow::Borrowed(file)),
    }
}

fn print(trace: &Trace, options: &ShowOptions, output: &mut Output) -> Result<(), Failure> {
    let environment = Environment::read();
    let glyphs = Glyphs::new(output.is_terminal && environment.has_unicode());
    let layout = Layout {
        width: output
            .is_terminal
            .then(|| Size::of_standard_output().columns),
        rows: (!options.full).then_some(ROWS),
    };
    let mut text = String::new();
    for line in lines::lines(trace, layout, glyphs) {
        text.clear();
        line.write(&mut text, output.has_color);
        text.push('\n');
        output.text(format_args!("{text}"))?;
    }
    Ok(())
}

fn write_page(trace: &Trace, path: &Path, output: &mut Output) -> Result<(), Failure> {
    let page = page::page(trace);
    if path == Path::new("-") {
        return output.bytes(page.as_bytes());
    }
    let is_special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
    let result = if is_special {
        fs::write(path, page)
    } else {
        // Only its owner can read it, because it has the content of the log.
        replace(path, page.as_bytes())
    };
    result.map_err(|error| cannot_write(path, &error))
}

/// Returns an error if both paths are the same file.
fn check_not_same_file(log: &Path, page: &Path) -> Result<(), Failure> {
    let is_same = match (fs::canonicalize(log), fs::canonicalize(page)) {
        (Ok(log), Ok(page)) => log == page,
        _ => false,
    };
    if is_same && page != Path::new("-") {
        return Err(Failure::Usage(format!(
            "the page would overwrite the log {}; name another file",
            log.display()
        )));
    }
    Ok(())
}
