//! The reply: read on its own thread, fed to the turn at the requested pace.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::thread;
use std::time::{Duration, Instant};

use plaincall::Turn;
use plaincall_syntax::{ByteParser, Code, Dialect, Event, EventKind};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};

use crate::commands::run::beginning::MAX_CALLS;
use crate::status::Failure;
use crate::text::input::{BUFFER_SIZE, Input};

/// How many pieces may be buffered.
const MAX_BUFFERED: usize = 4;

/// If this many bytes are equal, the texts are treated as equal.
const MIN_REPETITION: usize = 64;

/// How much of a file is scanned before its first call starts (`spec/common.md` 5.2).
const MAX_SCANNED: usize = 64 << 20;

/// How much of the reply is saved for notes about it.
const MAX_SAVED: usize = 1 << 20;

/// The interval between the pieces of a paced reply.
const STEP: Duration = Duration::from_millis(25);

/// The maximum time that a paced reply catches up after a pause.
const MAX_CATCH_UP: Duration = Duration::from_millis(200);

/// A reply that is being read.
pub(crate) struct Reply {
    /// Whether the reply is a file, so its end is the end of the text. A pipe may be truncated.
    pub(crate) is_file: bool,
    pieces: mpsc::Receiver<Result<Vec<u8>, Failure>>,
    /// Received bytes that have not been fed yet.
    rest: Vec<u8>,
    pace: Option<Pace>,
    catching_up: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// The bytes that were fed, up to [`MAX_SAVED`].
    pub(crate) fed: Vec<u8>,
}

impl Reply {
    /// Opens the file; `-` is standard input. The beginning of a file is scanned first. `pace` is in bytes per second.
    pub(crate) async fn open(
        path: PathBuf,
        dialect: &Dialect,
        pace: Option<NonZeroU64>,
    ) -> Result<Self, Failure> {
        let (opened_sender, opened) = oneshot::channel();
        let (sender, pieces) = mpsc::channel(MAX_BUFFERED);
        let scan = dialect
            .reasoning_markers()
            .map(|_| ByteParser::new(dialect));
        let scan = scan.transpose()?;
        // Reading may block. The thread ends with the process or when the receiver is dropped.
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
                let mut scan = scan.filter(|_| input.is_file).map(ScannedStart::new);
                let result = input.for_each_chunk(None, |bytes| match scan.take() {
                    None => send(bytes),
                    Some(mut start) => {
                        if start.push(bytes) {
                            scan = Some(start);
                            return Ok(());
                        }
                        start.send(false, send).and_then(|()| send(bytes))
                    }
                });
                let result = match scan {
                    Some(start) => start.send(result.is_ok(), send).and(result),
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
            .map_err(|error| Failure::Runtime(format!("cannot start a thread: {error}")))?;
        let lost = |_| Failure::Runtime("the reply could not be read".to_owned());
        let is_file = opened.await.map_err(lost)??;
        Ok(Self {
            is_file,
            pace: pace.map(Pace::new),
            ..Self::with_pieces(pieces)
        })
    }

    /// Returns a reply without further text.
    pub(crate) fn none() -> Self {
        Self::with_pieces(mpsc::channel(MAX_BUFFERED).1)
    }

    fn with_pieces(pieces: mpsc::Receiver<Result<Vec<u8>, Failure>>) -> Self {
        Self {
            is_file: false,
            pieces,
            rest: Vec::new(),
            pace: None,
            catching_up: None,
            fed: Vec::new(),
        }
    }

    /// Skips the part that was read before the interruption.
    pub(crate) async fn skip(&mut self, read: &[u8], name: &Path) -> Result<(), Failure> {
        let differs = |what: String| {
            Failure::Runtime(format!(
                "{} is not the reply that the run began with: {what}; name the original file, because the log has only the beginning of the reply",
                name.display()
            ))
        };
        let mut skipped = 0;
        while let Some(expected) = read.get(skipped..).filter(|rest| !rest.is_empty()) {
            let Some(piece) = self.pieces.recv().await else {
                return Err(differs(format!(
                    "it ends after {skipped} bytes, but the run has read {} bytes",
                    read.len()
                )));
            };
            let piece = piece?;
            let mut pairs = piece.iter().zip(expected);
            if let Some(offset) = pairs.position(|(found, expected)| found != expected) {
                let offset = skipped + offset;
                let before = read.get(..offset).unwrap_or_default();
                let line = memchr::memchr_iter(b'\n', before).count() + 1;
                return Err(differs(format!(
                    "it differs from the text already read at byte {offset}, line {line}"
                )));
            }
            skipped += piece.len().min(expected.len());
            self.rest = piece.get(expected.len()..).unwrap_or_default().to_vec();
        }
        Ok(())
    }

    /// Checks that a pipe with the rest of the reply does not repeat its beginning, which would run calls twice.
    pub(crate) async fn check_not_repeated(&mut self, read: &[u8]) -> Result<(), Failure> {
        if read.len() < MIN_REPETITION {
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

    /// Returns the next bytes when the run has caught up and the pace allows; `None` at the end. Cancel safe.
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
        let remaining = self.rest.split_off(count);
        Some(Ok(std::mem::replace(&mut self.rest, remaining)))
    }

    /// Records a piece that was fed to the turn. The next piece waits for the log and for the tools, which share the
    /// thread.
    pub(crate) fn fed(&mut self, piece: Vec<u8>, turn: &Turn<'_>) {
        let room = MAX_SAVED.saturating_sub(self.fed.len());
        self.fed.extend(piece.into_iter().take(room));
        self.catching_up = Some(Box::pin(turn.caught_up()));
    }
}

/// The beginning of a file, scanned up to its last stray close marker before any of it is fed.
struct ScannedStart {
    parser: ByteParser,
    text: Vec<u8>,
    /// The end of the last stray close marker.
    closed: usize,
    /// The number of calls, and of those before that marker.
    calls: u32,
    closed_calls: u32,
}

impl ScannedStart {
    const fn new(parser: ByteParser) -> Self {
        Self {
            parser,
            text: Vec::new(),
            closed: 0,
            calls: 0,
            closed_calls: 0,
        }
    }

    /// Adds bytes. Returns whether there was room for them.
    fn push(&mut self, bytes: &[u8]) -> bool {
        if self.text.len() + bytes.len() > MAX_SCANNED {
            return false;
        }
        self.text.extend_from_slice(bytes);
        for event in self.parser.feed(bytes) {
            self.calls += u32::from(matches!(event.kind, EventKind::CallStart(_)));
            if let Some(closed) = stray_close(&event) {
                (self.closed, self.closed_calls) = (closed, self.calls);
            }
        }
        true
    }

    /// Passes all of it to `send`: everything up to the last stray close marker in one piece. `is_whole` if it is the whole text.
    ///
    /// # Errors
    /// Returns an error if that piece has too many calls to be kept.
    fn send(
        mut self,
        is_whole: bool,
        mut send: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let closed = self.parser.finish().filter_map(|event| stray_close(&event));
        let closed = closed.last().unwrap_or(self.closed);
        // The rest of its line shows whether it counts.
        let line = self.text.get(closed..).unwrap_or_default();
        let rest_of_line = memchr::memchr(b'\n', line).map(|end| end + 1);
        let is_blank = line.iter().all(|byte| matches!(byte, b' ' | b'\t'));
        if is_whole && closed > 0 && rest_of_line.is_none() && is_blank {
            // The end of the text ends the line, and no call may start before that.
            self.text.push(b'\n');
        }
        if self.closed_calls > MAX_CALLS {
            return Err(Failure::Runtime(format!(
                "the reply has more than {MAX_CALLS} calls before the end of its reasoning, none of which may run; check that the file is the right one"
            )));
        }
        let closed = match closed {
            0 => 0,
            _ => rest_of_line.map_or(self.text.len(), |len| closed + len),
        };
        let (first, rest) = self.text.split_at_checked(closed).unwrap_or_default();
        let first = Some(first).filter(|first| !first.is_empty());
        first
            .into_iter()
            .chain(rest.chunks(BUFFER_SIZE))
            .try_for_each(&mut send)
    }
}

/// Returns the end of the event if it is a stray close marker.
fn stray_close(event: &Event<'_>) -> Option<usize> {
    let is_close = |code| code == Code::StrayReasoningClose;
    matches!(&event.kind, EventKind::Diagnostic(found) if is_close(found.code))
        .then_some(event.span.end)
}

/// Limits the rate in even steps.
#[derive(Debug)]
struct Pace {
    rate: NonZeroU64,
    steps: tokio::time::Interval,
    last: Instant,
    /// Bytes that may be fed now, multiplied by nanoseconds per second.
    allowance: u128,
}

impl Pace {
    fn new(rate: NonZeroU64) -> Self {
        let mut steps = interval(STEP);
        steps.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            rate,
            steps,
            last: Instant::now(),
            allowance: 0,
        }
    }

    /// Waits until at least one byte may be fed. Returns how many may be fed, at most `max`.
    async fn wait(&mut self, max: usize) -> usize {
        const SECOND: u128 = 1_000_000_000;
        loop {
            self.steps.tick().await;
            let now = Instant::now();
            let elapsed = now.duration_since(self.last).min(MAX_CATCH_UP);
            self.last = now;
            self.allowance += elapsed.as_nanos() * u128::from(self.rate.get());
            let count = usize::try_from(self.allowance / SECOND)
                .unwrap_or(usize::MAX)
                .min(max);
            if count > 0 {
                self.allowance -= count as u128 * SECOND;
                return count;
            }
        }
    }
}
