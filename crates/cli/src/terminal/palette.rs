//! The colors of the display.

use anstyle::{AnsiColor, Style};
use plaincall::Status;

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const REASONING: Style = Style::new().dimmed().italic();
pub(crate) const CALL: Style = AnsiColor::Cyan.on_default();
pub(crate) const CALL_NAME: Style = AnsiColor::Cyan.on_default().bold();
pub(crate) const RUNNING: Style = AnsiColor::Blue.on_default().bold();
pub(crate) const NOTICE: Style = AnsiColor::Yellow.on_default().bold();

pub(crate) fn status(status: Status) -> Style {
    match status {
        Status::Ok => AnsiColor::Green.on_default(),
        Status::Error => AnsiColor::Red.on_default().bold(),
        Status::Rejected => AnsiColor::Red.on_default(),
        Status::Skipped | Status::Cancelled => AnsiColor::Yellow.on_default(),
        Status::Unknown => AnsiColor::Magenta.on_default(),
    }
}
