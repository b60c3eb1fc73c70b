//! Messages and names: every diagnostic has a message with the markers of the dialect (`spec/common.md` 3). Also near misses
//! that the examples of `spec/common.md` 9 do not cover.

use plaincall_syntax::{
    Code, Dialect, EventKind, LINE_LIMIT, MARKER_LIMIT, NearMiss, NearMisses, Severity, Syntax,
    Termination, near_misses, parse,
};

fn custom() -> Dialect {
    Dialect::block().start("<<").end(">>").arg("@@").keyed("k")
}

fn thinking() -> Dialect {
    Dialect::block().reasoning("<think>", "</think>")
}

fn leading() -> Dialect {
    let [open, close] = Dialect::THINK;
    Dialect::block().leading_reasoning(open, close)
}

fn keyed_emoji() -> Dialect {
    Dialect::emoji().keyed("k")
}

/// A dialect and a text in it, where `{long}` is a line beyond the limit; then code and message.
type Case = (fn() -> Dialect, &'static str, &'static str);

const CASES: &[Case] = &[
    (
        custom,
        "<<k",
        "truncated_header: `<<k` is plain text, because the text ends before its header does",
    ),
    (
        custom,
        "<<k \n",
        "not_a_header: `<<k` without a header is plain text",
    ),
    (
        custom,
        "<<k{long}\n",
        "header_too_long: `<<k` is plain text, because its header is longer than 4096 bytes",
    ),
    (
        custom,
        "<<kA>>k",
        "missing_newline: a line end is missing here before the next marker",
    ),
    (
        custom,
        "<<kA+\n>>k",
        "unusual_name: this name or id has characters other than letters, digits, `_`, `-` and `.`",
    ),
    (
        custom,
        "<<kA:b:c:d\n>>k",
        "extra_colon: a header has at most two colons; further ones count as commas between dependencies",
    ),
    (
        custom,
        "<<kA\n@@kx\n1 @@k",
        "marker_in_value: `@@k` is content of the value here, not a marker",
    ),
    (
        custom,
        "<<kA\n@@kx\n1>>k",
        "end_marker_in_mid_line: `>>k` ends the call here although it does not begin its line",
    ),
    (
        custom,
        "<<kA\n>>kx",
        "end_marker_glued: `>>k` ends the call; the text directly after it is plain text",
    ),
    (
        custom,
        ">>k",
        "stray_marker: `>>k` outside a call is plain text",
    ),
    (
        custom,
        "<<kA\nso\n@@kx\n",
        "text_before_argument: text before the first argument marker is ignored",
    ),
    (
        custom,
        "<<kA\nso\n>>k",
        "text_without_argument: Text without an argument marker",
    ),
    (
        custom,
        "<<kA\n```\n@@kx\n",
        "fence_before_argument: a code fence before the first argument is ignored, and so is the fence that closes it after the last value",
    ),
    (
        custom,
        "<<kA\n@@kx\n1>>k\r\n",
        "end_marker_in_mid_line: `>>k` ends the call here although it does not begin its line",
    ),
    // A fence is of one kind.
    (
        custom,
        "<<kA\n`~`\n``~\n@@kx\n",
        "text_before_argument: text before the first argument marker is ignored",
    ),
    (
        custom,
        "<<kA\n@@k{long}\n",
        "pointer_too_long: Pointer too long",
    ),
    (
        custom,
        "<<kA\n@@kx",
        "truncated_pointer: the text ends in the middle of a `@@k` line",
    ),
    (
        thinking,
        "<think>",
        "truncated_reasoning: the text ends before `</think>` closes the reasoning",
    ),
    (
        thinking,
        "</think>",
        "stray_reasoning_close: `</think>` closes reasoning that nothing opened; calls before it may be part of the reasoning",
    ),
    (
        leading,
        "So: <think>",
        "stray_reasoning_open: `<think>` opens reasoning only at the beginning of a reply; here it is plain text",
    ),
    (
        Dialect::emoji,
        "🛠[a]b",
        "missing_end_marker: the text ends before `🛠️[/end]` closes the call",
    ),
    // Messages name the canonical form.
    (
        Dialect::emoji,
        "🛠[/end]",
        "stray_marker: `🛠️[/end]` outside a call is plain text",
    ),
    (
        Dialect::emoji,
        "🛠[ ]",
        "not_a_header: `🛠️[` without a header is plain text",
    ),
    (
        Dialect::emoji,
        "🛠[a]🛠[🛠[/end]",
        "marker_in_value: `🛠️[` is content of the value here, not a marker",
    ),
    (
        keyed_emoji,
        "🛠k[a",
        "truncated_header: `🛠️k[` is plain text, because the text ends before its header does",
    ),
];

#[test]
fn every_diagnostic_has_its_message() {
    let mut missing: Vec<Code> = Code::ALL.to_vec();
    let long = "x".repeat(LINE_LIMIT + 1);
    for (dialect, text, expected) in CASES {
        let text = text.replace("{long}", &long);
        let mut found = Vec::new();
        for event in parse(&text, &dialect()).unwrap() {
            if let EventKind::Diagnostic(diagnostic) = event.kind {
                missing.retain(|code| *code != diagnostic.code);
                assert_eq!(diagnostic.message(), diagnostic.to_string());
                assert_eq!(diagnostic.severity(), diagnostic.code.severity());
                found.push(format!("{}: {diagnostic}", diagnostic.code.name()));
            }
        }
        assert_eq!(found.join("\n"), *expected, "{text:?}");
    }
    assert_eq!(missing, [], "codes without a case");
}

#[test]
fn a_missing_line_end_is_that_of_its_line() {
    for (text, expected) in [
        ("!!!GADGET_START:A!!!GADGET_END", "spec/block.md 2.7"),
        (
            "!!!GADGET_START:A\n!!!ARG:x!!!GADGET_END",
            "spec/block.md 4.2",
        ),
    ] {
        let events = parse(text, &Dialect::block()).into_iter().flatten();
        let mut sections = events.filter_map(|event| match event.kind {
            EventKind::Diagnostic(diagnostic) => Some(diagnostic.section().to_string()),
            _ => None,
        });
        assert_eq!(sections.next().as_deref(), Some(expected), "{text:?}");
    }
}

#[test]
fn a_line_at_its_limit_may_end_with_the_longest_marker() {
    let marker = "s".repeat(MARKER_LIMIT - 1) + ":";
    let dialect = Dialect::block().start(&marker);
    for (count, expected) in [
        (LINE_LIMIT, Code::MissingNewline),
        (LINE_LIMIT + 1, Code::HeaderTooLong),
    ] {
        let text = format!("{marker}{}{marker}A\n", "x".repeat(count));
        let events = parse(&text, &dialect).into_iter().flatten();
        let mut codes = events.filter_map(|event| match event.kind {
            EventKind::Diagnostic(diagnostic) => Some(diagnostic.code),
            _ => None,
        });
        assert_eq!(codes.next(), Some(expected), "{count}");
    }
}

/// The words in logs and JSON.
#[test]
fn everything_has_its_name() {
    let names = [Syntax::Block, Syntax::Emoji].map(Syntax::name);
    assert_eq!(names, ["block", "emoji"]);
    let names = [Severity::Warning, Severity::Error].map(Severity::name);
    assert_eq!(names, ["warning", "error"]);
    let ways = [
        Termination::Explicit,
        Termination::NextCall,
        Termination::EndOfStream,
    ];
    let names = ways.map(Termination::name);
    assert_eq!(names, ["explicit", "next_call", "end_of_stream"]);
    let content = Code::ALL.iter().filter(|code| code.is_marker_as_content());
    let content: Vec<&str> = content.map(|code| code.name()).collect();
    let expected = [
        "not_a_header",
        "header_too_long",
        "truncated_header",
        "marker_in_value",
    ];
    assert_eq!(content, expected);
}

/// Checks the near misses of a text, each with the intended marker.
fn check_near(dialect: &Dialect, text: &str, expected: &[&str]) {
    let found = near_misses(text, dialect).into_iter().flatten();
    let found = found.map(|near| format!("{} for {}", &text[near.span.range()], near.suggestion));
    assert_eq!(found.collect::<Vec<_>>(), expected, "{text:?}");
}

#[test]
fn near_misses_in_corners() {
    let block = Dialect::block;
    for (dialect, text, expected) in [
        // A backslash is the escape only where the dialect has one.
        (
            block(),
            r"!!!GADGET_START\:A",
            &["!!!GADGET_START for !!!GADGET_START:"][..],
        ),
        // Escaped text is skipped as a whole, and nothing after it.
        (block().escaped().start("<<call→"), r"<<call\→x", &[]),
        (
            block().escaped(),
            r"!!!ARG\:!!!arg:",
            &["!!!arg: for !!!ARG:"],
        ),
        // There is no near miss inside a whole marker.
        (block().start("<<END").end("end"), "<<END", &[]),
        // Only blanks are skipped together.
        (
            block(),
            " x !!!gadget_end",
            &["!!!gadget_end for !!!GADGET_END"],
        ),
        (block(), "!!!!arg:x", &["!!!arg: for !!!ARG:"]),
        // Blanks count between the characters of a marker, and not before it.
        (block(), " !!!ARG:x", &[]),
        (block().start("<< GO"), "<< go", &["<< go for << GO"]),
        // The marker that shares more words is the intended one, and the longer one.
        (
            block(),
            "!!!THE_GADGET_START:A",
            &["!!!THE_GADGET_START: for !!!GADGET_START:"],
        ),
        (block().start("<<GO").arg("<<G"), "<<go", &["<<go for <<GO"]),
    ] {
        check_near(&dialect, text, expected);
    }
}

/// A line has the same near miss in the first column as in a search of the whole text.
#[test]
fn near_misses_in_the_first_column() {
    let block = Dialect::block;
    let dialects = [
        block(),
        block().escaped(),
        Dialect::emoji(),
        Dialect::auto(),
        block().start("call:").arg("<|~arg:").end("done"),
        block().start(" go").end("<<é_END>>"),
    ];
    let begins = (0_u8..128)
        .map(char::from)
        .chain("é\u{3000}！＜🛠日".chars());
    let begins: Vec<String> = begins.map(String::from).collect();
    let rests = [
        "",
        "call:",
        "my_call:",
        "|~arg:x",
        "!!gadget_end",
        "ADGET_START:a",
        "rg:",
        "one",
        "o",
        "/end]",
        "️[/end]",
        "<é_end>>",
    ];
    for dialect in &dialects {
        let near = NearMisses::new(dialect).unwrap();
        for text in begins
            .iter()
            .flat_map(|begin| rests.map(|rest| format!("{begin}{rest}")))
        {
            let is_at_front = |near: &NearMiss| near.span.start == 0 && near.format.is_none();
            let expected: Vec<_> = near.find(&text).into_iter().filter(is_at_front).collect();
            let found: Vec<_> = near
                .find_in_first_column(&text)
                .filter(is_at_front)
                .collect();
            assert_eq!(found, expected, "{text:?} {dialect:?}");
        }
    }
}

/// Texts in which a match could begin at every position and continue to the end. Quadratic time would take minutes.
#[test]
fn long_texts_take_linear_time() {
    check_near(
        &Dialect::block(),
        &format!("\"{}\n", "\\\n\\\"".repeat(1 << 17)),
        &[],
    );
    let dialect = Dialect::block().start("call:").end("done");
    let near = NearMisses::new(&dialect).unwrap();
    let found = near.find_behind_prefixes(&"\u{65E5}\u{672C}".repeat(1 << 17));
    assert_eq!(found, []);
}

/// Comparing each with all others after it would take many minutes.
#[test]
fn blanks_with_which_a_marker_may_begin_are_walked_over_together() {
    let blanks = " ".repeat(1 << 19);
    check_near(&Dialect::block().start(" go"), &format!("x{blanks}"), &[]);
}
