//! The log of a run: everything that is written is read back, and all damage to the file is detected.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod damage;
mod definition;
mod events;
mod files;
mod kept;
mod reading;
