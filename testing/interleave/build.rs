//! Says to the source that it is compiled for interleavings. It asks once: threads have to be the model's.

fn main() {
    println!("cargo::rustc-cfg=interleaved");
    println!("cargo::rerun-if-changed=build.rs");
}
