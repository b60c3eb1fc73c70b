//! The reply: read on a thread of its own, fed to the turn at a pace.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::thread;
use std::time::{Duration, Instant};

use plaincall::Turn;
use plaincall_syntax::{ByteParser, Code, Dialect, Event, EventKind};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};

use crate::status::Failure;
use crate::text::input::{BUFFER, Input};
use crate::text::reading::refused;

/// How many pieces may wait to be fed. Reading is faster than running; the file need not be in memory.
const WAITING: usize = 4;

/// Two texts with this many equal bytes are the same text.
const TELLING: usize = 64;

/// How much of a file is looked over before its first call starts (`spec/common.md` 5.2).
const LOOKED_OVER: usize = 64 << 20;

/// How much of the reply is kept for notes about it.
const KEPT: usize = 1 << 20;

/// The interval between the pieces of a paced reply.
const STEP: Duration = Duration::from_millis(25);

/// How much time a paced reply catches up at most after a pause.
const MADE_UP: Duration = Duration::from_millis(200);

/// A reply that is being read.
pub(crate) struct Reply {
    /// Whether its clean end is the end of the text: it is a file, no pipe that may have broken.
    pub(crate) is_file: bool,
    pieces: mpsc::Receiver<Result<Vec<u8>, Failure>>,
    /// What has been taken from the pieces and not been fed.
    rest: Vec<u8>,
    pace: Option<Pace>,
    catching_up: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// What was fed, up to [`KEPT`].
    pub(crate) fed: Vec<u8>,
}

impl Reply {
    /// Opens the file; `-` is the standard input. A file is looked over first. `pace` is in bytes a second.
    pub(crate) async fn open(
        path: PathBuf,
        dialect: &Dialect,
        pace: Option<NonZeroU64>,
    ) -> Result<Self, Failure> {
        let (opened_sender, opened) = oneshot::channel();
        let (sender, pieces) = mpsc::channel(WAITING);
        let looking = dialect
            .reasoning_markers()
            .map(|_| ByteParser::new(dialect));
        let looking = looking.transpose().map_err(|error| refused(&error))?;
        // Reading may block here; the thread ends with the process, or when the receiver is dropped.
        let read = move || match Input::open(&path) {
            Err(failure) => {
                let _ = opened_sender.send(Err(failure));
            }
            Ok(input) => {
                let _ = opened_sender.send(Ok(input.is_file));
                let send = |piece: &[u8]| {
                    let sent = sender.blocking_send(Ok(piece.to_vec()));
                    sent.map_err(|_| Failure::ClosedPipe)
                };
                let mut looking = looking.filter(|_| input.is_file).map(LookedOver::new);
                let result = input.for_each_chunk(None, |bytes| match looking.take() {
                    None => send(bytes),
                    Some(mut over) => {
                        if over.take(bytes) {
                            looking = Some(over);
                            return Ok(());
                        }
                        over.send(send).and_then(|()| send(bytes))
                    }
                });
                let result = match looking {
                    Some(over) => over.send(send).and(result),
                    None => result,
                };
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
        Ok(Self {
            is_file,
            pace: pace.map(Pace::new),
            ..Self::of(pieces)
        })
    }

    /// A reply of which nothing more comes.
    pub(crate) fn none() -> Self {
        Self::of(mpsc::channel(WAITING).1)
    }

    fn of(pieces: mpsc::Receiver<Result<Vec<u8>, Failure>>) -> Self {
        Self {
            is_file: false,
            pieces,
            rest: Vec::new(),
            pace: None,
            catching_up: None,
            fed: Vec::new(),
        }
    }

    /// Skips the part that was read before the run was interrupted.
    pub(crate) async fn pass_over(&mut self, read: &[u8], name: &Path) -> Result<(), Failure> {
        let differs = |what: String| {
            Failure::Broken(format!(
                "{} is not the reply that the run began with: {what}; name the original file, because the log has only the beginning of the reply",
                name.display()
            ))
        };
        let mut passed = 0;
        while let Some(expected) = read.get(passed..).filter(|rest| !rest.is_empty()) {
            let Some(piece) = self.pieces.recv().await else {
                return Err(differs(format!(
                    "it ends after {passed} bytes, but the run has read {} bytes",
                    read.len()
                )));
            };
            let piece = piece?;
            let mut pairs = piece.iter().zip(expected);
            if let Some(place) = pairs.position(|(found, expected)| found != expected) {
                let place = passed + place;
                let before = read.get(..place).unwrap_or_default();
                let line = memchr::memchr_iter(b'\n', before).count() + 1;
                return Err(differs(format!(
                    "it differs from the text already read at byte {place}, line {line}"
                )));
            }
            passed += piece.len().min(expected.len());
            self.rest = piece.get(expected.len()..).unwrap_or_default().to_vec();
        }
        Ok(())
    }

    /// Makes sure that a pipe, which is to bring the rest alone, does not begin anew: calls would be run twice.
    pub(crate) async fn refuse_repetition(&mut self, read: &[u8]) -> Result<(), Failure> {
        if read.len() < TELLING {
            return Ok(());
        }
        while self.rest.len() < read.len() && read.starts_with(&self.rest) {
            let Some(piece) = self.pieces.recv().await else {
                return Ok(());
            };
            self.rest.extend(piece?);
        }
        if self.rest.starts_with(read) {
            return Err(Failure::Usage(format!(
                "standard input begins with the {} bytes that the run has already read; pass only the rest, or name the file",
                read.len()
            )));
        }
        Ok(())
    }

    /// The next bytes, when the run has caught up and the pace allows them; `None` at the end. Nothing is lost if the future
    /// is dropped.
    pub(crate) async fn next(&mut self) -> Option<Result<Vec<u8>, Failure>> {
        if let Some(caught_up) = &mut self.catching_up {
            caught_up.await;
            self.catching_up = None;
        }
        while self.rest.is_empty() {
            match self.pieces.recv().await? {
                Ok(piece) => self.rest = piece,
                Err(failure) => return Some(Err(failure)),
            }
        }
        let count = match &mut self.pace {
            None => self.rest.len(),
            Some(pace) => pace.wait(self.rest.len()).await,
        };
        let later = self.rest.split_off(count);
        Some(Ok(std::mem::replace(&mut self.rest, later)))
    }

    /// The turn was given this piece. The log is not outrun, and the tools, which run on the same thread, get their turn.
    pub(crate) fn fed(&mut self, piece: Vec<u8>, turn: &Turn<'_>) {
        let room = KEPT.saturating_sub(self.fed.len());
        self.fed.extend(piece.into_iter().take(room));
        self.catching_up = Some(Box::pin(turn.caught_up()));
    }
}

/// The beginning of a file, read up to its last stray close marker before anything of it is fed.
struct LookedOver {
    parser: ByteParser,
    text: Vec<u8>,
    /// Where the last stray close marker ends.
    closed: usize,
}

impl LookedOver {
    const fn new(parser: ByteParser) -> Self {
        Self {
            parser,
            text: Vec::new(),
            closed: 0,
        }
    }

    /// Takes the next bytes. Returns whether there is room for them.
    fn take(&mut self, bytes: &[u8]) -> bool {
        if self.text.len() + bytes.len() > LOOKED_OVER {
            return false;
        }
        self.text.extend_from_slice(bytes);
        let closed = self
            .parser
            .feed(bytes)
            .filter_map(|event| stray_close(&event));
        self.closed = closed.last().unwrap_or(self.closed);
        true
    }

    /// Gives all of it to `send`: what the marker makes uncertain in one piece.
    fn send(self, mut send: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
        let closed = self.parser.finish().filter_map(|event| stray_close(&event));
        let closed = closed.last().unwrap_or(self.closed);
        let (first, rest) = self.text.split_at_checked(closed).unwrap_or_default();
        let first = Some(first).filter(|first| !first.is_empty());
        first
            .into_iter()
            .chain(rest.chunks(BUFFER))
            .try_for_each(&mut send)
    }
}

/// Where the event ends, if it is a stray close marker.
fn stray_close(event: &Event<'_>) -> Option<usize> {
    let is_close = |code| code == Code::StrayReasoningClose;
    matches!(&event.kind, EventKind::Diagnostic(found) if is_close(found.code))
        .then_some(event.span.end)
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
