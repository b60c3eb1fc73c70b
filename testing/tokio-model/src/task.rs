//! Tasks.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

pub use shuttle::future::yield_now;
use tokio::sync::{mpsc, oneshot};

use crate::clock::{number, start};
use crate::step;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id(u64);

/// Aborts a task at its next await.
#[derive(Clone, Debug)]
pub struct AbortHandle {
    id: Id,
    state: Arc<Mutex<AbortState>>,
}

#[derive(Debug, Default)]
struct AbortState {
    is_aborted: bool,
    waker: Option<Waker>,
}

impl AbortHandle {
    fn new() -> Self {
        Self {
            id: Id(number()),
            state: Arc::default(),
        }
    }

    pub fn id(&self) -> Id {
        self.id
    }

    pub fn abort(&self) {
        step();
        let waker = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_aborted = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn is_aborted(&self, waker: &Waker) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waker = Some(waker.clone());
        state.is_aborted
    }
}

/// Why a task has no output.
pub struct JoinError {
    id: Id,
    panic: Option<Box<dyn Any + Send>>,
}

impl JoinError {
    pub fn id(&self) -> Id {
        self.id
    }

    pub fn is_panic(&self) -> bool {
        self.panic.is_some()
    }

    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send>, Self> {
        let Self { id, panic } = self;
        panic.ok_or(Self { id, panic: None })
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.is_panic() {
            "panicked"
        } else {
            "was aborted"
        };
        write!(formatter, "the task {:?} {how}", self.id)
    }
}

/// A future whose panics are caught and which can be aborted.
struct Guarded<F> {
    future: Option<Pin<Box<F>>>,
    handle: AbortHandle,
}

impl<F: Future> Future for Guarded<F> {
    type Output = Result<F::Output, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let id = self.handle.id;
        let output = if self.handle.is_aborted(context.waker()) {
            Err(JoinError { id, panic: None })
        } else {
            let Some(future) = &mut self.future else {
                return Poll::Pending;
            };
            match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(output)) => Ok(output),
                Err(panic) => Err(JoinError {
                    id,
                    panic: Some(panic),
                }),
            }
        };
        // What it held is dropped before its end is reported.
        self.future = None;
        Poll::Ready(output)
    }
}

/// Starts a task, which passes its output to `report`.
fn launch<F: Future + Send + 'static>(
    future: F,
    report: impl FnOnce(Id, Result<F::Output, JoinError>) + Send + 'static,
) -> AbortHandle {
    step();
    let handle = AbortHandle::new();
    let guarded = Guarded {
        future: Some(Box::pin(future)),
        handle: handle.clone(),
    };
    start(async move {
        let id = guarded.handle.id;
        let output = guarded.await;
        step();
        report(id, output);
    });
    handle
}

/// Waits for a task. Dropping it detaches the task.
#[derive(Debug)]
pub struct JoinHandle<T> {
    output: oneshot::Receiver<Result<T, JoinError>>,
    handle: AbortHandle,
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        step();
        let id = self.handle.id;
        Pin::new(&mut self.output)
            .poll(context)
            .map(|output| output.unwrap_or(Err(JoinError { id, panic: None })))
    }
}

impl<T> JoinHandle<T> {
    pub fn abort(&self) {
        self.handle.abort();
    }
}

pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (sender, output) = oneshot::channel();
    let handle = launch(future, |_, output| drop(sender.send(output)));
    JoinHandle { output, handle }
}

pub fn spawn_blocking<T: Send + 'static>(
    function: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    spawn(async move { function() })
}

/// Tasks that are waited for together. Dropping it aborts them.
#[derive(Debug)]
pub struct JoinSet<T> {
    sender: mpsc::UnboundedSender<(Id, Result<T, JoinError>)>,
    outputs: mpsc::UnboundedReceiver<(Id, Result<T, JoinError>)>,
    handles: HashMap<Id, AbortHandle>,
}

impl<T: Send + 'static> JoinSet<T> {
    pub fn new() -> Self {
        let (sender, outputs) = mpsc::unbounded_channel();
        Self {
            sender,
            outputs,
            handles: HashMap::new(),
        }
    }

    pub fn spawn(&mut self, future: impl Future<Output = T> + Send + 'static) -> AbortHandle {
        let sender = self.sender.clone();
        let handle = launch(future, move |id, output| drop(sender.send((id, output))));
        self.handles.insert(handle.id, handle.clone());
        handle
    }

    pub fn is_empty(&self) -> bool {
        self.handles.is_empty()
    }

    pub async fn join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        step();
        if self.handles.is_empty() {
            return None;
        }
        let (id, output) = self.outputs.recv().await?;
        self.handles.remove(&id);
        Some(output.map(|output| (id, output)))
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.handles.values().for_each(AbortHandle::abort);
    }
}
