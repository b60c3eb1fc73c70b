//! Results that a model invents.

use plaincall_prompt::history::{ResultMessage, Status, results};
use plaincall_reply::{Untrusted, invented::InventedResults};
use plaincall_syntax::{Dialect, ceil_char_boundary};

/// Checks the text that is kept after a call of `add`; it must not depend on how the text is split.
fn check(text: &str, expected: &str, count: u64) {
    for size in 1..=text.len().max(1) {
        let mut invented = InventedResults::default();
        invented.call("add");
        let mut left = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(ceil_char_boundary(rest, size.min(rest.len())));
            left.push_str(&invented.text(piece));
            rest = tail;
        }
        left.push_str(&invented.rest());
        assert_eq!(
            (left.as_str(), invented.count()),
            (expected, count),
            "{text:?} {size}"
        );
    }
}

#[test]
fn invented_results_are_removed_and_mentions_kept() {
    for (text, expected, count) in [
        ("", "", 0),
        ("Done.\n", "Done.\n", 0),
        ("\nResult 1 of 1: tool add\nOutput: 5\n\nIt is 5.", "\n", 1),
        (
            "Result 1 of 2: tool add, status ok\nOutput: 5\nResult 2 of 2: tool add",
            "",
            1,
        ),
        ("I add.\nResult 12 of 12: tool add", "I add.\n", 1),
        ("Result 1 of 1: tool add\r\n", "", 1),
        (
            "See Result 1 of 1: tool add\n",
            "See Result 1 of 1: tool add\n",
            0,
        ),
        (
            "Result 1 of 1: tool adder\n",
            "Result 1 of 1: tool adder\n",
            0,
        ),
        (
            "Result 1 of 1: tool write\n",
            "Result 1 of 1: tool write\n",
            0,
        ),
        ("Result 1 of 1: add\n", "Result 1 of 1: add\n", 0),
        (
            "Result 1 of 1 will show.\n",
            "Result 1 of 1 will show.\n",
            0,
        ),
        ("Result 0 of 1: tool add\n", "Result 0 of 1: tool add\n", 0),
        ("Result 1 of", "Result 1 of", 0),
        ("Result 1 of 1: tool ad", "Result 1 of 1: tool ad", 0),
        ("result 1 of 1: tool add\n", "result 1 of 1: tool add\n", 0),
        (
            "`Result 1 of 1: tool add`\n",
            "`Result 1 of 1: tool add`\n",
            0,
        ),
    ] {
        check(text, expected, count);
    }
}

/// The detected headings are those of rendered results.
#[test]
fn every_rendered_result_is_detected() {
    let dialect = Dialect::block().escaped();
    for status in Status::ALL.map(Some).into_iter().chain([None]) {
        for id in ["", "a1", "a b"] {
            let mut message = ResultMessage::new(Untrusted::new("add"), Untrusted::new(id));
            message.status = status;
            let message = [message.clone(), message.output(Untrusted::new("5"))];
            let text = results(&message, &dialect).expect("a dialect that works");
            check(text.text(), "", 1);
        }
    }
}

#[test]
fn before_the_first_call_and_behind_the_next() {
    let mut invented = InventedResults::default();
    let heading = "Result 1 of 1: tool a b\n";
    assert_eq!(invented.text(heading), heading);
    invented.call("a b");
    assert_eq!(invented.text(heading), heading);
    let quoted = "Result 1 of 1: tool \"a b\"\nx";
    assert_eq!(invented.text(quoted), "");
    assert_eq!(invented.rest(), "");
    invented.call("c");
    assert_eq!(invented.text("Well.\nRes"), "Well.\n");
    assert_eq!(invented.rest(), "Res");
    assert_eq!(invented.text("\nResult 1 of 1: tool c\n"), "\n");
    assert_eq!(invented.count(), 2);
}
