//! Whatever a client sends: each of its calls is told, nothing else of it counts, and what is refused is refused in words
//! (`spec/gateway.md` 1 and 2).
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| plaincall_fuzz::check_request(data));
