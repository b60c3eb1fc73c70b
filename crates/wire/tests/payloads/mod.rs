//! Payloads of servers and clients, from their public documentation.

use std::fs;
use std::path::Path;

use plaincall_wire::sse::Decoder;

/// The files of a folder, with their names, in order.
#[allow(dead_code, reason = "not every test reads files")]
pub(crate) fn folder(name: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/payloads")
        .join(name);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| {
            let path = entry.expect("a file").path();
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            (name, fs::read_to_string(&path).expect("text"))
        })
        .collect();
    assert!(!files.is_empty(), "{name} has no files");
    files.sort();
    files
}

/// Returns the data of a stream's events.
#[allow(dead_code, reason = "not every test reads streams")]
pub(crate) fn data_of(stream: &str) -> Vec<String> {
    let mut decoder = Decoder::new();
    let data = decoder
        .feed(stream.as_bytes())
        .map(|event| event.expect("an event").data.into_owned())
        .collect();
    let rest = decoder.finish().expect("within the limits");
    assert_eq!(rest, None, "a whole stream");
    data
}
