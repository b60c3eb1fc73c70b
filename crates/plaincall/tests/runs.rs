//! Runs on a clock that advances only when all tasks wait, so that times are exact.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod cut;
mod echoes;
mod exactly_once;
mod full_disk;
mod graphs;
mod hanging_disk;
mod policies;
mod reading_on;
mod scene;
mod seams;
mod statuses;
mod stopping;
mod submitted;
mod suspects;
mod timing;
mod typed;
mod watching;
