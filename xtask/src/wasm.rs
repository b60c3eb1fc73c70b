//! The WebAssembly modules of the npm package and the inspector, built one after the other with the same flags, so that they
//! share their dependencies.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::node;
use crate::other_targets::{WASM, is_installed};
use crate::pool::Job;
use crate::step::{report, step};
use crate::workspace::{at, cargo, new_folder, target};

/// The job that builds them.
pub(crate) const MODULES: &str = "WebAssembly modules";

/// The profile of the modules.
const PROFILE: &str = "wasm";
/// The seeds of hash tables come from `inspector/core/src/seeds.rs` instead of generated bindings to a page.
const SEEDS: &str =
    r#"target.wasm32-unknown-unknown.rustflags=["--cfg", "getrandom_backend=\"custom\""]"#;
/// The features of WebAssembly that every engine since 2022 has.
const FEATURES: [&str; 8] = [
    "bulk-memory",
    "bulk-memory-opt",
    "call-indirect-overlong",
    "multivalue",
    "mutable-globals",
    "nontrapping-float-to-int",
    "reference-types",
    "sign-ext",
];

struct Module {
    file: &'static str,
    package: &'static str,
    features: &'static str,
    /// How the crate of the module is optimized: that of the npm package writes events.
    level: &'static str,
    /// The most bytes that it may have.
    most: u64,
}

const ALL: [Module; 3] = [
    Module {
        file: "parse.wasm",
        package: "plaincall-wasm",
        features: "",
        level: "s",
        most: 400_000,
    },
    Module {
        file: "gateway.wasm",
        package: "plaincall-wasm",
        features: "gateway",
        level: "z",
        most: 1_700_000,
    },
    Module {
        file: "inspector.wasm",
        package: "plaincall-inspector",
        features: "",
        level: "z",
        most: 3_000_000,
    },
];

/// Returns the job that builds the modules. Without the target, there are none afterwards.
pub(crate) fn job() -> Job {
    let job = Job::new("builds", MODULES, 120, || {
        let folder = new_folder(&folder())?;
        if !is_installed(WASM) {
            return Ok(());
        }
        ALL.iter().try_for_each(|module| {
            let optimized = folder.join(module.file);
            let built = compiled(module)?;
            let mut optimize = Command::new(node::packages()?.join(".bin/wasm-opt"));
            optimize
                .arg("-Oz")
                .args(FEATURES.map(|name| format!("--enable-{name}")));
            if module.package == "plaincall-inspector" {
                optimize.arg("--enable-simd");
            }
            optimize.arg(built).arg("-o").arg(&optimized);
            step(module.file, &mut optimize)?;
            let size = fs::metadata(&optimized).map_err(at(&optimized))?.len();
            report!("== {}: {size} bytes", module.file);
            if size > module.most {
                return Err(format!(
                    "{} has more than {} bytes",
                    module.file, module.most
                ));
            }
            Ok(())
        })
    });
    job.needs(&[node::PACKAGES]).gigabytes(2).compiles()
}

/// Returns the path of a module, or `None` if the compiler has no WebAssembly. [`MODULES`] must have passed.
pub(crate) fn module(file: &str) -> Option<PathBuf> {
    Some(folder().join(file)).filter(|path| path.is_file())
}

fn folder() -> PathBuf {
    let folder = target().join("wasm");
    std::path::absolute(&folder).unwrap_or(folder)
}

/// Compiles a module, and returns its path.
fn compiled(module: &Module) -> Result<PathBuf, String> {
    let mut build = cargo(&["build", "--lib", "--target", WASM, "--profile", PROFILE]);
    build.args(["--package", module.package, "--features", module.features]);
    let (package, level) = (module.package, module.level);
    let level = format!("profile.{PROFILE}.package.{package}.opt-level = '{level}'");
    build.args(["--config", &level, "--config", SEEDS]);
    step(&format!("build of {}", module.file), &mut build)?;
    let library = format!("{}.wasm", module.package.replace('-', "_"));
    Ok(target().join(WASM).join(PROFILE).join(library))
}
