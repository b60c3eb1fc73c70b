#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plaincall_properties::json_stream_equals_value(data));
