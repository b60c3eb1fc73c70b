//! `run_command`, `ask_user`, `finish`.

use std::time::{Duration, Instant};

use plaincall_agent::plaincall::Stop;
use plaincall_agent::{User, UserFuture};

use crate::builtin::scene::{Scene, call};

#[tokio::test]
async fn commands_in_the_directory() {
    let scene = Scene::of(&[("a b.txt", "one\n")]);
    for (command, expected) in [
        ("cat 'a b.txt' | tr a-z A-Z", "ONE\n"),
        ("pwd", "DIR/in\n"),
        (
            "echo out; echo err >&2; exit 3",
            "error: the command ended with exit status 3 | out\nerr\n",
        ),
        (
            "nonsense-of-no-program 2>/dev/null",
            "error: the command ended with exit status 127",
        ),
        (
            "kill -9 $$",
            "error: the command was killed by signal 9 (SIGKILL)",
        ),
        ("cat; echo end", "end\n"),
        ("echo \"${SECRET-unseen}\"", "unseen\n"),
        ("true", ""),
        ("printf 'a\\r\\nb'", "a\r\nb"),
    ] {
        scene
            .check("run_command", &[("command", command)], expected)
            .await;
    }
    let found = scene
        .call("run_command", &[("command", "seq 1 100000")])
        .await;
    assert!(
        found.starts_with("1\n2\n3\n") && found.ends_with("99999\n100000\n"),
        "{found}"
    );
    assert!(found.len() < 34_000 && found.contains("\n[output truncated: "));
}

#[tokio::test]
async fn commands_and_their_settings() {
    let scene = Scene::with(|set| {
        set.command_environment(["SECRET"])
            .command_timeout(Duration::from_millis(300))
    });
    scene
        .check("run_command", &[("command", "echo $SECRET")], "s\n")
        .await;
    // Including all processes that it has started.
    let begun = Instant::now();
    let found = scene
        .call(
            "run_command",
            &[("command", "echo begun; sleep 300 & sleep 300; echo over")],
        )
        .await;
    assert!(
        found.starts_with("error: timed out after 300 ms") && found.ends_with("| begun\n"),
        "{found}"
    );
    assert!(begun.elapsed() < Duration::from_mins(1));
}

struct Person(Option<&'static str>);

impl User for Person {
    fn answer<'a>(&'a self, question: &'a str) -> UserFuture<'a> {
        Box::pin(async move {
            match self.0 {
                Some(answer) => Ok(format!(
                    "{answer}{}",
                    if answer.is_empty() { "" } else { question }
                )),
                None => Err("no user is present".into()),
            }
        })
    }
}

#[tokio::test]
async fn questions() {
    for (answer, question, expected) in [
        (Some("to "), " Which?\n", "to Which?"),
        (Some(""), "Which?", "[empty answer; decide yourself]"),
        (Some("x"), " \n", "error: the question is empty"),
        (None, "Which?", "error: no user is present"),
    ] {
        let scene = Scene::with(|set| set.user(Person(answer)));
        scene
            .check("ask_user", &[("question", question)], expected)
            .await;
    }
}

#[tokio::test]
async fn the_last_word() {
    let scene = Scene::new();
    scene
        .check("finish", &[("answer", "All is done.")], "All is done.")
        .await;
    scene
        .check(
            "finish",
            &[("answer", " ")],
            "error: the answer is empty; write the answer for the user",
        )
        .await;
    for (answer, is_over) in [("Done.", true), ("", false)] {
        let mut run = scene.run();
        let mut turn = run.turn();
        turn.feed(call("finish", &[("answer", answer)]));
        assert_eq!(
            turn.finish(Stop::Natural).await.is_last(),
            is_over,
            "{answer}"
        );
    }
}
