#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plaincall_properties::escape_is_reversible(data));
