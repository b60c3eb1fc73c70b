//! For all output of a model server and all chunk boundaries: the protocol is followed, there is one terminal event, and no
//! marker is in the text (`spec/gateway.md` 3 to 6).
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| plaincall_fuzz::check_reply(data));
