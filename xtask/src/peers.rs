//! The parser beside other parsers, in one run.
//!
//! The others are built and installed below the build folder, by the versions that `bench/peers` names. So this needs
//! Node and a network.

use std::path::Path;
use std::process::Command;

use crate::{cargo, step, target};

/// What Node needs.
const NODE: [&str; 3] = ["llmist.mjs", "package.json", "package-lock.json"];

/// Builds, installs and measures; fails if the parser is not as far ahead as it is to be.
pub(crate) fn bench(root: &Path) -> Result<(), String> {
    let source = root.join("bench/peers");
    let folder = target().join("bench-peers");
    let node = folder.join("node");
    let mut build = cargo(&["build", "--release", "--locked", "--manifest-path"]);
    build.arg(source.join("Cargo.toml"));
    step("peers", build.arg("--target-dir").arg(&folder))?;
    std::fs::create_dir_all(&node).map_err(|error| format!("{}: {error}", node.display()))?;
    // Node looks for packages beside the program that asks for them.
    for file in NODE {
        let copied = std::fs::copy(source.join(file), node.join(file));
        copied.map_err(|error| format!("{file}: {error}"))?;
    }
    let mut npm = Command::new("npm");
    npm.args([
        "ci",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
    ]);
    step("peers for Node", npm.current_dir(&node))?;
    step(
        "bench peers",
        Command::new(folder.join("release/peers")).arg(&node),
    )
}
