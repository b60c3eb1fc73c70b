//! All tests of the crate that use what is public, as one program.

mod command;
mod pictures;
mod reference;
mod run;
mod serve;
mod show;
