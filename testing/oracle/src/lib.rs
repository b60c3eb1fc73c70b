//! The naive oracles of the parser and of the plan, the texts on which they are asked, and the examples of the
//! specification.
//!
//! It uses the other crates through their public interfaces only, and is never published.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "this crate is test code: a panic is how a test fails"
)]

pub mod agreement;
pub mod arbitrary_texts;
pub mod captures;
pub mod conformance;
pub mod effort;
pub mod examples;
pub mod merged;
pub mod oracle;
pub mod plan_oracle;
pub mod rendering;
pub mod split;
