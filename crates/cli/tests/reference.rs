//! The reference in `docs/` says what the command can do.

use snapbox::{Data, assert_data_eq};

/// With `SNAPSHOTS=overwrite` it writes the reference instead of comparing it.
#[test]
fn reference_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/command-line.md");
    let expected = Data::read_from(path.as_ref(), None).raw();
    assert_data_eq!(plaincall_cli::reference(), expected);
}
