//! Tools with typed parameters: the description, the parsed call and the deserialized type agree.

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
