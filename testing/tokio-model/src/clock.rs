//! One execution: its time, its timers, and its tasks.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::mem;
use std::task::{Poll, Waker};
use std::time::Duration;

use shuttle::future::{JoinHandle, block_on, spawn, yield_now};

use crate::choose;

/// The maximum number of steps of other tasks before the clock jumps. One of them is chosen for each execution: in some
/// nearly everything times out, in some nearly nothing.
const PATIENCE: [usize; 3] = [3, 40, 400];

#[derive(Default)]
struct Execution {
    /// The time since the beginning.
    now: Duration,
    timers: BTreeMap<(Duration, u64), Waker>,
    next_number: u64,
    /// How many tasks have not ended.
    tasks: usize,
    /// The tasks of the scheduler. As long as they are kept, it reports one that never ends as a deadlock.
    handles: Vec<JoinHandle<()>>,
    is_over: bool,
    clock: Option<Waker>,
}

thread_local! {
    // All tasks of an execution run on one thread of the system.
    static EXECUTION: RefCell<Execution> = RefCell::default();
}

fn with<T>(action: impl FnOnce(&mut Execution) -> T) -> T {
    EXECUTION.with_borrow_mut(action)
}

/// Runs one execution of a test, and returns when all tasks have ended that were started in it. One that never ends is
/// a deadlock, which the scheduler reports.
pub fn interleave(test: impl Future<Output = ()>) {
    // What a failed execution has left behind belongs to a scheduler that is gone.
    mem::forget(with(mem::take));
    let patience = PATIENCE[choose(PATIENCE.len())];
    let clock = spawn(run_clock(patience));
    block_on(async {
        test.await;
        with(|execution| execution.is_over = true);
        wake_clock();
        clock.await.expect("the clock is not aborted");
        for handle in with(|execution| mem::take(&mut execution.handles)) {
            handle.await.expect("tasks are aborted from within");
        }
    });
}

/// Jumps from deadline to deadline until all tasks have ended.
async fn run_clock(patience: usize) {
    loop {
        let has_timers = poll_fn(|context| {
            with(|execution| {
                if !execution.timers.is_empty() {
                    return Poll::Ready(true);
                }
                if execution.is_over && execution.tasks == 0 {
                    return Poll::Ready(false);
                }
                execution.clock = Some(context.waker().clone());
                Poll::Pending
            })
        });
        if !has_timers.await {
            return;
        }
        for _ in 0..choose(patience) {
            yield_now().await;
        }
        let due = with(|execution| {
            let Some((&(deadline, _), _)) = execution.timers.first_key_value() else {
                return BTreeMap::new();
            };
            execution.now = execution.now.max(deadline);
            let later = execution.timers.split_off(&(deadline, u64::MAX));
            mem::replace(&mut execution.timers, later)
        });
        due.into_values().for_each(Waker::wake);
    }
}

fn wake_clock() {
    if let Some(waker) = with(|execution| execution.clock.take()) {
        waker.wake();
    }
}

/// A number that was not given before.
pub(crate) fn number() -> u64 {
    with(|execution| {
        execution.next_number += 1;
        execution.next_number
    })
}

pub(crate) fn now() -> Duration {
    with(|execution| execution.now)
}

/// Wakes a task at a time, unless it is [taken back](forget).
pub(crate) fn wake_at(deadline: Duration, number: u64, waker: Waker) {
    with(|execution| execution.timers.insert((deadline, number), waker));
    wake_clock();
}

pub(crate) fn forget(deadline: Duration, number: u64) {
    let waker = with(|execution| execution.timers.remove(&(deadline, number)));
    drop(waker);
}

/// Starts a task that is waited for at the end of the execution.
pub(crate) fn start(task: impl Future<Output = ()> + Send + 'static) {
    with(|execution| execution.tasks += 1);
    let handle = spawn(async move {
        task.await;
        with(|execution| execution.tasks -= 1);
        wake_clock();
    });
    with(|execution| execution.handles.push(handle));
}
