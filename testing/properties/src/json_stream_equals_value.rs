use plaincall_testkit::json_streams::check_bytes;

/// The deltas of a call's JSON are its bound arguments, for any schema, call and chunks (`spec/json-stream.md`).
/// The bytes select them.
pub fn json_stream_equals_value(data: &[u8]) {
    if let Err(error) = check_bytes(data) {
        panic!("{error}");
    }
}
