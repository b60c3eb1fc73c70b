//! A disk for the log: writes may be slow, incomplete or fail.

use std::io;
use std::sync::{Arc, Mutex};

use interleaved::log::Storage;
use tokio::{choose, step};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Slow,
    /// It fails sooner or later.
    Fails,
}

/// The bytes that the disk has.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) written: Vec<u8>,
    pub(crate) flushed: usize,
    pub(crate) synced: usize,
    pub(crate) has_failed: bool,
}

impl Disk {
    /// Returns whether it contains anything to resume from.
    pub(crate) fn has_a_line(&self) -> bool {
        self.written.contains(&b'\n')
    }

    pub(crate) fn flushed(&self) -> &[u8] {
        &self.written[..self.flushed]
    }

    pub(crate) fn synced(&self) -> &[u8] {
        &self.written[..self.synced]
    }
}

pub(crate) struct SlowDisk {
    pub(crate) disk: Arc<Mutex<Disk>>,
    /// After how many operations it fails.
    pub(crate) lasts: Option<usize>,
}

impl SlowDisk {
    pub(crate) fn new(disk: Arc<Mutex<Disk>>, fate: Fate) -> Self {
        let lasts = (fate == Fate::Fails).then(|| choose(25));
        Self { disk, lasts }
    }

    fn operation(&mut self) -> io::Result<()> {
        for _ in 0..choose(4) {
            step();
        }
        let Some(lasts) = &mut self.lasts else {
            return Ok(());
        };
        let Some(rest) = lasts.checked_sub(1) else {
            self.disk.lock().unwrap().has_failed = true;
            return Err(io::Error::other("the disk is full"));
        };
        *lasts = rest;
        Ok(())
    }
}

impl Storage for SlowDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.operation()?;
        let count = if choose(4) == 0 {
            1 + choose(bytes.len())
        } else {
            bytes.len()
        };
        let taken = &bytes[..count];
        self.disk.lock().unwrap().written.extend_from_slice(taken);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.operation()?;
        let mut disk = self.disk.lock().unwrap();
        disk.flushed = disk.written.len();
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let upto = self.disk.lock().unwrap().flushed;
        self.operation()?;
        self.disk.lock().unwrap().synced = upto;
        Ok(())
    }
}
