//! Limits of output, and long results of dependencies on standard input.

use std::io::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plaincall::{
    Command, Effect, Run, Stop, Tool, Toolbox,
    process::{BackgroundProcess, Program},
};

use crate::commands::scene::{call, check, spec};

/// Returns the kept end of the standard error of a program that writes this text.
async fn kept_stderr(text: &str, limit: usize) -> Result<String, Error> {
    let mut program = Program::new("/bin/sh", "/");
    let script = ["-c", "printf \"$1\" >&2", "sh", text];
    program.arguments = script.map(Into::into).into();
    let (process, ..) = BackgroundProcess::start(&program, limit)?;
    let minute = Duration::from_mins(1);
    Ok(process.wait(minute, minute).await?.stderr)
}

#[tokio::test]
async fn the_beginning_or_the_end() {
    for (text, first, last) in [
        ("", "", ""),
        ("12345678", "12345678", "12345678"),
        (
            "123456789",
            "12345678\n[output truncated: first 8 of 9 bytes]\n",
            "[output truncated: last 8 of 9 bytes]\n23456789",
        ),
        (
            "1234567\nabcde",
            "1234567\n[output truncated: first 8 of 13 bytes]\n",
            "[output truncated: last 5 of 13 bytes]\nabcde",
        ),
        (
            "1234567é8901234é5",
            "1234567\n[output truncated: first 7 of 19 bytes]\n",
            "[output truncated: last 8 of 19 bytes]\n01234é5",
        ),
        (
            "éééééé1",
            "éééé\n[output truncated: first 8 of 13 bytes]\n",
            "[output truncated: last 7 of 13 bytes]\nééé1",
        ),
        (
            "123456789\n",
            "12345678\n[output truncated: first 8 of 10 bytes]\n",
            "[output truncated: last 8 of 10 bytes]\n3456789\n",
        ),
        ("a\\377\\342\\202", "a\u{fffd}\u{fffd}", "a\u{fffd}\u{fffd}"),
    ] {
        let command = Command::new(["printf", text]).output_limit(8);
        check(command, &[], &format!("ok: {first}")).await;
        assert_eq!(kept_stderr(text, 8).await.unwrap(), last, "{text}");
    }
}

#[tokio::test]
async fn both_ends() {
    for (limit, text, expected) in [
        (8, "", ""),
        (8, "1234", "1234"),
        (8, "12345678", "12345678"),
        (
            8,
            "123456789",
            "1234\n[output truncated: 1 of 9 bytes omitted here]\n6789",
        ),
        (
            9,
            "123\n5678901\n34",
            "123\n5\n[output truncated: 7 of 14 bytes omitted here]\n34",
        ),
        (
            8,
            "123éé-é4567é",
            "123\n[output truncated: 9 of 16 bytes omitted here]\n67é",
        ),
        (0, "12", "[output truncated: 2 of 2 bytes omitted here]\n"),
    ] {
        // In one write, and byte by byte.
        for script in ["cat", "dd bs=1 2>/dev/null"] {
            let command = Command::shell(format!("printf '{text}' | {script}"));
            let command = command.output_limit(limit).keep_both_ends();
            check(command, &[], &format!("ok: {expected}")).await;
        }
    }
}

/// Commands read results of any length as JSON.
#[tokio::test]
async fn a_result_is_json_on_the_standard_input() {
    const PIECE: usize = 16 << 10;
    let hard = "\"\\\n\0\u{1f}\u{7f}é\u{2028}🛠️";
    let texts = [
        String::new(),
        hard.to_owned(),
        "x".repeat(PIECE),
        hard.repeat(PIECE / 8),
        "é".repeat(PIECE),
    ];
    let shared = Arc::new(Mutex::new(String::new()));
    let output = Arc::clone(&shared);
    let say = Tool::new("say", move |(): (), _| {
        let text = output.lock().unwrap().clone();
        async { Ok(text) }
    });
    let cat = Tool::command(spec(&[]), Command::new(["cat"])).unwrap();
    let tools = [say.effect(Effect::Read), cat.effect(Effect::Read)];
    let builder = Run::builder(Toolbox::new(tools).unwrap());
    let path = [("PATH", "/usr/bin:/bin")];
    let policy = plaincall::Policy::default().result_limit(usize::MAX);
    let mut run = builder.policy(policy).environment(path).build().unwrap();
    for text in texts {
        for start in ["", "a", "ab", "abc"] {
            let text = format!("{start}{text}");
            shared.lock().unwrap().clone_from(&text);
            let mut turn = run.turn();
            turn.feed("!!!GADGET_START:say:s\n!!!GADGET_END\n");
            turn.feed(call("x", "s", &[]));
            let results = turn.finish(Stop::Natural).await;
            let json = serde_json::to_string(&text).unwrap();
            let end = format!("\"status\":\"ok\",\"output\":{json}}}]}}\n");
            let output = results[1].output.as_deref().unwrap();
            assert!(output.ends_with(&end), "{output}");
        }
    }
}
