#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plaincall_properties::rescue_loses_no_byte(data));
