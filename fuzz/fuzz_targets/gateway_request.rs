//! For all requests: the model gets each call of the client and nothing else that counts, and errors have a message
//! (`spec/gateway.md` 1 and 2).
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| plaincall_fuzz::check_request(data));
