//! Time that passes when the scheduler decides.

use std::fmt;
use std::ops::Add;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::clock::{forget, now, number, wake_at};
use crate::step;

/// A moment of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

/// All executions begin here, so that moments before the beginning exist too.
const BEGIN: Duration = Duration::from_secs(1 << 20);

impl Instant {
    pub fn now() -> Self {
        Self(BEGIN + now())
    }

    pub fn elapsed(&self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }

    pub fn checked_add(&self, duration: Duration) -> Option<Self> {
        self.0.checked_add(duration).map(Self)
    }

    pub fn checked_sub(&self, duration: Duration) -> Option<Self> {
        self.0.checked_sub(duration).map(Self)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}

/// Is done when its deadline is over.
#[derive(Debug)]
#[must_use = "futures do nothing unless they are awaited"]
pub struct Sleep {
    deadline: Duration,
    number: u64,
}

pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(Instant(Instant::now().0.saturating_add(duration)))
}

pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep {
        deadline: deadline.0.saturating_sub(BEGIN),
        number: number(),
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if now() >= self.deadline {
            return Poll::Ready(());
        }
        wake_at(self.deadline, self.number, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        forget(self.deadline, self.number);
    }
}

/// The time was over.
#[derive(Debug)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("deadline has elapsed")
    }
}

impl std::error::Error for Elapsed {}

pub fn timeout<F: IntoFuture>(
    duration: Duration,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    within(sleep(duration), future.into_future())
}

pub fn timeout_at<F: IntoFuture>(
    deadline: Instant,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    within(sleep_until(deadline), future.into_future())
}

async fn within<F: Future>(sleep: Sleep, future: F) -> Result<F::Output, Elapsed> {
    step();
    let (mut sleep, mut future) = (pin!(sleep), pin!(future));
    std::future::poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        sleep.as_mut().poll(context).map(|()| Err(Elapsed))
    })
    .await
}
