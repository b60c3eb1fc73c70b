//! All tests of the crate that use what is public, as one program.

mod contract;
mod oracle;
mod plan;
