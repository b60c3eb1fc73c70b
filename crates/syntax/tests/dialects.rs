//! The properties of dialects, and the errors for invalid ones (`spec/common.md` 1.3, 7, 12).

use std::error::Error;

use plaincall_syntax::{Call, Dialect, Escaper, Parser, near_misses, render};

/// The error is the same wherever the dialect is used. An empty text means no error.
fn check(dialect: &Dialect, expected: &str) {
    let errors = [
        dialect.check().err(),
        Parser::new(dialect).err(),
        Escaper::new(dialect).err(),
        near_misses("", dialect).err(),
    ];
    for error in errors {
        let found = error.map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(found, expected, "{dialect:?}");
    }
}

#[test]
fn invalid_dialects_are_rejected_with_a_message() {
    let (block, emoji, auto) = (Dialect::block, Dialect::emoji, Dialect::auto);
    let key = "the key of the markers must be 1 to 32 ASCII letters and digits";
    let cases = [
        (
            block().start(""),
            r#"the marker "" is too short: a marker has at least two characters"#,
        ),
        (
            block().end("é"),
            r#"the marker "é" is too short: a marker has at least two characters"#,
        ),
        (
            block().arg("x").keyed("key"),
            r#"the marker "x" is too short: a marker has at least two characters"#,
        ),
        (
            auto().reasoning("<", ">>"),
            r#"the marker "<" is too short: a marker has at least two characters"#,
        ),
        (
            block().start("a\\b"),
            r#"the marker "a\\b" has a line end or a backslash: a marker is part of one line, and the backslash is the escape"#,
        ),
        (
            emoji().reasoning("((", "a\r"),
            r#"the marker "a\r" has a line end or a backslash: a marker is part of one line, and the backslash is the escape"#,
        ),
        (
            block().arg("a\nb"),
            r#"the marker "a\nb" has a line end or a backslash: a marker is part of one line, and the backslash is the escape"#,
        ),
        (
            block().start("ab").arg("ab"),
            r#"two markers are both "ab": each marker must be different"#,
        ),
        (
            block()
                .end("abk")
                .start("ab")
                .keyed("k")
                .reasoning("abkk", "))"),
            r#"two markers are both "abkk": each marker must be different"#,
        ),
        (
            auto().end("🛠["),
            r#"two markers are both "🛠[": each marker must be different"#,
        ),
        (
            auto().reasoning("((", "(("),
            r#"two markers are both "((": each marker must be different"#,
        ),
        (block().keyed(""), key),
        (emoji().keyed("a-b"), key),
        (auto().keyed("é"), key),
        (block().keyed("k".repeat(33)), key),
        (
            emoji().start("<<"),
            r#"the option "custom markers" is only for the block syntax"#,
        ),
        (
            emoji().markers_anywhere(),
            r#"the option "markers anywhere" is only for the block syntax"#,
        ),
        (
            block().strict(),
            r#"the option "strict" is only for the emoji syntax"#,
        ),
        (
            block().self_closing(),
            r#"the option "self-closing" is only for the emoji syntax"#,
        ),
        (
            auto().in_reasoning(),
            "`in_reasoning` requires reasoning markers",
        ),
    ];
    for (dialect, expected) in cases {
        check(&dialect, expected);
    }
}

#[test]
fn a_marker_and_a_key_have_their_limits() {
    let (block, emoji, auto) = (Dialect::block, Dialect::emoji, Dialect::auto);
    let long = |length: usize| "x".repeat(length);
    for (dialect, marker) in [
        (block().start(long(65)), long(65)),
        // As it was written, without the key.
        (block().end(long(60)).keyed("aaaaa"), long(60)),
        (emoji().reasoning(long(65), ">>"), long(65)),
    ] {
        let expected = format!(
            "the marker {marker:?} is too long: a marker has at most 64 bytes, its key included"
        );
        check(&dialect, &expected);
    }
    for accepted in [
        block().start("ab").end("aba").arg("ababa"),
        block().end(long(64)),
        block().end(long(60)).keyed("aaaa"),
        auto().strict().self_closing().markers_anywhere().escaped(),
        auto().strict().end("🛠["),
        emoji().keyed(long(32)).reasoning(" (", ") ").in_reasoning(),
    ] {
        check(&accepted, "");
    }
}

#[test]
fn a_decided_automatic_dialect_is_never_refused() {
    use plaincall_syntax::Syntax::{Block, Emoji};
    let auto = Dialect::auto()
        .start("<<")
        .markers_anywhere()
        .strict()
        .self_closing()
        .keyed("k")
        .escaped();
    assert_eq!(auto.check(), Ok(()));
    for syntax in [Block, Emoji] {
        let decided = auto.for_syntax(syntax);
        assert_eq!(decided.check(), Ok(()), "{syntax:?}");
        assert_eq!(decided.syntax(), Some(syntax));
        assert!(decided.is_escaped());
    }
    assert_eq!(auto.for_syntax(Block).end_marker(Block), "!!!GADGET_ENDk");
    assert_eq!(auto.for_syntax(Emoji).end_marker(Emoji), "🛠️k[/end]");
}

/// Rendering reports an invalid dialect as the source of its error.
#[test]
fn a_refused_dialect_is_the_source_of_a_refused_call() {
    let call = Call::Emoji {
        name: "a",
        raw_args: "]",
        body: "",
    };
    for (dialect, expected) in [
        (Dialect::emoji().keyed(""), Some("the key of the markers")),
        (Dialect::emoji(), None),
    ] {
        let error = render(&call, &dialect).unwrap_err();
        let source = error.source().map(ToString::to_string);
        let is_right = match (&source, expected) {
            (Some(source), Some(expected)) => source.starts_with(expected),
            (source, expected) => source.is_none() && expected.is_none(),
        };
        assert!(is_right, "{source:?}");
    }
}

/// The purpose of each marker, and its text.
fn check_markers(dialect: &Dialect, expected: &[&str]) {
    let markers = dialect.markers().into_iter().flatten();
    let found: Vec<String> = markers
        .map(|marker| format!("{:?} {}", marker.usage, marker.text))
        .collect();
    assert_eq!(found, expected, "{dialect:?}");
}

#[test]
fn dialects_list_their_markers() {
    let custom = Dialect::block().start("<<:").end(">>").arg("@@");
    check_markers(
        &custom,
        &["Start(Block) <<:", "End(Block) >>", "Argument @@"],
    );
    let keyed = custom.clone().keyed("k").reasoning("<t>", "</t>");
    check_markers(
        &keyed,
        &[
            "Start(Block) <<k:",
            "End(Block) >>k",
            "Argument @@k",
            "Reasoning <t>",
            "Reasoning </t>",
        ],
    );
    assert_eq!(keyed.without_key(), custom.reasoning("<t>", "</t>"));
    check_markers(
        &Dialect::emoji().strict(),
        &["Start(Emoji) 🛠️[", "End(Emoji) 🛠️[/end]"],
    );
}

#[test]
fn dialects_report_their_options() {
    assert_eq!(Dialect::default(), Dialect::auto());
    assert_eq!(Dialect::auto().syntax(), None);
    assert!(!Dialect::auto().is_escaped());
    assert!(Dialect::auto().escaped().is_escaped());
}
