//! What the bytes of a text are taken for, and by which rule.

use std::ops::Range;

use plaincall_syntax::{Dialect, LINE_LIMIT, Meaning, explain};

/// The ranges of a text: what stands there, what it was taken for, and the number of the section.
fn check(text: &str, dialect: &Dialect, expected: &[(&str, &str, &str)]) {
    let ranges = explain(text.as_bytes(), dialect).expect("the dialect works");
    let found: Vec<_> = ranges
        .iter()
        .map(|range| {
            let (name, number) = (range.meaning.name(), range.section.number());
            (&text[range.span.range()], name, number)
        })
        .collect();
    assert_eq!(found, expected, "{text:?}");
}

#[test]
fn ignored_bytes_are_told_apart() {
    let thinks = Dialect::block().reasoning("<think>", "</think>");
    check("", &thinks, &[]);
    check(
        "<think></think>",
        &thinks,
        &[
            ("<think>", "reasoning_open", "5"),
            ("</think>", "reasoning_close", "5"),
        ],
    );
    check(
        "a</think>",
        &thinks.clone().in_reasoning(),
        &[
            ("a", "reasoning", "5"),
            ("</think>", "reasoning_close", "5"),
        ],
    );
    check(
        "",
        &thinks.clone().in_reasoning(),
        &[("", "reasoning_cut_off", "5")],
    );
    check(
        "!!!ARG\\:",
        &Dialect::block().escaped(),
        &[
            ("!!!ARG", "text", "4"),
            ("\\", "escape", "6.1"),
            (":", "text", "4"),
        ],
    );
    check(
        "!!!GADGET_START:A\n \n```x\n\ny !!!ARG:\n!!!ARG:z",
        &Dialect::block(),
        &[
            ("!!!GADGET_START:A\n", "call_start", "2.2"),
            (" \n", "blank_before_argument", "5.1"),
            ("```x\n", "fence_before_argument", "5.2"),
            ("\n", "blank_before_argument", "5.1"),
            ("y ", "text_before_argument", "5.3"),
            ("!!!ARG:", "marker_as_content", "3.2"),
            ("\n", "text_before_argument", "5.3"),
            ("!!!ARG:z", "argument_start", "4.1"),
            ("", "empty_value", "4.1"),
            ("", "end_of_input", "6"),
        ],
    );
    let long = "x".repeat(LINE_LIMIT);
    let text = format!("!!!GADGET_START:A\n!!!ARG:{long}y z\n\n!!!GADGET_END");
    check(
        &text,
        &Dialect::block(),
        &[
            ("!!!GADGET_START:A\n", "call_start", "2.2"),
            (&format!("!!!ARG:{long}"), "argument_start", "4.1"),
            ("y z\n", "rest_of_pointer_line", "4.3"),
            ("", "empty_value", "4.1"),
            ("\n", "line_end_after_value", "4.1"),
            ("!!!GADGET_END", "end_marker", "3.3"),
        ],
    );
}

#[test]
fn a_marker_that_does_not_count_names_the_rule_by_which() {
    let call = "!!!GADGET_START:A\n!!!ARG:x\n";
    let check = |text: &str, marker: &str, section: &str| {
        let ranges = explain(text.as_bytes(), &Dialect::auto()).unwrap();
        let found = ranges.iter().find_map(|range| match range.meaning {
            Meaning::MarkerAsContent(..) => Some((&text[range.span.range()], range.section)),
            _ => None,
        });
        let (stands, found) = found.unwrap();
        assert_eq!(
            (stands, found.to_string().as_str()),
            (marker, section),
            "{text:?}"
        );
    };
    check(
        "a !!!GADGET_START: b",
        "!!!GADGET_START:",
        "spec/block.md 2.5",
    );
    check(
        "a !!!GADGET_START: b c\n",
        "!!!GADGET_START:",
        "spec/block.md 2.2",
    );
    check("a !!!ARG: b", "!!!ARG:", "spec/common.md 4");
    check(&format!("{call}a !!!ARG:"), "!!!ARG:", "spec/block.md 3.2");
    check(
        &format!("{call}a !!!GADGET_START:B\n"),
        "!!!GADGET_START:",
        "spec/block.md 3.2",
    );
    check(
        &format!("{call}!!!GADGET_START: B C\n"),
        "!!!GADGET_START:",
        "spec/block.md 2.2",
    );
    check(
        &format!("{call}a !!!GADGET_END b"),
        "!!!GADGET_END",
        "spec/block.md 3.3",
    );
    check("\u{1f6e0}[\n", "\u{1f6e0}[", "spec/emoji.md 2.2");
    check("\u{1f6e0}[", "\u{1f6e0}[", "spec/emoji.md 2.3");
    check("\u{1f6e0}[a]\u{1f6e0}[", "\u{1f6e0}[", "spec/emoji.md 3.3");
}

#[test]
fn options_name_their_own_rules() {
    check(
        "!!!GADGET_START:A!!!ARG:x\n1!!!GADGET_END",
        &Dialect::block().markers_anywhere(),
        &[
            ("!!!GADGET_START:A", "call_start", "2.2"),
            ("!!!ARG:x\n", "argument_start", "3.6"),
            ("1", "value", "4.1"),
            ("!!!GADGET_END", "end_marker", "3.6"),
        ],
    );
    check(
        "\u{1f6e0}[a /]\n",
        &Dialect::emoji().self_closing(),
        &[
            ("\u{1f6e0}[a /]", "self_closing_call", "5"),
            ("\n", "text", "4"),
        ],
    );
}

/// Bytes that are no characters count as what they are.
#[test]
fn spans_are_those_of_the_bytes() {
    let check = |input: &[u8], dialect: &Dialect, expected: &[Range<usize>]| {
        let ranges = explain(input, dialect).unwrap();
        let spans: Vec<_> = ranges.iter().map(|range| range.span.range()).collect();
        assert_eq!(spans, expected, "{input:?}");
    };
    check(
        b"\xff\xf0!!!GADGET_START:A\n```\xff\xfe\n!!!ARG:\xff\n\xf0\x9f",
        &Dialect::block(),
        &[0..2, 2..20, 20..26, 26..35, 35..37, 37..37],
    );
    // Such a marker comes in pieces.
    check(
        b"<\xff>a</\xff>b",
        &Dialect::block().reasoning("<\u{FFFD}>", "</\u{FFFD}>"),
        &[0..3, 3..4, 4..8, 8..9],
    );
}
