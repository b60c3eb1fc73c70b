//! The storage of a log.

use std::io;

/// Append-only storage for a log. Its methods are called on threads that may block.
pub trait Storage: Send + 'static {
    /// Appends some of these bytes, at least one, and returns their number.
    ///
    /// # Errors
    /// Returns an error if that is not possible. Every error except [`io::ErrorKind::Interrupted`] ends the log.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Passes buffered bytes to the operating system, so that they survive a crash of this process.
    ///
    /// # Errors
    /// Same as [`write`](Self::write).
    fn flush(&mut self) -> io::Result<()>;

    /// Waits until all bytes survive a power failure.
    ///
    /// # Errors
    /// Same as [`write`](Self::write).
    fn sync(&mut self) -> io::Result<()>;
}

/// Appends and flushes all bytes, and syncs them if `sync` is set.
pub(super) fn store(storage: &mut dyn Storage, mut bytes: &[u8], sync: bool) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = retry_interrupted(|| storage.write(bytes))?;
        bytes = match bytes.get(count..) {
            Some(rest) if count > 0 => rest,
            _ => {
                let what = format!("{count} of {} bytes were written", bytes.len());
                return Err(io::Error::new(io::ErrorKind::WriteZero, what));
            }
        };
    }
    retry_interrupted(|| storage.flush())?;
    if sync {
        retry_interrupted(|| storage.sync())
    } else {
        Ok(())
    }
}

/// Repeats an action while a signal interrupts it.
fn retry_interrupted<T>(mut action: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match action() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
