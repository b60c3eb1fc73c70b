//! Compares the parser with other parsers.
//!
//! The others are installed below the build folder, in the versions that `bench/parsers` pins. This needs Node and a network.

use std::path::Path;
use std::process::Command;

use crate::node;
use crate::step::step;
use crate::workspace::{cargo, target};

/// Builds, installs and measures. Fails if a promise is broken.
pub(crate) fn bench(root: &Path) -> Result<(), String> {
    let source = root.join("bench/parsers");
    let folder = target().join("bench-parsers");
    let packages = folder.join("node");
    let mut build = cargo("build --release --locked --manifest-path");
    build.arg(source.join("Cargo.toml"));
    step("other parsers", build.arg("--target-dir").arg(&folder))?;
    node::install("ci", &source, "llmist.mjs", &packages)?;
    let mut compare = Command::new(folder.join("release/compare"));
    step("bench parsers", compare.arg(&packages))
}
