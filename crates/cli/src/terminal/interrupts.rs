//! Signals that end a command: the first cancels it, the second exits immediately.

use std::time::{Duration, Instant};

use crate::platform::signals::Signals;
use crate::status::Failure;

/// A repeated signal within this time is ignored: `timeout` signals both the command and its process group, and a shell
/// may forward a signal that the terminal has already sent.
const REPETITION: Duration = Duration::from_millis(100);

/// Receives signals. The previous signal handlers are replaced permanently.
#[derive(Debug)]
pub(crate) struct Interrupts {
    signals: Signals,
    debounce: Debounce,
}

/// A received signal. On Windows, Ctrl-C is an interrupt, and Ctrl-Break and the closing of the console terminate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Hangup = 1,
    CtrlC = 2,
    Quit = 3,
    Terminate = 15,
}

impl Interrupt {
    /// Returns the exit status: 128 plus the signal number.
    pub(crate) fn status(self) -> u8 {
        128 + self as u8
    }

    /// Returns whether the signal comes from the keyboard.
    pub(crate) fn is_from_keyboard(self) -> bool {
        self == Self::CtrlC || self.is_urgent()
    }

    /// Returns whether the signal is SIGHUP.
    pub(crate) fn is_hangup(self) -> bool {
        self == Self::Hangup
    }

    /// Returns whether the signal requests an immediate exit.
    pub(crate) fn is_urgent(self) -> bool {
        self == Self::Quit
    }
}

impl Interrupts {
    pub(crate) fn new() -> Result<Self, Failure> {
        let signals = Signals::register()
            .map_err(|error| Failure::Runtime(format!("cannot listen for signals: {error}")))?;
        Ok(Self {
            signals,
            debounce: Debounce::default(),
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Interrupt {
        loop {
            let interrupt = self.signals.next().await;
            if self.debounce.is_new(interrupt, Instant::now()) {
                return interrupt;
            }
        }
    }

    /// Forgets the last signal, so that the next one counts even if it follows at once.
    pub(crate) fn forget(&mut self) {
        self.debounce = Debounce::default();
    }
}

/// Runs a future until it completes or a signal arrives. A signal drops the future.
pub(crate) async fn until_interrupted<T>(
    future: impl Future<Output = Result<T, Failure>>,
) -> Result<Result<T, Interrupt>, Failure> {
    let mut interrupts = Interrupts::new()?;
    tokio::select! {
        result = future => result.map(Ok),
        interrupt = interrupts.next() => Ok(Err(interrupt)),
    }
}

/// The last signal and its time.
#[derive(Debug, Default)]
struct Debounce(Option<(Interrupt, Instant)>);

impl Debounce {
    /// Returns whether the signal is not a repetition of the last one.
    fn is_new(&mut self, interrupt: Interrupt, now: Instant) -> bool {
        let is_repeated = self.0.is_some_and(|(last, at)| {
            last == interrupt && now.saturating_duration_since(at) < REPETITION
        });
        if !is_repeated {
            self.0 = Some((interrupt, now));
        }
        !is_repeated
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Debounce, Interrupt};

    #[test]
    fn repeated_signals() {
        let check = |signals: &[(Interrupt, u64, bool)]| {
            let started = Instant::now();
            let mut debounce = Debounce::default();
            for (kind, at, expected) in signals {
                let now = started + Duration::from_millis(*at);
                let is_new = debounce.is_new(*kind, now);
                assert_eq!(is_new, *expected, "{signals:?} at {at}");
            }
        };
        let (interrupt, terminate) = (Interrupt::CtrlC, Interrupt::Terminate);
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
        check(&[(interrupt, 0, true), (Interrupt::Quit, 1, true)]);
    }
}
