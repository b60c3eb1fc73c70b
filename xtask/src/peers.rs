//! The parser beside other parsers, in one run.
//!
//! The others are built and installed below the build folder, by the versions that `bench/peers` names. So this needs
//! Node and a network.

use std::path::Path;
use std::process::Command;

use crate::{cargo, node, step, target};

/// What Node runs.
const NODE: [&str; 1] = ["llmist.mjs"];

/// Builds, installs and measures; fails if the parser is not as far ahead as is promised.
pub(crate) fn bench(root: &Path) -> Result<(), String> {
    let source = root.join("bench/peers");
    let folder = target().join("bench-peers");
    let packages = folder.join("node");
    let mut build = cargo(&["build", "--release", "--locked", "--manifest-path"]);
    build.arg(source.join("Cargo.toml"));
    step("peers", build.arg("--target-dir").arg(&folder))?;
    node::install("peers for Node", &source, &NODE, &packages)?;
    step(
        "bench peers",
        Command::new(folder.join("release/peers")).arg(&packages),
    )
}
