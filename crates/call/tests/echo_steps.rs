//! The limit of the steps to search untrusted texts for the calls of a reply.

#![allow(clippy::expect_used, reason = "a test fails by a panic")]

use plaincall_call::untrusted::{Echo, EchoGuard};
use plaincall_call::{Document, Untrusted};
use plaincall_syntax::Dialect;

fn echo_of(guard: &mut EchoGuard, name: &str, value: &str) -> Option<Echo> {
    let text = format!("!!!GADGET_START:{name}\n!!!ARG:x\n{value}\n!!!GADGET_END");
    let document = Document::parse(&text, &Dialect::block()).expect("a valid dialect");
    guard.echo_of(document.calls().next().expect("a call"))
}

/// Without a limit, the searches of this test take a minute in a fast build.
#[test]
fn a_call_whose_search_takes_too_long_is_an_echo() {
    let mut guard = EchoGuard::new(&[Dialect::block()]).expect("a valid dialect");
    let line = "2026-11-28 a line of a log that continues for a long time\n";
    let text = format!(
        "!!!GADGET_START:note\n{}",
        line.repeat((1 << 20) / line.len())
    );
    guard.observe(&Untrusted::new("no call"));
    guard.observe(&Untrusted::new(text));
    let found = Some(Echo::Found { text: 1 });
    let is_free =
        |guard: &mut EchoGuard, at: usize| echo_of(guard, "note", &format!("value {at}")).is_none();
    // A value that is there is found, and one that is not there is no echo.
    assert_eq!(echo_of(&mut guard, "note", "a long time"), found);
    let free = (0..10_000)
        .take_while(|at| is_free(&mut guard, *at))
        .count();
    let expected = EchoGuard::SEARCH_STEPS >> 20;
    assert!((expected / 2..=expected * 2).contains(&free), "{free}");
    // From then on, each call of this tool is an echo, and no call of another one.
    assert_eq!(echo_of(&mut guard, "note", "value 0"), found);
    assert_eq!(echo_of(&mut guard, "write", "a long time"), None);
    // The next reply has all steps again.
    guard.begin_reply();
    assert!(is_free(&mut guard, 0));
}
