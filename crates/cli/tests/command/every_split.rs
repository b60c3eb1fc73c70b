//! `check --every-split`.

use std::path::Path;

use crate::command::process::run;

#[test]
fn splits_are_tried_and_bounded() {
    for (text, options, expected) in [
        (
            "a 🛠️[b]c🛠️[/end]",
            &[][..],
            "350 splits (chunks of 1 to 25 bytes; every boundary; every pair of boundaries)",
        ),
        ("x", &["--dialect", "key=k1"], "no splits (no boundary)"),
        (
            &"a !!!GADGET_ \\".repeat(50),
            &[],
            "763 splits (chunks of 1 to 64 bytes; every boundary)",
        ),
    ] {
        let arguments = [&["check", "--every-split"], options].concat();
        let ran = run(Path::new("."), &arguments, text.as_bytes());
        assert_eq!((ran.status, ran.stderr().as_str()), (Some(0), ""));
        let last = format!(
            "standard input: the result is the same for all chunk boundaries that were tested: {expected}\n"
        );
        assert!(ran.stdout().ends_with(&last), "{}", ran.stdout());
    }
}

#[test]
fn problems_still_decide_the_status() {
    let ran = run(
        Path::new("."),
        &["check", "--every-split", "--deny-warnings"],
        b"!!!ARG:",
    );
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stdout().contains("warning[stray_marker]"),
        "{}",
        ran.stdout()
    );
}
