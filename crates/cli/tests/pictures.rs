//! The pictures of the README: the live view of the first example, and the page of its run.
//!
//! `cargo xtask pictures` records them. The tests compare them with the program's current output.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod live_view;
mod run_page;
mod svg;

use std::fs;
use std::path::{Path, PathBuf};

use crate::run::scene::Scene;

/// A file of the repository.
fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// The first example of the README.
fn example() -> Scene {
    let read = |name: &str| fs::read(repository("examples/harbour").join(name)).unwrap();
    let scene = Scene::with_tools(read("reply.txt"), read("tools.toml"));
    fs::write(scene.path("results.awk"), read("results.awk")).unwrap();
    scene
}

/// Whether the pictures are recorded instead of compared.
#[allow(
    clippy::disallowed_methods,
    reason = "`cargo xtask pictures` sets the variable"
)]
fn is_recording() -> bool {
    std::env::var_os("PICTURES").is_some_and(|value| value == "record")
}
