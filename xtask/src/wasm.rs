//! The WebAssembly modules of the npm package and the inspector, built one after the other with the same flags, so that they
//! share their dependencies.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::node;
use crate::other_targets::{WASM, is_installed};
use crate::pool::Job;
use crate::step::step;
use crate::workspace::{at, cargo, no_problems, target, write};

pub(crate) const MODULES: &str = "WebAssembly modules";

/// The seeds of hash tables come from `inspector/core/src/seeds.rs` instead of generated bindings to a page.
const SEEDS: &str =
    r#"target.wasm32-unknown-unknown.rustflags=["--cfg", "getrandom_backend=\"custom\""]"#;
/// The features of WebAssembly that every engine since 2022 has.
const FEATURES: &str = "--enable-bulk-memory --enable-bulk-memory-opt --enable-call-indirect-overlong --enable-multivalue \
                        --enable-mutable-globals --enable-nontrapping-float-to-int --enable-reference-types --enable-sign-ext";

/// A module: its file, package and features, how the crate is optimized, and the most bytes that it may have.
type Module = (&'static str, &'static str, &'static str, char, u64);

/// The crate of the npm package is optimized less for size: it writes events and calls.
const ALL: [Module; 3] = [
    ("parse.wasm", "plaincall-wasm", "", 's', 515_000),
    ("gateway.wasm", "plaincall-wasm", "gateway", 's', 2_100_000),
    ("inspector.wasm", "plaincall-inspector", "", 'z', 3_185_000),
];

pub(crate) fn job() -> Job {
    let job = Job::new("builds", MODULES, 120, || {
        let mut modules = ALL.iter().filter(|_| is_installed(WASM));
        modules.try_for_each(build)
    });
    // Mostly one core at a time, in folders of its own, so it may run beside another build.
    job.needs(&[node::PACKAGES]).gigabytes(2)
}

/// Compiles a module, and shrinks it if it changed, which takes minutes.
fn build((file, package, features, level, _): &Module) -> Result<(), String> {
    let mut build = cargo("build --lib --target wasm32-unknown-unknown --profile wasm");
    build.args(["--package", package, "--features", features]);
    let level = format!("profile.wasm.package.{package}.opt-level = '{level}'");
    build.args(["--config", &level, "--config", SEEDS]);
    step(&format!("build of {file}"), &mut build)?;
    let library = format!("{WASM}/wasm/{}.wasm", package.replace('-', "_"));
    let (library, optimized) = (target().join(library), target().join("wasm").join(file));
    let before = optimized.with_extension("before");
    let compiled = fs::read(&library).map_err(at(&library))?;
    if !optimized.is_file() || fs::read(&before).ok().as_ref() != Some(&compiled) {
        write(&before, "")?;
        let mut optimize = Command::new(node::packages().join(".bin/wasm-opt"));
        optimize.arg("-Oz").args(FEATURES.split(' '));
        if *package == "plaincall-inspector" {
            optimize.arg("--enable-simd");
        }
        optimize.arg(library).arg("-o").arg(&optimized);
        step(file, &mut optimize)?;
        write(&before, compiled)?;
    }
    Ok(())
}

/// Returns the job that checks the sizes of the modules, apart from the build, which others need.
pub(crate) fn sizes() -> Job {
    let job = Job::new("npm", "sizes of the modules", 1, || {
        let too_large = ALL.iter().filter_map(|(file, .., most)| {
            let size = fs::metadata(module(file)?).ok()?.len();
            (size > *most).then(|| format!("{file}: {size} bytes, at most {most}"))
        });
        no_problems("too large:", &too_large.collect::<Vec<_>>())
    });
    job.needs(&[MODULES])
}

/// Returns the path of a module, or `None` if the compiler has no WebAssembly. [`MODULES`] must have passed.
pub(crate) fn module(file: &str) -> Option<PathBuf> {
    Some(target().join("wasm").join(file)).filter(|path| path.is_file())
}
