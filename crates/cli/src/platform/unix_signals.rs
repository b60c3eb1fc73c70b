//! Signals.

use std::fs;
use std::future::pending;
use std::io;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::terminal::interrupts::Interrupt;

/// Receives signals.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
    /// `None` if SIGHUP was ignored at startup, as under `nohup`.
    hangup: Option<Signal>,
    /// SIGXFSZ, so that exceeding the file size limit fails the write instead of killing the process.
    _too_large: Signal,
}

impl Signals {
    pub(crate) fn register() -> io::Result<Self> {
        let hangup = SignalKind::hangup();
        Ok(Self {
            hangup: (!is_ignored(hangup)).then(|| signal(hangup)).transpose()?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            _too_large: signal(SignalKind::from_raw(Number::XFSZ.as_raw()))?,
        })
    }

    pub(crate) async fn next(&mut self) -> Interrupt {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Interrupt::CtrlC,
            _ = self.terminate.recv() => Interrupt::Terminate,
            _ = self.quit.recv() => Interrupt::Quit,
            _ = hangup => Interrupt::Hangup,
        }
    }
}

/// Returns whether the signal was ignored at startup, if the system reports it.
fn is_ignored(kind: SignalKind) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (kind.as_raw_value() - 1) & 1 == 1)
}
