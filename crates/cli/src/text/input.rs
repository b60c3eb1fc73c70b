//! Input from files and standard input.

use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, IsTerminal as _, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use plaincall_names::nearest_name;
use plaincall_reply::Stop;

use crate::output::Output;
use crate::platform::{StandardInput, is_input_silent, standard_input};
use crate::status::{Failure, Outcome, Status, print_error, print_note, reason};

pub(crate) const BUFFER_SIZE: usize = 64 * 1024;

/// An opened text.
pub(crate) struct Input {
    /// The name in messages.
    pub(crate) name: String,
    /// Whether the input is a file, so its end is the end of the text. A pipe may be truncated.
    pub(crate) is_file: bool,
    reader: Box<dyn Read>,
}

impl Input {
    /// Opens a file; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::stdin());
        }
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| unreadable(&name, &error))?;
        let metadata = file.metadata().map_err(|error| unreadable(&name, &error))?;
        if metadata.is_dir() {
            return Err(unreadable(&name, &ErrorKind::IsADirectory.into()));
        }
        Ok(Self {
            name,
            is_file: metadata.is_file(),
            reader: Box::new(file),
        })
    }

    fn stdin() -> Self {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            print_note("reading from the terminal; press Ctrl-D on an empty line to end the text");
        }
        Self {
            name: "standard input".to_owned(),
            is_file: standard_input() == StandardInput::File,
            reader: Box::new(stdin.lock()),
        }
    }

    /// Passes the text to `handle` in chunks of `size` bytes, or as they arrive.
    pub(crate) fn for_each_chunk(
        self,
        size: Option<NonZeroUsize>,
        mut handle: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Self {
            name, mut reader, ..
        } = self;
        let Some(size) = size else {
            let mut buffer = vec![0; BUFFER_SIZE];
            loop {
                match reader.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(count) => handle(buffer.get(..count).unwrap_or_default())?,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(unreadable(&name, &error)),
                }
            }
        };
        let mut reader = BufReader::with_capacity(BUFFER_SIZE, reader);
        let mut chunk = Vec::new();
        let size = u64::try_from(size.get()).unwrap_or(u64::MAX);
        loop {
            chunk.clear();
            match reader.by_ref().take(size).read_to_end(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(_) => handle(&chunk)?,
                Err(error) => return Err(unreadable(&name, &error)),
            }
        }
    }

    /// Returns a reader of lines.
    pub(crate) fn into_lines(self) -> Lines {
        Lines {
            name: self.name,
            is_begun: true,
            reader: BufReader::with_capacity(BUFFER_SIZE, self.reader),
        }
    }

    pub(crate) fn into_bytes(mut self) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        match self.reader.read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(unreadable(&self.name, &error)),
        }
    }

    /// Returns the bytes if there are at most this many.
    pub(crate) fn into_bytes_up_to(mut self, limit: usize) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let more = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        match self.reader.by_ref().take(more).read_to_end(&mut bytes) {
            Ok(_) if bytes.len() <= limit => Ok(bytes),
            Ok(_) => Err(Failure::Runtime(format!(
                "cannot read {}: it has more than {limit} bytes; is it the right file?",
                self.name
            ))),
            Err(error) => Err(unreadable(&self.name, &error)),
        }
    }
}

/// Returns how a text ended that was read completely.
pub(crate) fn stop_at_end(is_declared_complete: bool, is_file: bool) -> Stop {
    if is_declared_complete {
        Stop::Natural
    } else if is_file {
        Stop::EndOfFile
    } else {
        Stop::Broken
    }
}

/// Reads a file; `-` is standard input. Returns its name in messages and its content.
pub(crate) fn read_input(path: &Path) -> Result<(String, Vec<u8>), Failure> {
    let input = Input::open(path)?;
    let name = input.name.clone();
    Ok((name, input.into_bytes()?))
}

/// A byte order mark.
const BOM: &[u8] = "\u{feff}".as_bytes();

/// Strips the byte order mark that some editors add to JSON.
pub(crate) fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BOM).unwrap_or(bytes)
}

/// A reader of lines.
pub(crate) struct Lines {
    name: String,
    /// Whether no line has been read.
    is_begun: bool,
    reader: BufReader<Box<dyn Read>>,
}

impl Lines {
    /// Returns whether the next line may block.
    pub(crate) fn is_buffer_empty(&self) -> bool {
        self.reader.buffer().is_empty()
    }

    /// Reads the next line into `line`, without its line end. Returns false at the end.
    pub(crate) fn next_line(&mut self, line: &mut Vec<u8>) -> Result<bool, Failure> {
        use io::BufRead as _;
        line.clear();
        match self.reader.read_until(b'\n', line) {
            Ok(0) => Ok(false),
            Ok(_) => {
                if self.is_begun && line.starts_with(BOM) {
                    line.drain(..BOM.len());
                }
                self.is_begun = false;
                if line.ends_with(b"\n") {
                    line.pop();
                }
                Ok(true)
            }
            Err(error) => Err(unreadable(&self.name, &error)),
        }
    }
}

/// Processes each file, or standard input without files. An error in one file does not skip the others.
pub(crate) fn for_each_file(
    files: &[PathBuf],
    output: &mut Output,
    mut process: impl FnMut(&Path, &mut Output) -> Outcome,
) -> Outcome {
    let mut status = Status::Success;
    for file in or_stdin(files) {
        let outcome = process(&file, output);
        output.flush()?;
        status = status.and(match outcome {
            Ok(status) => status,
            Err(Failure::Runtime(message)) => {
                print_error(&message);
                Status::Failed
            }
            Err(failure) => return Err(failure),
        });
    }
    Ok(status)
}

/// Returns the files, or standard input if there are none.
pub(crate) fn or_stdin(files: &[PathBuf]) -> Vec<PathBuf> {
    if files.is_empty() {
        vec![PathBuf::from("-")]
    } else {
        files.to_vec()
    }
}

pub(crate) fn unreadable(name: &str, error: &io::Error) -> Failure {
    let reason = match error.kind() {
        ErrorKind::NotFound => format!("no such file{}", suggest_file(Path::new(name))),
        ErrorKind::IsADirectory => "it is a directory; name a file".to_owned(),
        _ => reason(error),
    };
    Failure::Runtime(format!("cannot read {name}: {reason}"))
}

/// The maximum number of directory entries that are compared with a missing name.
const MAX_COMPARED: usize = 1000;

/// Suggests a similar file in the same directory.
fn suggest_file(path: &Path) -> String {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return String::new();
    };
    let directory = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(directory.unwrap_or(Path::new("."))) else {
        return String::new();
    };
    let names = entries.flatten().take(MAX_COMPARED);
    let mut names: Vec<String> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    let near = nearest_name(name, names.iter().map(String::as_str));
    let near = near.map(|near| path.with_file_name(near).display().to_string());
    near.map_or(String::new(), |near| format!("; did you mean `{near}`?"))
}

/// Prints a note if standard input is a pipe that has no data for a second: some programs start others with a pipe that they
/// never close.
pub(crate) fn note_if_waiting(note: &str) {
    if standard_input() == StandardInput::Pipe && is_input_silent() {
        print_note(note);
    }
}
