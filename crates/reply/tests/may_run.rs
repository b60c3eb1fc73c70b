//! The calls that may run (`spec/common.md` 10): one table of all ways in which a call can be written, end and be
//! named.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::collections::HashSet;

use plaincall_reply::{
    CallError, Document, MissingEnd, ReadCall, ReplyCheck, Stop, SuspectMarker, Unclosed,
};
use plaincall_syntax::{Dialect, Syntax, Termination};
use plaincall_tool::{Effect, ToolSet, ToolSpec};

/// The first matching row decides. `*` matches everything, `a,b` matches both.
const TABLE: &str = "
syntax  ended-by  its-value-holds  lines  tool   text-is         unclosed  may-run
*       end       end-near-miss    *      *      *               *         held
*       end       call             *      *      *               *         held
*       end       *                *      *      *               *         yes
*       next,text marker,call      *      *      *               *         marker-inside
*       next,text end-near-miss    *      *      *               *         marker-inside
*       next,text other-near-miss  *      *      *               *         marker-inside
block   next      *                *      read   *               *         yes
*       next,text other-end        *      *      *               *         other-end
block   next      *                *      *      *               run       yes
block   next      *                *      *      *               reject    ended-by-next-call
block   text      *                *      read   complete,file   *         yes
block   text      *                *      *      complete,file   run       yes
block   text      *                one    *      complete        *         yes
block   text      *                more   *      complete        *         long-last-value
block   text      *                *      *      file            *         end-of-file
block   text      *                *      *      length          *         truncated
block   text      *                *      *      broken          *         maybe-truncated
emoji   text      *                *      *      complete,file   run       yes
emoji   text      *                *      *      length          *         truncated
emoji   text      *                *      *      broken          run       maybe-truncated
emoji   text      *                *      *      *               reject    no-end-marker
";

const SYNTAXES: [&str; 2] = ["block", "emoji"];
const ENDS: [&str; 3] = ["end", "next", "text"];
const TOOLS: [&str; 4] = ["read", "idempotent", "write", "unknown"];
const TEXTS: [&str; 4] = ["complete", "file", "length", "broken"];
const UNCLOSED: [&str; 2] = ["reject", "run"];

/// The content of a value, in the block syntax and in the emoji syntax.
const VALUES: [(&str, &str, &str); 24] = [
    ("nothing-special", "hello", "hello"),
    (
        "end-near-miss",
        "a\n!!!GADGT_END\nprose",
        "a\n🛠️ [/end]\nprose",
    ),
    ("end-near-miss", "!!!gadget_end", "[/end]\n"),
    (
        "end-near-miss",
        "a\r\nGADGET_END\r\nb",
        "a\r\n🛠️[/END]\r\nb",
    ),
    ("end-near-miss", "a\n!!!GADGET_EN\\ED\nb", "a\n🛠 [ /End]\nb"),
    ("end-near-miss", "a\n!!!GADGETEND\nb", "a\n🛠️[ /end]\nb"),
    ("end-near-miss-in-mid-line", "a !!!GADGT_END", "a 🛠️ [/end]"),
    (
        "end-near-miss-in-mid-line",
        "a\n  !!!gadget_end\nb",
        "a\n  🛠️ [/end]\nb",
    ),
    (
        "other-near-miss",
        "a\n!!!gadget_start:B\nb",
        "a\n🛠️ [b c]\nb",
    ),
    ("other-near-miss", "a\n!!!AGR:x\n!!! ARG:y", "🛠️ [b]"),
    ("marker", "see !!!ARG: there", "a\n🛠️[\nb"),
    (
        "marker",
        "a\n!!!GADGET_START: is a marker",
        "the 🛠️[ is a marker",
    ),
    ("marker", "the !!!GADGET_END there", "a 🛠️[ ] b"),
    ("call", "see !!!GADGET_START:B\n", "see 🛠️[b c]"),
    ("call", " !!!GADGET_START:B\n !!!ARG:x", "a\n🛠️[b]\nc"),
    (
        "escaped-marker",
        "a\n!!!GADGET_EN\\D\nb",
        "a\n🛠️\\[/end]\nb",
    ),
    ("escaped-marker", "!!!GADGET_START\\:B", "🛠️\\[b]\n🛠\\[c]"),
    (
        "other-format",
        "a\n<tool_call>{}</tool_call>.",
        "[TOOL_CALLS][]",
    ),
    ("blank-lines-at-the-end", "a\n\n \n", "a\n\n"),
    ("other-end", "a\n</tool_call>\n", "a\n</tool_call>"),
    ("other-end", "a<|im_end|>", "a</s>"),
    ("other-end", "a\n```", "a\n~~~\n"),
    ("fence-that-closes", "```\na\n```", "~~~\na\n~~~"),
    (
        "marker-of-other-syntax",
        "a\n🛠️[/end]\n🛠️[b]",
        "a\n!!!GADGET_END\n!!!GADGET_START:B",
    ),
];

fn fits(pattern: &str, word: &str) -> bool {
    pattern == "*" || pattern.split(',').any(|one| one == word)
}

fn expected<'t>(rows: &[(usize, Vec<&'t str>)], case: [&str; 7]) -> (usize, &'t str) {
    let row = rows.iter().find(|(_, row)| {
        let mut pairs = row.iter().zip(case);
        pairs.all(|(pattern, word)| fits(pattern, word))
    });
    let (number, row) = row.unwrap_or_else(|| panic!("no row for {case:?}"));
    (*number, row.last().expect("a result"))
}

fn tool(effect: &str) -> Option<ToolSpec> {
    let effect = match effect {
        "read" => Effect::Read,
        "idempotent" => Effect::Idempotent,
        "write" => Effect::Write,
        _ => return None,
    };
    Some(ToolSpec::new("A").effect(effect))
}

fn dialect(syntax: &str) -> Dialect {
    match syntax {
        "block" => Dialect::block().escaped(),
        _ => Dialect::emoji().escaped(),
    }
}

fn name(decision: &Result<Option<SuspectMarker>, CallError>) -> &'static str {
    let why = match decision {
        Ok(None) => return "yes",
        Ok(Some(_)) => return "held",
        Err(CallError::NotClosed { why, .. }) => why,
        Err(_) => return "wrong",
    };
    match why {
        MissingEnd::Truncated => "truncated",
        MissingEnd::MaybeTruncated => "maybe-truncated",
        MissingEnd::EndOfFile => "end-of-file",
        MissingEnd::NoEndMarker => "no-end-marker",
        MissingEnd::EndedByNextCall => "ended-by-next-call",
        MissingEnd::AfterUnclosed => "after-unclosed",
        MissingEnd::MarkerInside => "marker-inside",
        MissingEnd::LongLastValue => "long-last-value",
        MissingEnd::OtherEnd => "other-end",
        other => panic!("{other:?}"),
    }
}

fn stop(text: &str) -> Stop {
    match text {
        "complete" => Stop::Natural,
        "file" => Stop::EndOfFile,
        "length" => Stop::Length,
        _ => Stop::Broken,
    }
}

fn unclosed(name: &str) -> Unclosed {
    if name == "run" {
        Unclosed::Run
    } else {
        Unclosed::Reject
    }
}

#[test]
fn which_calls_may_run() {
    let rows: Vec<(usize, Vec<&str>)> = TABLE
        .trim()
        .lines()
        .skip(1)
        .map(|row| row.split_whitespace().collect())
        .enumerate()
        .collect();
    let mut used = HashSet::new();
    let mut count = 0;
    for syntax in SYNTAXES {
        for (holds, block, emoji) in VALUES {
            for end in ENDS {
                let is_block = syntax == "block";
                let behind = match (is_block, end) {
                    (true, "end") => "\n!!!GADGET_END",
                    (true, "next") => "\n!!!GADGET_START:B\n!!!GADGET_END",
                    (false, "end") => "🛠️[/end]",
                    // No start marker ends an emoji call.
                    (false, "next") => continue,
                    _ => "",
                };
                let text = if is_block {
                    format!("!!!GADGET_START:A\n!!!ARG:text\n{block}{behind}")
                } else {
                    format!("🛠️[A]\n{emoji}{behind}")
                };
                let dialect = dialect(syntax);
                let document = Document::parse(&text, &dialect).expect("a dialect that works");
                let call = document.calls().next().expect("a call");
                for effect in TOOLS {
                    for state in TEXTS {
                        for lifted in UNCLOSED {
                            let mut check = ReplyCheck::new(&dialect, unclosed(lifted))
                                .expect("a dialect that works");
                            let decision = check.may_run(call, tool(effect).as_ref(), stop(state));
                            let value = if is_block { block } else { emoji };
                            let is_long = value.trim_end().contains('\n');
                            let lines = if is_long { "more" } else { "one" };
                            let case = [syntax, end, holds, lines, effect, state, lifted];
                            let (row, expected) = expected(&rows, case);
                            assert_eq!(name(&decision), expected, "{case:?}\n{text}");
                            used.insert(row);
                            count += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(used.len(), rows.len(), "rows that no case needs");
    assert_eq!(count, 24 * 5 * 32);
}

/// A call ended by the next one makes later ones doubtful: they may be quotations.
#[test]
fn calls_behind_one_without_an_end_marker() {
    use Unclosed::{Reject, Run};

    let closed = |name: &str| format!("!!!GADGET_START:{name}\n!!!ARG:x\n1\n!!!GADGET_END\n");
    let open = |name: &str| format!("!!!GADGET_START:{name}\n!!!ARG:x\n1\n");
    let quoting = |name: &str| format!("!!!GADGET_START:{name}\n!!!ARG:x\nsee !!!ARG:\n");
    let check = |calls: &[String], lifted: Unclosed, expected: &[&str]| {
        let tools = ["read", "idempotent", "write"].map(|name| tool(name).expect("a tool"));
        let dialect = Dialect::block();
        let mut reply = ReplyCheck::new(&dialect, lifted).expect("a dialect that works");
        let text = calls.concat();
        let document = Document::parse(&text, &dialect).expect("a dialect that works");
        // A new reply is not doubtful.
        for _ in 0..2 {
            reply.begin_reply();
            let found: Vec<&str> = document
                .calls()
                .map(|call| {
                    let at = ["read", "idempotent", "write"]
                        .iter()
                        .position(|name| *name == call.name);
                    let tool = at.and_then(|at| tools.get(at));
                    name(&reply.may_run(call, tool, Stop::Natural))
                })
                .collect();
            assert_eq!(found, expected, "{text}");
        }
    };
    let rejected = ["ended-by-next-call", "after-unclosed"];
    check(&[open("write"), closed("write")], Reject, &rejected);
    check(&[open("write"), closed("unknown")], Reject, &rejected);
    check(&[open("unknown"), closed("idempotent")], Reject, &rejected);
    check(
        &[
            open("write"),
            closed("read"),
            closed("write"),
            open("write"),
        ],
        Reject,
        &[
            "ended-by-next-call",
            "yes",
            "after-unclosed",
            "after-unclosed",
        ],
    );
    check(
        &[closed("write"), open("read"), closed("write")],
        Reject,
        &["yes", "yes", "yes"],
    );
    check(
        &[quoting("read"), closed("write"), closed("read")],
        Reject,
        &["marker-inside", "after-unclosed", "yes"],
    );
    check(
        &[open("write"), closed("write"), open("write")],
        Run,
        &["yes", "yes", "yes"],
    );
    check(
        &[quoting("write"), closed("write")],
        Run,
        &["marker-inside", "after-unclosed"],
    );
}

/// An error in the text or the id rejects a call, however it ended.
#[test]
fn other_errors() {
    let check = |text: &str, at: usize, expected: &CallError| {
        let dialect = Dialect::auto();
        let document = Document::parse(text, &dialect).expect("a dialect that works");
        let mut reply = ReplyCheck::new(&dialect, Unclosed::Run).expect("a dialect that works");
        let mut decisions = document
            .calls()
            .map(|call| reply.may_run(call, None, Stop::Natural));
        assert_eq!(decisions.nth(at), Some(Err(expected.clone())), "{text}");
    };
    let wrong = |text: &str| CallError::Malformed(text.to_owned());
    let call = "!!!GADGET_START:A:a\n!!!ARG:x\n1\n";
    check(
        &format!("{call}!!!ARG:y"),
        0,
        &wrong("Truncated pointer line: y"),
    );
    check(
        &format!("{call}!!!ARG:x\n2\n!!!GADGET_END"),
        0,
        &wrong("Duplicate pointer: x"),
    );
    check(
        &format!("{call}!!!GADGET_START:B:a\n!!!GADGET_END"),
        1,
        &CallError::DuplicateId("a".to_owned()),
    );
}

/// The description of a held call for the gate.
#[test]
fn suspect_end_markers() {
    let check = |text: &str, expected: &str| {
        let dialect = Dialect::auto();
        let document = Document::parse(text, &dialect).expect("a dialect that works");
        let call = document.calls().next().expect("a call");
        let mut reply = ReplyCheck::new(&dialect, Unclosed::Reject).expect("a dialect that works");
        match reply.may_run(call, None, Stop::Broken) {
            Ok(Some(suspect)) => assert_eq!(suspect.to_string(), expected, "{text}"),
            other => panic!("{other:?}: {text}"),
        }
    };
    check(
        "\n!!!GADGET_START:A\n!!!ARG:x\n1\n!!!ARG:y/z\n1\n!!!gadget_end\nprose\n!!!GADGET_END",
        "line 6 of the call, in `y/z`: `!!!gadget_end` looks like the end marker `!!!GADGET_END`",
    );
    check(
        "🛠️[a]\nx\n🛠️ [/end]\n🛠️[/end]",
        "line 3 of the call: `🛠️ [/end]` looks like the end marker `🛠️[/end]`",
    );
    check(
        "🛠️[a]\nx\nNow 🛠️[b c]\n🛠️[/end]",
        "line 3 of the call: `🛠️[b c]` begins a call, so the end marker before it may be missing",
    );
    let blanks = " ".repeat(500);
    check(
        &format!("!!!GADGET_START:A\n!!!ARG:x\n!!!{blanks}GADGET_END\n!!!GADGET_END"),
        &format!(
            "line 3 of the call, in `x`: `!!!{}…` looks like the end marker `!!!GADGET_END`",
            " ".repeat(117)
        ),
    );
}

/// The calls of a reply that other tools have read, in order, and whether each may run with these tools.
#[test]
fn calls_that_other_tools_have_read() {
    let cases = [
        ("reject", "write/end read/end", "yes yes"),
        ("reject", "read/next write/end", "yes yes"),
        (
            "reject",
            "write/next read/end write/end other/end",
            "ended-by-next-call yes after-unclosed after-unclosed",
        ),
        ("reject", "write/text", "maybe-truncated"),
        ("reject", "read/text write/end", "maybe-truncated yes"),
        ("reject", "other/end", "unknown"),
        ("run", "write/next write/end write/text", "yes yes yes"),
        ("run", "other/text", "unknown"),
    ];
    let tools = [("read", Effect::Read), ("write", Effect::Write)]
        .map(|(name, effect)| ToolSpec::new(name).effect(effect));
    let tools = ToolSet::new(tools).expect("distinct names");
    let no_arguments = serde_json::Map::new();
    for (unclosed, calls, expected) in cases {
        let unclosed = Unclosed::from_name(unclosed).expect("a name");
        let mut check = ReplyCheck::new(&Dialect::block(), unclosed).expect("a dialect");
        let decided = calls.split(' ').map(|call| {
            let (name, end) = call.split_once('/').expect("an end");
            let call = ReadCall {
                name,
                arguments: Some(&no_arguments),
                syntax: Syntax::Block,
                termination: match end {
                    "end" => Termination::Explicit,
                    "next" => Termination::NextCall,
                    _ => Termination::EndOfStream,
                },
                before: None,
            };
            let Some(why) = check.mismatch(&tools, &call) else {
                return "yes";
            };
            let reasons = [
                ("the next call begins before", "ended-by-next-call"),
                ("an earlier call of this reply", "after-unclosed"),
                ("this call may be truncated", "maybe-truncated"),
                ("the toolbox has no tool `other`", "unknown"),
            ];
            let reason = reasons.iter().find(|(text, _)| why.contains(text));
            reason.unwrap_or_else(|| panic!("{why}")).1
        });
        let decided: Vec<&str> = decided.collect();
        assert_eq!(decided.join(" "), expected, "{calls}");
    }
}

/// A call in another format is a broken beginning only if it names a tool, so other tools decide again.
#[test]
fn a_broken_beginning_counts_for_other_tools() {
    let dialect = Dialect::block();
    let call = |name| format!("!!!GADGET_START:{name}\n!!!GADGET_END\n");
    let json = |name| format!("{{\"name\": \"{name}\", \"arguments\": {{}}}}\n");
    for (text, expected) in [
        (json("write") + &call("read") + &call("write"), "yes no"),
        (json("other") + &call("write"), "yes"),
        (
            call("write") + &json("functions.read") + &call("write"),
            "yes no",
        ),
        ("!!!GADGET_SART:write\n".to_owned() + &call("read"), "yes"),
    ] {
        let reads = [("read", Effect::Read), ("write", Effect::Write)]
            .map(|(name, effect)| ToolSpec::new(name).effect(effect));
        let tools = ToolSet::new(reads).expect("distinct names");
        let document = Document::parse(&text, &dialect).expect("a dialect");
        let mut check = ReplyCheck::new(&dialect, Unclosed::Reject).expect("a dialect");
        let decided = document.decided().map(|read| {
            let before = read.before();
            let (syntax, termination) = (read.call.syntax.name(), read.call.termination.name());
            let arguments = read.value();
            let arguments = arguments.as_ref().and_then(serde_json::Value::as_object);
            let call = &ReadCall::named(
                &read.call.name,
                arguments,
                syntax,
                termination,
                before.as_deref(),
            );
            let Some(why) = check.mismatch(&tools, call) else {
                return "yes";
            };
            assert!(why.contains("looks like the start of a call"), "{why}");
            "no"
        });
        assert_eq!(decided.collect::<Vec<_>>().join(" "), expected, "{text}");
    }
}

#[test]
fn finish_reasons_of_all_apis() {
    let table = "
        natural  stop STOP tool_calls tool-calls tool_use function_call end_turn eos eos_token COMPLETE completed
        length   length max_tokens MAX_TOKENS max_output_tokens model_length model_context_window_exceeded
        broken   content_filter content-filter stop_sequence stop_token pause_turn SAFETY error incomplete unknown natural";
    for line in table.lines().skip(1) {
        let mut words = line.split_whitespace();
        let expected = words.next().and_then(Stop::from_name);
        for reason in words {
            assert_eq!(Some(Stop::from_finish_reason(reason)), expected, "{reason}");
        }
    }
}
