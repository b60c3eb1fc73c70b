//! Threads, in the place of those of the standard library.

use std::io;

use crate::task::{JoinHandle, spawn_blocking};

#[derive(Debug, Default)]
pub struct Builder;

impl Builder {
    pub fn new() -> Self {
        Self
    }

    pub fn name(self, _: String) -> Self {
        self
    }

    pub fn spawn<T: Send + 'static>(
        self,
        function: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        Ok(spawn_blocking(function))
    }
}
