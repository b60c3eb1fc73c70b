//! The tool `read_result`, which returns the rest of a truncated result.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use plaincall::{Effect, Policy, Run, RunEvent, RunEvents, Stop, Tool, Toolbox};

/// A run with a tool whose output can be set.
struct Reader {
    run: Run,
    events: RunEvents,
    output_text: Arc<Mutex<String>>,
}

impl Reader {
    fn new(limit: usize) -> Self {
        let output_text = Arc::new(Mutex::new(String::new()));
        let tool_output = Arc::clone(&output_text);
        let say = Tool::new("say", move |(): (), _| {
            let text = tool_output.lock().unwrap().clone();
            async { Ok(text) }
        });
        let tools = [say.effect(Effect::Read), Tool::read_result()];
        let policy = Policy::default().result_limit(limit);
        let builder = Run::builder(Toolbox::new(tools).unwrap());
        let run = builder.policy(policy).build().unwrap();
        let events = run.events();
        Self {
            run,
            events,
            output_text,
        }
    }

    /// Returns the whole output of one call, or its error.
    async fn call(&mut self, text: String) -> String {
        let mut turn = self.run.turn();
        turn.feed(text);
        turn.finish(Stop::Natural).await;
        loop {
            if let Some(RunEvent::Result(result)) = self.events.next().await {
                let error = result.error.map(|error| format!("error: {error}"));
                return error.unwrap_or_else(|| result.output.unwrap().to_string());
            }
        }
    }

    async fn say(&mut self, id: &str, output: &str) {
        output.clone_into(&mut self.output_text.lock().unwrap());
        let call = format!("!!!GADGET_START:say:{id}\n!!!GADGET_END\n");
        assert_eq!(self.call(call).await, output);
    }

    async fn read(&mut self, id: &str, from: Option<u64>, bytes: Option<u64>) -> String {
        let mut call = format!("!!!GADGET_START:read_result\n!!!ARG:id\n{id}\n");
        for (name, number) in [("from", from), ("bytes", bytes)] {
            if let Some(number) = number {
                write!(call, "!!!ARG:{name}\n{number}\n").unwrap();
            }
        }
        self.call(call + "!!!GADGET_END\n").await
    }
}

#[tokio::test]
async fn pieces() {
    // A piece has 10 bytes: the last line needs the rest.
    let mut reader = Reader::new(138);
    reader.say("a", &"old".repeat(100)).await;
    let whole = format!("12345\näö{}", "x".repeat(290));
    reader.say("a", &whole).await;
    reader.say("empty", &whole).await;
    reader.say("empty", "").await;
    let on = |to: u32| format!("to {to} of 300; read on with `from` = {to}]\n");
    for (id, from, bytes, expected) in [
        ("a", None, None, format!("12345\näö\n[bytes 0 {}", on(10))),
        ("a", Some(0), Some(6), format!("12345\n[bytes 0 {}", on(6))),
        ("a", Some(6), Some(3), format!("ä\n[bytes 6 {}", on(8))),
        ("a", Some(7), Some(1), format!("ä\n[bytes 6 {}", on(8))),
        ("a", Some(8), Some(0), format!("ö\n[bytes 8 {}", on(10))),
        (
            "a",
            Some(3),
            Some(u64::MAX),
            format!("45\näöxxx\n[bytes 3 {}", on(13)),
        ),
        (
            "a",
            Some(295),
            None,
            "xxxxx\n[bytes 295 to 300 of 300: the end]\n".into(),
        ),
        (
            "a",
            Some(300),
            None,
            "[bytes 300 to 300 of 300: the end]\n".into(),
        ),
        (
            "a",
            Some(301),
            None,
            "error: the result of `a` has only 300 bytes; use a smaller `from`".into(),
        ),
        (
            "a",
            Some(u64::MAX),
            None,
            "error: the result of `a` has only 300 bytes; use a smaller `from`".into(),
        ),
        ("empty", None, None, "[bytes 0 to 0 of 0: the end]\n".into()),
        (
            "A",
            None,
            None,
            "error: no truncated result of a call `A`; truncated results: `a`, `empty`".into(),
        ),
    ] {
        let found = reader.read(id, from, bytes).await;
        assert_eq!(found, expected, "{id} {from:?} {bytes:?}");
    }
}

#[tokio::test]
async fn ids_that_there_are() {
    let mut reader = Reader::new(500);
    let nothing = "error: no truncated result of a call `x`; ";
    let none = format!("{nothing}no result was truncated");
    assert_eq!(reader.read("x", None, None).await, none);
    for number in 0..30 {
        reader.say(&format!("n{number}"), &"x".repeat(501)).await;
    }
    let latest: Vec<String> = (10..30).map(|number| format!("`n{number}`")).collect();
    let latest = latest.join(", ");
    let many = format!("{nothing}truncated results: 30 calls, the latest {latest}");
    assert_eq!(reader.read("x", None, None).await, many);
}

/// With any limit, each piece makes progress.
#[tokio::test]
async fn a_short_limit() {
    for (limit, length) in [(0, 1), (128, 1), (130, 2), (228, 100)] {
        let mut reader = Reader::new(limit);
        reader.say("a", &"x".repeat(1000)).await;
        for bytes in [None, Some(1000)] {
            let expected = format!(
                "{}\n[bytes 0 to {length} of 1000; read on with `from` = {length}]\n",
                "x".repeat(length)
            );
            assert_eq!(reader.read("a", None, bytes).await, expected);
        }
    }
}

/// Following the last lines yields the complete output.
#[tokio::test]
async fn reading_on_comes_to_the_end() {
    let whole = "wörter 🛠 und\nZeilen\n".repeat(9_000);
    let mut reader = Reader::new(64 << 10);
    reader.say("long", &whole).await;
    for bytes in [None, Some(1_000), Some(100_000)] {
        let (mut from, mut pieces) = (0, 0);
        while from < whole.len() {
            let piece = reader.read("long", Some(from as u64), bytes).await;
            let (text, line) = piece.rsplit_once('[').unwrap();
            let end = line.split(' ').nth(3).unwrap().parse().unwrap();
            let part = &whole[from..end];
            assert_eq!(text, format!("{}\n", part.trim_end_matches('\n')));
            assert!(part.len() as u64 <= bytes.unwrap_or(u64::MAX));
            assert!(piece.len() <= 64 << 10);
            let next = line.split('=').nth(1);
            let next = next.and_then(|end| end[1..].split(']').next());
            assert_eq!(next.map_or(whole.len(), |next| next.parse().unwrap()), end);
            (from, pieces) = (end, pieces + 1);
        }
        assert!(pieces > 3, "{pieces}");
    }
}
