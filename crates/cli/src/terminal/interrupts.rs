//! Signals that end a command: the first cancels it, the second exits immediately.

use std::fs;
use std::future::pending;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::status::Failure;

/// A repeated signal within this time is ignored: `timeout` signals both the command and its process group, and a shell
/// may forward a signal that the terminal has already sent.
const REPETITION: Duration = Duration::from_millis(100);

/// Receives signals. The previous signal handlers are replaced permanently.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
    /// `None` if SIGHUP was ignored at startup, as under `nohup`.
    hangup: Option<Signal>,
    /// SIGXFSZ, so that exceeding the file size limit fails the write instead of killing the process.
    _too_large: Signal,
    debounce: Debounce,
}

/// A received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupt {
    kind: SignalKind,
}

impl Interrupt {
    /// Returns the exit status: 128 plus the signal number.
    pub(crate) fn status(self) -> u8 {
        u8::try_from(128 + self.kind.as_raw_value()).unwrap_or(255)
    }

    /// Returns the signal number.
    pub(crate) fn number(self) -> i32 {
        self.kind.as_raw_value()
    }

    /// Returns whether the signal comes from the keyboard.
    pub(crate) fn is_from_keyboard(self) -> bool {
        self.kind == SignalKind::interrupt() || self.is_urgent()
    }

    /// Returns whether the signal is SIGHUP.
    pub(crate) fn is_hangup(self) -> bool {
        self.kind == SignalKind::hangup()
    }

    /// Returns whether the signal requests an immediate exit.
    pub(crate) fn is_urgent(self) -> bool {
        self.kind == SignalKind::quit()
    }
}

impl Interrupts {
    pub(crate) fn new() -> Result<Self, Failure> {
        Self::register()
            .map_err(|error| Failure::Runtime(format!("cannot listen for signals: {error}")))
    }

    fn register() -> io::Result<Self> {
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

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Interrupt {
        loop {
            let interrupt = self.receive().await;
            if self.debounce.is_new(interrupt, Instant::now()) {
                return interrupt;
            }
        }
    }

    /// Forgets the last signal, so that the next one counts even if it follows at once.
    pub(crate) fn forget(&mut self) {
        self.debounce = Debounce::default();
    }

    async fn receive(&mut self) -> Interrupt {
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

/// Returns whether the signal was ignored at startup, if the system reports it.
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
    fn repeated_signals() {
        let check = |signals: &[(SignalKind, u64, bool)]| {
            let started = Instant::now();
            let mut debounce = Debounce::default();
            for (kind, at, expected) in signals {
                let now = started + Duration::from_millis(*at);
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
