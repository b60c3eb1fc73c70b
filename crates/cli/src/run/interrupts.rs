//! Signals that end a run: the first calls it off, the next one ends it at once.

use std::fs;
use std::future::pending;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals. What they did before is replaced for good when this is made.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
    /// `None` if the command was started to outlive its terminal, as `nohup` does it.
    hangup: Option<Signal>,
}

/// A signal that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interrupt {
    kind: SignalKind,
}

impl Interrupt {
    /// The exit status that tells of it: 128 and its number.
    pub(crate) fn status(self) -> u8 {
        u8::try_from(128 + self.kind.as_raw_value()).unwrap_or(255)
    }

    /// Whether it asks for an end at once.
    pub(crate) fn is_urgent(self) -> bool {
        self.kind == SignalKind::quit()
    }
}

impl Interrupts {
    pub(crate) fn new() -> io::Result<Self> {
        let hangup = SignalKind::hangup();
        Ok(Self {
            hangup: if is_ignored(hangup) {
                None
            } else {
                Some(signal(hangup)?)
            },
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) -> Interrupt {
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

/// Whether the command was started with the signal ignored, where the system tells.
fn is_ignored(kind: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (kind.as_raw_value() - 1) & 1 == 1)
}
