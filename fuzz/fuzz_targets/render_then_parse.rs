#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plaincall_properties::render_then_parse(data));
