//! The ids of calls over the turns of a conversation.

use plaincall_reply::collector::Ids;
use plaincall_syntax::Syntax;

/// Each turn is a list of written ids, empty for none; in the result, `!` marks a duplicate.
fn check(syntax: Syntax, turns: &[&[&str]], expected: &[&str]) {
    let mut ids = Ids::default();
    let mut found = Vec::new();
    for turn in turns {
        ids.begin_turn();
        for written in *turn {
            let written = Some(*written).filter(|id| !id.is_empty());
            let assigned = ids.assign(syntax, written);
            assert_eq!(assigned.is_automatic, written.is_none());
            let mark = if assigned.is_duplicate { "!" } else { "" };
            found.push(format!("{}{mark}", assigned.id));
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn ids_over_turns() {
    let block = Syntax::Block;
    check(block, &[&["", ""]], &["gadget_1", "gadget_2"]);
    check(
        block,
        &[&["", "b", "gadget_2", "", "b"]],
        &["gadget_1", "b", "gadget_2", "gadget_3", "b!"],
    );
    check(block, &[&["", "gadget_1"]], &["gadget_1", "gadget_1!"]);
    check(
        block,
        &[&["", "a"], &["", "a", "gadget_1"]],
        &["gadget_1", "a", "gadget_2", "a", "gadget_1"],
    );
    check(
        block,
        &[&["gadget_2", "gadget_1"], &["", ""]],
        &["gadget_2", "gadget_1", "gadget_3", "gadget_4"],
    );
    check(
        block,
        &[&["gadget_01", "gadget_", "gadget_+1", "call_1", ""]],
        &["gadget_01", "gadget_", "gadget_+1", "call_1", "gadget_1"],
    );
    check(
        block,
        &[&[
            "gadget_18446744073709551615",
            "gadget_99999999999999999999",
            "",
        ]],
        &[
            "gadget_18446744073709551615",
            "gadget_99999999999999999999",
            "gadget_1",
        ],
    );
    check(
        Syntax::Emoji,
        &[&["", ""], &[""]],
        &["call_1", "call_2", "call_3"],
    );
}
