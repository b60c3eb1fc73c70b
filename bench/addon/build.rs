//! Sets what the linker needs: Node itself has the functions of its interface.

fn main() {
    napi_build::setup();
}
