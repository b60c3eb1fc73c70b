//! The output file, which is replaced when it is complete.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use tempfile::{Builder, NamedTempFile};

use crate::platform::{is_standard_output, set_usual_permissions, standard_output};
use crate::replacement::file_for;
use crate::status::{Failure, cannot_write};
use crate::text::input::BUFFER_SIZE;

/// How often signals are looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(super) struct OutputFile {
    path: PathBuf,
    writer: BufWriter<Target>,
}

pub(super) enum Target {
    /// A new file in the folder of the output, which it will replace.
    New(NamedTempFile),
    /// A device or a pipe.
    Special(File),
}

impl OutputFile {
    /// Creates the file; `-` and `/dev/stdout` are standard output; of a symbolic link, the file that it names. SIGINT and SIGTERM remove it, and end the process with status 128 plus the signal number.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") || is_standard_output(path) {
            let output = standard_output().map_err(|error| cannot_write(path, &error))?;
            return Ok(Self::new(path.to_owned(), Target::Special(output)));
        }
        if path.is_dir() {
            return Err(cannot_write(path, &io::ErrorKind::IsADirectory.into()));
        }
        let is_special = fs::metadata(path).is_ok_and(|file| !file.is_file());
        if is_special {
            let file = File::options().write(true).open(path);
            let file = file.map_err(|error| cannot_write(path, &error))?;
            return Ok(Self::new(path.to_owned(), Target::Special(file)));
        }
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut builder = Builder::new();
        set_usual_permissions(&mut builder);
        let file = file_for(path, &builder).map_err(|error| cannot_write(path, &error))?;
        remove_at_signals(file.path().to_owned());
        Ok(Self::new(path.to_owned(), Target::New(file)))
    }

    fn new(path: PathBuf, target: Target) -> Self {
        Self {
            path,
            writer: BufWriter::with_capacity(BUFFER_SIZE, target),
        }
    }

    pub(super) fn write(
        &mut self,
        write: impl FnOnce(&mut BufWriter<Target>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        write(&mut self.writer).map_err(|error| cannot_write(&self.path, &error))
    }

    /// Replaces the output.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let Self { path, writer } = self;
        let target = writer.into_inner();
        let target = target.map_err(|error| cannot_write(&path, error.error()))?;
        let Target::New(file) = target else {
            return Ok(());
        };
        let synced = file.as_file().sync_all();
        synced.map_err(|error| cannot_write(&path, &error))?;
        let replaced = file.persist(&path);
        replaced.map_err(|error| cannot_write(&path, &error.error))?;
        Ok(())
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::New(file) => file.write(bytes),
            Self::Special(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::New(file) => file.flush(),
            Self::Special(file) => file.flush(),
        }
    }
}

/// The process may be waiting for input, so a thread of its own looks for signals.
#[expect(clippy::disallowed_methods, reason = "a thread of its own")]
fn remove_at_signals(file: PathBuf) {
    let received = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM] {
        let number = usize::try_from(signal).unwrap_or_default();
        // If the handler cannot be registered, the default action of the signal ends the process.
        let _ = signal_hook::flag::register_usize(signal, Arc::clone(&received), number);
    }
    thread::spawn(move || {
        loop {
            thread::sleep(POLL_INTERVAL);
            let signal = received.load(Ordering::Relaxed);
            if signal != 0 {
                // After the end of the job the file does not exist.
                let _ = fs::remove_file(&file);
                exit(i32::try_from(128 + signal).unwrap_or(1));
            }
        }
    });
}
