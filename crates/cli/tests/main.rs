//! All tests of the crate that use its public interface, in one program.

mod command;
mod inspect;
mod pictures;
mod reference;
mod run;
mod serve;
mod show;
