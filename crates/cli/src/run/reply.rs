//! The reply: read on a thread of its own, fed to the turn at a pace.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use plaincall::Turn;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};

use crate::input::Input;
use crate::status::Failure;

/// How many pieces may wait to be fed. Reading is faster than running; the file need not be in memory.
const WAITING: usize = 4;

/// How often a paced reply goes on.
const STEP: Duration = Duration::from_millis(25);

/// At most so much time is made up for when the machine was busy or the process stood still.
const MADE_UP: Duration = Duration::from_millis(200);

/// A reply that is being read.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Whether its clean end is the end of the text: it is a file, no pipe that may have broken.
    pub(crate) is_file: bool,
    pieces: mpsc::Receiver<Result<Vec<u8>, Failure>>,
}

/// How the reading ended.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The input came to its end.
    Clean,
    /// It could not be read on.
    Failed(Failure),
}

impl Reply {
    /// Opens the file; `-` is the standard input.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) async fn open(path: PathBuf) -> Result<Self, Failure> {
        let (tell, opened) = oneshot::channel();
        let (sender, pieces) = mpsc::channel(WAITING);
        // Reading may wait as long as it likes here; the thread ends with the process, or when nobody listens.
        let read = move || match Input::open(&path) {
            Err(failure) => {
                let _ = tell.send(Err(failure));
            }
            Ok(input) => {
                let _ = tell.send(Ok(input.is_file));
                let result = input.for_each_chunk(None, |bytes| {
                    let sent = sender.blocking_send(Ok(bytes.to_vec()));
                    sent.map_err(|_| Failure::ClosedPipe)
                });
                if let Err(failure) = result {
                    let _ = sender.blocking_send(Err(failure));
                }
            }
        };
        thread::Builder::new()
            .name("reply".to_owned())
            .spawn(read)
            .map_err(|error| Failure::Broken(format!("cannot start a thread: {error}")))?;
        let lost = |_| Failure::Broken("the reply could not be read".to_owned());
        let is_file = opened.await.map_err(lost)??;
        Ok(Self { is_file, pieces })
    }

    /// Feeds all of it to the turn, `pace` bytes a second if one is given. `fed` is awaited after each piece.
    pub(crate) async fn feed(
        &mut self,
        turn: &mut Turn<'_>,
        pace: Option<NonZeroU64>,
        mut fed: impl AsyncFnMut(),
    ) -> Ending {
        let mut pace = pace.map(Pace::new);
        while let Some(piece) = self.pieces.recv().await {
            let piece = match piece {
                Ok(piece) => piece,
                Err(failure) => return Ending::Failed(failure),
            };
            let mut rest = piece.as_slice();
            while !rest.is_empty() {
                let count = match &mut pace {
                    None => rest.len(),
                    Some(pace) => pace.wait(rest.len()).await,
                };
                let (now, later) = rest.split_at_checked(count).unwrap_or((rest, &[]));
                turn.feed(now);
                rest = later;
                fed().await;
                // The tools run on the same thread; they get their turn here.
                tokio::task::yield_now().await;
            }
        }
        Ending::Clean
    }
}

/// So many bytes a second, in even steps.
#[derive(Debug)]
struct Pace {
    rate: NonZeroU64,
    steps: tokio::time::Interval,
    last: Instant,
    /// What may be fed and has not been, in bytes times nanoseconds a second.
    owed: u128,
}

impl Pace {
    fn new(rate: NonZeroU64) -> Self {
        let mut steps = interval(STEP);
        steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            rate,
            steps,
            last: Instant::now(),
            owed: 0,
        }
    }

    /// Waits until at least one byte may be fed. Returns how many may, at most `most`.
    async fn wait(&mut self, most: usize) -> usize {
        const SECOND: u128 = 1_000_000_000;
        loop {
            self.steps.tick().await;
            let now = Instant::now();
            let passed = now.duration_since(self.last).min(MADE_UP);
            self.last = now;
            self.owed += passed.as_nanos() * u128::from(self.rate.get());
            let count = usize::try_from(self.owed / SECOND)
                .unwrap_or(usize::MAX)
                .min(most);
            if count > 0 {
                self.owed -= count as u128 * SECOND;
                return count;
            }
        }
    }
}
