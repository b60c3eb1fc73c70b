//! Time is linear, whatever a text holds and however it is cut.

use plaincall_call::{Document, EchoGuard, Foreign, PassageBuilder, ToolCall};
use plaincall_syntax::{Dialect, Escaper};
use rustix::time::{ClockId, clock_gettime};

/// What this thread has computed so far, in nanoseconds; other work on the machine does not count.
fn cpu_time() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// What hurts: markers, their beginnings, what the escape and the folding look at.
const UNITS: &[&str] = &[
    "x",
    "!",
    "\\",
    "\\n",
    "\\ud83d\\",
    "\n",
    ">",
    "!!!GADGET_START:",
    "!!!GADGET_START:A\n",
    "!!!GADGET_STAR\\",
    "!!!ARG:x\n1\n",
    "🛠",
    "🛠️[a]\n",
    "\u{200B}",
];

/// Checks that eight times the text takes about eight times the time, not 64 times.
fn check(what: &str, work: impl Fn(&str)) {
    for unit in UNITS {
        let time = |count: usize| {
            let text = unit.repeat(count / unit.len());
            let run = || {
                let begun = cpu_time();
                work(&text);
                cpu_time() - begun
            };
            (0..3).map(|_| run()).min().unwrap_or_default()
        };
        let (short, long) = (time(1 << 12), time(1 << 15));
        assert!(
            long < short * 24 + 1_000_000,
            "{what} of {unit:?}: {short} ns, then {long} ns"
        );
    }
}

/// Hands the text to `take` one character at a time.
fn each(text: &str, mut take: impl FnMut(&Foreign<'_>)) {
    let mut buffer = [0; 4];
    for c in text.chars() {
        take(&Foreign::new(&*c.encode_utf8(&mut buffer)));
    }
}

#[test]
fn passages() {
    let builder = PassageBuilder::new(&[Dialect::auto()]).expect("a dialect that works");
    check("a whole text", |text| {
        builder.clone().foreign(&Foreign::new(text));
    });
    check("a text in chunks", |text| {
        let mut builder = builder.clone();
        let mut writer = builder.foreign_writer();
        each(text, |chunk| {
            writer.chunk(chunk);
        });
    });
    check("many texts", |text| {
        let mut builder = builder.clone();
        each(text, |text| {
            builder.foreign(text).own(":");
        });
    });
    let escaper = Escaper::new(&Dialect::auto()).expect("a dialect that works");
    check("an escape and back", |text| {
        escaper.unescape(&escaper.escape(text));
    });
}

#[test]
fn echoes() {
    let guard = EchoGuard::new(&[Dialect::auto()]).expect("a dialect that works");
    // The call is one that nearly stands at every place of some texts.
    let reply = "!!!GADGET_START:A\n!!!ARG:x\n1\n!!!ARG:x2\n!!!GADGET_END";
    let document = Document::parse(reply, &Dialect::auto()).expect("a dialect that works");
    let calls: Vec<&ToolCall> = document.calls().collect();
    check("a whole text", |text| {
        let mut guard = guard.clone();
        guard.hear(&Foreign::new(text));
        assert_eq!(guard.echo_of(calls[0]), None);
    });
    check("a text in chunks", |text| {
        let mut guard = guard.clone();
        let mut listener = guard.listener();
        each(text, |chunk| {
            listener.chunk(chunk);
        });
    });
}
