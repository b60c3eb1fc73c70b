//! A rendered call parses to the same call, and every call that can be written is rendered.
use plaincall_oracle::arbitrary_texts::{self, Generator, Random};
use plaincall_oracle::effort::at_most;
use plaincall_oracle::rendering::{Rendered, check};
use plaincall_syntax::{Call, Dialect, LINE_LIMIT, Syntax, render};

#[test]
fn rendering_and_reading_are_inverse() {
    let mut random = Random::new(7);
    let (mut written, mut refused) = (0, 0);
    let count = at_most(60_000);
    for case in 0..count {
        let mut options = arbitrary_texts::options(&mut random);
        options.in_reasoning = false;
        let dialect = options.dialect();
        let Some(syntax) = dialect.syntax().filter(|_| dialect.check().is_ok()) else {
            continue;
        };
        let generator = Generator::new(&options);
        let texts = [generator.text(&mut random), generator.text(&mut random)];
        let values: Vec<(&str, &str)> = match syntax {
            Syntax::Block => vec![("x", &texts[0]), ("list/0", &texts[1])],
            Syntax::Emoji => vec![("", &texts[0])],
        };
        let call = match syntax {
            Syntax::Block => Call::Block {
                name: "Tool",
                id: None,
                dependencies: Vec::new(),
                arguments: values.clone(),
            },
            Syntax::Emoji => Call::Emoji {
                name: "Tool",
                raw_args: "",
                body: values[0].1,
            },
        };
        match check(&call, &options).unwrap_or_else(|error| panic!("case {case}: {error}")) {
            Rendered::Written => written += 1,
            Rendered::Refused => refused += 1,
        }
    }
    println!("{written} calls written and read, {refused} refused");
    assert!(
        written > count / 4 && refused > count / 600,
        "the cases test too little"
    );
}

#[test]
fn every_error_suggests_a_fix() {
    let check = |call: Call<'_>, dialect: &Dialect, expected: &str| {
        let error = render(&call, dialect).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    };
    let block = |name, id, dependencies, arguments| Call::Block {
        name,
        id,
        dependencies,
        arguments,
    };
    let emoji = |name, raw_args, body| Call::Emoji {
        name,
        raw_args,
        body,
    };
    let plain = Dialect::block();
    let bracket = Dialect::emoji();
    for (call, expected) in [
        (
            block("", None, vec![], vec![]),
            "the name \"\" does not begin with a letter, a digit or `_`",
        ),
        (
            block("a b", None, vec![], vec![]),
            "the name \"a b\" contains a space, a control character or a quote",
        ),
        (
            block("a:b", None, vec![], vec![]),
            "the name \"a:b\" contains a colon, which ends a name",
        ),
        (block("a", Some(""), vec![], vec![]), "the id \"\" is empty"),
        (
            block("a", Some("x\ny"), vec![], vec![]),
            "the id \"x\\ny\" contains a line end, but must be one line",
        ),
        (
            block("a", None, vec!["x,y"], vec![]),
            "the dependency \"x,y\" contains a comma, which ends it",
        ),
        (
            block("a", None, vec![], vec![("x//y", "")]),
            "the pointer \"x//y\" is empty or has an empty segment",
        ),
        (
            block("a", None, vec![], vec![(" x", "")]),
            "the pointer \" x\" begins or ends with a space or tab",
        ),
        (
            block("a", None, vec![], vec![("x", "1\n!!!GADGET_END\n2")]),
            "the value of \"x\" contains a marker that would be recognized: use the escaped dialect or other markers",
        ),
        (
            block("a", Some("!!!ARG:"), vec![], vec![]),
            "the id \"!!!ARG:\" contains a colon, which ends it",
        ),
        (
            block("a", Some("!!!GADGET_END"), vec![], vec![]),
            "the header contains a marker, or forms one with adjacent text: use other markers or a key",
        ),
        (
            block("a", None, vec![], vec![("x!!!GADGET_END", "")]),
            "the pointer \"x!!!GADGET_END\" contains a marker, or forms one with adjacent text: use other markers or a key",
        ),
        (
            emoji("a", "", ""),
            "a call of the emoji syntax cannot be written in a dialect of the block syntax",
        ),
    ] {
        check(call, &plain, expected);
    }
    for (call, expected) in [
        (
            emoji("a b", "", ""),
            "the name \"a b\" contains a space or tab, which ends a name",
        ),
        (emoji("/a", "", ""), "the name \"/a\" begins with `/`"),
        (
            emoji("a", "x]", ""),
            "the argument line contains `]`, which ends the header",
        ),
        (
            emoji("a", "", "🛠[/end]"),
            "the body contains a marker that would be recognized: use the escaped dialect or other markers",
        ),
    ] {
        check(call, &bracket, expected);
    }
    check(
        emoji("a", "", ""),
        &Dialect::auto(),
        "writing calls requires a syntax: choose block or emoji",
    );
    check(
        emoji("a", "x /", ""),
        &Dialect::emoji().self_closing(),
        "the header contains a marker, or forms one with adjacent text: use other markers or a key",
    );
}

#[test]
fn lines_are_written_up_to_their_limit() {
    for (count, refused) in [(LINE_LIMIT, false), (LINE_LIMIT + 1, true)] {
        let long = "x".repeat(count);
        let block = |name, pointer| Call::Block {
            name,
            id: None,
            dependencies: vec![],
            arguments: vec![(pointer, "")],
        };
        let emoji = Call::Emoji {
            name: &long,
            raw_args: "",
            body: "",
        };
        for (call, dialect, part) in [
            (block(&long, "x"), Dialect::block(), "the header".to_owned()),
            (
                block("a", &long),
                Dialect::block(),
                format!("the pointer {long:?}"),
            ),
            (emoji, Dialect::emoji(), "the header".to_owned()),
        ] {
            let rendered = render(&call, &dialect).map_err(|error| error.to_string());
            let expected = refused.then(|| format!("{part} is longer than 4,096 bytes"));
            assert_eq!(rendered.err(), expected);
        }
    }
}
