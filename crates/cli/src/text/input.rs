//! Where texts come from: files and standard input, as a stream of chunks of bytes.

use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, IsTerminal as _, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use plaincall_call::{Stop, names::nearest_name};
use rustix::fs::{FileType, fstat};

use crate::output::Output;
use crate::status::{Failure, Outcome, Status, complain, remark};

/// How much is read at a time.
pub(crate) const BUFFER: usize = 64 * 1024;

/// A text that is about to be read.
pub(crate) struct Input {
    /// What messages call it.
    pub(crate) name: String,
    /// Whether its end is known to be the end of the text: it is a file, not a pipe that may have broken.
    pub(crate) is_file: bool,
    reader: Box<dyn Read>,
}

impl Input {
    /// Opens a file; `-` is standard input.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::standard());
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

    fn standard() -> Self {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            remark("reading from the terminal; press Ctrl-D on an empty line to end the text");
        }
        Self {
            name: "standard input".to_owned(),
            is_file: standard_kind() == FileType::RegularFile,
            reader: Box::new(stdin.lock()),
        }
    }

    /// Gives the text to `take` in chunks: of `size` bytes each, or else as they arrive.
    pub(crate) fn for_each_chunk(
        self,
        size: Option<NonZeroUsize>,
        mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Self {
            name, mut reader, ..
        } = self;
        let Some(size) = size else {
            let mut buffer = vec![0; BUFFER];
            loop {
                match reader.read(&mut buffer) {
                    Ok(0) => return Ok(()),
                    Ok(count) => take(buffer.get(..count).unwrap_or_default())?,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(unreadable(&name, &error)),
                }
            }
        };
        let mut reader = BufReader::with_capacity(BUFFER, reader);
        let mut chunk = Vec::new();
        let size = u64::try_from(size.get()).unwrap_or(u64::MAX);
        loop {
            chunk.clear();
            match reader.by_ref().take(size).read_to_end(&mut chunk) {
                Ok(0) => return Ok(()),
                Ok(_) => take(&chunk)?,
                Err(error) => return Err(unreadable(&name, &error)),
            }
        }
    }

    /// The text as a reader of lines.
    pub(crate) fn into_lines(self) -> Lines {
        Lines {
            name: self.name,
            reader: BufReader::with_capacity(BUFFER, self.reader),
        }
    }

    fn into_bytes(mut self) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        match self.reader.read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(unreadable(&self.name, &error)),
        }
    }
}

/// How a text ends that has come to its clean end.
pub(crate) fn stop_at_end(is_declared_complete: bool, is_file: bool) -> Stop {
    if is_declared_complete {
        Stop::Natural
    } else if is_file {
        Stop::EndOfFile
    } else {
        Stop::Broken
    }
}

/// What messages call a file, and all that it holds; `-` is standard input.
pub(crate) fn read_whole(path: &Path) -> Result<(String, Vec<u8>), Failure> {
    let input = Input::open(path)?;
    let name = input.name.clone();
    Ok((name, input.into_bytes()?))
}

/// JSON without the byte order mark that some editors put before it.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// A text, read line by line.
pub(crate) struct Lines {
    name: String,
    reader: BufReader<Box<dyn Read>>,
}

impl Lines {
    /// Whether the next line has to be waited for.
    pub(crate) fn is_used_up(&self) -> bool {
        self.reader.buffer().is_empty()
    }

    /// Puts the next line into `line`, without its line end. Returns whether there was one.
    pub(crate) fn next_line(&mut self, line: &mut Vec<u8>) -> Result<bool, Failure> {
        use io::BufRead as _;
        line.clear();
        match self.reader.read_until(b'\n', line) {
            Ok(0) => Ok(false),
            Ok(_) => {
                if line.ends_with(b"\n") {
                    line.pop();
                }
                Ok(true)
            }
            Err(error) => Err(unreadable(&self.name, &error)),
        }
    }
}

/// Processes one file after another, or standard input. An error in one file does not skip the others.
pub(crate) fn each(
    files: &[PathBuf],
    output: &mut Output,
    mut one: impl FnMut(&Path, &mut Output) -> Outcome,
) -> Outcome {
    let mut status = Status::Good;
    for file in or_standard(files) {
        let done = one(&file, output);
        output.flush()?;
        status = status.and(match done {
            Ok(status) => status,
            Err(Failure::Broken(message)) => {
                complain(&message);
                Status::Wrong
            }
            Err(failure) => return Err(failure),
        });
    }
    Ok(status)
}

/// The files that are named; standard input if there are none.
pub(crate) fn or_standard(files: &[PathBuf]) -> Vec<PathBuf> {
    if files.is_empty() {
        vec![PathBuf::from("-")]
    } else {
        files.to_vec()
    }
}

fn unreadable(name: &str, error: &io::Error) -> Failure {
    let reason = match error.kind() {
        ErrorKind::NotFound => format!("no such file{}", near_file(Path::new(name))),
        ErrorKind::IsADirectory => "is a directory; name a file".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    };
    Failure::Broken(format!("cannot read {name}: {reason}"))
}

/// How many names of a directory are compared with one that is not there.
const COMPARED: usize = 1000;

/// The file that was probably meant, from the same directory.
fn near_file(path: &Path) -> String {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return String::new();
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else {
        return String::new();
    };
    let names = entries.flatten().take(COMPARED);
    let mut names: Vec<String> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    let near = nearest_name(name, names.iter().map(String::as_str));
    let near = near.map(|near| path.with_file_name(near).display().to_string());
    near.map_or(String::new(), |near| format!("; did you mean `{near}`?"))
}

/// What kind of file the standard input is.
pub(crate) fn standard_kind() -> FileType {
    let about = fstat(io::stdin());
    about.map_or(FileType::Unknown, |about| {
        FileType::from_raw_mode(about.st_mode)
    })
}
