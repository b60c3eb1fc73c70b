#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plaincall_properties::wire_round_trip(data));
