//! The deltas of a call's JSON are its bound arguments, for any schema, any call and any cuts (`spec/json-stream.md`).
//! The bytes choose schema, call and cuts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plaincall_testkit::json_streams::check_bytes;

fuzz_target!(|data: &[u8]| {
    if let Err(error) = check_bytes(data) {
        panic!("{error}");
    }
});
