//! The one runtime that there is.

use std::convert::Infallible;

use crate::task::{self, JoinHandle};

#[derive(Clone, Debug)]
pub struct Handle(());

impl Handle {
    pub fn try_current() -> Result<Self, Infallible> {
        Ok(Self(()))
    }

    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        task::spawn(future)
    }

    pub fn spawn_blocking<T: Send + 'static>(
        &self,
        function: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        task::spawn_blocking(function)
    }
}

/// Builds the one runtime. The unit tests of the runner's modules name it; they are compiled with the model, not run.
#[derive(Debug)]
pub struct Builder(());

impl Builder {
    pub fn new_current_thread() -> Self {
        Self(())
    }

    pub fn enable_all(&mut self) -> &mut Self {
        self
    }

    pub fn build(&self) -> Result<Runtime, Infallible> {
        Ok(Runtime(()))
    }
}

#[derive(Debug)]
pub struct Runtime(());

impl Runtime {
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        shuttle::future::block_on(future)
    }
}
