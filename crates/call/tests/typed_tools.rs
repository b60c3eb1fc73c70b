//! Tools of types: what is told of a type, what a call of it is read as, and what the type gets agree.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::items_after_statements,
    reason = "a test fails by a panic; types stand where they are used"
)]

mod definitions;
mod readings;
mod refusals;
mod round_trips;
mod scene;
