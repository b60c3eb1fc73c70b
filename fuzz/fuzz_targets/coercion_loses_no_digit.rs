#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plaincall_properties::coercion_loses_no_digit(data));
