#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plaincall_properties::gateway_request(data));
