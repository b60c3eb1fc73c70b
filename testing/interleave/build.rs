//! Sets a `cfg` for interleavings, so that the source uses threads of the model.

fn main() {
    println!("cargo::rustc-cfg=interleaved");
    println!("cargo::rerun-if-changed=build.rs");
}
