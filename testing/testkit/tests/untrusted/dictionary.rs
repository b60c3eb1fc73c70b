//! The dictionary of the fuzz targets holds every marker of every form of dialect.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use plaincall_testkit::untrusted::{FORMS, dialect};

fn dictionary() -> String {
    let markers: BTreeSet<String> = FORMS
        .iter()
        .flat_map(|form| dialect(form).markers().expect("a dialect that works"))
        .map(|marker| marker.text)
        .collect();
    let others = ["\n", "\r\n", "]", "/end]", "\\", ":", " /]"].map(str::to_owned);
    let mut text = String::from("# Written by `cargo test -p plaincall-testkit untrusted`.\n");
    for entry in markers.into_iter().chain(others) {
        let bytes = entry.bytes().fold(String::new(), |mut bytes, byte| {
            write!(bytes, "\\x{byte:02X}").expect("a string takes everything");
            bytes
        });
        writeln!(text, "\"{bytes}\"").expect("a string takes everything");
    }
    text
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "a variable makes the test rewrite the file"
)]
fn the_dictionary_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/markers.dict");
    let expected = dictionary();
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        std::fs::write(&path, &expected).expect("fuzz/ can be written");
    }
    let found = std::fs::read_to_string(&path).expect("fuzz/markers.dict");
    assert!(
        found == expected,
        "fuzz/markers.dict is old: run this test with SNAPSHOTS=overwrite"
    );
}
