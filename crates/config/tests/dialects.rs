//! The notation of a dialect.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use plaincall_config::DialectOptions;
use plaincall_syntax::Dialect;

#[test]
fn the_notation_of_the_specification() {
    for (text, expected) in [
        ("", Dialect::auto()),
        ("block", Dialect::block()),
        (" emoji  escaped ", Dialect::emoji().escaped()),
        (
            "anywhere strict",
            Dialect::auto().markers_anywhere().strict(),
        ),
        ("start=<<<START:", Dialect::block().start("<<<START:")),
        (
            "end=a=b arg=@arg: key=k1",
            Dialect::block().end("a=b").arg("@arg:").keyed("k1"),
        ),
        (
            "start=\"<< CALL  \" end=<<END",
            Dialect::block().start("<< CALL  ").end("<<END"),
        ),
        ("emoji self-closing", Dialect::emoji().self_closing()),
        (
            "auto reasoning=<t>,</t> in-reasoning",
            Dialect::auto().reasoning("<t>", "</t>").in_reasoning(),
        ),
    ] {
        let options: DialectOptions = text.parse().unwrap();
        assert_eq!(options.dialect().unwrap(), expected, "{text}");
    }
}

#[test]
fn errors_of_the_notation() {
    for (text, expected) in [
        ("blok", "unknown option `blok`; did you mean `block`?"),
        (
            "leading",
            "the options of this dialect are block emoji auto start=",
        ),
        ("block emoji", "`emoji` is a second syntax; remove one"),
        ("start=<< start=>>", "`start=` is given twice; remove one"),
        ("block block", "`block` is given twice; remove one"),
        ("no-reasoning", "unknown option `no-reasoning`"),
        ("emoji end=<<", "`end=` is for the block syntax; remove it"),
        (
            "strict block",
            "`strict` is for the emoji syntax; remove it",
        ),
        ("start=\"a b", "has no closing quote"),
        ("key", "`key` needs a value: use `key=VALUE`"),
        (
            "strict=yes",
            "`strict` takes no value: use `strict` instead of `strict=yes`",
        ),
        (
            "reasoning=<t>",
            "`reasoning=<t>` has no comma: use `reasoning=OPEN,CLOSE`",
        ),
    ] {
        let error = text.parse::<DialectOptions>().unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
