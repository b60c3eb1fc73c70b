//! The reference in `docs/` says what the command can do.

use std::path::Path;

use snapbox::{Data, assert_data_eq};

/// With `SNAPSHOTS=overwrite` it writes the page instead of comparing it.
fn check(page: &str, text: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let path = Path::new(folder).join(page);
    assert_data_eq!(text, Data::read_from(&path, None).raw());
}

#[test]
fn reference_is_up_to_date() {
    check("command-line.md", &plaincall_cli::reference());
}

#[test]
fn configuration_is_up_to_date() {
    check(
        "configuration.md",
        &plaincall_cli::configuration_reference(),
    );
}
