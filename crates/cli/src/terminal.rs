//! Output to the terminal, and questions to the user.
//!
//! `run`, `ask` and `chat` send [UI events](event::UiEvent) to [displays](displays). A display either
//! [draws in place](live) or [prints lines](plain). Both write the same [transcript](transcript) and use the same
//! [table of calls](plaincall_report::call_table).

mod address;
mod answer;
pub(crate) mod approval;
pub(crate) mod call_line;
pub(crate) mod displays;
pub(crate) mod event;
pub(crate) mod excerpt;
pub(crate) mod glyphs;
pub(crate) mod human;
pub(crate) mod interrupts;
pub(crate) mod line;
pub(crate) mod listing;
mod live;
mod pages;
pub(crate) mod palette;
mod plain;
pub(crate) mod printer;
pub(crate) mod problems;
pub(crate) mod prompter;
pub(crate) mod prose;
mod question;
mod record;
mod replacement;
mod screen;
pub(crate) mod summary;
mod timeline;
mod transcript;
pub(crate) mod tty;
pub(crate) mod user;
