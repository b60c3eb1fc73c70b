//! Compares the parser with other parsers.
//!
//! The others are installed below the build folder, in the versions that `bench/peers` pins. This needs Node and a network.

use std::path::Path;
use std::process::Command;

use crate::{cargo, node, step, target};

/// The programs for Node.
const NODE: [&str; 1] = ["llmist.mjs"];

/// Builds, installs and measures. Fails if a promise is broken.
pub(crate) fn bench(root: &Path) -> Result<(), String> {
    let source = root.join("bench/peers");
    let folder = target().join("bench-peers");
    let packages = folder.join("node");
    let mut build = cargo(&["build", "--release", "--locked", "--manifest-path"]);
    build.arg(source.join("Cargo.toml"));
    step("peers", build.arg("--target-dir").arg(&folder))?;
    node::install("peers for Node", "ci", &source, &NODE, &packages)?;
    step(
        "bench peers",
        Command::new(folder.join("release/peers")).arg(&packages),
    )
}
