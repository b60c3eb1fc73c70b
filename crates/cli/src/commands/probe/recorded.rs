//! The file of `--record`.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use plaincall::private;
use plaincall_probe::{Attempt, Record, Settings};

use crate::status::{Failure, reason};

/// A record that grows with each attempt. It is locked while it is open.
pub(super) struct Recorded {
    file: File,
    name: String,
    /// The attempts that it had in the beginning.
    pub(super) attempts: Vec<Attempt>,
}

impl Recorded {
    /// Opens or creates a record. It is readable only by its owner, because transcripts are in it.
    pub(super) fn open(path: &Path, model: &str, settings: &Settings) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let failed = |error: std::io::Error| {
            Failure::Runtime(format!("cannot open {name}: {}", reason(&error)))
        };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = private::open(path, &options).map_err(failed)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => {
                Failure::Runtime(format!("{name} is in use by another process"))
            }
            TryLockError::Error(error) => failed(error),
        })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let text = String::from_utf8_lossy(&bytes);
        let record = Record::new(model, settings.clone());
        let (attempts, length) = record
            .attempts(&text)
            .map_err(|error| Failure::Runtime(format!("cannot continue {name}: {error}")))?;
        // An interruption may have left an incomplete line.
        file.set_len(length as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut recorded = Self {
            file,
            name,
            attempts,
        };
        if length == 0 {
            recorded.write(&record.line())?;
        }
        Ok(recorded)
    }

    /// Adds an attempt. One that the server failed is repeated when the comparison continues.
    pub(super) fn add(&mut self, attempt: &Attempt) -> Result<(), Failure> {
        if attempt.is_server_failure {
            return Ok(());
        }
        self.write(&Record::attempt_line(attempt))
    }

    fn write(&mut self, line: &str) -> Result<(), Failure> {
        let written = self.file.write_all(line.as_bytes());
        let written = written.and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            Failure::Runtime(format!("cannot write {}: {}", self.name, reason(&error)))
        })
    }
}
