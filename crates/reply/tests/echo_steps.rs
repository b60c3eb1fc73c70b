//! The limit of the steps to search untrusted texts for the calls of a reply.

#![allow(clippy::expect_used, reason = "a test fails by a panic")]

use plaincall_reply::untrusted::{Echo, EchoGuard};
use plaincall_reply::{Document, Untrusted};
use plaincall_syntax::Dialect;

fn echo_of(guard: &mut EchoGuard, name: &str, value: &str) -> Option<Echo> {
    let text = format!("!!!GADGET_START:{name}\n!!!ARG:x\n{value}\n!!!GADGET_END");
    let document = Document::parse(&text, &Dialect::block()).expect("a valid dialect");
    guard.echo_of(document.calls().next().expect("a call"))
}

/// A text of the words of a log, in which a search takes steps.
fn log(lines: usize, first: &str) -> String {
    let line = "2026-11-28 a line of a log that continues for a long time\n";
    format!("{first}{}", line.repeat(lines))
}

/// The parts of the value are in the text, so that only a search shows that the value is not.
const ABSENT: &str = "continues for a line of a log";

#[test]
fn a_call_whose_search_takes_too_long_is_an_echo() {
    let mut guard = EchoGuard::new(&[Dialect::block()]).expect("a valid dialect");
    let text = log(1 << 15, "!!!GADGET_START:note\nfor a line\n");
    guard.observe(&Untrusted::new("no call"));
    guard.observe(&Untrusted::new(text.as_str()));
    let found = Some(Echo::Found { text: 1 });
    // A value that is there is found.
    assert_eq!(echo_of(&mut guard, "note", "a long time"), found);
    let is_free = |guard: &mut EchoGuard| echo_of(guard, "note", ABSENT).is_none();
    let free = (0..2000).take_while(|_| is_free(&mut guard)).count();
    // A step is 16 bytes. The text is searched as it is, and without the prefixes of its lines.
    let bytes = text.chars().filter(|c| !c.is_whitespace()).count();
    let expected = EchoGuard::SEARCH_STEPS * 16 / bytes;
    assert!(
        (expected / 3..=expected).contains(&free),
        "{free} {expected}"
    );
    // From then on, each call of this tool is an echo, and no call of another one.
    assert_eq!(echo_of(&mut guard, "note", "2026"), found);
    assert_eq!(echo_of(&mut guard, "write", "a long time"), None);
    // The next reply has all steps again.
    guard.begin_reply();
    assert!(is_free(&mut guard));
}

/// The steps do not grow with the calls times the text: each call of these has other values, and none is an echo.
#[test]
fn many_calls_with_a_long_text_that_shows_the_tool_in_use() {
    let mut guard = EchoGuard::new(&[Dialect::block()]).expect("a valid dialect");
    let used = |number: usize| {
        format!(
            "!!!GADGET_START:note\n!!!ARG:x\nitem {number}\n!!!GADGET_END\n{}",
            log(4, "")
        )
    };
    let text: String = (0..2000).map(used).collect();
    guard.observe(&Untrusted::new(text));
    for number in 0..4000 {
        assert_eq!(
            echo_of(&mut guard, "note", &format!("entry {number}")),
            None
        );
    }
    let copied = Some(Echo::Found { text: 0 });
    assert_eq!(echo_of(&mut guard, "note", "item 1999"), copied);
}
