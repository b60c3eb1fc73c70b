//! Where a log is kept.

use std::io;

/// A place that keeps what is appended to it. It is called from threads that may block.
pub trait Storage: Send + 'static {
    /// Appends at least one of these bytes and says how many.
    ///
    /// # Errors
    /// If that is impossible. The log is then over; only after [`io::ErrorKind::Interrupted`] it is tried again.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Hands what it has kept back to the system, so that it outlives this process.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn flush(&mut self) -> io::Result<()>;

    /// Returns when everything written outlives a loss of power.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    fn sync(&mut self) -> io::Result<()>;
}

/// Appends all the bytes and hands them to the system, or if asked for to the disk.
pub(super) fn store(storage: &mut dyn Storage, mut bytes: &[u8], sync: bool) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = again(|| storage.write(bytes))?;
        bytes = match bytes.get(count..) {
            Some(rest) if count > 0 => rest,
            _ => {
                let what = format!("{count} of {} bytes were written", bytes.len());
                return Err(io::Error::new(io::ErrorKind::WriteZero, what));
            }
        };
    }
    again(|| storage.flush())?;
    if sync {
        again(|| storage.sync())
    } else {
        Ok(())
    }
}

/// A signal in the middle of it is no failure.
fn again<T>(mut action: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match action() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
