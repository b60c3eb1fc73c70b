//! The log of a run: what is written is read back, and whatever happens to the file is noticed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod damage;
mod definition;
mod events;
mod files;
mod kept;
mod reading;
