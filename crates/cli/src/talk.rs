//! A question on its way to its answer: what people see of it, who is asked, what calls it off.

mod build;
mod calls;
mod live;
mod person;
mod plain;
mod play;
mod stage;
mod totals;
mod verbatim;

pub(crate) use build::{Built, build, chosen, explained, kind, status};
pub(crate) use person::Person;
pub(crate) use play::{Ended, doubt, play};
pub(crate) use stage::{Shown, Stage};
