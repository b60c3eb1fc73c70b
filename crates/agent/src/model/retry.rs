//! Retries of requests whose reply has not begun.

use std::sync::Arc;
use std::time::Duration;

use super::Finish;
use super::{
    Constrain, Model, ModelError, ModelErrorKind, ModelRequest, Piece, Reply, ReplyNext,
    ReplyWriter, RetryEvent,
};

/// When to retry a request whose reply has not begun.
///
/// Delays double, with jitter of up to a half. A delay that the server asks for is respected. A server on this machine that
/// is [not running](ModelErrorKind::NotRunning) is retried once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retries {
    /// The most retries. Default: 4.
    pub max_retries: u32,
    /// The first delay. Default: 1 second.
    pub initial_delay: Duration,
    /// The longest delay. Default: 30 seconds.
    pub max_delay: Duration,
    /// The longest delay that a server may ask for; a longer one is an error. Default: 1 minute.
    pub max_server_delay: Duration,
    /// The time after which no retry starts. Default: 10 minutes.
    pub max_elapsed: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            max_retries: 4,
            initial_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(30),
            max_server_delay: Duration::from_mins(1),
            max_elapsed: Duration::from_mins(10),
        }
    }
}

impl Retries {
    fn allowed(&self, error: &ModelError) -> u32 {
        match error.kind {
            ModelErrorKind::NotRunning => self.max_retries.min(1),
            _ => self.max_retries,
        }
    }

    fn delay(&self, number: u32, error: &ModelError, chance: f64) -> Option<Duration> {
        use ModelErrorKind::{Refused, TooLong};
        if number >= self.allowed(error) || matches!(error.kind, Refused | TooLong) {
            return None;
        }
        let doubled = 2_u32.saturating_pow(number);
        let grown = self
            .initial_delay
            .saturating_mul(doubled)
            .min(self.max_delay);
        let delay = grown.mul_f64(1.0 - chance / 2.0);
        match error.retry_after {
            Some(wait) if wait > self.max_server_delay => None,
            // A little more than it asks for, and at least the delay without it.
            Some(wait) => Some(
                wait.saturating_add(delay.min(self.initial_delay))
                    .max(delay),
            ),
            None => Some(delay),
        }
    }
}

/// A model with retries. It retries only before a reply begins, because calls of a reply may already run. Each retry is a
/// [`Piece::Retry`]. An [`Agent`](crate::Agent) wraps its model ([`AgentBuilder::retries`](crate::AgentBuilder::retries)).
#[derive(Clone)]
pub struct Retrying {
    model: Arc<dyn Model>,
    retries: Retries,
}

impl Retrying {
    /// Wraps a model.
    pub fn new(model: impl Model, retries: Retries) -> Self {
        Self {
            model: Arc::new(model),
            retries,
        }
    }
}

impl Model for Retrying {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn supports_native_calls(&self) -> bool {
        self.model.supports_native_calls()
    }

    fn constrains(&self) -> Constrain {
        self.model.constrains()
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        let Self { model, retries } = self.clone();
        Reply::new(|out| async move {
            let asked = tokio::time::Instant::now();
            let mut number = 0;
            loop {
                let mut error = match pass_on(model.reply(request.clone()), &out).await {
                    (false, Err(error)) => error,
                    (_, ended) => return ended,
                };
                let Some(delay) = retries.delay(number, &error, chance()) else {
                    if let Some(wait) = error.retry_after
                        && wait > retries.max_server_delay
                    {
                        let asks = format!("; it asks to retry after {}", in_words(wait));
                        error.message.push_str(&asks);
                    }
                    return Err(error);
                };
                if asked.elapsed().saturating_add(delay) > retries.max_elapsed {
                    return Err(error);
                }
                number += 1;
                let event = RetryEvent {
                    attempt: number,
                    max_retries: retries.allowed(&error),
                    delay,
                    error,
                };
                out.piece(Piece::Retry(event)).await;
                tokio::time::sleep(delay).await;
            }
        })
    }
}

/// Forwards a reply. Returns whether it had begun, and how it ended.
async fn pass_on(mut reply: Reply, out: &ReplyWriter) -> (bool, Result<Finish, ModelError>) {
    // Usage is forwarded once the reply begins.
    let (mut has_begun, mut cost) = (false, None);
    while let Some(next) = reply.next().await {
        match &next {
            Err(_) | Ok(ReplyNext::Piece(Piece::Retry(_))) => {}
            Ok(ReplyNext::Piece(Piece::Usage(usage))) if !has_begun => {
                cost = Some(*usage);
                continue;
            }
            Ok(_) => {
                has_begun = true;
                if let Some(usage) = cost.take() {
                    out.usage(usage).await;
                }
            }
        }
        match next {
            Ok(ReplyNext::Piece(piece)) => out.piece(piece).await,
            Ok(ReplyNext::Finish(finish)) => return (has_begun, Ok(finish)),
            Err(error) => return (has_begun, Err(error)),
        }
    }
    (has_begun, Err(ModelError::endless()))
}

/// Formats a time in whole units, rounded up.
fn in_words(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}

/// A number from 0 to less than 1.
fn chance() -> f64 {
    // Without random numbers, use the longest delay.
    let drawn = getrandom::u32().unwrap_or_default();
    f64::from(drawn) / (f64::from(u32::MAX) + 1.0)
}
