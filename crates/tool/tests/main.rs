//! All tests of the public interface of the crate, in one program.

mod coerce;
mod decimals;
mod definitions;
mod key_patterns;
mod other_definitions;
mod usable_tools;
