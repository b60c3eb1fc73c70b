//! Reports about replies and logged runs, without I/O: diagnostics of a text with help, the trace of a run from its log, and
//! the page that shows a trace.
//!
//! The command prints these reports, and the inspector shows them in a browser.
//!
//! - [`diagnostics`]: the diagnostics of a text, as `plaincall check` prints them.
//! - [`splits`]: whether the result depends on chunk boundaries.
//! - [`trace`]: a run from its log, as `plaincall show` prints it; [`log`] reads the log.
//! - [`planned`]: what the calls of a reply would do.
//! - [`page`]: the trace as an HTML page, and the parts that the inspector shares with it.

mod advice;
pub mod call_table;
pub mod critical;
pub mod diagnostics;
pub mod log;
pub mod page;
pub mod planned;
mod rejections;
pub mod source;
pub mod splits;
pub mod trace;
mod transcript;
