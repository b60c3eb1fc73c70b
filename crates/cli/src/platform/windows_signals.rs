//! Events of the console.

use std::io;
use std::sync::LazyLock;

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close,
    ctrl_logoff, ctrl_shutdown,
};
use tokio::sync::Notify;

use crate::terminal::interrupts::Interrupt;

/// Ctrl-C, as the console delivers it while single keys are read.
static PRESSED: LazyLock<Notify> = LazyLock::new(Notify::new);

/// Reports a Ctrl-C that was read as a key.
pub(crate) fn press_ctrl_c() {
    PRESSED.notify_one();
}

/// Receives the events of the console. After the closing of the console, the system kills the process within seconds.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: CtrlC,
    terminate: CtrlBreak,
    close: CtrlClose,
    logoff: CtrlLogoff,
    shutdown: CtrlShutdown,
}

impl Signals {
    pub(crate) fn register() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            terminate: ctrl_break()?,
            close: ctrl_close()?,
            logoff: ctrl_logoff()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    pub(crate) async fn next(&mut self) -> Interrupt {
        tokio::select! {
            _ = self.interrupt.recv() => Interrupt::CtrlC,
            () = PRESSED.notified() => Interrupt::CtrlC,
            // Programs send it to others as a request to end.
            _ = self.terminate.recv() => Interrupt::Terminate,
            _ = self.close.recv() => Interrupt::Terminate,
            _ = self.logoff.recv() => Interrupt::Terminate,
            _ = self.shutdown.recv() => Interrupt::Terminate,
        }
    }
}
