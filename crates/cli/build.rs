//! Puts the inspector's page into the command, if `PLAINCALL_INSPECTOR_PAGE` names it: `cargo install` cannot build it.
#![allow(
    clippy::disallowed_methods,
    reason = "cargo passes values to build scripts in the environment"
)]

use std::path::Path;
use std::{env, fs, io};

const VARIABLE: &str = "PLAINCALL_INSPECTOR_PAGE";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let folder = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let copy = Path::new(&folder).join("inspector.html");
    match env::var_os(VARIABLE).filter(|page| !page.is_empty()) {
        Some(page) => {
            let page = Path::new(&page);
            println!("cargo::rerun-if-changed={}", page.display());
            fs::copy(page, copy).map(drop)
        }
        None => fs::write(copy, ""),
    }
}
