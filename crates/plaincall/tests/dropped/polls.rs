//! Polls a future a number of times and then drops it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Polls the future at most `polls` times, each time after it was woken. Returns `None` if that was not enough; it
/// has been dropped then.
pub(crate) async fn poll_at_most<T>(future: impl Future<Output = T>, polls: usize) -> Option<T> {
    poll_and_drop(future, polls, false).await
}

/// The same, but polls it in every turn of the scheduler, so other tasks get one poll each in between.
pub(crate) async fn poll_every_turn<T>(future: impl Future<Output = T>, turns: usize) -> Option<T> {
    poll_and_drop(future, turns, true).await
}

async fn poll_and_drop<T>(
    future: impl Future<Output = T>,
    polls: usize,
    is_busy: bool,
) -> Option<T> {
    let mut future = pin!(future);
    let mut polled = 0;
    poll_fn(|context| {
        if polled == polls {
            return Poll::Ready(None);
        }
        polled += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if polled == polls => Poll::Ready(None),
            Poll::Pending => {
                if is_busy {
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    })
    .await
}
