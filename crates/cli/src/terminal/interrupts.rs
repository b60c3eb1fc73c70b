//! Signals that end a run: the first calls it off, the next one ends it at once.

use std::fs;
use std::future::pending;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::status::Failure;

/// The same signal once more within this time is no second one: `timeout` sends it to the command and to its group, and a
/// shell may pass on what the terminal has sent already.
const ECHO: Duration = Duration::from_millis(100);

/// The signals. What they did before is replaced for good when this is made.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
    /// `None` if the command was started to outlive its terminal, as `nohup` does it.
    hangup: Option<Signal>,
    /// A file that may not grow any more. It ends nothing: writing fails instead, as on a full disk.
    _too_large: Signal,
    debounce: Debounce,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupt {
    kind: SignalKind,
}

impl Interrupt {
    /// The exit status: 128 plus the number of the signal.
    pub(crate) fn status(self) -> u8 {
        u8::try_from(128 + self.kind.as_raw_value()).unwrap_or(255)
    }

    /// Whether it comes from the keyboard.
    pub(crate) fn is_typed(self) -> bool {
        self.kind == SignalKind::interrupt() || self.is_urgent()
    }

    /// Whether it asks for an end at once.
    pub(crate) fn is_urgent(self) -> bool {
        self.kind == SignalKind::quit()
    }
}

impl Interrupts {
    pub(crate) fn new() -> Result<Self, Failure> {
        Self::of_system()
            .map_err(|error| Failure::Broken(format!("cannot listen for signals: {error}")))
    }

    fn of_system() -> io::Result<Self> {
        let hangup = SignalKind::hangup();
        Ok(Self {
            hangup: (!is_ignored(hangup)).then(|| signal(hangup)).transpose()?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            _too_large: signal(SignalKind::from_raw(Number::XFSZ.as_raw()))?,
            debounce: Debounce::default(),
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Interrupt {
        loop {
            let interrupt = self.any().await;
            if self.debounce.is_new(interrupt, Instant::now()) {
                return interrupt;
            }
        }
    }

    async fn any(&mut self) -> Interrupt {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        let kind = tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
            _ = self.quit.recv() => SignalKind::quit(),
            _ = hangup => SignalKind::hangup(),
        };
        Interrupt { kind }
    }
}

/// Does this, unless a signal comes first: then it is dropped, with all that it has started.
///
/// # Errors
/// Its own, or that signals cannot be listened for.
pub(crate) async fn until_interrupted<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<Result<T, Interrupt>, Failure> {
    let mut interrupts = Interrupts::new()?;
    tokio::select! {
        done = work => done.map(Ok),
        interrupt = interrupts.next() => Ok(Err(interrupt)),
    }
}

/// The last signal, and when it came.
#[derive(Debug, Default)]
struct Debounce(Option<(Interrupt, Instant)>);

impl Debounce {
    /// Whether this is another signal, and not the last one once more.
    fn is_new(&mut self, interrupt: Interrupt, now: Instant) -> bool {
        let is_echo = self.0.is_some_and(|(last, at)| {
            last == interrupt && now.saturating_duration_since(at) < ECHO
        });
        if !is_echo {
            self.0 = Some((interrupt, now));
        }
        !is_echo
    }
}

/// Whether the command was started with the signal ignored, if the system reports it.
fn is_ignored(kind: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (kind.as_raw_value() - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use tokio::signal::unix::SignalKind;

    use super::{Debounce, Interrupt};

    #[test]
    fn what_is_a_second_signal() {
        let check = |signals: &[(SignalKind, u64, bool)]| {
            let begun = Instant::now();
            let mut debounce = Debounce::default();
            for (kind, at, expected) in signals {
                let now = begun + Duration::from_millis(*at);
                let is_new = debounce.is_new(Interrupt { kind: *kind }, now);
                assert_eq!(is_new, *expected, "{signals:?} at {at}");
            }
        };
        let (interrupt, terminate) = (SignalKind::interrupt(), SignalKind::terminate());
        check(&[
            (terminate, 0, true),
            (terminate, 0, false),
            (terminate, 99, false),
        ]);
        check(&[(interrupt, 0, true), (interrupt, 100, true)]);
        check(&[
            (interrupt, 0, true),
            (interrupt, 60, false),
            (interrupt, 120, true),
        ]);
        check(&[
            (interrupt, 0, true),
            (terminate, 1, true),
            (interrupt, 2, true),
        ]);
        check(&[(interrupt, 0, true), (SignalKind::quit(), 1, true)]);
    }
}
