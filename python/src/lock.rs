//! Work without the global interpreter lock, signals during it, and what it needs at the end of the interpreter.
//!
//! Before Python 3.14, a thread that takes the lock back after the interpreter has begun to end is stopped in the middle of its
//! functions, which native code does not survive. So the interpreter waits for such work before it ends, and from then on no work
//! releases the lock. Only daemon threads can be affected.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;

use pyo3::exceptions::{PyImportError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// From this length on, in bytes, work on a text releases the global interpreter lock.
const LONG: usize = 64 << 10;

/// After so many bytes of a text, a signal such as Ctrl-C can stop the work.
const PIECE: usize = 256 << 10;
const PARTS: usize = 1000;

/// The number of threads that work without the lock, in the process with this id: a forked process has none of them.
static WORKING: AtomicUsize = AtomicUsize::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Whether the interpreter ends.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// The modules of the interpreter that has imported this one.
static FIRST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The interpreter waits at most a minute, in steps of this many seconds.
const STEP: f64 = 0.001;
const STEPS: usize = 60_000;

/// Counts a thread while it works.
struct Working;

impl Working {
    fn begin() -> Self {
        let process = std::process::id();
        if PROCESS.swap(process, Ordering::SeqCst) != process {
            WORKING.store(0, Ordering::SeqCst);
        }
        WORKING.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        WORKING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs `work`, without the global interpreter lock if the text is long.
pub(crate) fn released<T: Send>(
    py: Python<'_>,
    length: usize,
    work: impl FnOnce() -> T + Send,
) -> T {
    // Both are read and written with the lock.
    if length < LONG || IS_ENDING.load(Ordering::SeqCst) {
        return work();
    }
    let _working = Working::begin();
    py.detach(work)
}

/// Works on a text in pieces, as [`released`] does, and passes what it returns to `take`. Signals, such as Ctrl-C, can stop it
/// between them.
pub(crate) fn in_pieces<'t, T: Send>(
    py: Python<'_>,
    text: &'t [u8],
    mut work: impl FnMut(&'t [u8]) -> T + Send,
    mut take: impl FnMut(T) -> PyResult<()>,
) -> PyResult<()> {
    for (at, piece) in text.chunks(PIECE).enumerate() {
        if at > 0 {
            py.check_signals()?;
        }
        take(released(py, piece.len(), || work(piece)))?;
    }
    Ok(())
}

/// Lets a signal stop the conversion of many parts to objects, after each thousand of them.
pub(crate) fn check_signals(py: Python<'_>, part: usize) -> PyResult<()> {
    if part % PARTS == PARTS - 1 {
        py.check_signals()?;
    }
    Ok(())
}

/// Frees what stopped work has read, in a thread: it can take seconds, and the exception of the signal would wait for it.
pub(crate) fn free<T: Send + 'static>(read: T) {
    // Without a thread, it is freed here.
    drop(thread::Builder::new().spawn(move || drop(read)));
}

/// Returns what an object has for one thread at a time.
pub(crate) fn alone<T>(of_object: &Mutex<T>) -> PyResult<MutexGuard<'_, T>> {
    match of_object.try_lock() {
        Ok(own) => Ok(own),
        Err(TryLockError::Poisoned(own)) => Ok(own.into_inner()),
        Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
            "this object is in use, by another thread or by code that a signal has interrupted; create one for each text",
        )),
    }
}

/// Lets no further work release the lock, and waits for the threads that have.
#[pyfunction]
fn wait_at_exit(py: Python<'_>) -> PyResult<()> {
    IS_ENDING.store(true, Ordering::SeqCst);
    if PROCESS.load(Ordering::SeqCst) != std::process::id() {
        return Ok(());
    }
    let time = py.import("time")?;
    for _ in 0..STEPS {
        if WORKING.load(Ordering::SeqCst) == 0 {
            break;
        }
        // It releases the lock.
        time.call_method1("sleep", (STEP,))?;
    }
    Ok(())
}

/// Registers what happens at the end of the interpreter.
///
/// Only one interpreter of a process can import the module: its types are shared, and so is what is registered here.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let modules = module.py().import("sys")?.getattr("modules")?;
    let first = FIRST.get_or_init(module.py(), || modules.clone().unbind());
    if !first.is(&modules) {
        return Err(PyImportError::new_err(
            "another interpreter of this process has imported `plaincall`; use it in one of them only",
        ));
    }
    let wait = wrap_pyfunction!(wait_at_exit, module)?;
    let atexit = module.py().import("atexit")?;
    atexit.call_method1("register", (wait,)).map(drop)
}
