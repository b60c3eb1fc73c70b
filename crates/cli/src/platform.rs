//! Unix and Windows: the only part of this crate that asks for the system.

#[cfg_attr(unix, path = "platform/unix.rs")]
#[cfg_attr(windows, path = "platform/windows.rs")]
#[cfg_attr(windows, expect(clippy::unnecessary_wraps, reason = "as on Unix"))]
mod system;

#[cfg_attr(unix, path = "platform/unix_builtin.rs")]
#[cfg_attr(windows, path = "platform/windows_builtin.rs")]
pub(crate) mod builtin;
#[cfg_attr(unix, path = "platform/unix_signals.rs")]
#[cfg_attr(windows, path = "platform/windows_signals.rs")]
pub(crate) mod signals;
#[cfg_attr(unix, path = "platform/unix_terminal.rs")]
#[cfg_attr(windows, path = "platform/windows_terminal.rs")]
#[cfg_attr(
    windows,
    expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "as on Unix")
)]
pub(crate) mod terminal;

pub(crate) use system::*;

/// The kind of standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandardInput {
    File,
    Pipe,
    /// A terminal, a device or a socket.
    Other,
}
