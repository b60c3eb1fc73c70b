#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| plaincall_properties::chunking_does_not_matter(data));
